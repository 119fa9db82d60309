"""OpenStack's lists when they are none, lead elsewhere or never end; deletes that look again."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from drivers.openstack.driver import OWNER, OpenStackDriver
from fleetd.clouds import client
from fleetd.sim.services.openstack_compute import Aggregate
from fleetd.sim.world import HttpRequest, HttpResponse
from fleetd.vocabulary import Failed
from tests.drivers.openstack import stage
from tests.drivers.openstack.stage import SPACE, Stage
from tests.drivers.openstack.test_openstack import run

JSON = {"content-type": "application/json"}
LIST = "/v2.1/os-aggregates"


class Odd:
    """Answers one path by itself, and remembers what was asked there, and of whom."""

    def __init__(self, inner: Any, path: str, answer: Callable[[HttpRequest], object]) -> None:
        self.inner = inner
        self.path = path
        self.answer = answer
        self.asked: list[str] = []

    def handle(self, request: HttpRequest) -> HttpResponse:
        if request.path != self.path:
            return self.inner.handle(request)
        self.asked.append(f"{request.headers.get('host', '')} {sorted(request.query.items())}")
        body = json.dumps(self.answer(request)).encode()
        return HttpResponse(status=200, body=body, headers=JSON)


def play(
    path: str,
    answer: Callable[[HttpRequest], object],
    ask: Callable[[client.Cloud], Any],
    api: str = "nova",
) -> Any:
    """`ask` of a cloud whose `api` answers this path so; what came of it, and what was asked."""

    async def act(on: Stage) -> tuple[Any, list[str]]:
        name = f"{api}-prod"
        odd = on.world.services[name] = Odd(on.world.services[name], path, answer)
        who = await client.login(on.tools, "cluster:cp", SPACE, "prod")
        try:
            return await client.ask(on.tools, who, ask), odd.asked
        except client.CannotLook as cause:
            return str(cause), odd.asked

    return run(act)


@pytest.mark.parametrize("body", [{}, {"aggregates": None}, {"aggregates": {}}, {"error": "x"}])
def test_an_answer_without_the_list_is_no_empty_list(body: object) -> None:
    """What it does not tell of would be made anew, or be taken for gone."""
    said, _ = play(LIST, lambda _: body, lambda cloud: cloud.aggregates())
    assert said == "it answers without the aggregates that it was asked for"


def test_a_host_is_not_empty_because_nova_forgot_its_servers() -> None:
    """A host would be taken out of service with machines on it."""
    said, _ = play("/v2.1/servers/detail", lambda _: {}, lambda cloud: cloud.servers_on("cmp-01"))
    assert "without the servers" in said


@pytest.mark.parametrize("body", [{}, {"traits": None}, {"traits": "CUSTOM_A"}])
def test_an_answer_without_traits_is_none(body: object) -> None:
    """Placement is a service of its own, and so may be what stands before it."""
    said, _ = play("/traits", lambda _: body, lambda cloud: cloud.traits(), "placement")
    assert "without the traits" in said


def _named(name: str) -> dict[str, object]:
    return {"id": 1, "name": name, "hosts": [], "metadata": {}}


def _paged(link: str) -> Callable[[HttpRequest], object]:
    def answer(request: HttpRequest) -> object:
        if request.query.get("marker"):
            return {"aggregates": [_named("two")]}
        links = [{"rel": "next", "href": f"{link}{LIST}?marker=1"}]
        return {"aggregates": [_named("one")], "aggregates_links": links}

    return answer


@pytest.mark.parametrize("link", ["https://evil.example", "http://nova-prod.example", "", "//x"])
def test_the_next_page_is_asked_of_the_same_host(link: str) -> None:
    """Behind a proxy links have another host, or lack TLS; the token does not go there."""
    found, asked = play(LIST, _paged(link), lambda cloud: cloud.aggregates())
    assert [one["name"] for one in found] == ["one", "two"]
    assert len({one.partition(" ")[0] for one in asked}) == 1
    assert len(asked) == 2


def test_a_list_that_leads_to_itself_ends() -> None:
    """It is told, and nothing is decided from the half of it."""
    looping = {"aggregates": [], "aggregates_links": [{"rel": "next", "href": f"{LIST}?marker=1"}]}
    said, asked = play(LIST, lambda _: looping, lambda cloud: cloud.aggregates())
    assert (said, len(asked)) == ("its list of aggregates never ends", 2)


def test_a_part_that_lacks_what_it_should_have_is_unknown() -> None:
    """Told as the far side's fault, not as a crash of the driver."""

    async def act(on: Stage) -> tuple[Any, str]:
        on.world.services["nova-prod"] = Odd(
            on.world.services["nova-prod"], LIST, lambda _: {"aggregates": [{"id": 1}]}
        )
        driver = OpenStackDriver(on.tools)
        seen = await driver.observe(stage.want("aggregates"))
        return seen.facts, seen.error

    found, said = run(act)
    assert found is None
    assert "has no 'metadata'" in said or "has no 'name'" in said


CHANGES: dict[str, Callable[[Aggregate], object]] = {
    "has hosts": lambda one: one.hosts.append("cmp-01"),
    "is somebody else's": lambda one: one.metadata.update({OWNER: "aggregates.other"}),
    "is nobody's": lambda one: one.metadata.clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_aggregate_that_changed_since_the_look_stays(change: str) -> None:
    """The step was for an empty one of ours."""

    async def act(on: Stage) -> tuple[Any, bool]:
        await on.prerequisites()
        driver = OpenStackDriver(on.tools)
        gone = replace(stage.want("aggregates"), absent=True)
        (step,) = [
            one
            for one in driver.propose(gone, await driver.observe(gone))
            if one.args["name"] == "tenant_filter_tests"
        ]
        live = on.cloud.nova.aggregate("tenant_filter_tests")
        assert live is not None
        CHANGES[change](live)
        return await driver.apply(step), live.id in on.cloud.nova.aggregates

    outcome, stays = run(act)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.retry, stays) == ("Refused", True, True)


def test_another_aggregate_of_the_same_name_stays() -> None:
    """Somebody deleted ours and made one of that name; it is not what was looked at."""

    async def act(on: Stage) -> bool:
        await on.prerequisites()
        driver, nova = OpenStackDriver(on.tools), on.cloud.nova
        gone = replace(stage.want("aggregates"), absent=True)
        steps = driver.propose(gone, await driver.observe(gone))
        old = nova.aggregate("tenant_filter_tests")
        assert old is not None
        del nova.aggregates[old.id]
        new = nova.aggregates[old.id + 100] = replace(old, id=old.id + 100)
        await on.carry_out(driver, steps)
        return new.id in nova.aggregates

    assert run(act)
