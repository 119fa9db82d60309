"""Simulated services that are no API servers: OpenBao, Ironic, Keystone, Nova, BMCs."""
