"""Sums up: a pool of servers, a cloud, a region are as well as what they consist of."""

from drivers.cloud import driver

DRIVERS = {"aggregate": driver.AggregateDriver}
