"""The workflows whose crash points are swept; each starts from nothing and ends at rest."""

import base64
from dataclasses import replace

from fleetd.sim.services.openbao.service import OpenBao
from fleetd.sim.twin import Twin
from tests.twin.points import Run
from tests.twin.stage import Power, Region, reading
from topology import read


async def bring_up(run: Run) -> None:
    """A whole region from bare servers to a Ready cloud."""
    await run.reach(hunt=True)


async def add_a_rack(run: Run) -> None:
    """Servers are added to a region that is up."""
    await run.reach(hunt=False)
    change(run.region, {"last: 192.0.2.24": "last: 192.0.2.26"})
    await run.reach(hunt=True)


async def upgrade(run: Run) -> None:
    """Kubernetes of one cluster is raised by a patch; nodes stay."""
    await run.reach(hunt=False)
    role = "role: control-plane,"
    change(run.region, {role: f'{role} kubernetes: "1.33.5",'})
    await run.reach(hunt=True)


async def decommission(run: Run) -> None:
    """A document goes: what it named stays as orphans, and nothing is deleted."""
    await run.reach(hunt=False)
    before = dict(run.region.topology.resources)
    change(run.region, {}, without="kind: Cloud")
    left = run.region.topology.resources
    run.region.orphans = {ref: one for ref, one in before.items() if ref not in left}
    await run.reach(hunt=True)


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
    waiting: set[str] = set()

    def held(twin: Twin) -> bool:
        waiting.update(
            one.approval for plan in twin.core.state.plans.values() for one in plan.holds
        )
        return any(waiting)

    await region.live(Power(), until=held)
    region.policy = replace(region.policy, approvals=frozenset(waiting))
    await run.reach(hunt=True)
    (bao,) = (one for one in region.world.services.values() if isinstance(one, OpenBao))
    versions = bao.data.mounts["kv-v2/"].entries["billing/exporter"].versions
    assert {number: one.destroyed for number, one in versions.items()} == {1: True, 2: False}
    for name in ("cp", "hv"):
        secret = region.world.clusters[name].get(("", "Secret"), "exporter", "billing")
        assert secret is not None
        assert base64.b64decode(secret["data"]["value"]).decode() == versions[2].data["value"]


WORKFLOWS = {
    "bring-up": bring_up,
    "add-a-rack": add_a_rack,
    "upgrade": upgrade,
    "decommission": decommission,
    "rotate": rotate,
}


def change(region: Region, words: dict[str, str], *, without: str = "") -> None:
    """Other documents for the next daemon: the minimal example with some words replaced, or
    without one document."""
    (source,) = reading("minimal").bundle.sources.values()
    parts = source.decode().split("---\n")
    text = "---\n".join(part for part in parts if not without or without not in part)
    for old, new in words.items():
        assert old in text, f"the example does not say {old!r} any more"
        text = text.replace(old, new)
    found = read.read_bytes({"region.yaml": text.encode()})
    assert found.topology is not None, found.problems
    region.topology = found.topology
    consent = f"mass-eu-1-{found.topology.digest[:12]}"
    region.policy = replace(region.policy, consents=region.policy.consents | {consent})
