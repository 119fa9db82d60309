"""Told to stop, a real daemon ends within ten seconds, whatever its drivers and disk do."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from fleetd.store.base import Entry
from fleetd.store.runner import InlineRunner
from fleetd.store.sqlite import SqliteStore
from fleetd.vocabulary import Done, Waiting
from tests.toy import processes

TRIES = 5
DOCUMENTS = processes.ROOT / "topology" / "examples" / "minimal"


async def _journal(state: Path) -> list[Entry]:
    store = SqliteStore(state, InlineRunner())
    await store.open()
    try:
        return list(await store.journal())
    finally:
        await store.close()


@pytest.mark.slow
@pytest.mark.parametrize(("how", "drain"), [("task", 10), ("loop", 4)])
def test_a_driver_that_does_not_let_go_cannot_keep_the_daemon(
    how: str, drain: int, tmp_path: Path
) -> None:
    """A swallowed cancellation and a thread that hangs, or a loop that is held: the ten seconds of
    the setting, no more. The state can be opened at once, and no step in it passes for done."""
    # A machine that is busy elsewhere makes a try late; a daemon that is late is so each time.
    tries = (_ended_after(tmp_path / str(number), how, drain) for number in range(TRIES))
    assert any(took < drain + 0.9 for took in tries)


def _ended_after(folder: Path, how: str, drain: int) -> float:
    """Seconds."""
    folder.mkdir()
    state, log = folder / "state", folder / "log"
    with processes.world(20) as port, log.open("w") as out:
        process = processes.daemon(
            DOCUMENTS,
            state,
            port,
            pace=20,
            log=out,
            drivers="tests.toy.stubborn",
            STUBBORN=how,
            FLEETD_EXECUTE_DRAIN=f"{drain}s",
        )
        processes.wait_for(log, "holding on")
        before = time.monotonic()
        status = processes.end(process, signal.SIGTERM)
        took = time.monotonic() - before

    assert status == 1
    # The operator is shown who did not let go.
    assert "stubborn.py" in log.read_text() or how != "loop"
    entries = asyncio.run(_journal(state))
    assert entries
    assert not any(isinstance(entry.ending, Done | Waiting) for entry in entries)
    return took
