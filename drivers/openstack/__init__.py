"""Drives OpenStack: the ControlPlane and its services, and what is made through their APIs."""

from drivers.openstack import controlplane, driver

DRIVERS = {
    "controlplane": controlplane.ControlPlaneDriver,
    "openstack": driver.OpenStackDriver,
}
