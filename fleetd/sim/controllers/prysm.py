"""Prysm: measures disks and gateways. Here it is its pods and nothing more (cobaltcore 14.3)."""

from collections.abc import Mapping

from fleetd.sim.chart import Chart

CHARTS: Mapping[str, Chart] = {
    "prysm": Chart(deployments=("prysm-webhook",), daemonsets=("prysm-producer",))
}
