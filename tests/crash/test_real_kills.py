"""A real daemon on a real disk, killed with `kill -9` at random moments while it works."""

import asyncio
import contextlib
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fleetd.store.base import Entry
from fleetd.store.runner import InlineRunner
from fleetd.store.sqlite import SqliteStore
from fleetd.vocabulary import Lost
from tests.toy import early, processes
from tests.toy.forked import Forked
from topology.resource import Ref

KILLS = 200
SHARDS = 2
WORKING, WRITTEN = 5, 20
"""Daemons that were killed at work, and intents of them, at least."""
PACE = 20.0
DOCUMENTS = processes.ROOT / "topology" / "examples" / "minimal"


async def _journal(state: Path) -> Sequence[Entry]:
    """All that the store on disk knows, after it has verified itself."""
    store = SqliteStore(state, InlineRunner())
    await store.open()
    entries = await store.journal(limit=10**6)
    await store.close()
    return entries


def _deeds(port: int) -> dict[str, Any]:
    return asyncio.run(_ask(port))


async def _ask(port: int) -> dict[str, Any]:
    from tests.toy.remote import Remote  # noqa: PLC0415 - reads the catalogue when imported

    remote = Remote(port)
    answer = await remote._ask({"op": "deeds"})
    for _, writer in remote.idle:
        writer.close()
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_acknowledged_is_lost_when_the_daemon_is_killed(shard: int, tmp_path: Path) -> None:
    """100 kills each at least: every ending that was on disk stays, every deed has its intent, no
    deed that must happen once happens twice, and the last daemon finishes the job."""
    rng = random.Random(shard)
    state = tmp_path / "state"
    known: dict[int, Entry] = {}
    working = 0
    with processes.world(PACE) as port:
        for number in range(KILLS):
            # Most of the time the world is at work and the daemon waits; `tests/store/test_kill.py`
            # kills under load that never ends. On a busy machine many are killed before they did
            # anything, and it takes more of them.
            if number >= KILLS // SHARDS and working >= WORKING and len(known) > WRITTEN:
                break
            (tmp_path / "fleetd.log").write_text("")
            process = processes.forked(
                DOCUMENTS, state, port, pace=PACE, log=tmp_path / "fleetd.log"
            )
            _kill_somewhere(process, tmp_path / "fleetd.log", rng)
            if not state.exists():
                continue
            entries = asyncio.run(_journal(state))
            _assert_kept(known, entries, number)
            assert unacknowledged(_deeds(port)["deeds"], _told(tmp_path), entries) == []
            working += len(entries) > len(known)
            known = {entry.seq: entry for entry in entries}
        _finish(tmp_path, state, port)
        world = _deeds(port)

    assert world["harm"] == []
    assert len(known) > WRITTEN, "the daemons were killed before they did anything"
    assert working >= WORKING, f"only {working} daemons wrote anything before they were killed"
    _assert_accounted(world["deeds"], asyncio.run(_journal(state)))


def _told(folder: Path) -> Counter[str]:
    """Steps whose ending the killed daemon had announced, which it does when it is on disk."""
    told: Counter[str] = Counter()
    for line in (folder / "fleetd.log").read_text().splitlines():
        with contextlib.suppress(ValueError):
            entry: dict[str, Any] = json.loads(line)
            if entry.get("event") == "step ended":
                told[entry["step"]] += 1
    return told


def unacknowledged(
    deeds: list[list[str]], told: Counter[str], entries: Sequence[Entry]
) -> list[str]:
    """What the world or the log knows of, and the disk does not."""
    intents = Counter(str(entry.intent.step) for entry in entries)
    endings = Counter(
        str(entry.intent.step)
        for entry in entries
        if entry.ending is not None and not isinstance(entry.ending, Lost)
    )
    done = Counter(step for _, _, _, step, _ in deeds)
    return [
        *(f"{step} was done, its intent is lost" for step in done if intents[step] < done[step]),
        *(f"{step} had ended, its ending is lost" for step in told if endings[step] < told[step]),
    ]


