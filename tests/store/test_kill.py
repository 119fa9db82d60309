"""What was acknowledged before a `kill -9` is there afterwards. Real processes, real disk."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from fleetd.vocabulary import Done
from tests.store import samples

KILLS = 200
SHARDS = 4

WORKER = """
import asyncio, os, sys
from pathlib import Path
from fleetd import clock
from fleetd.store import runner, sqlite
from fleetd.vocabulary import Done
from tests.store import samples

async def main():
    store = sqlite.SqliteStore(Path(sys.argv[1]), runner.ThreadRunner(clock.SystemClock()))
    await store.open()
    tell = lambda text: os.write(1, text.encode())

    async def work(task):
        number = 0
        while True:
            number += 1
            seq = await store.intend(samples.intent(task))
            tell(f"intent {seq} {task}\\n")
            await store.conclude(seq, Done(), samples.at(task))
            tell(f"ending {seq} {task}\\n")
            await store.put("conditions", {f"{sys.argv[2]}/{task}": b"%d" % number})
            tell(f"record {number} {task}\\n")
            await store.record([samples.event(task)])

    await asyncio.gather(*(work(task) for task in range(int(sys.argv[3]))))

asyncio.run(main())
"""


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
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(directory), run, str(tasks)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as worker:
        assert worker.stdout is not None
        lines = [worker.stdout.readline() for _ in range(after)]
        worker.kill()
        lines += worker.stdout.readlines()
    told: list[tuple[str, int, int]] = []
    for line in lines:
        kind, count, task = line.split()
        told.append((kind, int(count), int(task)))
    return told
