"""
Whom the API server of a Shoot believes: the AuthenticationConfiguration in the ConfigMap that the
Shoot names, as it stands when the server is rolled out; part of `gardener`.

A change of the ConfigMap alone counts at the next reconcile. Of a configuration that the server
cannot read nothing is believed. The keys of an issuer are those of the simulated cluster whose
issuer it is; others have none.
"""

from typing import Any

from fleetd import plainyaml
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.metal_parts import part
from fleetd.sim.kube.access import Tokens, Trust
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.values import namespace_of
from fleetd.sim.world import World

CONFIG = "config.yaml"


def set_up(world: World, garden: Cluster, shoot: Obj, server: Cluster) -> None:
    where = "kubernetes.kubeAPIServer.structuredAuthentication"
    name = part(shoot["spec"], where).get("configMapName")
    config = garden.get(("", "ConfigMap"), str(name), namespace_of(shoot)) if name else None
    server.tokens.trusts = tuple(_trusts(str(part(config, "data").get(CONFIG) or "")))

    def keys(issuer: str) -> Tokens | None:
        known = (one.tokens for one in world.clusters.values())
        return next((one for one in known if one.audience == issuer), None)

    server.tokens.keys = keys


def _trusts(text: str) -> list[Trust]:
    try:
        config: Any = plainyaml.load(text) or {}
        return [
            Trust(
                str(one["issuer"]["url"]),
                tuple(one["issuer"]["audiences"]),
                str(one["claimMappings"]["username"]["prefix"]),
            )
            for one in config.get("jwt", ())
        ]
    except (plainyaml.Error, KeyError, TypeError, AttributeError):
        return []
