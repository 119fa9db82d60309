"""The simulated Ironic, spoken to as its clients do: versions, states, locks and odd answers."""

import asyncio
import base64
import json
from typing import Any

import pytest

from fleetd.sim.world import HttpRequest, HttpResponse
from tests.drivers.ironic.stage import Stage, play

VERSION = "x-openstack-ironic-api-version"


def ask(
    on: Stage, method: str, path: str, body: Any = None, *, version: str = "1.78", user: str = ""
) -> HttpResponse:
    token = user or f"fleetd:{on.world.token('ironic', 'eu-1')}"
    headers = {"authorization": "Basic " + base64.b64encode(token.encode()).decode()}
    if version:
        headers[VERSION] = version
    bare, _, query = path.partition("?")
    pairs = dict(one.split("=", 1) for one in query.split("&") if one)
    data = b"" if body is None else json.dumps(body).encode()
    return on.service.handle(
        HttpRequest(method=method, path=bare, query=pairs, headers=headers, body=data)
    )


def said(answer: HttpResponse) -> str:
    return json.loads(json.loads(answer.body)["error_message"])["faultstring"]


def enrol(on: Stage, **more: Any) -> None:
    info = {
        "redfish_address": "https://192.0.2.11:443",
        "redfish_username": on.machine().user,
        "redfish_password": on.machine().password,
    }
    body = {"name": "r1-s01", "driver": "redfish", "driver_info": info, **more}
    assert ask(on, "POST", "/v1/nodes", body).status == 201


def target(on: Stage, verb: str) -> HttpResponse:
    return ask(on, "PUT", "/v1/nodes/r1-s01/states/provision", {"target": verb})


async def available(on: Stage) -> None:
    for verb in ("manage", "inspect", "provide"):
        assert target(on, verb).status == 202
        await asyncio.sleep(1000)
    assert on.node().provision_state == "available"


def test_versions_are_negotiated_as_headers_say() -> None:
    """Too high is 406; without one it is 1.1, which hides newer fields; the root is public."""

    async def act(on: Stage) -> None:
        enrol(on)
        assert ask(on, "GET", "/v1/nodes", version="1.999").status == 406
        old = json.loads(ask(on, "GET", "/v1/nodes/r1-s01", version="").body)
        new = json.loads(ask(on, "GET", "/v1/nodes/r1-s01").body)
        assert "fault" in new
        assert "fault" not in old
        assert ask(on, "GET", "/v1/nodes", user="nobody:x").status == 401
        assert ask(on, "GET", "/", user="nobody:x").status == 200

    play(act)


def test_a_password_is_shown_as_stars() -> None:
    """Whoever reads a node does not read its BMC's password."""

    async def act(on: Stage) -> None:
        enrol(on)
        shown = json.loads(ask(on, "GET", "/v1/nodes/r1-s01").body)
        assert shown["driver_info"]["redfish_password"] == "******"
        assert on.machine().password not in ask(on, "GET", "/v1/nodes/detail").body.decode()

    play(act)


def test_states_take_their_time_and_lock_the_node() -> None:
    """While the conductor works every change is 409 with the words of a lock."""

    async def act(on: Stage) -> None:
        enrol(on)
        assert target(on, "manage").status == 202
        assert on.node().provision_state == "verifying"
        answer = target(on, "manage")
        assert answer.status == 409
        assert "is locked by host" in said(answer)
        assert ask(on, "DELETE", "/v1/nodes/r1-s01").status == 409
        await asyncio.sleep(30)
        assert on.node().provision_state == "manageable"
        assert on.node().power_state == "power off"

    play(act)


def test_a_wrong_password_falls_back_to_enroll() -> None:
    """With the words of the BMC, and the history keeps them."""

    async def act(on: Stage) -> None:
        enrol(on)
        on.node().driver_info["redfish_password"] = "wrong"
        target(on, "manage")
        await asyncio.sleep(2)
        assert on.node().provision_state == "enroll"
        assert "401" in str(on.node().last_error)
        history = json.loads(ask(on, "GET", "/v1/nodes/r1-s01/history").body)["history"]
        assert "401" in history[0]["event"]

    play(act)


def test_the_wrong_verb_for_a_state_is_refused() -> None:
    """400, and nothing changes."""

    async def act(on: Stage) -> None:
        enrol(on)
        answer = target(on, "provide")
        assert answer.status == 400
        assert "can not be performed" in said(answer)

    play(act)


