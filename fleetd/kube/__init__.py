"""How fleetd speaks to Kubernetes API servers."""
