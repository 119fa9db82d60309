"""Secrets of clusters and of OpenBao: wrapped as they are decoded, and never collected."""

import asyncio
import base64
import json
import random
from datetime import UTC, datetime

import pytest
import requests

from drivers.openbao.client import Bao, Kept
from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube import errors
from fleetd.kube.clusters import Clusters
from fleetd.kube.secretview import SecretView
from fleetd.secrets import Secret
from fleetd.sim import loop
from fleetd.sim.faults import Climate
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.world import HttpRequest, HttpResponse, World
from tests import defaults
from tests.secrets import canary

START = datetime(2026, 3, 3, tzinfo=UTC)


@pytest.mark.parametrize("name", canary.CANARIES)
def test_a_secret_of_a_cluster_shows_no_value(name: str) -> None:
    """Neither the view nor the object made of it; the value itself is still there to be used."""
    value = canary.CANARIES[name]
    data = {"key": base64.b64encode(value.encode()).decode(), "binary": "//8="}
    live = {"kind": "Secret", "type": "Opaque", "metadata": {"name": "login"}, "data": data}

    view = SecretView.of(live)

    assert canary.found(f"{view} {view!r} {view.object()} {view.values}") == []
    assert {key: secret.reveal() for key, secret in view.values.items()} == {"key": value}


def test_secrets_are_read_by_name_and_never_collected() -> None:
    """A get of one name is all that reaches the server; a cache of them is refused."""

    async def main() -> tuple[SecretView | None, SecretView | None, list[str]]:
        world, ledger, clock = World(1, START), Ledger(), LoopClock(START)
        there = world.add_cluster("mgmt")
        net = SimNetwork(world, Climate(world, ledger))
        clusters = Clusters(
            net.kube,
            gates=Gates(defaults.LIMITS, clock),
            clock=clock,
            rng=random.Random(1),
            wake=lambda _: None,
        )
        body = {"metadata": {"name": "login", "namespace": "default"}, "data": {"a": "eA=="}}
        there.create({"apiVersion": "v1", "kind": "Secret", **body}, manager="t")
        token = there.token("fleetd", ("system:masters",))
        config = there.kubeconfig(world.address("mgmt"), token)
        clusters.put("cluster:mgmt", Secret(json.dumps(config)))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(clusters.run(), name="clusters")
            await asyncio.sleep(0)
            with pytest.raises(errors.Invalid, match="not collected"):
                await clusters.cache("cluster:mgmt", "", "Secret")
            found = await clusters.secret("cluster:mgmt", "login", "default")
            missing = await clusters.secret("cluster:mgmt", "nobody", "default")
            task.cancel()
        return found, missing, [found.values["a"].reveal()] if found else []

    found, missing, values = loop.run(main())
    assert found is not None
    assert missing is None
    assert values == ["x"]


@pytest.mark.parametrize("name", canary.CANARIES)
def test_a_version_in_openbao_shows_no_value(name: str) -> None:
    """What is read from the KV engine is wrapped as it arrives."""
    value = canary.CANARIES[name]

    class Kv:
        def handle(self, request: HttpRequest) -> HttpResponse:
            data = {"data": {"value": value, "port": 8200}, "metadata": {"version": 3}}
            return HttpResponse(status=200, body=json.dumps({"data": data}).encode())

    async def main() -> Kept | None:
        world = World(1, START)
        world.services["bao"] = Kv()
        with requests.Session() as session:
            session.mount("https://", SimNetwork(world, Climate(world, Ledger())).adapter(1))
            return Bao("https://bao.sim", None, session).secret("kv", "path")

    kept = loop.run(main())
    assert kept is not None
    assert canary.found(f"{kept} {kept!r} {kept.values}") == []
    assert (kept.version, kept.values["value"].reveal()) == (3, value)
    assert kept.values["port"].reveal() == "8200"
