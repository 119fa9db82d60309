"""OpenBao comes up once, keeps its keys, and is unsealed whenever it must be."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import requests

from drivers.openbao import manifests
from fleetd.sim import loop
from fleetd.sim.faults import Plight
from fleetd.sim.world import HttpRequest, HttpResponse
from fleetd.vocabulary import Done, Failed, Truth
from tests.drivers.openbao import stage
from tests.drivers.openbao.stage import Stage
from topology.resource import Ref

SECRET = ("", "Secret")
KEYS = ("openbao-init-keys", "shared-services")


def played(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        async with stage.opened() as there:
            await story(there)

    loop.run(run())


async def _until(there: Stage, verb: str) -> Any:
    """The step with this verb, as soon as it is proposed; everything before it is done."""
    one = there.want("openbao")
    for _ in range(60):
        steps = await there.proposed(one)
        found = next((step for step in steps if step.verb == verb), None)
        if found is not None:
            return found
        await there.do(one)
        await asyncio.sleep(5)
    raise AssertionError(f"{verb} was never proposed")


class _Cut:
    """Stands before a service and loses one answer, or one request."""

    def __init__(self, inner: Any, path: str, *, after: bool) -> None:
        self.inner = inner
        self.path = path
        self.after = after
        self.done = False

    def handle(self, request: HttpRequest) -> HttpResponse:
        if request.path != self.path or self.done:
            return self.inner.handle(request)
        self.done = True
        if self.after:
            self.inner.handle(request)
        raise requests.ReadTimeout("no answer came")


def test_it_comes_up_open_with_all_members() -> None:
    """One initialisation, three peers, a leader, and its keys where people look for them."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        await there.follow(one)
        facts = await there.facts(one)
        kept = there.mgmt.get(SECRET, *KEYS)
        assert there.bao.data.numbers["init"] == 1
        assert (facts["peers"], facts["leader"]) == (3, True)
        assert kept is not None
        assert list(kept["data"]) == ["init-output"]

    played(story)


def test_a_restarted_member_is_unsealed() -> None:
    """It is judged Sealed, unsealed, and Ready again; nothing is initialised twice."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        await there.follow(one)
        there.mgmt.delete(("", "Pod"), "openbao-1", "shared-services")
        await asyncio.sleep(60)
        judged = await there.ready(one)
        await there.follow(one)
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "Sealed")
        assert there.bao.data.numbers["init"] == 1

    played(story)


def test_a_new_daemon_goes_on_with_the_keys_of_the_old() -> None:
    """They lie in the Secret, not in memory."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        await there.follow(one)
        there.bao.seal()
        there.restart()
        await there.follow(one)
        assert there.bao.data.numbers["init"] == 1

    played(story)


def test_a_lost_request_is_sent_again() -> None:
    """It never arrived, so every member still says that it is new."""

    async def story(there: Stage) -> None:
        step = await _until(there, "initialise")
        first = there.world.services["openbao-eu-1-0"]
        there.world.services["openbao-eu-1-0"] = _Cut(first, "/v1/sys/init", after=False)
        lost = await there.driver(there.want("openbao")).apply(step)
        there.restart()
        await there.follow(there.want("openbao"))
        assert isinstance(lost, Failed)
        assert lost.retry
        assert there.bao.data.numbers["init"] == 1

    played(story)


def test_a_lost_answer_is_said_and_thrown_away_only_with_approval() -> None:
    """Nobody has the keys: the one way on destroys, is proposed as such, and works."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        step = await _until(there, "initialise")
        first = there.world.services["openbao-eu-1-0"]
        there.world.services["openbao-eu-1-0"] = _Cut(first, "/v1/sys/init", after=True)
        await there.driver(one).apply(step)
        there.restart()
        await asyncio.sleep(20)
        proposed = list(await there.proposed(one))
        assert [(step.verb, bool(step.destroys)) for step in proposed] == [("reset", True)]
        assert "keys was lost" in proposed[0].why
        done = await there.driver(one).apply(proposed[0])
        await asyncio.sleep(60)
        await there.follow(one)
        assert isinstance(done, Done)
        assert there.bao.data.numbers["init"] == 2

    played(story)


def test_keys_that_could_not_be_kept_are_kept_later() -> None:
    """The API server fails between the answer and the Secret; the keys stay in memory."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        step = await _until(there, "initialise")
        first = there.world.services["openbao-eu-1-0"]

        class Failing:
            def handle(self, request: HttpRequest) -> HttpResponse:
                answer = first.handle(request)
                if request.path == "/v1/sys/init":
                    there.climate.plights["mgmt"] = Plight.FAILING
                return answer

        there.world.services["openbao-eu-1-0"] = Failing()
        failed = await there.driver(one).apply(step)
        del there.climate.plights["mgmt"]
        there.world.services["openbao-eu-1-0"] = first
        await asyncio.sleep(30)
        verbs = [step.verb for step in await there.proposed(one)]
        await there.follow(one)
        assert isinstance(failed, Failed)
        assert verbs == ["keep-keys"]
        assert there.bao.data.numbers["init"] == 1

    played(story)