@pytest.mark.slow
def test_a_store_that_acknowledges_too_early_is_noticed(tmp_path: Path) -> None:
    """The test of the test: a daemon whose writes reach the disk a moment after it was told so is
    found out within a few kills."""
    rng = random.Random(1)
    lost: list[str] = []
    for number in range(15):
        state = tmp_path / f"{number}"
        # A new world each time, so that there is always something to do.
        with processes.world(PACE) as port:
            log = tmp_path / "fleetd.log"
            log.write_text("")
            process = processes.forked(
                DOCUMENTS, state, port, pace=PACE, log=log, program=early.serve
            )
            processes.address(log, process)
            _kill_at(process, rng.uniform(0.5, 1.5))
            entries = asyncio.run(_journal(state))
            lost += unacknowledged(_deeds(port)["deeds"], _told(tmp_path), entries)
        if lost:
            break

    assert lost


def _kill_somewhere(process: Forked, log: Path, rng: random.Random) -> None:
    """One in five while it starts, the others at work: by what it says, not by the clock, because
    a busy machine takes seconds to start it."""
    if rng.random() < 0.2:
        _kill_at(process, rng.uniform(0.0, 1.0))
        return
    processes.address(log, process)
    _kill_at(process, rng.uniform(0.0, 0.7))


def _kill_at(process: Forked, seconds: float) -> None:
    time.sleep(seconds)
    assert process.poll() is None, "the daemon ended by itself"
    assert processes.end(process, signal.SIGKILL) == -signal.SIGKILL


def _assert_kept(known: dict[int, Entry], entries: Sequence[Entry], number: int) -> None:
    now = {entry.seq: entry for entry in entries}
    for seq, entry in known.items():
        assert seq in now, f"entry {seq} is gone after kill {number}"
        if entry.ending is not None:
            assert now[seq] == entry, f"entry {seq} changed after kill {number}"


def _finish(folder: Path, state: Path, port: int) -> None:
    with (folder / "last.log").open("w") as log:
        process = processes.daemon(DOCUMENTS, state, port, pace=PACE, log=log)
        try:
            url = processes.address(folder / "last.log", process)
            deadline = time.monotonic() + 600
            regions: list[dict[str, Any]] = []
            while time.monotonic() < deadline:
                regions = processes.ask(f"{url}/api/v1/regions")["items"]
                if regions and regions[0]["resources"]["ready"] == regions[0]["resources"]["total"]:
                    break
                time.sleep(0.5)
            else:
                pytest.fail(f"not Ready in the end: {regions}")
        finally:
            status = processes.end(process)
    assert status == 0


def _assert_accounted(deeds: list[list[str]], entries: Sequence[Entry]) -> None:
    """I15 on disk: as many intents as deeds at least, for every step, and each has an ending."""
    intents = Counter(str(entry.intent.step) for entry in entries)
    done = Counter(step for _, _, _, step, _ in deeds)
    assert {step: count for step, count in done.items() if intents[step] < count} == {}
    assert [entry.seq for entry in entries if entry.ending is None] == []
    assert {Ref(*ref.split("/")) for _, ref, _, _, _ in deeds} == {
        entry.intent.ref for entry in entries
    }


def test_a_daemon_told_to_stop_ends_within_ten_seconds_and_leaves_nothing_open(
    tmp_path: Path,
) -> None:
    """SIGTERM in the middle of the work: exit 0, and every intent has its ending. One that needed
    longer would have ended itself with 1 (`tests/engine/test_stop.py`)."""
    state, log = tmp_path / "state", tmp_path / "log"
    log.write_text("")
    with processes.world(PACE) as port:
        process = processes.forked(DOCUMENTS, state, port, pace=PACE, log=log)
        processes.wait_for(log, "step ended")
        status = processes.end(process, signal.SIGTERM)

    assert status == 0
    entries = asyncio.run(_journal(state))
    assert entries
    assert [entry.seq for entry in entries if entry.ending is None] == []
