"""Registers clusters with Greenhouse."""

from drivers.greenhouse.driver import GreenhouseDriver

DRIVER = GreenhouseDriver
