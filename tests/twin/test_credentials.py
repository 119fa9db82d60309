"""Credentials of a whole region: what the ledger knows of them, and a rotation with proof."""

import base64
import json
from datetime import timedelta

from fleetd.sim import loop
from fleetd.sim.services.openbao.data import Entry
from fleetd.sim.services.openbao.service import OpenBao
from fleetd.surface import answers, ledger
from tests.twin import workflows
from tests.twin.stage import Power, Region
from topology.resource import Ref

CLOUD = "apiVersion: fleet.c5c3.io/v1alpha1\nkind: Cloud"
FLOW = """apiVersion: fleet.c5c3.io/v1alpha1
kind: CredentialFlow
metadata: {name: exporter}
spec:
  region: eu-1
  path: billing/exporter
  source: {generate: {}}
  targets: [{cluster: cp, namespace: n, secret: s}, {cluster: hv, namespace: n, secret: s}]
  rotation: {every: 30d, overlap: 10mSINCE}
---
"""
LAGS = ("eso", "hv", "lagging")
PLAIN = ("namespace", "username", "host")
"""Keys of Secrets whose values are no secret."""
SEEN = {
    *("exporter", "kubeconfig", "metal-token", "token-reviewer", "mariadb-root", "garage-s3"),
    *("garage-admin-token", "barbican-unseal", "ceph-admin", "ceph-key-nova", "ceph-key-cinder"),
    *("ceph-key-glance", "shoot-ca", "shoot-ssh-keypair", "greenhouse-token", "openbao-keys"),
    *("rabbitmq-default-user", "valkey-binding", "account-token", "garden-kubeconfig"),
    *("metal-kubeconfig", "shoot-token-key", "shoot-etcd-key"),
}
"""What drivers tell version or age of."""


def bao(region: Region) -> OpenBao:
    return next(one for one in region.world.services.values() if isinstance(one, OpenBao))


def entry(region: Region) -> Entry:
    return bao(region).data.mounts["kv-v2/"].entries["billing/exporter"]


def book(region: Region) -> list[answers.Credential]:
    assert region.twin is not None
    view = region.twin.core.state.view
    now = region.world.now()
    return ledger.entries(view.topology, region.catalogue.get, view.seen.get, now=now)


def approvals(region: Region) -> set[str]:
    assert region.twin is not None
    plans = region.twin.core.state.plans.values()
    return {hold.approval for plan in plans for hold in plan.holds if hold.approval}


def values(region: Region) -> set[str]:
    """Everything secret in the world: what OpenBao holds, and what lies in Secrets."""
    found = {
        str(value)
        for mount in bao(region).data.mounts.values()
        for one in mount.entries.values()
        for version in one.versions.values()
        for value in version.data.values()
    }
    for cluster in region.world.clusters.values():
        for secret in cluster.list(("", "Secret")):
            data: dict[str, str] = secret.get("data") or {}
            for text in (text for key, text in data.items() if key not in PLAIN):
                found |= {text, base64.b64decode(text).decode(errors="replace")}
    return {one for one in found if len(one) > 12}  # what is shorter is a name or a port


async def a_while(region: Region, length: timedelta) -> None:
    """One daemon, for so long."""
    await region.live(Power(), until=lambda _: False, within=length)


def test_the_ledger_knows_a_region_and_gives_nothing_away() -> None:
    """Version or age of what drivers can see, a state for each, and no value of any."""

    async def story() -> tuple[list[answers.Credential], set[str]]:
        region = Region.of()
        workflows.change(region, {CLOUD: FLOW.replace("SINCE", "") + CLOUD})
        assert await region.live(Power(), until=lambda twin: twin.quiet())
        return book(region), values(region)

    items, secret = loop.run(story())
    unseen = {item["name"] for item in items if item["state"] == "NotSeen"}
    text = json.dumps(items)
    assert {item["name"] for item in items} - unseen == SEEN
    assert SEEN & unseen == set()
    assert len(secret) > 20
    assert [one for one in secret if one in text] == []


def test_a_rotation_waits_for_the_last_user_also_through_restarts() -> None:
    """While one lags the old one is not even offered to be ended, whoever restarts; nothing is
    rotated twice; when all are seen with the new one, its end is offered and needs a yes."""

    async def story() -> None:
        region = Region.of()
        workflows.change(region, {CLOUD: FLOW.replace("SINCE", "") + CLOUD})
        assert await region.live(Power(), until=lambda twin: twin.quiet())
        region.world.mishaps.add(LAGS)
        asked = f", since: {region.world.now():%Y-%m-%dT%H:%M:%SZ}"
        workflows.change(region, {CLOUD: FLOW.replace("SINCE", asked) + CLOUD})
        for _ in range(3):
            await a_while(region, timedelta(minutes=20))
            assert approvals(region) == set()
            assert [one.destroyed for one in entry(region).versions.values()] == [False, False]
        (item,) = (one for one in book(region) if one["name"] == "exporter")
        assert (item["state"], item["stillOld"]) == ("Spreading", ["hv/n/s"])
        assert region.twin is not None
        ready = region.twin.ready(Ref("credentialflow", "exporter"))
        assert ready is not None
        assert "hv/n/s holds version 1" in ready.message
        region.world.mishaps.discard(LAGS)
        await a_while(region, timedelta(minutes=10))
        assert len(approvals(region)) == 1
        assert [one.destroyed for one in entry(region).versions.values()] == [False, False]

    loop.run(story())
