"""Drives what External Secrets works on: stores, ExternalSecrets and PushSecrets."""

from drivers.eso import driver

DRIVER = driver.EsoDriver
