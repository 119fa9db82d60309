"""The hypervisor driver: hosts into service, two witnesses, and the dangers 21 to 26."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from drivers.hypervisor import leaving, marks
from drivers.hypervisor.driver import HypervisorDriver
from fleetd.sim import loop
from fleetd.sim.faults import Plight
from fleetd.vocabulary import Failed, Observation, Step, Truth
from tests.drivers.openstack import stage
from tests.drivers.openstack.stage import Stage
from tests.sim import test_hypervisor as sim
from topology.resource import Resource

HV = sim.HV


def want(hosts: int = 2, **more: Any) -> Resource:
    made = stage.want("hypervisors", "hv")
    return replace(made, spec={**made.spec, "hosts": hosts}, **more)


def run(act: Any, *names: str) -> Any:
    """`act` in a cloud with these hosts in service, by the driver's own work."""

    async def whole() -> Any:
        async with stage.stage() as on:
            await on.control_plane()
            await on.prerequisites()
            for name in names:
                on.host(name)
            on.hypervisors()
            driver = HypervisorDriver(on.tools)
            if names:
                assert await on.road(driver, want(len(names))) == "Ready"
            return await act(on, driver)

    return loop.run(whole())


async def look(driver: HypervisorDriver, resource: Resource) -> tuple[Observation, str]:
    seen = await driver.observe(resource)
    judged = driver.judge(resource, seen)
    return seen, judged[0].reason if judged else "Absent"


def steps_for(steps: Any, name: str) -> list[Step]:
    return [one for one in steps if name in (one.args.get("host"), one.args.get("node"))]


def test_hosts_come_into_service_by_their_labels() -> None:
    """Nothing is left to do then, and nothing was forced: highAvailability is off."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[int, str, bool]:
        seen, reason = await look(driver, want())
        live = on.hv.get(HV, "cmp-01") or {}
        return len(driver.propose(want(), seen)), reason, live["spec"]["highAvailability"]

    assert run(act, "cmp-01", "cmp-02") == (0, "Healthy", False)


def test_too_few_hosts_are_not_a_healthy_cluster() -> None:
    """All there are is well, and one is missing."""

    async def act(_on: Stage, driver: HypervisorDriver) -> str:
        return (await look(driver, want(3)))[1]

    assert run(act, "cmp-01", "cmp-02") == "Incomplete"


def test_each_node_gets_a_step_of_its_own() -> None:
    """With aggregates and traits in it; a changed document changes the annotation."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[list[str], str]:
        options = {**want().spec["hypervisor"], "aggregates": ["gold"]}
        on.cloud.nova.make_aggregate("gold", "")
        other = replace(want(), spec={**want().spec, "hypervisor": options})
        seen, _ = await look(driver, other)
        steps = driver.propose(other, seen)
        await on.carry_out(driver, steps)
        await asyncio.sleep(30)
        held = sorted(one.name for one in on.cloud.nova.of_host("cmp-01"))
        return [str(step.args["node"]) for step in steps], ",".join(held)

    assert run(act, "cmp-01", "cmp-02") == (["cmp-01", "cmp-02"], "a,gold")


def test_a_node_that_was_replaced_in_the_meantime_is_not_labelled() -> None:
    """The step is for the Node it was made for, by its uid; and none is created."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[str, bool]:
        on.host("cmp-03")
        await asyncio.sleep(1)
        seen, _ = await look(driver, want(3))
        (step,) = steps_for(driver.propose(want(3), seen), "cmp-03")
        on.hv.delete(sim.NODE, "cmp-03")
        outcome = await driver.apply(step)
        return type(outcome).__name__, on.hv.get(sim.NODE, "cmp-03") is not None

    assert run(act, "cmp-01", "cmp-02") == ("Failed", False)


def test_a_hot_loop_does_not_change_the_facts() -> None:
    """Danger 21: a trait goes missing later; conditions are compared without their messages."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[bool, str]:
        on.cloud.traits.pop("CUSTOM_FLEETD")
        sim.spec(on, "cmp-01", customTraits=["CUSTOM_FLEETD"], reboot=True)
        await asyncio.sleep(5)
        one, reason = await look(driver, want())
        await asyncio.sleep(5)
        two, _ = await look(driver, want())
        return one.facts == two.facts, reason

    assert run(act, "cmp-01", "cmp-02") == (True, "TraitsFailed")


