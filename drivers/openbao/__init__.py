"""Drives OpenBao: its installation and seal, and everything that is set up inside of it."""

from drivers.openbao import driver

DRIVER = driver.OpenBaoDriver
