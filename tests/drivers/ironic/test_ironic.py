"""The ironic driver against the simulated Ironic and BMCs, and what it never does by itself."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from requests import Session

from drivers.ironic import client, nodes
from fleetd.secrets import Secret, SecretError
from fleetd.sim.faults import Plight
from fleetd.vocabulary import Done, Failed, Truth, Waiting
from tests.conformance.driver import suite
from tests.drivers.ironic.stage import TOPOLOGY, Stage, play
from topology.resource import Ref


def test_the_driver_keeps_the_contract() -> None:
    """The conformance suite on a server."""

    async def act(on: Stage) -> None:
        want = on.want()

        async def settle() -> None:
            await asyncio.sleep(30)

        bench = suite.Bench(
            driver=on.driver,
            want=want,
            bad=replace(want, spec={**want.spec, "bmc": "not-an-address"}),
            settle=settle,
            cut=on.cut,
            writes=lambda: len(on.ledger.deeds),
            state=on.state,
        )
        assert await suite.check(bench) == []

    play(act)


def test_a_server_is_enrolled_and_becomes_available() -> None:
    """Enrol, verify, inspect, provide; then nothing more is written."""

    async def act(on: Stage) -> None:
        assert await on.road() == ["Absent", "Discovering", "Available"]
        assert on.node().provision_state == "available"
        assert nodes.mark_of({"extra": on.node().extra})["owner"] == "server.r1-s01"
        before = len(on.ledger.deeds)
        for _ in range(5):
            await asyncio.sleep(60)
            assert await on.steps() == []
        assert len(on.ledger.deeds) == before
        assert on.world.truth.harm == []

    play(act)


def test_nothing_is_cleaned_by_enrolling() -> None:
    """automated_clean is off from the first request on; what is on the disks stays there."""

    async def act(on: Stage) -> None:
        on.machine().image = "something that somebody needs"
        await on.road()
        assert on.machine().image == "something that somebody needs"
        assert on.world.truth.harm == []

    play(act)


def test_cleaning_that_was_switched_on_is_switched_off_before_providing() -> None:
    """Drift is mended first; a step that was proposed before refuses to clean."""

    async def act(on: Stage) -> None:
        for _ in range(40):
            steps = await on.steps()
            if steps and steps[0].args.get("target") == "provide":
                break
            await on.carry_out(steps)
            await asyncio.sleep(5)
        provide = await on.steps()
        on.node().automated_clean = True
        refused = await on.driver.apply(provide[0])
        assert isinstance(refused, Failed)
        assert refused.reason == "WouldClean"
        await asyncio.sleep(5)
        assert [step.verb for step in await on.steps()] == ["update-node"]
        await on.road()
        assert on.node().automated_clean is False

    play(act)


def test_no_secret_is_in_facts_or_steps() -> None:
    """Neither the BMC's password nor Ironic's."""

    async def act(on: Stage) -> None:
        texts: list[str] = []
        for _ in range(20):
            seen = await on.driver.observe(on.want())
            steps = on.driver.propose(on.want(), seen)
            texts += [repr(seen), repr(steps)]
            await on.carry_out(steps)
            await asyncio.sleep(10)
        told = "".join(texts)
        assert on.node().driver_info["redfish_password"] == on.machine().password
        assert on.machine().password not in told
        assert on.world.token("ironic", "eu-1") not in told

    play(act)


@pytest.mark.parametrize(
    ("bmc", "reason"), [("refuses", "BmcRefused"), ("hangs", "BmcUnreachable")]
)
def test_a_bmc_that_does_not_take_us_is_not_enrolled(bmc: str, reason: str) -> None:
    """Nothing is written until it answers with the password."""

    async def act(on: Stage) -> None:
        on.machine().bmc = bmc
        assert await on.reason() == reason
        assert await on.steps() == []
        assert on.service.nodes.by_uuid == {}
        on.machine().bmc = "answers"
        await asyncio.sleep(60)
        assert (await on.road())[-1] == "Available"

    play(act)


def test_a_password_that_ironic_has_wrong_is_written_again() -> None:
    """It fell back to enroll with 401 while the BMC answers us: the password, then once more."""

    async def act(on: Stage) -> None:
        await on.carry_out(await on.steps())
        on.node().driver_info["redfish_password"] = "an old one"
        await asyncio.sleep(5)
        await on.carry_out(await on.steps())
        await asyncio.sleep(30)
        assert on.node().provision_state == "enroll"
        steps = await on.steps()
        assert [step.verb for step in steps] == ["set-bmc-password"]
        await on.carry_out(steps)
        assert (await on.road())[-1] == "Available"

    play(act)


def test_a_failed_verification_is_not_hammered() -> None:
    """Ironic does not reach a BMC that answers us: one try, then minutes of rest."""

    async def act(on: Stage) -> None:
        await on.carry_out(await on.steps())
        await asyncio.sleep(5)
        manage = await on.steps()
        on.machine().bmc = "unreachable"
        await on.carry_out(manage)
        await asyncio.sleep(40)
        on.machine().bmc = "answers"
        await asyncio.sleep(31)
        assert on.node().last_error
        assert await on.steps() == []
        await asyncio.sleep(300)
        assert [step.args["target"] for step in await on.steps()] == ["manage"]

    play(act)


def test_a_locked_node_is_waited_for() -> None:
    """409 with the words of a lock is Waiting, not a failure."""

    async def act(on: Stage) -> None:
        steps = await on.steps()
        await on.driver.apply(steps[0])
        on.node().reservation = "conductor-1"
        outcome = await on.driver.apply(steps[1])
        assert isinstance(outcome, Waiting)
        assert outcome.reason == "Locked"
        on.node().reservation = None
        assert isinstance(await on.driver.apply(steps[1]), Done)

    play(act)


def test_the_same_machine_is_not_enrolled_twice() -> None:
    """Another node leads to its BMC: a failure with its name, and no step."""

    async def act(on: Stage) -> None:
        await on.road()
        on.service.nodes.by_uuid[on.node().uuid].name = "other"
        await asyncio.sleep(5)
        assert await on.reason() == "SameMachineTwice"
        assert await on.steps() == []

    play(act)


def test_two_new_entries_of_one_machine_are_both_held() -> None:
    """No node tells yet; their BMCs do, and enrolled together both would be deployed."""

    async def act(on: Stage) -> None:
        on.machine("r1-s02").uuid = on.machine().uuid
        await on.steps()
        for name in ("r1-s02", "r1-s01"):
            assert await on.reason(on.want(name)) == "SameMachineTwice"
            assert await on.steps(name) == []

    play(act)


def test_several_machines_behind_one_bmc_are_not_enrolled() -> None:
    """A node is one machine; which of them it would be is chance."""

    async def act(on: Stage) -> None:
        on.machine().beside.append(on.machine("r1-s02"))
        assert await on.reason() == "SeveralMachines"
        assert await on.steps() == []

    play(act)


def test_a_node_of_that_name_with_another_bmc_is_left_alone() -> None:
    """The step says so and fails; the node is not touched."""

    async def act(on: Stage) -> None:
        await on.road()
        on.node().driver_info["redfish_address"] = "https://192.0.2.99:443"
        await asyncio.sleep(5)
        steps = await on.steps()
        assert [step.verb for step in steps] == ["refuse"]
        outcome = await on.driver.apply(steps[0])
        assert isinstance(outcome, Failed)
        assert not outcome.retry

    play(act)


@pytest.mark.parametrize("state", ["active", "clean failed", "error", "inspect failed"])
def test_what_is_in_use_or_broken_is_left_to_people(state: str) -> None:
    """No step, whatever would bring it on: cleaning and undeploying are never a surprise."""

    async def act(on: Stage) -> None:
        await on.road()
        on.node().provision_state = state
        await asyncio.sleep(5)
        assert await on.steps() == []
        assert await on.reason() == ("InUse" if state == "active" else "Broken")

    play(act)


def test_a_node_in_maintenance_is_not_moved_on() -> None:
    """Somebody put it there; it stays where it is."""

    async def act(on: Stage) -> None:
        await on.carry_out(await on.steps())
        on.node().maintenance = True
        await asyncio.sleep(5)
        assert await on.steps() == []
        assert await on.reason() == "InMaintenance"

    play(act)


def test_a_dead_bmc_under_an_enrolled_server_is_seen_at_once() -> None:
    """Before Ironic notices, which takes it minutes; and it heals."""

    async def act(on: Stage) -> None:
        await on.road()
        on.machine().bmc = "unreachable"
        await asyncio.sleep(130)
        assert on.node().fault is None
        assert await on.reason() == "BmcUnreachable"
        await asyncio.sleep(600)
        assert on.node().fault == "power failure"
        on.machine().bmc = "answers"
        await asyncio.sleep(200)
        assert await on.reason() == "Available"

    play(act)


def test_a_server_in_use_is_not_removed() -> None:
    """Retired while active: refused with the reason. Free: deleted, and only after consent."""

    async def act(on: Stage) -> None:
        await on.road()
        gone = replace(on.want(), absent=True)
        on.node().provision_state = "active"
        await asyncio.sleep(5)
        steps = on.driver.propose(gone, await on.driver.observe(gone))
        assert [step.verb for step in steps] == ["refuse"]
        on.node().provision_state = "available"
        await asyncio.sleep(5)
        steps = on.driver.propose(gone, await on.driver.observe(gone))
        assert [(step.verb, step.destroys) for step in steps] == [("delete-node", {gone.ref})]
        await on.carry_out(steps)
        assert (await on.driver.observe(gone)).facts == {}

    play(act)


def test_the_api_itself_is_judged() -> None:
    """Healthy; without a conductor; with a wrong password; and with a proxy's error instead."""

    async def act(on: Stage) -> None:
        assert await on.reason(on.api) == "Healthy"
        on.mishap(on=True)
        assert await on.reason(on.api) == "NoConductor"
        on.mishap(on=False)
        on.climate.plights["ironic-eu-1"] = Plight.FAILING
        assert await on.reason(on.api) == "NotAnswering"
        on.climate.plights["ironic-eu-1"] = Plight.UNREACHABLE
        assert (await on.driver.observe(on.api)).facts is None
        on.climate.plights.clear()
        on.world.seed = 99  # another password, as if somebody had changed it
        assert await on.reason(on.api) == "Refused"

    play(act)


