"""
Drivers that do not let go, for a real daemon: `fleetd serve --drivers tests.toy.stubborn`.

The variable STUBBORN says how: `task` swallows every cancellation and leaves a thread behind that
nothing ends, `loop` holds the event loop itself.
"""

import asyncio
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from fleetd.tools import MakeDriver, Tools
from fleetd.vocabulary import Done, Outcome, Step
from tests.toy import remote
from tests.toy.driver import ToyDriver


@dataclass
class Stubborn(ToyDriver):
    async def apply(self, step: Step) -> Outcome:
        print("holding on", flush=True)
        match os.environ["STUBBORN"]:
            case "task":
                while True:
                    try:
                        await asyncio.to_thread(threading.Event().wait)
                    except asyncio.CancelledError:
                        continue
            case _:
                time.sleep(3600)  # noqa: ASYNC251 - the fault itself
        return Done()


def _make(tools: Tools) -> Stubborn:
    driver = remote._make(tools)
    assert isinstance(driver, ToyDriver)
    return Stubborn(driver.wire, driver.clock, pace=driver.pace)


DRIVERS: Mapping[str, MakeDriver] = dict.fromkeys(remote.DRIVERS, _make)
