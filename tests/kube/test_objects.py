"""A thing that is a few Kubernetes objects: looked at, written, put right and removed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleetd import objects
from fleetd.kube import errors, facts
from fleetd.kube.clusters import NoAccess
from fleetd.objects import Manifest, ObjectDriver
from fleetd.secrets import SecretError
from fleetd.sim import loop
from fleetd.tools import Tools
from fleetd.vocabulary import (
    ABSENT,
    Done,
    Failed,
    Observation,
    Outcome,
    Step,
    Truth,
    make_step,
)
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import Stage, retired
from topology.resource import Facts, Ref, Resource

SPACE = "boxes"
MAP = ("", "ConfigMap")
NAMESPACE = ("", "Namespace")
FINALIZER = "example.org/stay"
BOX = Resource(
    ref=Ref("memcached", "box"),
    driver="boxes",
    region="eu-1",
    spec={"object": {"kind": "ConfigMap", "name": "box", "namespace": SPACE}},
    generation=1,
    backend="cluster:cp",
)


def body(name: str = "box", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Boxes(ObjectDriver):
    """A namespace, and a ConfigMap in it; after them a verb of its own."""

    kind = "boxes"

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        data = {"colour": str(want.spec.get("colour", "red")), "size": "1"}
        return [
            Manifest(backend=want.backend, body=space, why="make room"),
            Manifest(backend=want.backend, body=body(**data), why="put up the box"),
        ]

    def further(self, want: Resource, seen: Facts) -> Sequence[Step]:
        if not want.spec.get("wave"):
            return ()
        return [make_step(want, "wave", {}, why="say hello", deadline=timedelta(seconds=1))]


class Twins(ObjectDriver):
    """The same name on two clusters."""

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        return [
            Manifest(backend=f"cluster:{name}", body=_in_default(name), why="twin", place=name)
            for name in ("cp", "hv")
        ]


def _in_default(where: str) -> dict[str, Any]:
    made = body("twin", where=where)
    made["metadata"]["namespace"] = "default"
    return made


class Begun(Boxes):
    """Invents something first, which no manifest shows."""

    def __init__(self, tools: Tools, *, remembers: bool) -> None:
        super().__init__(tools)
        self.remembers = remembers
        self.invented = False

    async def prior(self, want: Resource) -> Facts:
        return {"invented": True} if self.invented and self.remembers else {}

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        observed: Facts = (seen.facts or {}).get("observed", {})
        if not observed.get("invented"):
            return [make_step(want, "invent", {}, why="first", deadline=timedelta(seconds=1))]
        return super().propose(want, seen)

    async def act(self, step: Step) -> Outcome:
        self.invented = True
        return Done()


def run(
    script: Callable[[Stage], Awaitable[Any]], make: Callable[[Tools], Any] = Boxes, *more: str
) -> None:
    async def main() -> None:
        async with stages.opened("cp", *more) as stage:
            stage.drivers["boxes"] = make(stage.tools)
            await script(stage)

    loop.run(main())


def data(stage: Stage, name: str = "box") -> Any:
    found = stage.cluster("cp").get(MAP, name, SPACE)
    return None if found is None else found["data"]


def change(stage: Stage, name: str, value: str) -> None:
    """As somebody with an editor would."""

    def edit(new: dict[str, Any]) -> None:
        new["data"][name] = value

    stage.cluster("cp").edit(MAP, "box", SPACE, edit, manager="somebody")


def test_from_nothing_to_there() -> None:
    """Absent is empty facts; each object is one step with the whole manifest, in order; what is
    there as it was asked for is left alone."""

    async def script(stage: Stage) -> None:
        assert (await stage.look(BOX)).facts == {}
        first, second = await stage.proposed(BOX)
        assert (first.verb, first.why, second.why) == ("apply", "make room", "put up the box")
        assert second.after == {first.id}
        assert second.args["manifest"]["data"] == {"colour": "red", "size": "1"}
        for step in (first, second, second):
            assert await stage.driver(BOX).apply(step) == Done()
        assert data(stage) == {"colour": "red", "size": "1"}
        await asyncio.sleep(1)
        assert await stage.proposed(BOX) == ()

    run(script)


def test_marks_are_left_and_are_no_facts() -> None:
    """Who made it, for what and from which manifest; facts hold neither marks nor data."""

    async def script(stage: Stage) -> None:
        _, step = await stage.do(BOX)
        live = stage.cluster("cp").get(MAP, "box", SPACE)
        assert live is not None
        assert live["metadata"]["labels"] == {
            facts.MANAGED_BY: "fleetd",
            facts.REGION: "eu-1",
            facts.OWNER: "memcached.box",
        }
        assert live["metadata"]["annotations"][facts.STEP] == step.id
        seen = (await stage.look(BOX)).facts
        assert seen is not None
        assert step.id not in repr(seen)
        assert "red" not in repr(seen)
        part = seen["parts"]["ConfigMap boxes/box"]
        uid = live["metadata"]["uid"]
        assert part == {
            "made": facts.made_from(live),
            "differs": [],
            "deleting": False,
            "uid": uid,
        }

    run(script)


def test_what_somebody_changed_is_named() -> None:
    """By its path, and by who did it; the field is somebody else's now, and is taken back."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        change(stage, "more", "of somebody")
        await asyncio.sleep(1)
        assert await stage.proposed(BOX) == ()
        change(stage, "colour", "blue")
        await asyncio.sleep(1)
        (step,) = await stage.proposed(BOX)
        assert step.why == "put up the box (somebody changed data.colour)"
        tame = replace(step, args={**step.args, "force": False})
        ended = await stage.driver(BOX).apply(tame)
        assert isinstance(ended, Failed)
        assert (ended.reason, ended.retry) == ("Conflict", True)
        assert await stage.driver(BOX).apply(step) == Done()
        assert data(stage) == {"colour": "red", "size": "1", "more": "of somebody"}

    run(script)


