"""The ironic driver when Ironic, a BMC or somebody else is not as the last look saw them."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from drivers.ironic import nodes
from fleetd.sim.world import HttpRequest, HttpResponse
from fleetd.vocabulary import Failed
from tests.drivers.ironic.stage import Stage, play

JSON = {"content-type": "application/json"}
OTHER_UUID = "38947555-7742-3448-3784-823347823834"


@pytest.mark.parametrize(
    "spelling",
    [
        *("https://192.0.2.11", "http://192.0.2.11:80", "192.0.2.11", "HTTPS://192.0.2.11:443/"),
        *("https://192.0.2.11/redfish/v1/", "https://[::ffff:192.0.2.11]:443"),
    ],
)
def test_a_machine_that_is_spelled_otherwise_is_the_same(spelling: str) -> None:
    """A node of somebody else leads to this BMC, in other words: no second one is made."""

    async def act(on: Stage) -> None:
        await on.road()
        other = on.node()
        other.name, other.driver_info["redfish_address"] = "other", spelling
        await asyncio.sleep(5)
        assert await on.reason() == "SameMachineTwice"
        assert await on.steps() == []

    play(act)


def test_a_node_of_another_driver_is_the_same_machine_too() -> None:
    """IPMI and Redfish lead to one BMC."""

    async def act(on: Stage) -> None:
        await on.road()
        other = on.node()
        other.name, other.driver = "other", "ipmi"
        other.driver_info = {"ipmi_address": "192.0.2.11"}
        await asyncio.sleep(5)
        assert await on.reason() == "SameMachineTwice"

    play(act)


@pytest.mark.parametrize(
    "spelling", ["https://192.0.2.11", "192.0.2.11", "https://192.0.2.11:443/"]
)
def test_a_node_of_ours_may_be_spelled_otherwise(spelling: str) -> None:
    """It leads to the same BMC, by the same way: nothing is wrong, and nothing is written."""

    async def act(on: Stage) -> None:
        await on.road()
        on.node().driver_info["redfish_address"] = spelling
        await asyncio.sleep(5)
        assert await on.steps() == []
        assert await on.reason() == "Available"

    play(act)


def test_a_node_that_was_turned_elsewhere_does_not_get_the_password() -> None:
    """Between the look and the deed its address changed: Ironic would log in there."""

    async def act(on: Stage) -> None:
        await on.carry_out((await on.steps())[:1])
        await asyncio.sleep(5)
        (step, *_) = [one for one in await on.steps() if one.verb == "set-bmc-password"]
        on.node().driver_info["redfish_address"] = "https://evil.example"
        outcome = await on.driver.apply(step)
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.retry) == ("Moved", True)
        assert "redfish_password" not in on.node().driver_info

    play(act)


def test_a_node_of_another_server_is_not_taken_over() -> None:
    """It has this name and leads to this BMC, and bears the mark of another owner."""

    async def act(on: Stage) -> None:
        await on.road()
        on.node().extra[nodes.MARK]["owner"] = "server.somebody-elses"
        await asyncio.sleep(5)
        assert [step.verb for step in await on.steps()] == ["refuse"]

    play(act)


CHANGES: dict[str, Callable[[Any], None]] = {
    "in use": lambda node: setattr(node, "provision_state", "active"),
    "moving": lambda node: setattr(node, "target_provision_state", "active"),
    "locked": lambda node: setattr(node, "reservation", "conductor-1"),
    "taken over": lambda node: node.extra[nodes.MARK].update(owner="server.other"),
    "an instance's": lambda node: setattr(node, "instance_uuid", OTHER_UUID),
    "unmarked": lambda node: node.extra.clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_node_that_changed_since_the_look_is_not_deleted(change: str) -> None:
    """The approval was for a free one of ours."""

    async def act(on: Stage) -> None:
        await on.road()
        gone = replace(on.want(), absent=True)
        (step,) = on.driver.propose(gone, await on.driver.observe(gone))
        CHANGES[change](on.node())
        outcome = await on.driver.apply(step)
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.retry) == ("Changed", True)
        assert on.node().name == "r1-s01"

    play(act)


def test_another_machine_behind_the_bmc_is_not_enrolled() -> None:
    """The documents say which one it should be; its BMC says another."""

    async def act(on: Stage) -> None:
        want = on.want()
        wrong = replace(want, spec={**want.spec, "uuid": OTHER_UUID})
        seen = await on.driver.observe(wrong)
        assert [one.reason for one in on.driver.judge(wrong, seen)] == ["OtherMachine"]
        assert list(on.driver.propose(wrong, seen)) == []
        on.machine().uuid = OTHER_UUID
        await asyncio.sleep(130)
        assert on.driver.propose(wrong, await on.driver.observe(wrong))

    play(act)


class _Odd:
    """Answers lists of nodes as told; each time the same."""

    def __init__(self, inner: Any, body: object) -> None:
        self.inner = inner
        self.body = body

    def handle(self, request: HttpRequest) -> HttpResponse:
        if request.path != "/v1/nodes":
            return self.inner.handle(request)
        return HttpResponse(status=200, body=json.dumps(self.body).encode(), headers=JSON)


LOOPING: dict[str, object] = {"nodes": [], "next": "https://ironic.example:6385/v1/nodes?marker=a"}


NO_LISTS: list[object] = [{}, {"nodes": None}, {"nodes": {}}, [], LOOPING]


@pytest.mark.parametrize("body", NO_LISTS)
def test_a_list_that_is_none_is_not_an_empty_one(body: object) -> None:
    """A node that was not told of is neither enrolled again nor taken for gone."""

    async def act(on: Stage) -> None:
        await on.road()
        on.world.services["ironic-eu-1"] = _Odd(on.service, body)
        await asyncio.sleep(5)
        seen = await on.driver.observe(on.want())
        gone = await on.driver.observe(replace(on.want(), absent=True))
        assert (seen.facts, gone.facts) == (None, None)
        assert seen.error

    play(act)
