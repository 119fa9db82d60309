"""Whom the API server of a simulated Shoot believes: those that its configuration names, and for
whom it names them."""

import json
from datetime import timedelta

import pytest

from drivers.flux import trusted
from drivers.gardener import manifests
from fleetd.kube import lifetime, trust
from fleetd.secrets import Secret
from fleetd.sim import build
from fleetd.sim.controllers import gardener_trust
from fleetd.sim.kube.access import BadToken
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.world import World
from tests.drivers.gardener.region import changed, want

ISSUER = "https://mgmt.sim.invalid"
SUBJECT = f"system:serviceaccount:{trust.NAMESPACE}:{trust.ACCOUNT}"


def _world() -> tuple[World, Cluster, Cluster]:
    """A garden, and a management cluster that issues tokens."""
    world = World(1, build.START)
    garden = world.add_cluster("garden-eu-1")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-cobalt"}}
    garden.create(space, manager="t")
    return world, garden, world.add_cluster("mgmt")


def _said(world: World, garden: Cluster, server: Cluster, token: str, text: str | None) -> str:
    """Who comes with the token, if the Shoot's ConfigMap has this text; None: our driver's."""
    cluster = changed(want("cluster", "hv"), trust={"issuer": ISSUER})
    (config,) = manifests.authentication(cluster)
    body = json.loads(json.dumps(config.body))
    if text is not None:
        body["data"]["config.yaml"] = text
    garden.apply(body, manager="t")
    shoot = json.loads(json.dumps(manifests.shoot(cluster).body))
    gardener_trust.set_up(world, garden, shoot, server)
    try:
        return server.tokens.user(token).name
    except BadToken as cause:
        return str(cause)


@pytest.mark.parametrize(
    ("audience", "text", "said"),
    [
        ("hv", None, trust.USER),
        ("st", None, "is invalid for the target audiences"),
        ("hv", '{"jwt": []}', "invalid bearer token"),
        ("hv", "no: [configuration", "invalid bearer token"),
    ],
)
async def test_only_who_is_named_is_believed(audience: str, text: str | None, said: str) -> None:
    """A token of the issuer, for this cluster, as long as the configuration says so."""
    world, garden, mgmt = _world()
    server = world.add_cluster("hv")
    ends = world.now() + timedelta(hours=1)
    for_it = (trust.audience(audience),)
    token = mgmt.tokens.issue(SUBJECT, (), expires=ends, audiences=for_it)

    assert said in _said(world, garden, server, token, text)
    assert lifetime.issuer(Secret(token)) == ISSUER


async def test_a_token_that_ended_is_not_believed() -> None:
    """The other server's word counts for its end as well."""
    world, garden, mgmt = _world()
    server = world.add_cluster("hv")
    over = world.now() - timedelta(seconds=1)
    token = mgmt.tokens.issue(SUBJECT, (), expires=over, audiences=(trust.audience("hv"),))

    assert "has expired" in _said(world, garden, server, token, None)


@pytest.mark.parametrize(
    ("version", "said"),
    [("2.x", ""), ("2.7.3", ""), ("2.6.4", "have version 2.7 or newer, or remove trust")],
)
def test_an_old_flux_is_refused_in_words(version: str, said: str) -> None:
    """Which version it takes, and what else can be done."""
    found = trusted.too_old(version)

    assert bool(found) is bool(said)
    assert said in found