def test_no_host_is_labelled_before_its_trait_and_aggregates_are_wanted() -> None:
    """Danger 21: the order is in the graph; the driver adds a check of the spec."""
    needs = stage.want("hypervisors", "hv").needs

    assert any(need.kind == "aggregates" for need in needs)


def test_an_eviction_that_finds_no_host_is_overdue() -> None:
    """Danger 22: Kubernetes shows nothing; Nova's last move was long ago."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[str, str, int]:
        on.cloud.nova.boot("vm", "cmp-01")
        on.cloud.nova.hosts["cmp-02"].room = 0
        sim.spec(on, "cmp-01", maintenance="auto")
        await asyncio.sleep(300)
        _, early = await look(driver, want())
        await asyncio.sleep(1800)
        seen, late = await look(driver, want())
        assert seen.facts is not None
        return early, late, seen.facts["objects"][0]["observed"]["nova"]["failedMoves"]

    early, late, failed = run(act, "cmp-01", "cmp-02")

    assert (early, late) == ("Emptying", "EvictionStuck")
    assert failed > 100


def test_a_moving_eviction_is_not_overdue() -> None:
    """Each machine that leaves starts the half hour anew."""

    async def act(on: Stage, driver: HypervisorDriver) -> str:
        for number in range(3):
            on.cloud.nova.boot(f"vm-{number}", "cmp-01")
        on.cloud.nova.hosts["cmp-02"].room = 1
        sim.spec(on, "cmp-01", maintenance="auto")
        await asyncio.sleep(1500)
        on.cloud.nova.hosts["cmp-02"].room = 2
        await asyncio.sleep(900)
        return (await look(driver, want()))[1]

    assert run(act, "cmp-01", "cmp-02") == "Emptying"


def test_an_eviction_is_refused_without_another_host() -> None:
    """Danger 22: the capacity is looked at before, and what is not known counts as full."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[bool, bool, bool]:
        on.cloud.nova.boot("vm", "cmp-01")
        seen, _ = await look(driver, want())
        allowed = leaving.evict(want(), seen.facts or {}, "cmp-01", "firmware")
        on.cloud.nova.hosts["cmp-02"].disabled = True
        seen, _ = await look(driver, want())
        refused = leaving.evict(want(), seen.facts or {}, "cmp-01", "firmware")
        on.climate.plights["nova-prod"] = Plight.UNREACHABLE
        seen, _ = await look(driver, want())
        blind = leaving.evict(want(), seen.facts or {}, "cmp-01", "firmware")
        return isinstance(allowed, Step), isinstance(refused, str), isinstance(blind, str)

    assert run(act, "cmp-01", "cmp-02") == (True, True, True)


def test_evict_and_uncordon_move_a_host_out_of_service_and_back() -> None:
    """With a reason, because manual maintenance is refused without one."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[str, str]:
        on.cloud.nova.boot("vm", "cmp-01")
        seen, _ = await look(driver, want())
        out = leaving.evict(want(), seen.facts or {}, "cmp-01", "firmware")
        assert isinstance(out, Step)
        await on.carry_out(driver, [out])
        await asyncio.sleep(60)
        seen, reason = await look(driver, want())
        back = leaving.uncordon(want(), seen.facts or {}, "cmp-01")
        assert isinstance(back, Step)
        await on.carry_out(driver, [back])
        await asyncio.sleep(5)
        return reason, (await look(driver, want()))[1]

    assert run(act, "cmp-01", "cmp-02") == ("InMaintenance", "Healthy")


@pytest.mark.parametrize("name", ["cmp-011", "cmp-0", "cmp-03.example"])
def test_a_host_whose_name_would_block_others_is_not_onboarded(name: str) -> None:
    """Danger 23: it stays without a label, and the cluster is not Ready."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[list[Step], str]:
        on.host(name)
        await asyncio.sleep(30)
        seen, reason = await look(driver, want())
        return steps_for(driver.propose(want(), seen), name), reason

    assert run(act, "cmp-01", "cmp-02") == ([], "NamesContained")


