"""
A region held still at a moment of its bring-up, to be forked by whoever wants to try something.

The region is brought there once in a process; each trial runs in a child that inherits it, so that
it costs only what happens after the moment. No daemon runs while the region is held: a trial
starts its own, on the code as it is by then. Nothing that a child does comes back but its words.
"""

import asyncio
import json
import os
import signal
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fleetd.sim.invariants import Breach
from fleetd.sim.loop import VirtualLoop
from tests.twin.stage import Power, Region

BARE = "a bare region"
ENROLLED = "servers are enrolled"
UNSEALING = "OpenBao is to be initialised"
PUSHING = "Ceph's keys are to be pushed"
HEALTHY = "a region at rest"

_FIRST_INTENT = {
    ENROLLED: "apply Shoot",
    UNSEALING: "initialise openbao",
    PUSHING: "apply PushSecret",
}
"""The moment is just before the first of these is announced."""
CHILD_MAX = 300
"""Seconds on the wall; a child that hangs is ended."""

Story = Callable[[Region], Coroutine[Any, Any, list[str]]]


@dataclass(frozen=True)
class Held:
    region: Region
    runner: asyncio.Runner

    def fork(self, prepare: Callable[[], None], story: Story) -> list[str]:
        """What `story` finds broken, in a child in which `prepare` was called first."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(CHILD_MAX)
            os.close(reading)
            try:
                prepare()
                found = self.runner.run(story(self.region))
            except Breach as breach:
                found = [breach.words]
            except BaseException:  # noqa: BLE001 - whatever it was, the parent is to hear of it
                found = [f"raised {traceback.format_exc(limit=-5)}"]
            with os.fdopen(writing, "w", encoding="utf-8") as out:
                json.dump(found, out)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as answer:
            text = answer.read()
        os.waitpid(child, 0)
        return json.loads(text) if text else ["raised: the child said nothing"]


def is_about(write: str, told: str) -> bool:
    """Whether a write is of the kind that is told: its verb and what it is about, anywhere."""
    return f"{write} ".startswith(f"{told} ")


@lru_cache
def held(moment: str) -> Held:
    runner = asyncio.Runner(loop_factory=VirtualLoop)

    async def arrive() -> Region:
        region = Region.of("minimal")
        if moment == HEALTHY:
            assert await region.live(Power(), until=lambda twin: twin.quiet())
        elif moment != BARE:
            about = _FIRST_INTENT[moment]
            power = Power(at=lambda side, what: side == "intent" and is_about(what, about))
            await region.live(power, until=lambda _: False)
        return region

    return Held(runner.run(arrive()), runner)
