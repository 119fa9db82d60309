"""
Delete and re-add, on a whole region: what no document names any more stays and is an orphan; only
`retire` removes it, in an order in which nobody is hurt, and leaves nothing of fleetd behind.
"""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from fleetd.sim import loop
from fleetd.sim.ledger import Deed
from fleetd.sim.services import openstack
from fleetd.sim.twin import Twin
from fleetd.vocabulary import Hold, HoldReason
from tests.twin import workflows
from tests.twin.stage import ROUNDS, Power, Region
from topology.resource import Ref

CLOUD, HV = Ref("cloud", "prod"), Ref("cluster", "hv")
WITHOUT = (workflows.CLOUD, workflows.HYPERVISORS)
CLAIM = ("metal.ironcore.dev", "ServerClaim")
SHOOT = ("core.gardener.cloud", "Shoot")
AFTER_THE_WINDOW = datetime(2026, 3, 4, 3, 30, tzinfo=UTC)
"""On a Wednesday; the next window opens at 22:00 in Berlin, which is 21:00 UTC."""


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop.run(story())


async def up(**options: Any) -> Region:
    region = Region.of(**options)
    assert await region.live(Power(), until=region.settled())
    return region


async def rounds(region: Region, count: int = 1, **options: Any) -> list[Deed]:
    """What a daemon writes in some rounds of looks."""
    deeds = len(region.ledger.deeds)
    end = region.world.elapsed() + count * ROUNDS.total_seconds()
    await region.live(Power(), until=lambda _: region.world.elapsed() >= end, **options)
    return region.ledger.since(deeds)


def held(twin: Twin | None, ref: Ref) -> Hold:
    assert twin is not None
    plans = twin.core.state.plans.values()
    return next(hold for plan in plans for hold in plan.holds if hold.ref == ref)


def test_what_leaves_the_documents_stays_and_comes_back_unharmed() -> None:
    """It becomes orphans, and not one write is made, then or when it is named again."""

    async def story() -> None:
        region = await up()
        before = region.picture()
        for without in ((workflows.CLOUD,), WITHOUT):
            workflows.change(region, without=without)
            assert await rounds(region, 2) == []
        assert {CLOUD, HV, Ref("hypervisors", "hv")} <= set(await region.orphans())
        assert held(region.twin, HV).reason is HoldReason.ORPHANED
        assert region.picture() == before
        assert await region.judge(reached=True) == []

        workflows.change(region)
        assert await rounds(region) == []
        assert await region.orphans() == {}
        assert await region.judge(reached=region.twin is not None and region.twin.quiet()) == []

    play(story)


def test_a_retired_cloud_goes_in_the_safe_order_and_nothing_else_does() -> None:
    """Hosts out of Nova first, then what they stood on, the control plane, and the Shoot last of
    its cluster, with its confirmation; servers are free again, its login is gone."""

    async def story() -> None:
        region = await up()
        region.vacate()
        others = {name: text for name, text in region.picture().items() if _stays(name)}
        workflows.change(region, without=WITHOUT)
        deeds = len(region.ledger.deeds)
        say = workflows.retire(CLOUD, HV)
        assert await region.live(Power(), until=region.settled(), say=say)
        assert await region.judge(reached=True) == []
        assert await region.orphans() == {}
        assert await region.rest() == []
        left = {name: text for name, text in region.picture().items() if _stays(name)}
        assert others.items() <= left.items()
        _in_order(
            [str(deed) for deed in region.ledger.since(deeds)],
            "hv PATCH /apis/kvm.cloud.sap/v1/hypervisors/",
            "DELETE /apis/helm.toolkit.fluxcd.io/v2/namespaces/flux-system/helmreleases/hv-nova",
            "DELETE /apis/c5c3.io/v1alpha1/namespaces/openstack-cp/keystoneservices/prod-nova",
            "DELETE /apis/c5c3.io/v1alpha1/namespaces/openstack-cp/controlplanes/prod",
        )
        _in_order(
            [str(deed) for deed in region.ledger.since(deeds)],
            "DELETE /api/v1/namespaces/openstack/secrets/ceph-client-nova",
            "hv DELETE /apis/external-secrets.io/v1/clustersecretstores/",
            "openbao-eu-1 DELETE /v1/sys/auth/kubernetes/hv",
            "mgmt DELETE /api/v1/namespaces/flux-system/secrets/hv-kubeconfig",
            "PATCH /apis/core.gardener.cloud/v1beta1/namespaces/garden-cobalt/shoots/hv",
            "DELETE /apis/core.gardener.cloud/v1beta1/namespaces/garden-cobalt/shoots/hv",
        )
        _in_order(
            [str(deed) for deed in region.ledger.since(deeds)],
            "hv PATCH /apis/kvm.cloud.sap/v1/hypervisors/",
            "mgmt DELETE /apis/greenhouse.sap/v1alpha1/namespaces/greenhouse/clusters/hv",
            "DELETE /apis/core.gardener.cloud/v1beta1/namespaces/garden-cobalt/shoots/hv",
        )
        garden, metal = region.world.clusters["garden-eu-1"], region.world.clusters["metal-eu-1"]
        assert [one["metadata"]["name"] for one in garden.list(SHOOT)] == ["cp", "mgmt", "st"]
        claims = [str(one["metadata"]["name"]) for one in metal.list(CLAIM)]
        assert len(claims) == 10
        assert not any("-hv-" in name for name in claims)
        free = [one for one in region.world.truth.machines.values() if not one.owner]
        assert len(free) == 4

    play(story)


