"""The simulated hypervisor operator: onboarding, eviction and leaving, stuck where it was stuck."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fleetd.sim import loop
from fleetd.sim.controllers import eviction, hypervisor
from fleetd.sim.kube.refusal import Refused
from tests.drivers.openstack import stage
from tests.drivers.openstack.stage import Stage

NODE = hypervisor.NODE
HV = hypervisor.HYPERVISOR
EVICTION = eviction.EVICTION
TRAIT = "CUSTOM_FLEETD"


def label(on: Stage, name: str, traits: str = TRAIT, lifecycle: str = "skip-tests") -> None:
    def change(obj: dict[str, Any]) -> None:
        labels = {hypervisor.VIRT_DRIVER: "kvm", hypervisor.LIFECYCLE: lifecycle}
        obj["metadata"]["labels"].update(labels)
        if traits:
            obj["metadata"]["annotations"] = {hypervisor.TRAITS: traits}

    on.hv.edit(NODE, name, "", change, manager="t")


def spec(on: Stage, name: str, **values: Any) -> None:
    on.hv.edit(HV, name, "", lambda obj: obj["spec"].update(values), manager="t")


def terminating(on: Stage, name: str) -> None:
    live = on.hv.get(NODE, name) or {}
    said = {"type": "Terminating", "status": "True", "reason": "MachineDeletion", "message": ""}
    held = [*live["status"]["conditions"], said]
    on.hv.set_status(NODE, name, "", {**live["status"], "conditions": held}, manager="mcm")


async def cloud_with(on: Stage, *names: str) -> None:
    """A cloud whose prerequisites are there, and these hosts, not yet labelled."""
    await on.control_plane()
    await on.prerequisites()
    for name in names:
        on.host(name)
    on.hypervisors()
    await asyncio.sleep(60)


async def onboarded(on: Stage, *names: str) -> None:
    await cloud_with(on, *names)
    for name in names:
        label(on, name)
    await asyncio.sleep(5)
    for name in names:
        spec(on, name, highAvailability=False)
    await asyncio.sleep(60)
    assert [of(on, name, "Ready") for name in names] == ["True/Ready"] * len(names)


def of(on: Stage, name: str, kind: str) -> str:
    return on.condition(on.hv, HV, name, kind)


def play(act: Callable[[Stage], Any]) -> Any:
    async def run() -> Any:
        async with stage.stage() as on:
            return await act(on)

    return loop.run(run())


def test_a_host_is_onboarded_stage_by_stage() -> None:
    """With tests it takes a minute or more; aggregates, traits and ids are there in the end."""

    async def act(on: Stage) -> tuple[str, str, list[str], bool]:
        await cloud_with(on, "cmp-01")
        label(on, "cmp-01", lifecycle="enabled")
        await asyncio.sleep(5)
        spec(on, "cmp-01", highAvailability=False)
        early = of(on, "cmp-01", "Onboarding")
        await asyncio.sleep(180)
        live = on.hv.get(HV, "cmp-01") or {}
        names = [one["name"] for one in live["status"]["aggregates"]]
        return early, of(on, "cmp-01", "Ready"), names, TRAIT in live["status"]["traits"]

    assert play(act) == ("True/Testing", "True/Ready", ["a"], True)


def test_a_missing_trait_makes_a_hot_loop() -> None:
    """Danger 21: several writes a second, without end; one trait in Placement ends it."""

    async def act(on: Stage) -> tuple[int, str, str]:
        await cloud_with(on, "cmp-01")
        label(on, "cmp-01", traits="CUSTOM_NOT_THERE")
        await asyncio.sleep(5)
        spec(on, "cmp-01", highAvailability=False)
        await asyncio.sleep(5)
        before = int((on.hv.get(HV, "cmp-01") or {})["metadata"]["resourceVersion"])
        await asyncio.sleep(10)
        after = int((on.hv.get(HV, "cmp-01") or {})["metadata"]["resourceVersion"])
        stuck = of(on, "cmp-01", "TraitsUpdated")
        on.cloud.traits["CUSTOM_NOT_THERE"] = None
        await asyncio.sleep(60)
        return after - before, stuck, of(on, "cmp-01", "Ready")

    writes, stuck, end = play(act)

    assert writes > 50
    assert (stuck, end) == ("False/Failed", "True/Ready")


@pytest.mark.parametrize(
    ("zone", "traits", "waits", "onboarding", "aggregates"),
    [
        ("a", "", "no", "True/Handover", "False/WaitingForTraits"),
        ("", TRAIT, "no", "True/Initial", "False/Failed"),
        ("a", TRAIT, "yes", "True/Handover", "True/Succeeded"),
    ],
    ids=["no custom trait", "no zone label", "waits for an HA service"],
)
def test_onboarding_gets_stuck_where_it_was_seen_to(
    zone: str, traits: str, waits: str, onboarding: str, aggregates: str
) -> None:
    """For ever, and nothing but the conditions tells."""

    async def act(on: Stage) -> tuple[str, str]:
        await cloud_with(on)
        on.host("cmp-01", zone)
        label(on, "cmp-01", traits=traits)
        await asyncio.sleep(60)
        spec(on, "cmp-01", highAvailability=waits == "yes")
        await asyncio.sleep(3600)
        return of(on, "cmp-01", "Onboarding"), of(on, "cmp-01", "AggregatesUpdated")

    assert play(act) == (onboarding, aggregates)


def test_an_operator_without_the_test_project_does_nothing() -> None:
    """It exits at start."""

    async def act(on: Stage) -> bool:
        await on.control_plane()
        on.host("cmp-01")
        on.hypervisors()
        label(on, "cmp-01")
        await asyncio.sleep(600)
        return on.hv.get(HV, "cmp-01") is not None

    assert play(act) is False


def test_an_eviction_moves_one_machine_every_ten_seconds() -> None:
    """Ten seconds, and ten for each; the machines are on the other host then, in truth as well."""

    async def act(on: Stage) -> tuple[list[int], str, int, int]:
        await onboarded(on, "cmp-01", "cmp-02")
        for number in range(3):
            on.cloud.nova.boot(f"vm-{number}", "cmp-01")
        spec(on, "cmp-01", maintenance="auto")
        counts: list[int] = []
        for _ in range(5):
            await asyncio.sleep(10.5)
            live = on.hv.get(EVICTION, "cmp-01") or {}
            counts.append(len(live["status"].get("outstandingInstances", ())))
        machines = on.world.truth.machines
        ready = of(on, "cmp-01", "Ready")
        return counts, ready, len(machines["cmp-01"].vms), len(machines["cmp-02"].vms)

    assert play(act) == ([3, 2, 1, 0, 0], "False/Evicted", 0, 3)


def test_no_valid_host_shows_nothing_and_never_ends() -> None:
    """Danger 22: the Eviction looks the same for an hour; only Nova knows of the errors."""

    async def act(on: Stage) -> tuple[str, str, int, bool]:
        await onboarded(on, "cmp-01")
        on.cloud.nova.boot("vm", "cmp-01")
        spec(on, "cmp-01", maintenance="auto")
        await asyncio.sleep(3600)
        failed = [one for one in on.cloud.nova.migrations if one.status == "error"]
        live = on.hv.get(EVICTION, "cmp-01") or {}
        told = any(one["type"] == "MigratingInstance" for one in live["status"]["conditions"])
        evicting = on.condition(on.hv, EVICTION, "cmp-01", "Evicting")
        return of(on, "cmp-01", "Ready"), evicting, len(failed), told

    ready, evicting, failed, told = play(act)

    assert (ready, evicting, told) == ("False/Evicting", "True/Running", False)
    assert failed > 300


def test_a_machine_in_error_lets_the_others_go_first() -> None:
    """It goes to the other end of the list, and stays there."""

    async def act(on: Stage) -> tuple[list[str], str]:
        await onboarded(on, "cmp-01", "cmp-02")
        stays = on.cloud.nova.boot("broken", "cmp-01")
        on.cloud.nova.boot("fine", "cmp-01")
        stays.status, stays.fault = "ERROR", "disk"
        spec(on, "cmp-01", maintenance="auto")
        await asyncio.sleep(120)
        left = [vm.name for vm in on.cloud.nova.on("cmp-01")]
        return left, on.condition(on.hv, EVICTION, "cmp-01", "MigratingInstance")

    assert play(act) == (["broken"], "False/Failed")


def test_unsetting_maintenance_brings_a_host_back() -> None:
    """Also in the middle of an eviction."""

    async def act(on: Stage) -> tuple[bool, str, bool]:
        await onboarded(on, "cmp-01", "cmp-02")
        for number in range(5):
            on.cloud.nova.boot(f"vm-{number}", "cmp-01")
        spec(on, "cmp-01", maintenance="auto")
        await asyncio.sleep(25)
        disabled = on.cloud.nova.hosts["cmp-01"].disabled
        spec(on, "cmp-01", maintenance="")
        await asyncio.sleep(2)
        ready = of(on, "cmp-01", "Ready")
        return disabled, ready, on.cloud.nova.hosts["cmp-01"].disabled

    assert play(act) == (True, "True/Ready", False)


def test_termination_without_the_nodes_condition_is_stuck() -> None:
    """Danger 24: it evicts, and then waits for ever; the condition lets it end."""

    async def act(on: Stage) -> tuple[str, str, bool]:
        await onboarded(on, "cmp-01", "cmp-02")
        spec(on, "cmp-01", maintenance="termination")
        await asyncio.sleep(3600)
        stuck = of(on, "cmp-01", "Ready")
        terminating(on, "cmp-01")
        await asyncio.sleep(5)
        return stuck, of(on, "cmp-01", "Offboarded"), "cmp-01" in on.cloud.nova.hosts

    assert play(act) == ("False/Decommissioning", "True/Offboarded", False)


def test_the_nodes_condition_alone_evicts_nothing() -> None:
    """The other half of danger 24."""

    async def act(on: Stage) -> tuple[str, int, bool]:
        await onboarded(on, "cmp-01", "cmp-02")
        on.cloud.nova.boot("vm", "cmp-01")
        terminating(on, "cmp-01")
        await asyncio.sleep(3600)
        host = on.cloud.nova.hosts["cmp-01"]
        left = sum(1 for _ in on.cloud.nova.on("cmp-01"))
        return of(on, "cmp-01", "Onboarding"), left, host.disabled

    assert play(act) == ("False/Aborted", 1, False)


def test_a_name_that_is_part_of_another_blocks_offboarding_until_touched() -> None:
    """Danger 23: and when the other is gone, nothing happens by itself."""

    async def act(on: Stage) -> tuple[str, str, str]:
        await onboarded(on, "cmp3", "cmp31")
        spec(on, "cmp3", maintenance="termination")
        terminating(on, "cmp3")
        await asyncio.sleep(600)
        stuck = of(on, "cmp3", "Ready")
        on.cloud.nova.unregister("cmp31")
        await asyncio.sleep(600)
        later = of(on, "cmp3", "Offboarded")

        def touch(obj: dict[str, Any]) -> None:
            obj["metadata"]["annotations"] = {"touched": "yes"}

        on.hv.edit(HV, "cmp3", "", touch, manager="t")
        await asyncio.sleep(5)
        return stuck, later, of(on, "cmp3", "Offboarded")

    assert play(act) == ("False/Decommissioning", "", "True/Offboarded")


def test_a_service_disabled_by_hand_goes_unnoticed() -> None:
    """Danger 26: Ready stays True."""

    async def act(on: Stage) -> str:
        await onboarded(on, "cmp-01")
        on.cloud.nova.hosts["cmp-01"].disabled = True
        await asyncio.sleep(3600)
        return of(on, "cmp-01", "Ready")

    assert play(act) == "True/Ready"


def test_the_number_of_instances_is_never_filled() -> None:
    """Danger 25."""

    async def act(on: Stage) -> int:
        await onboarded(on, "cmp-01")
        on.cloud.nova.boot("vm", "cmp-01")
        await asyncio.sleep(600)
        return int((on.hv.get(HV, "cmp-01") or {})["status"].get("numInstances", 0))

    assert play(act) == 0


def test_a_spec_under_termination_cannot_be_changed() -> None:
    """Only to `ha`."""

    async def act(on: Stage) -> None:
        await onboarded(on, "cmp-01", "cmp-02")
        spec(on, "cmp-01", maintenance="termination")
        with pytest.raises(Refused, match="immutable"):
            spec(on, "cmp-01", maintenance="")
        with pytest.raises(Refused, match="maintenanceReason"):
            spec(on, "cmp-02", maintenance="manual")

    play(act)


def test_an_operator_that_starts_again_goes_on_with_an_eviction() -> None:
    """What was done is in the object."""

    async def act(on: Stage) -> tuple[int, str]:
        await onboarded(on, "cmp-01", "cmp-02")
        for number in range(4):
            on.cloud.nova.boot(f"vm-{number}", "cmp-01")
        spec(on, "cmp-01", maintenance="auto")
        await asyncio.sleep(25)
        for make in (hypervisor.HypervisorOperator, eviction.Evictions):
            on.world.controllers[("hv", make.name)].stop()
            make(on.world, on.hv).start()
        await asyncio.sleep(60)
        return sum(1 for _ in on.cloud.nova.on("cmp-01")), of(on, "cmp-01", "Ready")

    assert play(act) == (0, "False/Evicted")


def test_the_drain_is_released_when_the_host_is_out_and_ha_is_off() -> None:
    """On the next event of the Node."""

    async def act(on: Stage) -> tuple[int, int]:
        await onboarded(on, "cmp-01", "cmp-02")
        spec(on, "cmp-01", maintenance="termination")
        terminating(on, "cmp-01")
        await asyncio.sleep(600)
        pdb = ("policy", "PodDisruptionBudget")
        closed = (on.hv.get(pdb, "maint-cmp-01", "kube-system") or {})["spec"]["minAvailable"]
        live = on.hv.get(HV, "cmp-01") or {}
        held = [one for one in live["status"]["conditions"] if one["type"] != "HaEnabled"]
        off = {"type": "HaEnabled", "status": "False", "reason": "x", "message": ""}
        on.hv.set_status(
            HV, "cmp-01", "", {**live["status"], "conditions": [*held, off]}, manager="t"
        )
        await asyncio.sleep(400)
        opened = (on.hv.get(pdb, "maint-cmp-01", "kube-system") or {})["spec"]["minAvailable"]
        return closed, opened

    assert play(act) == (1, 0)