def test_a_node_that_is_to_go_gets_termination() -> None:
    """Danger 24: the condition that Gardener sets evicts nothing by itself."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[int, str, int]:
        on.cloud.nova.boot("vm", "cmp-01")
        sim.terminating(on, "cmp-01")
        await asyncio.sleep(5)
        seen, _ = await look(driver, want())
        steps = steps_for(driver.propose(want(), seen), "cmp-01")
        await on.carry_out(driver, steps)
        await asyncio.sleep(60)
        left = sum(1 for _ in on.cloud.nova.on("cmp-01"))
        return len(steps), sim.of(on, "cmp-01", "Offboarded"), left

    assert run(act, "cmp-01", "cmp-02") == (1, "True/Offboarded", 0)


def test_a_retired_cluster_sets_termination_first_and_the_condition_when_empty() -> None:
    """Danger 24: HA would go off while machines run, the other way round."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[list[str], bool, bool]:
        gone = want(absent=True)
        verbs: dict[str, None] = {}
        destroys = False
        for _ in range(40):
            seen, _ = await look(driver, gone)
            steps = driver.propose(gone, seen)
            verbs |= dict.fromkeys(one.verb for one in steps)
            destroys = destroys or any(one.destroys for one in steps)
            await on.carry_out(driver, steps)
            await asyncio.sleep(10)
            if seen.facts == {}:
                break
        return list(verbs), destroys, bool(on.cloud.nova.hosts)

    verbs, destroys, left = run(act, "cmp-01", "cmp-02")

    assert verbs == ["set-hypervisor", "node-terminating", "ha-off"]
    assert (destroys, left) == (True, False)


def test_a_retired_cluster_keeps_hosts_whose_machines_have_nowhere_to_go() -> None:
    """Their machines stay where they are, though they could go to one that goes too; the only
    step is one that says why, and touches nothing."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[list[str], str, int]:
        on.cloud.nova.boot("vm", "cmp-01")
        gone = want(absent=True)
        seen, _ = await look(driver, gone)
        steps = list(driver.propose(gone, seen))
        ended = await driver.apply(steps[0])
        assert isinstance(ended, Failed)
        vms = len(on.world.truth.machines["cmp-01"].vms)
        return [step.verb for step in steps], ended.reason, vms

    assert run(act, "cmp-01", "cmp-02") == (["refuse"], "MachinesRun", 1)


def test_a_host_is_not_emptied_where_its_machines_do_not_fit() -> None:
    """Danger 22: another host is in service and has no room; with room it goes."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[int, int, int]:
        for number in range(3):
            on.cloud.nova.boot(f"vm-{number}", "cmp-01")
        sim.terminating(on, "cmp-01")
        await asyncio.sleep(5)
        found: list[int] = []
        for room, down in ((2, False), (5, True), (3, False)):
            on.cloud.nova.hosts["cmp-02"].room = room
            on.cloud.nova.hosts["cmp-02"].stopped = down
            seen, _ = await look(driver, want())
            found.append(len(steps_for(driver.propose(want(), seen), "cmp-01")))
        return found[0], found[1], found[2]

    assert run(act, "cmp-01", "cmp-02") == (0, 0, 1)


