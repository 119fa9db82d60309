"""A credential goes from its source to its path and its targets, and is proven to have arrived."""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from fleetd.sim import loop
from fleetd.sim.services.openbao.data import Entry, Version
from fleetd.vocabulary import Truth
from tests.conformance.driver import suite
from tests.drivers.openbao import stage
from tests.drivers.openbao.stage import Stage
from topology.resource import Ref, Resource

FLOW = Ref("credentialflow", "billing-exporter")
PATH = "billing/exporter"
SOON = {"every": "2h", "overlap": "90m"}
STORES = ("mgmt", "cp-prod", "cp-lab")


def played(story: Callable[[Stage, Resource], Awaitable[None]], **changes: Any) -> None:
    async def run() -> None:
        old = stage.TWO_ZONES.resources[FLOW]
        flow = replace(old, spec={**old.spec, **changes})
        known = replace(stage.TWO_ZONES, resources={**stage.TWO_ZONES.resources, FLOW: flow})
        async with stage.opened(known) as there:
            await there.stored(*STORES)
            await story(there, flow)

    loop.run(run())


def entry(there: Stage, path: str = PATH) -> Entry:
    return there.bao.data.mounts["kv-v2/"].entries[path]


def held(there: Stage, cluster: str) -> str:
    found = there.world.clusters[cluster].get(("", "Secret"), "exporter", "billing")
    return base64.b64decode(found["data"]["password"]).decode() if found else ""


def test_a_made_value_reaches_every_target() -> None:
    """Namespaces that nobody made are made; the version is noted where it lies."""

    async def story(there: Stage, flow: Resource) -> None:
        await there.follow(flow)
        made = entry(there).versions[1].data["value"]
        assert [held(there, name) for name in ("cp-prod", "cp-lab")] == [made, made]
        assert len(made) == 48
        assert entry(there).custom["fleetd-flow"] == "billing-exporter"
        assert entry(there).custom["fleetd-version"] == "1"

    played(story)


def test_it_is_rotated_once_when_it_is_old() -> None:
    """A second version when it is due, and the targets are made to fetch it at once."""

    async def story(there: Stage, flow: Resource) -> None:
        await there.follow(flow)
        first = held(there, "cp-lab")
        await asyncio.sleep(3 * 3600)
        due = (await there.facts(flow))["rotation"]
        await there.follow(flow, minutes=2)
        assert due == "due"
        assert entry(there).current == 2
        assert held(there, "cp-lab") == entry(there).versions[2].data["value"] != first

    played(story, rotation=SOON)


def test_a_rotation_that_never_came_is_overdue() -> None:
    """Later than the overlap allows it is a failure."""

    async def story(there: Stage, flow: Resource) -> None:
        await there.follow(flow)
        await asyncio.sleep(4 * 3600)
        judged = await there.ready(flow)
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "OverdueRotation")

    played(story, rotation=SOON)


def test_an_old_value_at_a_target_is_seen_by_its_hash() -> None:
    """Ready and a moved version of the object prove nothing; the data hash does."""

    async def story(there: Stage, flow: Resource) -> None:
        await there.follow(flow)
        write(there, PATH, 2, "newer-value-of-somebody")
        judged = await there.ready(flow)
        external = there.world.clusters["cp-lab"].get(
            ("external-secrets.io", "ExternalSecret"), "exporter", "billing"
        )
        assert external is not None
        assert external["status"]["conditions"][0]["status"] == "True"
        assert judged is not None
        assert judged.reason == "Spreading"
        await there.follow(flow, minutes=2)
        expected = f"map[password:[{' '.join(map(str, b'newer-value-of-somebody'))}]]"
        secret = there.world.clusters["cp-lab"].get(("", "Secret"), "exporter", "billing")
        assert secret is not None
        noted = secret["metadata"]["annotations"]["reconcile.external-secrets.io/data-hash"]
        assert noted == hashlib.sha3_224(expected.encode()).hexdigest()

    played(story)


def write(there: Stage, path: str, number: int, value: str) -> None:
    now = there.world.now()
    entries = there.bao.data.mounts["kv-v2/"].entries
    found = entries.setdefault(path, Entry(created=now, updated=now))
    found.current = number
    found.versions[number] = Version(data={"value": value}, at=now)


def test_what_somebody_writes_is_carried_on() -> None:
    """From another path of OpenBao, each new version once."""
    source = {"openbao": {"path": "ci/registry"}}

    async def story(there: Stage, flow: Resource) -> None:
        await there.do(flow)
        missing = await there.ready(flow)
        write(there, "ci/registry", 1, "value-of-the-ci")
        await there.follow(flow)
        there.restart()
        again = list(await there.proposed(flow))
        assert missing is not None
        assert missing.reason == "SourceMissing"
        assert held(there, "cp-prod") == "value-of-the-ci"
        assert (entry(there).current, again) == (1, [])

    played(story, source=source, rotation=None)


def test_a_secret_of_a_cluster_is_pushed_and_fetched() -> None:
    """Through External Secrets of its cluster, with the policy made for this push."""
    named = {"cluster": "mgmt", "namespace": "default", "name": "made-here", "key": "k"}

    async def story(there: Stage, flow: Resource) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "made-here", "namespace": "default"},
            "data": {"k": base64.b64encode(b"value-of-a-cluster").decode()},
        }
        there.mgmt.apply(body, manager="somebody")
        await there.follow(flow)
        assert held(there, "cp-lab") == "value-of-a-cluster"

    played(story, source={"secret": named}, rotation=None)


def test_the_contract_is_kept() -> None:
    """From nothing to Ready, each step twice, and unknown when out of reach."""
    broken: list[str] = []

    async def story(there: Stage, flow: Resource) -> None:
        async def settle() -> None:
            await asyncio.sleep(60)

        billing = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "billing"}}
        for name in ("cp-prod", "cp-lab"):
            there.world.clusters[name].apply(billing, manager="others")
        bench = suite.Bench(
            driver=there.driver(flow),
            want=flow,
            bad=replace(flow, spec={"source": {}, "path": "", "targets": []}),
            settle=settle,
            cut=there.cut,
            writes=there.writes,
            state=there.state,
        )
        broken.extend(await suite.check(bench))

    played(story)

    assert broken == []
