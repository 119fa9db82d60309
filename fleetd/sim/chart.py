"""What a Helm chart or a Kustomization brings to a simulated cluster; plain data."""

from dataclasses import dataclass

from fleetd.sim.controllers.base import Controller
from fleetd.sim.kube.definitions import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    definitions: tuple[Definition, ...] = ()
    """Kinds that the cluster serves once the chart's CRDs are in."""
    controllers: tuple[type[Controller], ...] = ()
    """Controllers that run while its Deployment is up."""
    deployments: tuple[str, ...] = ()
    """Deployments in the release's namespace."""
    daemonsets: tuple[str, ...] = ()
    seconds: tuple[float, float] = (20.0, 60.0)
    """From the start of the release to its pods being ready, between these."""
