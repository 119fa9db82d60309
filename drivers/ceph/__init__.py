"""Drives Ceph: Rook's cluster, pools and users, and the monitor at a third place."""

from drivers.ceph.driver import CephDriver

DRIVERS = {"ceph": CephDriver}
