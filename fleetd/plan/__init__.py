"""Decide: what should be done, what is held back, and why. Pure; no I/O anywhere below here."""
