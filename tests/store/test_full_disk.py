"""A disk that is really full: the intent is refused, the reason is told, nothing told is lost."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

LIFE = """
import asyncio, json, os, resource, signal, sys
from pathlib import Path
from fleetd import clock, errors
from fleetd.store import runner, sqlite
from tests.store import samples

directory, kind = Path(sys.argv[1]), sys.argv[2]
ballast = directory.parent / "ballast"
no_limit = resource.RLIM_INFINITY

def fill():
    if kind == "limit":
        # The signal would end the process; a full disk is an error of the write.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, no_limit))
    else:
        free = os.statvfs(directory)
        ballast.write_bytes(bytes(free.f_bavail * free.f_frsize - 200_000))

def make_room():
    if kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (no_limit, no_limit))
    else:
        ballast.unlink()

async def refused(awaitable):
    try:
        await awaitable
    except errors.StoreBroken as cause:
        return str(cause)

async def main():
    store = sqlite.SqliteStore(directory, runner.ThreadRunner(clock.SystemClock()))
    await store.open()
    fill()
    told, number, first = {}, 0, None
    while first is None:
        # Alone and in company, for these are written differently.
        numbers = range(number + 1, number + (2 if number % 2 else 6))
        number = numbers[-1]
        answers = await asyncio.gather(
            *(store.intend(samples.intent(n)) for n in numbers), return_exceptions=True
        )
        for n, answer in zip(numbers, answers):
            if isinstance(answer, int):
                told[answer] = n
            else:
                first = repr(answer)
    found = {"first": first, "told": len(told), "reason": store.broken}
    found["later"] = await refused(store.intend(samples.intent(0)))
    found["record"] = await refused(store.put("pauses", {"all": b"1"}))
    read = {entry.seq: entry.intent for entry in await store.journal(limit=10**6)}
    found["readable"] = all(read.get(seq) == samples.intent(n) for seq, n in told.items())
    await store.close()
    make_room()
    await store.open()
    journal = {entry.seq: entry.intent for entry in await store.journal(limit=10**6)}
    found["kept"] = all(journal.get(seq) == samples.intent(n) for seq, n in told.items())
    found["more"] = len(journal) - len(told)
    found["next"] = await store.intend(samples.intent(0)) - max(journal)
    found["healthy"] = store.broken == ""
    await store.close()
    print(json.dumps(found))

asyncio.run(main())
"""


def _live(directory: Path, kind: str, *before: str) -> dict[str, Any]:
    """A store that fills its disk, stops, gets room and goes on, in a process of its own."""
    ran = subprocess.run(
        [*before, sys.executable, "-c", LIFE, str(directory / "state"), kind],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def _judge(found: dict[str, Any]) -> None:
    assert found["told"] > 10
    assert "StoreBroken" in found["first"]
    assert "nothing is done outward any more" in found["reason"]
    assert found["later"] == found["record"] == found["reason"]
    assert found["readable"]
    assert found["kept"]
    # The batch that failed may be there, for nobody was told that it is not; nothing else may.
    assert 0 <= found["more"] <= 5
    assert found["next"] == 1
    assert found["healthy"]


def test_files_that_may_not_grow_stop_the_store_and_lose_nothing(tmp_path: Path) -> None:
    """A process at its limit of file size refuses intents, says why, and goes on without it."""
    found = _live(tmp_path, "limit")

    assert "disk I/O error" in found["reason"]
    _judge(found)


def test_a_full_file_system_stops_the_store_and_loses_nothing(tmp_path: Path) -> None:
    """A file system without a free block refuses intents, says why, and goes on with room."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("a small file system of our own needs the command `unshare`")
    mounted = (
        *(unshare, "--user", "--map-root-user", "--mount", "sh", "-c"),
        'mount -t tmpfs -o size=2m,mode=700 tmpfs "$0" && exec "$@"',
        str(tmp_path),
    )
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let a process mount a tmpfs in a namespace of its own")

    found = _live(tmp_path, "mount", *mounted)

    assert "database or disk is full" in found["reason"]
    _judge(found)
