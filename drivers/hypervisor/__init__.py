"""Drives the hosts of hypervisor clusters: into service, out of service, and what Nova says."""

from drivers.hypervisor import driver

DRIVERS = {"hypervisor": driver.HypervisorDriver}
