"""Rehearse: the same engine in a world that is not real, in time that does not pass."""
