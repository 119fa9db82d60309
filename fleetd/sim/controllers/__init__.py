"""The controllers that live in simulated clusters; one file each."""
