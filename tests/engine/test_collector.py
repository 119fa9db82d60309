"""The collector's walk over everything stops the loop: a daemon has it done rarely, and does it."""

import asyncio
import gc
import random
import weakref
from datetime import timedelta
from pathlib import Path

import pytest

from fleetd import app
from fleetd.app import Daemon
from fleetd.clock import SystemClock
from fleetd.settings import Address, Settings, StoreKind


class Knot:
    """Nothing but the collector frees it."""

    def __init__(self) -> None:
        self.me = self


async def test_the_old_are_collected_by_the_daemon_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many lists are made meanwhile, not before its time; then it is; and in the end the
    collector is as it was."""
    monkeypatch.setattr(app, "COLLECT_EVERY", timedelta(seconds=1))
    wanted = Settings(
        documents=(tmp_path,),
        store=StoreKind.MEMORY,
        drivers=(),
        listen=Address("127.0.0.1", 0),
    )
    before = gc.get_threshold()
    daemon, stop = Daemon(wanted, SystemClock(), random.Random(1)), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(daemon.run(stop))
        await asyncio.sleep(0.3)
        knot = Knot()
        kept = weakref.ref(knot)
        gc.collect(1)  # it is old now
        del knot
        old = gc.get_stats()[2]["collections"]
        made = [[number] for number in range(200_000)]
        assert (len(made), gc.get_stats()[2]["collections"]) == (200_000, old)
        assert kept() is not None
        async with asyncio.timeout(10):
            while kept() is not None:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)
        stop.set()
    assert gc.get_threshold() == before
