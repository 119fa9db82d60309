"""A plan that the planner's judges refuse: nothing of it, or of the one before it, is begun."""

import asyncio
from typing import Any

import pytest

from fleetd.plan import lint
from fleetd.sim import loop
from fleetd.vocabulary import Done, Outcome, Step
from tests.engine import stage


def test_after_a_refused_plan_nothing_old_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty steps, a few at a time. From the moment a plan is refused none begins, and the reason
    is told; when plans are good again the rest is done."""
    play = stage.Stage(stage.fleet(*(stage.thing(f"t{number:02}") for number in range(40))))

    async def slowly(step: Step) -> Outcome:
        await asyncio.sleep(5)
        play.driver.made.add(step.ref)
        return Done()

    play.driver.on_apply = slowly
    real, refusing = lint.lint, False
    begun: list[int] = []

    def judge(*args: Any) -> list[str]:
        if not refusing:
            return real(*args)
        begun.append(len(play.driver.applied))
        return ["the planner erred"]

    monkeypatch.setattr(lint, "lint", judge)

    async def scene() -> tuple[int, int, dict[str, str]]:
        nonlocal refusing
        await play.store.open()
        daemon, stop = play.daemon(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(daemon.run(stop), name="daemon")
            await asyncio.sleep(2)
            refusing = True
            await asyncio.sleep(60)
            later, told = len(play.driver.applied), dict(daemon.state.faulty)
            refusing = False
            daemon.state.dirty.add("r")
            daemon.state.changed.set()
            await asyncio.sleep(120)
            stop.set()
        return later, len(play.driver.made), told

    later, made, told = loop.run(scene())

    assert 0 < begun[0] < 40
    assert later == begun[0]
    assert told == {"r": "the planner erred"}
    assert made == 40
