"""Drives Flux: its installation, its sources, and everything that it carries out on clusters."""

from drivers.flux.driver import FluxDriver

DRIVER = FluxDriver