def test_without_a_conductor_a_step_is_tried_again() -> None:
    """400 with its words is something that passes."""

    async def act(on: Stage) -> None:
        steps = await on.steps()
        on.mishap(on=True)
        outcome = await on.driver.apply(steps[0])
        assert isinstance(outcome, Failed)
        assert outcome.retry
        on.mishap(on=False)
        assert isinstance(await on.driver.apply(steps[0]), Done)

    play(act)


def test_many_servers_cost_one_list() -> None:
    """Three looks at one moment ask Ironic once."""

    async def act(on: Stage) -> None:
        before = on.ledger.requests["ironic-eu-1"]
        for name in ("r1-s01", "r1-s02", "r2-s01"):
            assert (await on.driver.observe(on.want(name))).facts == {}
        assert on.ledger.requests["ironic-eu-1"] - before <= 2

    play(act)


def test_looks_that_come_together_cost_one_list() -> None:
    """A hundred at once, before anything is known: Ironic is asked for its nodes by one of them."""

    async def act(on: Stage) -> None:
        before = on.ledger.requests["ironic-eu-1"]
        wants = [want for want in TOPOLOGY.resources.values() if want.ref.kind == "server"]
        seen = await asyncio.gather(*(on.driver.observe(want) for want in wants * 100))
        assert {one.error for one in seen} == {""}
        assert len(seen) >= 100
        assert on.ledger.requests["ironic-eu-1"] - before <= 2

    play(act)


