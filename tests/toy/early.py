"""
A fleetd with a planted bug, to be forked (`tests.toy.forked`).

Its store says that an intent or an ending is on disk, and writes it a second later: what
a cache without a battery does. Only a kill under load can tell.
"""

import asyncio
import itertools
from typing import Any

from fleetd.__main__ import main
from fleetd.store.sqlite import SqliteStore

DELAY = 1.0

_intend, _conclude = SqliteStore.intend, SqliteStore.conclude
_numbers = itertools.count(1)
_late: dict[int, asyncio.Task[int]] = {}
_tasks: set[asyncio.Task[Any]] = set()


async def intend(self: SqliteStore, intent: Any) -> int:
    async def write() -> int:
        await asyncio.sleep(DELAY)
        return await _intend(self, intent)

    number = -next(_numbers)
    _late[number] = asyncio.create_task(write())
    return number


async def conclude(self: SqliteStore, seq: int, ending: Any, at: Any) -> None:
    async def write() -> None:
        real = await _late[seq] if seq in _late else seq
        await _conclude(self, real, ending, at)

    task = asyncio.create_task(write())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def serve(*_args: str) -> None:
    SqliteStore.intend = intend
    SqliteStore.conclude = conclude
    main()
