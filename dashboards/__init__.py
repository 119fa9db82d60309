"""What people watch fleetd with: Grafana dashboards, and the code they are made by."""