def test_changed_labels_reach_the_node() -> None:
    """The mark in extra follows the documents, and what others wrote beside it stays."""

    async def act(on: Stage) -> None:
        await on.road()
        on.node().extra["theirs"] = 1
        want = on.want()
        spec: dict[str, Any] = {**want.spec, "labels": {"a": "b"}}
        changed = replace(want, spec=spec, generation=want.generation + 1)
        await asyncio.sleep(5)
        steps = on.driver.propose(changed, await on.driver.observe(changed))
        assert [step.verb for step in steps] == ["update-node"]
        await on.carry_out(steps)
        assert on.node().extra["theirs"] == 1
        assert on.node().extra[nodes.MARK]["labels"] == {"a": "b"}
        assert on.driver.judge(changed, await on.driver.observe(changed))[0].truth is Truth.TRUE

    play(act)


def test_an_access_that_makes_no_sense_is_explained() -> None:
    """Two words are neither a token nor a mapping."""
    who = client.Login(url="https://x.sim", access=Secret("two words"))
    with pytest.raises(SecretError, match=r"metal\.access"), client.session(Session(), who):
        pytest.fail("it was understood")


def test_gardener_is_told_nothing_of_ironics_metal() -> None:
    """It has no use for a token of a metal API that is not there."""
    assert Ref("ironic", "eu-1") in TOPOLOGY.resources
    assert Ref("credentials-binding", "eu-1") not in TOPOLOGY.resources