def test_what_takes_hosts_down_waits_for_its_window() -> None:
    """A retirement is consent to the deed, not to the hour."""

    async def story() -> None:
        region = await up(start=AFTER_THE_WINDOW)
        region.vacate()
        workflows.change(region, without=WITHOUT)
        assert await rounds(region, 2, say=workflows.retire(CLOUD, HV)) == []
        hold = held(region.twin, Ref("hypervisors", "hv"))
        assert hold.reason is HoldReason.WINDOW
        assert "2026-03-04 21:00 UTC" in hold.message

    play(story)


def test_a_cluster_with_running_machines_is_not_retired() -> None:
    """It is held with the reason, and goes when the machines are gone."""

    async def story() -> None:
        region = await up()
        cloud = openstack.of_name(region.world, "prod")
        assert cloud is not None
        await rounds(region)
        machines = [vm for vm in cloud.nova.vms.values() if not vm.test]
        assert {machine.host for machine in machines} == set(cloud.nova.hosts)
        workflows.change(region, without=WITHOUT)
        say = workflows.retire(CLOUD, HV)
        assert await rounds(region, 4, say=say) == []
        hold = held(region.twin, Ref("hypervisors", "hv"))
        assert hold.reason is HoldReason.FAILED
        assert all(machine.host in hold.message for machine in machines)
        assert region.world.truth.harm == []
        assert {machine.status for machine in machines} == {"ACTIVE"}

        region.vacate()
        assert await region.live(Power(), until=region.settled(), say=say)
        assert await region.judge(reached=True) == []
        assert await region.orphans() == {}

    play(story)


def test_a_whole_region_is_decommissioned() -> None:
    """All servers are free and unknown to the metal API, and nothing in any place bears fleetd's
    mark any more."""

    async def story() -> None:
        region = await up()
        region.vacate()
        workflows.change(region, without=workflows.EVERYTHING)
        assert await rounds(region) == []
        say = workflows.retire(*workflows.HEADS)
        assert await region.live(Power(), until=region.settled(), say=say)
        assert await region.judge(reached=True) == []
        assert await region.orphans() == {}
        assert region.picture() == {}
        machines = region.world.truth.machines.values()
        assert [one.name for one in machines if one.owner or one.node] == []
        assert region.world.clusters["metal-eu-1"].list(("metal.ironcore.dev", "BMC")) == []
        assert region.world.clusters["garden-eu-1"].list(SHOOT) == []

    play(story)


def _stays(name: str) -> bool:
    """What fleetd made and what has nothing to do with the cloud or the hypervisors."""
    return name.startswith(("mgmt ", "cp ", "st ", "garden-", "metal-")) and not any(
        word in name for word in ("prod", "hv", "smoke-test", "ceph-client")
    )


def _in_order(deeds: list[str], *wanted: str) -> None:
    """Each is met, and all of the first before all of the second."""
    last = -1
    for words in wanted:
        found = [number for number, deed in enumerate(deeds) if words in deed]
        assert found, f"never: {words}"
        assert found[0] > last, f"too early: {words}"
        last = found[-1]
