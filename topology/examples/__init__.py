"""Fleets to read, to start from and to test with."""
