"""Drives what lives in a garden: projects, credentials, clusters, and the way into them."""

from drivers.gardener import access, adopted, driver

DRIVERS = {
    "gardener": driver.GardenerDriver,
    "access": access.AccessDriver,
    "adopted": adopted.AdoptedDriver,
}
