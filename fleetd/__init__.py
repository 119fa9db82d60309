"""fleetd runs a CobaltCore cloud as one thing. This module imports nothing on purpose."""

__version__ = "0.1.0"
