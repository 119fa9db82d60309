"""Since when something new is asked of a region that is not reached."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from fleetd.engine.state import State
from fleetd.plan.policy import Policy
from fleetd.sim import loop
from fleetd.vocabulary import Done, Hold, HoldReason, Outcome, Plan, Step
from tests.engine import stage
from tests.plan.fleets import NOW, World, ref, thing
from tests.toy.universe import START
from topology.resource import Topology

THING = stage.thing("t")
REGION = replace(stage.thing("r", kind="region"), needs=frozenset({THING.ref}))


def asked(generation: int) -> Topology:
    return replace(
        stage.fleet(replace(THING, generation=generation), REGION), digest=f"{generation:016}"
    )


def test_a_change_lasts_from_its_documents_until_nothing_is_left_to_do() -> None:
    """From the first plan on; a second change meanwhile does not make it younger, and something
    that breaks without being asked for otherwise is none."""
    play = stage.Stage(asked(1))

    async def slowly(step: Step) -> Outcome:
        await asyncio.sleep(20)
        play.driver.made.add(step.ref)
        return Done()

    play.driver.on_apply = slowly
    told: list[float | None] = []

    async def scene() -> None:
        await play.store.open()
        daemon, stop = play.daemon(), asyncio.Event()

        async def after(seconds: float) -> None:
            await asyncio.sleep(seconds)
            since = daemon.state.changing.get("r")
            told.append((since - START).total_seconds() if since is not None else None)

        async with asyncio.TaskGroup() as group:
            group.create_task(daemon.run(stop), name="daemon")
            await after(30)  # the thing is made, its region not yet
            await after(970)
            play.driver.made.clear()
            await after(500)  # seen to be gone, and made again
            await after(500)
            for generation in (2, 3):
                play.driver.made.clear()
                daemon.state.accept(asked(generation), {})
                await after(10)
            await after(980)
            stop.set()

    loop.run(scene())

    first, *rest = told
    assert first is not None
    assert 0 <= first < 1
    assert [round(one) if one is not None else None for one in rest] == [
        None,
        None,
        None,
        2000,
        2000,
        None,
    ]


def test_what_is_ready_in_its_old_form_is_not_there_yet() -> None:
    """A step that waits for an approval keeps a change open, though all is Ready; what no document
    names any more does not."""
    world = World.of(thing("agent/a"), thing("region/eu-1", "agent/a"))
    world.up("agent/a", "region/eu-1")
    state = State({}, Policy())
    state.accept(world.view.topology, {})
    state.view.ready.update(world.view.ready)
    empty = world.plan()

    def held(reason: HoldReason) -> Plan:
        hold = Hold(ref=ref("agent/a"), reason=reason, message="")
        return replace(empty, holds=(hold,))

    told: list[object] = []
    for hours, plan in enumerate((held(HoldReason.APPROVAL), held(HoldReason.ORPHANED))):
        state.compare(plan, NOW + timedelta(hours=hours))
        told.append(state.changing.get("eu-1"))

    assert told == [NOW, None]
