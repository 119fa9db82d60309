"""Somebody else who keeps changing what fleetd wrote: three rewrites, then a condition."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fleetd.kube import fights
from fleetd.vocabulary import Truth
from tests.drivers.flux.stage import Stage
from tests.kube.test_objects import BOX, MAP, SPACE, Boxes, change, data, run


async def fight(stage: Stage, rounds: int) -> int:
    """How often fleetd answered."""
    answered = 0
    for _ in range(rounds):
        change(stage, "colour", "blue")
        await asyncio.sleep(60)
        answered += len(await stage.do(BOX))
    return answered


def test_a_fight_ends_after_three_rewrites_and_names_the_other() -> None:
    """Then nothing is written any more, and the condition says who it is and what he changes."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        assert await fight(stage, 3) == 3
        assert data(stage)["colour"] == "red"
        assert await fight(stage, 3) == 0
        assert data(stage)["colour"] == "blue"
        seen = await stage.look(BOX)
        judged = stage.driver(BOX).judge(BOX, seen)
        (told,) = [one for one in judged if one.type == fights.UNCONTESTED]
        assert (told.truth, told.reason) == (Truth.FALSE, fights.FOUGHT_OVER)
        assert told.message.startswith(
            "somebody keeps changing data.colour of ConfigMap boxes/box; fleetd put it right 3 "
        )

    run(script)


def test_a_restart_does_not_forget_the_fight() -> None:
    """The count is on the object: a new driver goes on with it."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        assert await fight(stage, 2) == 2
        stage.drivers["boxes"] = Boxes(stage.tools)
        assert await fight(stage, 3) == 1

    run(script)


def test_after_the_peace_it_is_put_right_once_more() -> None:
    """Whoever has stopped meanwhile has lost, and the condition goes."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        assert await fight(stage, 4) == 3
        await asyncio.sleep(fights.PEACE.total_seconds())
        assert len(await stage.do(BOX)) == 1
        await asyncio.sleep(1)
        assert data(stage)["colour"] == "red"
        assert fights.judged(BOX, await stage.look(BOX)) == ()
        assert await stage.proposed(BOX) == ()

    run(script)


def test_a_wish_of_our_own_is_no_fight() -> None:
    """However often the documents change: nothing is counted, nothing is taken by force."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        for number, colour in enumerate(("blue", "green", "black", "white"), 2):
            want = replace(BOX, spec={**BOX.spec, "colour": colour}, generation=number)
            (step,) = await stage.do(want)
            assert step.args["force"] is False
            await asyncio.sleep(1)
        live = stage.cluster("cp").get(MAP, "box", SPACE)
        assert live is not None
        assert fights.REWRITES not in live["metadata"]["annotations"]

    run(script)


def test_a_clock_put_back_does_not_prolong_the_fight() -> None:
    """A rewrite from the future is as old as one from the past."""
    now = datetime.fromisoformat("2026-03-03T12:00:00+00:00")

    def counted(away: timedelta) -> int:
        notes = {fights.REWRITES: "3", fights.REWRITTEN: (now + away).isoformat()}
        live: dict[str, Any] = {"metadata": {"annotations": notes}}
        return fights.count(live, now)

    minute = timedelta(minutes=1)
    assert [counted(n * minute) for n in (-60, -29, 0, 29, 60)] == [0, 3, 3, 3, 0]


def test_another_object_of_the_same_name_is_not_deleted() -> None:
    """Deleted and made again since it was looked at, with our marks, as from a backup: the old
    identity is not acted on."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        gone = replace(BOX, absent=True)
        await asyncio.sleep(1)
        step = (await stage.proposed(gone))[0]
        cluster = stage.cluster("cp")
        old = cluster.get(MAP, "box", SPACE)
        assert old is not None
        cluster.delete(MAP, "box", SPACE)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "1"}}
        meta = {"name": "box", "namespace": SPACE, "labels": old["metadata"]["labels"]}
        cluster.create({**body, "metadata": meta}, manager="x")
        ended = await stage.driver(BOX).apply(step)
        assert (getattr(ended, "reason", ""), getattr(ended, "retry", None)) == ("Conflict", True)
        assert data(stage) == {"mine": "1"}

    run(script)
