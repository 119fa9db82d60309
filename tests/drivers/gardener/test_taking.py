"""Clusters that others made: looked at, and changed only when a document says so."""

import asyncio
import json
from datetime import timedelta
from typing import Any

from drivers.gardener import manifests, taking
from drivers.gardener.adopted import AdoptedDriver
from drivers.gardener.driver import GardenerDriver
from fleetd.secrets import Secret
from fleetd.sim import loop
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from tests.drivers.gardener.test_clusters import SHOOT, prepared, proposed
from topology.resource import Facts, Resource

HV = want("cluster", "hv")


async def _others(region: Region) -> GardenerDriver:
    """A Shoot by hand: another purpose, updates on, and a pool more."""
    driver = await prepared(region)
    body: dict[str, Any] = json.loads(json.dumps(manifests.shoot(HV).body))
    body["apiVersion"] = "core.gardener.cloud/v1beta1"
    body["spec"]["purpose"] = "testing"
    body["spec"]["maintenance"]["autoUpdate"]["kubernetesVersion"] = True
    extra = {**body["spec"]["provider"]["workers"][0], "name": "extra", "minimum": 1, "maximum": 1}
    body["spec"]["provider"]["workers"].append(extra)
    region.garden.create(body, manager="somebody")
    await asyncio.sleep(3600)
    return driver


def test_a_shoot_of_others_is_only_looked_at() -> None:
    """It is healthy and not Ready: nothing is built on it; the report is in the condition."""

    async def act(region: Region) -> None:
        driver = await _others(region)
        before = len(region.ledger.deeds)
        seen = await driver.observe(HV)
        (ready, *_) = driver.judge(HV, seen)
        assert (ready.reason, ready.truth) == ("NotTakenOver", "False")
        assert (seen.facts or {})["observed"]["changes"] == [
            "purpose: testing -> production",
            "maintenance.autoUpdate.kubernetesVersion: true -> false",
            "pool extra stays, though the document does not name it",
        ]
        assert "purpose: testing -> production" in ready.message
        assert driver.propose(HV, seen) == ()
        assert len(region.ledger.deeds) == before

    loop.run(place.play(act))


def test_it_is_taken_over_when_the_document_says_so() -> None:
    """One step that takes the fields from their owner; afterwards it is like one of our own."""

    async def act(region: Region) -> None:
        driver = await _others(region)
        mine = changed(HV, takeOver=True)
        (step,) = await proposed(region, driver, mine)
        assert step.args["force"]
        assert step.why.startswith("take over shoot hv, which others made")
        await region.carry_out(driver, [step])
        assert await region.road(driver, mine) == "Ready"
        live = region.garden.get(SHOOT, "hv", "garden-cobalt")
        assert live is not None
        assert live["spec"]["purpose"] == "production"
        pools = [one["name"] for one in live["spec"]["provider"]["workers"]]
        assert sorted(pools) == ["compute", "extra"]
        assert await proposed(region, driver, HV) == ()

    loop.run(place.play(act))


def test_taking_over_is_held_like_any_other_change() -> None:
    """What the garden would refuse is told instead, though the document says take over."""

    async def act(region: Region) -> None:
        driver = await _others(region)
        mine = changed(HV, takeOver=True, networking={"type": "cilium"})
        (step,) = await proposed(region, driver, mine)
        assert step.verb == "refuse"

    loop.run(place.play(act))


def test_a_report_names_lists_and_missing_values() -> None:
    """Members by their name, what is not there as nothing, and no more than a screen full."""
    wanted: Facts = {
        "spec": {"a": {"b": 1}, "provider": {"workers": [{"name": "x", "maximum": 2}]}}
    }
    live: Facts = {"spec": {"provider": {"workers": [{"name": "x", "maximum": 9}]}}}

    assert taking.report(wanted, live) == [
        'a: nothing -> {"b": 1}',
        "provider.workers[x].maximum: 9 -> 2",
    ]
    many: Facts = {"spec": {f"k{number}": number for number in range(1, 99)}}
    assert len(taking.report(many, {"spec": {}})) == taking.MOST


class _Given:
    """Reads one kubeconfig, whatever is asked."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def read(self, access: Facts, want: Resource) -> Secret:
        return Secret(self.text)


def _adopted(region: Region, *, manage: bool, **options: Any) -> tuple[AdoptedDriver, Resource]:
    there = region.world.add_cluster("old")
    there.version = "v1.29.1"
    for number, zone in enumerate(("a", "c")):
        node = {"name": f"n{number}", "labels": {"topology.kubernetes.io/zone": zone}}
        status = {"conditions": [{"type": "Ready", "status": "True" if zone == "a" else "False"}]}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": node}
        there.create(body, manager="t")
        there.set_status(("", "Node"), f"n{number}", "", status, manager="t")
    config = there.kubeconfig(region.world.address("old"), there.token("me", **options))
    object.__setattr__(region.tools, "secrets", _Given(json.dumps(config)))
    given = {"adopted": {"access": {"file": "old"}, "manage": manage}, "zones": ["a", "b"]}
    cluster = changed(want("cluster", "cp"), **given)
    object.__setattr__(cluster, "backend", "cluster:old")
    return AdoptedDriver(region.tools), cluster


def test_a_cluster_with_a_kubeconfig_only_is_read_first() -> None:
    """Version, nodes, zones and what is installed there already, in words; not Ready until the
    document says that fleetd may manage it."""

    async def act(region: Region) -> None:
        driver, cluster = _adopted(region, manage=False, groups=["system:masters"])
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "mariadbs.k8s.mariadb.com"},
            "spec": {
                "group": "k8s.mariadb.com",
                "scope": "Namespaced",
                "names": {"kind": "MariaDB", "plural": "mariadbs"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
        region.world.clusters["old"].create(crd, manager="t")
        seen = await driver.observe(cluster)
        (ready, *_) = driver.judge(cluster, seen)
        assert (ready.reason, ready.truth) == ("ReadOnly", "False")
        assert (seen.facts or {})["observed"]["report"] == [
            "Kubernetes 1.29.1, outside of 1.32 to 1.36, with which fleetd's parts work",
            "2 nodes, not Ready: n1",
            "no node is in zone b, which the document names",
            "nodes are in zone c, which the document does not name",
            "k8s.mariadb.com is installed already; fleetd would go on from what is there",
        ]
        assert driver.propose(cluster, seen) == ()
        assert region.ledger.deeds == []

    loop.run(place.play(act))


def test_a_report_says_what_it_may_not_ask() -> None:
    """A kubeconfig with few rights is no reason not to look."""

    async def act(region: Region) -> None:
        driver, cluster = _adopted(region, manage=False)
        region.world.clusters["old"].rbac_enforced = True
        seen = await driver.observe(cluster)
        assert (seen.facts or {})["observed"]["report"][1:] == [
            "its kubeconfig may not list nodes",
            "its kubeconfig may not list CustomResourceDefinitions",
        ]

    loop.run(place.play(act))


def test_a_kubeconfig_of_others_that_ends_soon_is_told() -> None:
    """Nobody but a person can renew it; the cluster is Ready meanwhile."""

    async def act(region: Region) -> None:

        until = region.world.now() + timedelta(days=3)
        driver, cluster = _adopted(region, manage=True, groups=["system:masters"], expires=until)
        told = driver.judge(cluster, await driver.observe(cluster))
        assert [one.reason for one in told] == ["Adopted", "ExpiresSoon"]
        assert until.isoformat() in told[1].message

    loop.run(place.play(act))
