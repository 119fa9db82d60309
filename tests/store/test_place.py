"""The state directory is private, and held by one process."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fleetd import errors
from tests.store import samples

HOLDER = """
import asyncio, os, sys
from pathlib import Path
from tests.store import samples

async def main():
    await samples.inline(Path(sys.argv[1])).open()
    os.write(1, b"open\\n")
    sys.stdin.read()

asyncio.run(main())
"""


def _holder(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )


async def test_everything_is_private(tmp_path: Path) -> None:
    """The directory is 0700 and every file in it 0600, whatever the umask says."""
    mask = os.umask(0)
    try:
        store = samples.inline(tmp_path / "deep" / "state")
        await store.open()
        await samples.write(store, 1, 3)
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode)
            for path in (tmp_path / "deep" / "state").iterdir()
        }
        await store.close()
    finally:
        os.umask(mask)

    assert stat.S_IMODE((tmp_path / "deep" / "state").stat().st_mode) == 0o700
    assert set(modes) == {"fleetd.db", "fleetd.db-wal", "fleetd.anchor", "lock"}
    assert set(modes.values()) == {0o600}


async def test_a_directory_open_to_others_is_refused(tmp_path: Path) -> None:
    """It is not changed behind the operator's back: it may be the wrong directory."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o755)

    with pytest.raises(errors.StoreError, match="chmod 700"):
        await samples.inline(tmp_path / "state").open()

    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o755


async def test_a_state_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    """A path that cannot be a directory is an error in words."""
    (tmp_path / "state").write_text("a file")

    with pytest.raises(errors.StoreBroken, match="cannot use the state directory"):
        await samples.inline(tmp_path / "state").open()


async def test_the_holder_is_named_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    """Another process that holds the state is named by its pid; killed, it holds nothing."""
    with _holder(tmp_path / "state") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        store = samples.inline(tmp_path / "state")
        with pytest.raises(errors.StoreLocked, match=f"process {holder.pid}:"):
            await store.open()
        holder.kill()

    await store.open()
    assert store.broken == ""
    await store.close()
