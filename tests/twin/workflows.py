"""
The workflows whose crash points are swept. The first starts from nothing, the others with a region
at rest; each ends at rest.

Simple here, and richer when their engines come: the upgrade is a patch of one cluster, which
replaces no node; the server that is replaced stood free; a flow of the documents is rotated.
"""

import base64
from collections.abc import Collection, Mapping
from dataclasses import replace

from fleetd.sim.services.openbao.service import OpenBao
from fleetd.sim.twin import Twin
from tests.twin.points import Run, Say, Workflow
from tests.twin.stage import Power, Region, reading
from topology import read
from topology.resource import Ref, Topology

PATCH = {"role: control-plane,": 'role: control-plane, kubernetes: "1.33.5",'}
RACK = {"last: 192.0.2.24": "last: 192.0.2.26"}
SPARE = """apiVersion: fleet.c5c3.io/v1alpha1
kind: ServerPool
metadata: {name: spare}
spec:
  region: eu-1
  class: std-64c
  access: {file: bmc.yaml}
  range: {first: 192.0.2.27, last: 192.0.2.27, zone: a}
"""
CLOUD, CLUSTER, POOL = "kind: Cloud", "kind: Cluster", "kind: ServerPool"
HYPERVISORS = "name: hv}"
EVERYTHING = (CLOUD, CLUSTER, POOL, "kind: Region")


def region() -> Region:
    """The minimal example, with what the workflows add to it standing by."""
    return Region.of(furniture=documents({**PATCH, **RACK}, more=SPARE))


async def bring_up(run: Run) -> None:
    """A whole region from bare servers to a Ready cloud. Whoever dies between OpenBao's answer
    to its init and the write of the keys has lost them: then a person lets it begin again."""
    await run.reach(say=approve(OPENBAO))


async def add_a_rack(run: Run) -> None:
    """Servers are added to a region that is up."""
    change(run.region, RACK)
    await run.reach()


async def upgrade(run: Run) -> None:
    """Kubernetes of one cluster is raised by a patch; nodes stay."""
    change(run.region, PATCH)
    await run.reach()


async def replace_a_server(run: Run) -> None:
    """A free server dies for good: its document goes and another's comes, the old one is retired,
    and the rack it stood in gets the new one. Simple: no cluster had claimed it."""
    change(run.region, {"last: 192.0.2.24": "last: 192.0.2.25"})
    await run.reach(hunt=False)
    run.region.world.truth.machines["metal-15"].bmc = "unreachable"
    change(run.region, more=SPARE)
    await run.reach(say=retire(Ref("server", "metal-15")))


async def decommission(run: Run) -> None:
    """Everything goes: first its tenants, then its documents, which deletes nothing, then all of it
    by `retire`."""
    run.region.vacate()
    change(run.region, without=EVERYTHING)
    await run.reach(say=retire(*HEADS))


async def rotate(run: Run) -> None:
    """Somebody asks for a new value: it is made, fetched, seen in use, and the old one is ended
    when a person has said yes."""
    region, cloud = run.region, "apiVersion: fleet.c5c3.io/v1alpha1\nkind: Cloud"
    flow = (
        "apiVersion: fleet.c5c3.io/v1alpha1\nkind: CredentialFlow\nmetadata: {name: exporter}\n"
        "spec:\n  region: eu-1\n  path: billing/exporter\n  source: {generate: {}}\n"
        "  targets: [{cluster: cp, namespace: billing, secret: exporter},"
        " {cluster: hv, namespace: billing, secret: exporter}]\n"
        "  rotation: {every: 30d, overlap: 1m}\n---\n"
    )
    change(region, {cloud: flow + cloud})
    await run.reach(hunt=False)
    asked = f"overlap: 1m, since: {region.world.now():%Y-%m-%dT%H:%M:%SZ}"
    change(region, {cloud: flow.replace("overlap: 1m", asked) + cloud})
    await run.reach(hunt=True)

    def held(twin: Twin) -> bool:
        return any(one.approval for plan in twin.core.state.plans.values() for one in plan.holds)

    assert await region.live(Power(), until=held)
    # Each yes is for one attempt, and an attempt may fail.
    await run.reach(hunt=True, say=approve(Ref("credentialflow", "exporter")))
    (bao,) = (one for one in region.world.services.values() if isinstance(one, OpenBao))
    versions = bao.data.mounts["kv-v2/"].entries["billing/exporter"].versions
    assert {number: one.destroyed for number, one in versions.items()} == {1: True, 2: False}
    for name in ("cp", "hv"):
        secret = region.world.clusters[name].get(("", "Secret"), "exporter", "billing")
        assert secret is not None
        assert base64.b64decode(secret["data"]["value"]).decode() == versions[2].data["value"]


OPENBAO = Ref("openbao", "mgmt")
CLUSTERS = tuple(Ref("cluster", name) for name in ("hv", "st", "cp", "mgmt"))
HEADS = (Ref("cloud", "prod"), *CLUSTERS, Ref("serverpool", "metal"), Ref("region", "eu-1"))
"""In the order in which they can be retired: who needs another goes first."""

WORKFLOWS: Mapping[str, Workflow] = {
    "bring-up": bring_up,
    "add-a-rack": add_a_rack,
    "upgrade": upgrade,
    "replace-a-server": replace_a_server,
    "decommission": decommission,
    "rotate": rotate,
}


def retire(*refs: Ref) -> Say:
    """What `fleetctl retire` does, for what is an orphan and not retired yet."""

    async def say(twin: Twin) -> None:
        state = twin.core.state
        for ref in refs:
            if ref in state.view.orphans and ref not in state.retired:
                await twin.commands.retire(ref, who="test")

    return say


def approve(ref: Ref) -> Say:
    """What `fleetctl approve` does, for whatever of this thing waits for it."""

    async def say(twin: Twin) -> None:
        for plan in twin.core.state.plans.values():
            for hold in plan.holds:
                if hold.ref == ref and hold.approval:
                    await twin.commands.approve(hold.approval, who="test")

    return say


def change(
    region: Region,
    words: Mapping[str, str] | None = None,
    *,
    without: Collection[str] = (),
    more: str = "",
) -> None:
    """Other documents for the next daemon, and consent to what they disrupt."""
    region.topology = documents(words or {}, without=without, more=more)
    consent = f"mass-eu-1-{region.topology.digest[:12]}"
    region.policy = replace(region.policy, consents=region.policy.consents | {consent})


def documents(
    words: Mapping[str, str], *, without: Collection[str] = (), more: str = ""
) -> Topology:
    """The minimal example with some words replaced, without the documents in which one of
    `without` stands, and with `more`."""
    (source,) = reading("minimal").bundle.sources.values()
    parts = source.decode().split("---\n")
    kept = [part for part in parts if not any(word in part for word in without)]
    text = "---\n".join([*kept, *([more] if more else [])])
    for old, new in words.items():
        assert old in text, f"the example does not say {old!r} any more"
        text = text.replace(old, new)
    found = read.read_bytes({"region.yaml": text.encode()})
    assert found.topology is not None, found.problems
    return found.topology
