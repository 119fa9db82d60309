"""An API server in memory, with the manners of the real one."""