def test_hosts_of_a_retired_cluster_are_no_room_for_each_other() -> None:
    """Danger 22: both would be disabled at once, and all machines have nowhere to go. Another
    cluster's host takes those of one of them."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[list[str], list[str]]:
        on.cloud.nova.boot("vm-1", "cmp-01")
        on.cloud.nova.boot("vm-2", "cmp-02")
        gone = want(absent=True)
        seen, _ = await look(driver, gone)
        none = [one.verb for one in driver.propose(gone, seen)]
        there = on.cloud.nova.register("other", "hv")
        there.room = 1
        seen, _ = await look(driver, gone)
        return none, [str(one.args["host"]) for one in driver.propose(gone, seen)]

    assert run(act, "cmp-01", "cmp-02") == (["refuse"], ["cmp-01"])


def test_a_machine_in_error_is_told() -> None:
    """The others go on, so nothing is stuck; but somebody has to look at it."""

    async def act(on: Stage, driver: HypervisorDriver) -> str:
        vm = on.cloud.nova.boot("vm", "cmp-01")
        vm.status, vm.fault = "ERROR", "no disk"
        sim.spec(on, "cmp-01", maintenance="auto")
        await asyncio.sleep(60)
        return (await look(driver, want()))[1]

    assert run(act, "cmp-01", "cmp-02") == "MachineNotMoved"


def test_a_host_on_its_way_out_is_leaving_whatever_the_reason() -> None:
    """The operator copies the Node's reason, and waits with Decommissioning."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[str, str]:
        sim.terminating(on, "cmp-01")
        await asyncio.sleep(5)
        _, announced = await look(driver, want())
        sim.spec(on, "cmp-02", maintenance="termination")
        await asyncio.sleep(60)
        one = sim.of(on, "cmp-02", "Ready")
        return announced, f"{one} {(await look(driver, want()))[1]}"

    assert run(act, "cmp-01", "cmp-02") == ("Leaving", "False/Decommissioning Leaving")


def test_an_offboarding_that_gave_up_is_nudged_when_its_cause_is_gone() -> None:
    """Danger 23: once, and not while the other name is still there."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[int, int, str]:
        on.cloud.nova.register("xcmp-01x", "elsewhere")
        sim.terminating(on, "cmp-01")
        sim.spec(on, "cmp-01", maintenance="termination")
        await asyncio.sleep(60)
        seen, _ = await look(driver, want())
        early = steps_for(driver.propose(want(), seen), "cmp-01")
        on.cloud.nova.unregister("xcmp-01x")
        seen, _ = await look(driver, want())
        steps = steps_for(driver.propose(want(), seen), "cmp-01")
        await on.carry_out(driver, steps)
        await asyncio.sleep(10)
        return len(early), len(steps), sim.of(on, "cmp-01", "Offboarded")

    assert run(act, "cmp-01", "cmp-02") == (0, 1, "True/Offboarded")


def test_a_host_is_empty_only_when_nova_says_so() -> None:
    """Danger 25: numInstances is 0 all the time."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[bool, bool, bool]:
        on.cloud.nova.boot("vm", "cmp-01")
        on.cloud.nova.hosts["cmp-02"].room = 0
        sim.spec(on, "cmp-01", maintenance="auto")
        await asyncio.sleep(60)
        seen, _ = await look(driver, want())
        full = leaving.is_empty((seen.facts or {})["objects"][0])
        on.cloud.nova.hosts["cmp-02"].room = 5
        await asyncio.sleep(60)
        seen, _ = await look(driver, want())
        empty = leaving.is_empty((seen.facts or {})["objects"][0])
        on.climate.plights["nova-prod"] = Plight.UNREACHABLE
        seen, _ = await look(driver, want())
        blind = leaving.is_empty((seen.facts or {})["objects"][0])
        return full, empty, blind

    assert run(act, "cmp-01", "cmp-02") == (False, True, False)


