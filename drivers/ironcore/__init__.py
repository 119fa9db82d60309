"""Drives IronCore's bare metal: servers by their BMCs, and a look at the operators."""

from drivers.ironcore.driver import IroncoreDriver

DRIVERS = {"ironcore": IroncoreDriver}
