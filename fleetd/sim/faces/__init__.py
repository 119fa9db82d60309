"""How the simulated world is reached: called in-process, or over loopback."""
