"""What was acknowledged before a `kill -9` is there afterwards. Real processes, real disk."""

import os
import random
import signal
from pathlib import Path

import pytest

from fleetd.vocabulary import Done
from tests.store import samples
from tests.store.worker import work
from tests.toy.forked import Forked

KILLS = 200
SHARDS = 4


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_nothing_acknowledged_is_lost(tmp_path: Path, shard: int) -> None:
    """200 kills at random moments under load, alone and in groups: every acknowledged write is
    found."""
    rng = random.Random(shard)
    directory = tmp_path / "state"
    for number in range(KILLS // SHARDS):
        tasks = rng.choice([1, 2, 8, 32])
        told = _killed(directory, str(number), tasks, after=rng.randrange(1, 400))

        store = samples.inline(directory)
        await store.open()
        journal = {entry.seq: entry for entry in await store.journal(limit=10**6)}
        records = await store.load("conditions")
        await store.trim(events_max=0, journal_max=0)
        await store.close()

        for kind, count, task in told:
            if kind == "intent":
                assert journal[count].intent == samples.intent(task)
            elif kind == "ending":
                assert journal[count].ending == Done()
            else:
                assert int(records[f"{number}/{task}"]) >= count


def _killed(directory: Path, run: str, tasks: int, *, after: int) -> list[tuple[str, int, int]]:
    """Start a worker, kill it after so many acknowledgements, return all it made."""
    pipe = directory.with_name(f"told-{run}")
    os.mkfifo(pipe)
    worker = Forked(work, str(directory), run, str(tasks), out=pipe, environ=os.environ)
    with pipe.open() as telling:
        lines = [telling.readline() for _ in range(after)]
        worker.kill()
        lines += telling.readlines()
    assert worker.wait(60) == -signal.SIGKILL
    told: list[tuple[str, int, int]] = []
    for line in lines:
        kind, count, task = line.split()
        told.append((kind, int(count), int(task)))
    return told