@pytest.mark.parametrize(("clean", "left"), [(False, "old"), (None, "")])
def test_providing_cleans_unless_that_is_off(clean: bool | None, left: str) -> None:  # noqa: FBT001
    """The disks are wiped by default, and the truth remembers whose they were."""

    async def act(on: Stage) -> None:
        on.machine().image = "old"
        enrol(on, automated_clean=clean)
        await available(on)
        assert on.machine().image == left
        assert bool(on.world.truth.harm) is (clean is None)

    play(act)


def test_deploying_needs_an_image_and_gives_the_machine_an_owner() -> None:
    """400 without one; with one it is active after minutes, and cannot be deleted."""

    async def act(on: Stage) -> None:
        enrol(on, automated_clean=False)
        await available(on)
        assert target(on, "active").status == 400
        patch = [{"op": "add", "path": "/instance_info/image_source", "value": "http://x"}]
        assert ask(on, "PATCH", "/v1/nodes/r1-s01", patch).status == 200
        assert target(on, "active").status == 202
        await asyncio.sleep(60)
        assert on.node().provision_state == "deploying"
        await asyncio.sleep(600)
        assert on.node().provision_state == "active"
        assert on.machine().on
        assert on.machine().owner == "r1-s01@ironic-eu-1"
        answer = ask(on, "DELETE", "/v1/nodes/r1-s01")
        assert answer.status == 409
        assert "Can not delete node" in said(answer)

    play(act)


def test_undeploying_a_machine_with_vms_hurts() -> None:
    """The truth remembers it."""

    async def act(on: Stage) -> None:
        enrol(on, automated_clean=False, instance_info={"image_source": "x"})
        await available(on)
        target(on, "active")
        await asyncio.sleep(600)
        on.machine().vms.add("vm-1")
        target(on, "deleted")
        await asyncio.sleep(100)
        assert on.world.truth.harm

    play(act)


def test_a_lost_conductor_leaves_failed_states() -> None:
    """What was deploying is `deploy failed` when another one takes over."""

    async def act(on: Stage) -> None:
        enrol(on, automated_clean=False, instance_info={"image_source": "x"})
        await available(on)
        target(on, "active")
        await asyncio.sleep(5)
        on.mishap(on=True)
        assert target(on, "manage").status == 400
        listed = json.loads(ask(on, "GET", "/v1/conductors").body)["conductors"]
        assert [one["alive"] for one in listed] == [False]
        await asyncio.sleep(900)
        on.mishap(on=False)
        assert on.node().provision_state == "deploy failed"
        assert "can't be resumed" in str(on.node().last_error)

    play(act)


def test_a_dead_bmc_ends_in_maintenance_and_heals() -> None:
    """After some missed looks: power unknown, fault; cleared when it answers."""

    async def act(on: Stage) -> None:
        enrol(on, automated_clean=False)
        await available(on)
        on.machine().bmc = "unreachable"
        await asyncio.sleep(500)
        node = on.node()
        assert (node.maintenance, node.fault, node.power_state) == (True, "power failure", None)
        on.machine().bmc = "answers"
        await asyncio.sleep(130)
        assert (on.node().maintenance, on.node().fault) == (False, None)

    play(act)


def test_duplicates_and_bad_fields_are_told_apart() -> None:
    """A second node of a name and a second port of an address: 409; an unknown field: 400."""

    async def act(on: Stage) -> None:
        enrol(on)
        again = ask(on, "POST", "/v1/nodes", {"name": "r1-s01", "driver": "redfish"})
        assert again.status == 409
        assert "already exists" in said(again)
        port = {"node_uuid": on.node().uuid, "address": "52:54:00:00:00:01"}
        assert ask(on, "POST", "/v1/ports", port).status == 201
        assert ask(on, "POST", "/v1/ports", port).status == 409
        assert ask(on, "GET", "/v1/nodes?fields=created_at").status == 400
        assert ask(on, "POST", "/v1/nodes", {"driver": "redfish", "colour": 1}).status == 400
        assert ask(on, "POST", "/v1/nodes", {"driver": "ipmi"}).status == 400

    play(act)


def test_switching_a_machine_on_and_off() -> None:
    """By its BMC, after a moment; the node is locked meanwhile."""

    async def act(on: Stage) -> None:
        enrol(on, automated_clean=False)
        await available(on)
        path = "/v1/nodes/r1-s01/states/power"
        assert ask(on, "PUT", path, {"target": "power on"}).status == 202
        assert ask(on, "PUT", path, {"target": "power off"}).status == 409
        await asyncio.sleep(10)
        assert on.machine().on
        assert on.node().power_state == "power on"

    play(act)
