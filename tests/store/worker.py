"""A process that writes into a store for ever and tells of each write that was acknowledged."""

import asyncio
import os
from pathlib import Path

from fleetd import clock
from fleetd.store import runner, sqlite
from fleetd.vocabulary import Done
from tests.store import samples


def work(directory: str, run: str, tasks: str) -> None:
    asyncio.run(_work(Path(directory), run, int(tasks)))


async def _work(directory: Path, run: str, tasks: int) -> None:
    store = sqlite.SqliteStore(directory, runner.ThreadRunner(clock.SystemClock()))
    await store.open()

    def tell(text: str) -> None:
        os.write(1, text.encode())

    async def write(task: int) -> None:
        number = 0
        while True:
            number += 1
            seq = await store.intend(samples.intent(task))
            tell(f"intent {seq} {task}\n")
            await store.conclude(seq, Done(), samples.at(task))
            tell(f"ending {seq} {task}\n")
            await store.put("conditions", {f"{run}/{task}": b"%d" % number})
            tell(f"record {number} {task}\n")
            await store.record([samples.event(task)])

    await asyncio.gather(*(write(task) for task in range(tasks)))