def test_one_new_member_among_old_ones_is_never_initialised() -> None:
    """It lost its volume, or the others cannot be reached: the store is theirs."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        await there.follow(one)
        there.mgmt.delete(SECRET, *KEYS)
        there.bao.members.all[0].joined = False
        for number in (1, 2):
            there.climate.plights[f"openbao-eu-1-{number}"] = Plight.UNREACHABLE
        there.climate.plights["openbao-eu-1"] = Plight.UNREACHABLE
        facts = await there.facts(one)
        assert [pod["code"] for pod in facts["pods"]] == [501, 0, 0]
        assert list(await there.proposed(one)) == []

    played(story)


def test_a_store_of_somebody_else_is_left_alone() -> None:
    """Sealed, and no claim of ours: nothing is proposed, and the catalogue says what to do."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        await there.follow(one)
        there.mgmt.delete(SECRET, *KEYS)
        there.bao.seal()
        there.restart()
        proposed = list(await there.proposed(one))
        judged = await there.ready(one)
        assert proposed == []
        assert judged is not None
        assert judged.reason == "Sealed"

    played(story)


def test_every_member_has_the_same_audit_path() -> None:
    """With different ones no follower could take over; the declared one is in one config."""
    one = stage.MINIMAL.resources[Ref("openbao", "mgmt")]
    made = manifests.release(one)["spec"]["values"]["server"]["ha"]["raft"]["config"]

    assert made.count("file_path") == 1
    assert f'file_path = "{manifests.AUDIT_FILE}"' in made


@pytest.mark.parametrize("codes", [(501, 501, 0), (501, 503, 501), (0, 0, 0)])
def test_it_is_initialised_only_if_every_member_is_new(codes: tuple[int, ...]) -> None:
    """Who does not answer may hold the data."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        step = await _until(there, "initialise")
        seen = await there.look(one)
        assert seen.facts is not None
        assert step.verb == "initialise"
        pods = [{**pod, "code": code} for pod, code in zip(seen.facts["pods"], codes, strict=True)]
        other = replace(seen, facts={**seen.facts, "pods": pods})
        assert [step.verb for step in there.driver(one).propose(one, other)] == []

    played(story)


def test_a_balancer_that_says_503_is_not_a_sealed_member() -> None:
    """Nobody throws a store away because something in front of it is tired."""

    async def story(there: Stage) -> None:
        one = there.want("openbao")
        await there.follow(one)
        for number in range(3):
            there.climate.plights[f"openbao-eu-1-{number}"] = Plight.FAILING
        seen = await there.facts(one)
        assert [pod["code"] for pod in seen["pods"]] == [0, 0, 0]
        assert list(await there.proposed(one)) == []

    played(story)


async def _lost_keys(there: Stage) -> Any:
    """The reset that is proposed when the answer of the initialisation never came."""
    one = there.want("openbao")
    step = await _until(there, "initialise")
    first = there.world.services["openbao-eu-1-0"]
    there.world.services["openbao-eu-1-0"] = _Cut(first, "/v1/sys/init", after=True)
    await there.driver(one).apply(step)
    there.restart()
    await asyncio.sleep(20)
    (reset,) = await there.proposed(one)
    assert reset.verb == "reset"
    return reset


def test_a_store_with_a_silent_member_is_not_thrown_away() -> None:
    """The one that does not answer may be open, and hold everything."""

    async def story(there: Stage) -> None:
        await _lost_keys(there)
        there.climate.plights["openbao-eu-1-2"] = Plight.UNREACHABLE
        one = there.want("openbao")
        seen = await there.facts(one)
        assert [pod["code"] for pod in seen["pods"]][2] == 0
        assert list(await there.proposed(one)) == []

    played(story)


def test_an_approved_reset_looks_again_at_every_member() -> None:
    """One fell silent, or somebody brought the keys, between the approval and the deed."""

    async def story(there: Stage) -> None:
        reset, one = await _lost_keys(there), there.want("openbao")
        there.climate.plights["openbao-eu-1-2"] = Plight.UNREACHABLE
        silent = await there.driver(one).apply(reset)
        del there.climate.plights["openbao-eu-1-2"]
        there.mgmt.delete(SECRET, *KEYS)
        others = await there.driver(one).apply(reset)
        claims = there.mgmt.list(("", "PersistentVolumeClaim"))
        pods = there.mgmt.list(("", "Pod"))
        assert isinstance(silent, Failed)
        assert isinstance(others, Failed)
        assert (silent.reason, others.reason) == ("NotLost", "NotLost")
        assert "nothing" in silent.message
        assert not any(one["metadata"].get("deletionTimestamp") for one in [*claims, *pods])
        assert len([pod for pod in pods if "openbao" in pod["metadata"]["name"]]) == 3

    played(story)


def test_a_member_that_somebody_initialised_since_the_look_is_not_doubled() -> None:
    """The step was made when all were new; one is not any more when it is carried out."""

    async def story(there: Stage) -> None:
        step, one = await _until(there, "initialise"), there.want("openbao")
        there.climate.plights["openbao-eu-1-1"] = Plight.UNREACHABLE
        refused = await there.driver(one).apply(step)
        assert isinstance(refused, Failed)
        assert (refused.reason, refused.retry) == ("NotNew", True)
        assert there.bao.data.numbers.get("init", 0) == 0
        assert there.mgmt.get(SECRET, *KEYS) is None

    played(story)
