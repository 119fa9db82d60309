"""The two programs: `fleetd`, the daemon, and `fleetctl`, the operator's command."""