def test_a_new_wish_is_written() -> None:
    """Only the object that it is about."""
    blue = replace(BOX, spec={**BOX.spec, "colour": "blue"}, generation=2)

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        (step,) = await stage.do(blue)
        assert step.why == "put up the box (fleetd did not write it as it is)"
        assert data(stage)["colour"] == "blue"

    run(script)


def test_a_foreign_object_of_the_same_name() -> None:
    """Is not taken for our own: the step says so, even if it looks as it should; and retiring
    does not delete it."""

    async def script(stage: Stage) -> None:
        space, _ = await stage.proposed(BOX)
        await stage.driver(BOX).apply(space)
        stage.cluster("cp").create(body(colour="red", size="1"), manager="somebody")
        await asyncio.sleep(1)
        (step,) = await stage.proposed(BOX)
        assert step.why == "put up the box (fleetd did not write it yet)"
        (gone,) = await stage.proposed(retired(BOX))
        assert gone.args["kind"] == "Namespace"

    run(script)


@pytest.mark.parametrize("spec", [BOX.spec, {}], ids=["the watched object", "only a part"])
@pytest.mark.parametrize(("gk", "name", "space"), [(MAP, "box", SPACE), (NAMESPACE, SPACE, "")])
def test_what_is_on_its_way_out_is_waited_for(
    gk: tuple[str, str], name: str, space: str, spec: Facts
) -> None:
    """Nothing is written in the meantime, nothing comes after it, and it is not deleted twice."""
    blue = replace(BOX, spec={**spec, "colour": "blue", "wave": True}, generation=2)

    def hold(new: dict[str, Any]) -> None:
        new["metadata"]["finalizers"] = [FINALIZER]

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        cp = stage.cluster("cp")
        cp.edit(MAP, "box", SPACE, hold, manager="t")
        cp.delete(gk, name, space)
        await asyncio.sleep(1)
        live = cp.get(gk, name, space)
        assert live is not None
        assert live["metadata"]["deletionTimestamp"]
        assert await stage.proposed(blue) == ()
        going = [step.args["name"] for step in await stage.proposed(retired(BOX))]
        assert name not in going

    run(script)


