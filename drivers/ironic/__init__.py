"""Drives bare metal through Ironic: a node for each server, and a look at the API itself."""

from drivers.ironic.driver import IronicDriver

DRIVERS = {"ironic": IronicDriver}