def test_a_service_disabled_by_hand_is_noticed() -> None:
    """Danger 26: the operator's Ready stays True; Nova is asked."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[str, str]:
        on.cloud.nova.hosts["cmp-01"].disabled = True
        by_hand = (await look(driver, want()))[1]
        on.cloud.nova.hosts["cmp-01"].disabled = False
        on.cloud.nova.hosts["cmp-01"].stopped = True
        return by_hand, (await look(driver, want()))[1]

    assert run(act, "cmp-01", "cmp-02") == ("DisabledInNova", "ComputeDown")


def test_hosts_are_not_taken_for_ready_while_nova_is_silent() -> None:
    """Danger 26: the operator's /readyz stays 200; the verdict is unknown, and nothing is done."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[Truth, str, int]:
        on.climate.plights["nova-prod"] = Plight.UNREACHABLE
        seen = await driver.observe(want())
        judged = driver.judge(want(), seen)[0]
        return judged.truth, judged.reason, len(driver.propose(want(), seen))

    assert run(act, "cmp-01", "cmp-02") == (Truth.UNKNOWN, "NovaNotAsked", 0)


def test_a_cluster_that_cannot_be_asked_is_unknown() -> None:
    """Not absent."""

    async def act(on: Stage, driver: HypervisorDriver) -> bool:
        on.cut("hv")
        await asyncio.sleep(120)
        seen = await driver.observe(want())
        return seen.facts is None and bool(seen.error)

    assert run(act, "cmp-01", "cmp-02") is True


@pytest.mark.parametrize("traits", [[], ["FAST"]])
def test_a_spec_without_custom_traits_is_refused(traits: list[str]) -> None:
    """Onboarding would never end."""

    async def act(_on: Stage, driver: HypervisorDriver) -> int:
        options = {**want().spec["hypervisor"], "traits": traits}
        bad = replace(want(), spec={**want().spec, "hypervisor": options})
        return len(driver.check(bad))

    assert run(act) == 1


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a-01", "a-02"], set[str]()),
        (["a-1", "a-10"], {"a-1", "a-10"}),
        (["a.b"], {"a.b"}),
    ],
)
def test_names_that_clash(names: list[str], found: set[str]) -> None:
    """One is part of another, or has a dot."""
    assert set(marks.clashes(names, [])) == found


async def _last_step(on: Stage, driver: HypervisorDriver) -> Step:
    """The one that says a Node may go, as soon as it is proposed for a retired cluster."""
    gone = want(absent=True)
    for _ in range(40):
        seen, _ = await look(driver, gone)
        steps = list(driver.propose(gone, seen))
        for step in steps:
            if step.verb == "node-terminating":
                return step
        await on.carry_out(driver, steps)
        await asyncio.sleep(10)
    raise AssertionError("no host became empty")


@pytest.mark.parametrize(
    ("change", "reason"), [("a machine came", "MachinesRun"), ("Nova is away", "NovaNotAsked")]
)
def test_a_node_does_not_go_if_its_host_is_not_known_to_be_empty_now(
    change: str, reason: str
) -> None:
    """It was empty when the step was made; the approval may be days old."""

    async def act(on: Stage, driver: HypervisorDriver) -> tuple[object, bool]:
        step = await _last_step(on, driver)
        host = str(step.args["host"])
        if change == "a machine came":
            on.cloud.nova.boot("vm", host)
        else:
            on.climate.plights["nova-prod"] = Plight.UNREACHABLE
        outcome = await driver.apply(step)
        node = on.hv.get(("", "Node"), host) or {}
        said = [one["type"] for one in node["status"]["conditions"]]
        return outcome, "Terminating" in said

    outcome, terminating = run(act, "cmp-01", "cmp-02")
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.retry, terminating) == (reason, True, False)


def test_a_host_without_its_node_is_not_gone() -> None:
    """Somebody deleted the Nodes; what runs there runs on, and the cluster may not go yet."""

    async def act(on: Stage, driver: HypervisorDriver) -> object:
        cluster = on.hv
        on.world.controllers[("hv", "hypervisor-operator")].stop()
        for name in ("cmp-01", "cmp-02"):

            def alone(new: dict[str, Any]) -> None:
                new["metadata"].pop("ownerReferences", None)

            cluster.edit(HV, name, "", alone, manager="t")
            cluster.delete(("", "Node"), name)
        await asyncio.sleep(5)
        return (await driver.observe(want(absent=True))).facts

    assert run(act, "cmp-01", "cmp-02") != {}