def test_what_comes_after_waits_for_the_manifests() -> None:
    """A verb of the driver's own is proposed when all of them are as they should be, and one that
    nobody knows needs a person."""
    waving = replace(BOX, spec={**BOX.spec, "wave": True})

    async def script(stage: Stage) -> None:
        assert [step.verb for step in await stage.do(waving)] == ["apply", "apply"]
        (step,) = await stage.proposed(waving)
        assert step.verb == "wave"
        ended = await stage.driver(waving).apply(step)
        assert ended == Failed("BadStep", "wave is not known to the boxes driver", retry=False)

    run(script)


def test_what_is_retired_goes_backwards() -> None:
    """Each step says what it destroys; a second time does no harm; what fleetd did not make
    stays."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        steps = await stage.proposed(retired(BOX))
        assert [step.args["kind"] for step in steps] == ["ConfigMap", "Namespace"]
        assert all(step.destroys == {BOX.ref} for step in steps)
        assert steps[1].after == {steps[0].id}
        for _ in range(2):
            assert await stage.driver(BOX).apply(steps[0]) == Done()
        assert data(stage) is None
        stage.cluster("cp").create(body(colour="red"), manager="somebody")
        await asyncio.sleep(1)
        left = await stage.proposed(retired(BOX))
        assert [step.args["kind"] for step in left] == ["Namespace"]

    run(script)


def test_a_server_that_is_away_is_not_an_absent_thing() -> None:
    """No facts, the reason in words, nothing proposed; and a write may be tried again."""

    async def script(stage: Stage) -> None:
        steps = await stage.proposed(BOX)
        stage.cut("cp")
        seen = await stage.look(BOX)
        assert seen.facts is None
        assert seen.error
        assert stage.driver(BOX).propose(BOX, seen) == ()
        assert stage.driver(BOX).judge(BOX, seen) == ()
        ended = await stage.driver(BOX).apply(steps[0])
        assert isinstance(ended, Failed)
        assert ended.retry

    run(script)


def test_a_kind_that_is_not_served_is_not_there_yet_but_never_gone() -> None:
    """A server that starts forgets kinds for a while: what should be is proposed, but of what was
    retired nobody knows whether it is gone."""
    spec = {"object": {"group": "example.org", "kind": "Crate", "name": "box", "namespace": SPACE}}
    crate = replace(BOX, spec=spec)

    async def script(stage: Stage) -> None:
        plain = ObjectDriver(stage.tools)
        assert (await plain.observe(crate)).facts == {}
        seen = await plain.observe(retired(crate))
        assert seen.facts is None
        assert seen.error.startswith("the server does not serve Crate of group example.org; ")
        assert await plain.read_all(crate, crate.backend, ("example.org", "Crate")) == []
        with pytest.raises(errors.NotServed):
            await plain.read_all(retired(crate), crate.backend, ("example.org", "Crate"))

    run(script)


def test_without_a_kubeconfig_nobody_is_asked() -> None:
    """Which is said, counts against nobody, and ends by itself when there is one."""

    async def script(stage: Stage) -> None:
        steps = await stage.proposed(BOX)
        stage.tools.clusters.drop("cluster:cp")
        seen = await stage.look(BOX)
        assert seen.facts is None
        assert seen.error == "there is no kubeconfig for cluster:cp yet"
        ended = await stage.driver(BOX).apply(steps[0])
        assert ended == Failed("NoAccess", seen.error, retry=True)
        stage.admit("cp")
        assert (await stage.look(BOX)).facts == {}

    run(script)


def test_a_secret_that_cannot_be_read_is_the_same() -> None:
    """Nobody was asked, and it may be there next time."""

    class Locked(Boxes):
        async def more(self, want: Resource, seen: dict[str, Any]) -> Facts:
            raise SecretError("token does not exist; create it")

        async def act(self, step: Step) -> Outcome:
            raise SecretError("token does not exist; create it")

    async def script(stage: Stage) -> None:
        assert len(await stage.do(BOX)) == 2
        seen = await stage.look(BOX)
        assert (seen.facts, seen.error[:5]) == (None, "token")
        step = make_step(BOX, "wave", {}, why="", deadline=timedelta(seconds=1))
        ended = await stage.driver(BOX).apply(step)
        assert ended == Failed("NoSecret", "token does not exist; create it", retry=True)

    run(script, Locked)


@pytest.mark.parametrize(
    ("cause", "retry"),
    [
        (errors.Unreachable("x"), True),
        (errors.TooMany("x", status=429, reason="", retry_after=1), True),
        (errors.ServerFault("x"), True),
        (errors.Conflict("x"), True),
        (errors.AlreadyExists("x"), True),
        (errors.NotFound("x"), True),
        (errors.Gone("x"), True),
        (errors.Unauthorized("x"), True),
        (NoAccess("x"), True),
        (errors.Forbidden("x"), False),
        (errors.Invalid("x"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_worth_trying_again(cause: errors.KubeError, *, retry: bool) -> None:
    """All but what was refused on its merits; the reason is a fixed word, the message theirs."""
    assert objects.outcome_of(cause) == Failed(type(cause).__name__, "x", retry=retry)


@pytest.mark.parametrize("remembers", [True, False])
def test_what_was_begun_is_not_begun_again(*, remembers: bool) -> None:
    """What a verb of the driver's own did is told by `prior` as long as no object shows it; without
    it the same step would be proposed for ever."""
    one = replace(BOX, ref=Ref("glance", "box"))

    async def script(stage: Stage) -> None:
        (first,) = await stage.do(one)
        assert first.verb == "invent"
        seen = await stage.look(one)
        then = [step.verb for step in stage.driver(one).propose(one, seen)]
        if not remembers:
            assert then == ["invent"]
            return
        assert then == ["apply", "apply"]
        (judged,) = stage.driver(one).judge(one, seen)
        assert (judged.truth, judged.reason) == (Truth.FALSE, ABSENT)

    run(script, lambda tools: Begun(tools, remembers=remembers))


def test_the_same_name_on_two_clusters() -> None:
    """Two objects with facts, steps and differences of their own."""
    twin = replace(BOX, spec={})

    async def script(stage: Stage) -> None:
        steps = await stage.do(twin)
        assert [step.args["backend"] for step in steps] == ["cluster:cp", "cluster:hv"]
        for name in ("cp", "hv"):
            live = stage.cluster(name).get(MAP, "twin", "default")
            assert live is not None
            assert live["data"] == {"where": name}
        stage.cluster("hv").delete(MAP, "twin", "default")
        await asyncio.sleep(1)
        seen = await stage.look(twin)
        assert seen.facts is not None
        assert list(seen.facts["parts"]) == ["ConfigMap default/twin on cp"]
        (step,) = stage.driver(twin).propose(twin, seen)
        assert step.args["backend"] == "cluster:hv"

    run(script, Twins, "hv")


def test_a_kind_that_is_not_served_yet_is_absent() -> None:
    """Its operator may still come: it is looked for as usual, and writing it may be tried again."""

    class Early(ObjectDriver):
        def manifests(self, want: Resource) -> Sequence[Manifest]:
            made = {"apiVersion": "toy.example", "kind": "Toy", "metadata": {"name": "a"}}
            return [Manifest(backend=want.backend, body=made, why="a toy")]

    async def script(stage: Stage) -> None:
        assert (await stage.look(BOX)).facts == {}
        (step,) = await stage.proposed(BOX)
        ended = await stage.driver(BOX).apply(step)
        assert isinstance(ended, Failed)
        assert (ended.reason, ended.retry) == ("NotServed", True)

    run(script, Early)
