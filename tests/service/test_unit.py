"""The unit and what belongs to it, tried with systemd's own programs where they are."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.real import lab

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "systemd" / "fleetd.service"
EXPOSURE_MAX = 1.5


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        lab.need(name)
    return found or ""


def test_the_sandbox_leaves_little() -> None:
    """systemd's own measure of exposure is at most 1.5 of 10; a bare unit has 9.6."""
    done = subprocess.run(
        [tool("systemd-analyze"), "security", "--offline=true", "--no-pager", str(UNIT)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    level = re.search(r"Overall exposure level for fleetd\.service: ([\d.]+)", done.stdout)
    assert level is not None, done.stdout
    assert 0 < float(level[1]) <= EXPOSURE_MAX


def test_the_unit_is_understood(tmp_path: Path) -> None:
    """Every key and value is one that systemd knows."""
    program = tmp_path / "fleetd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "fleetd.service"
    unit.write_text(UNIT.read_text("utf-8").replace("/opt/fleetd/bin/fleetd", str(program)))
    done = subprocess.run(
        [tool("systemd-analyze"), "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    about_us = [line for line in done.stderr.splitlines() if "fleetd" in line]
    assert about_us == []


def test_the_user_is_made(tmp_path: Path) -> None:
    """systemd-sysusers takes the file and makes the user, in a root of its own."""
    (tmp_path / "etc").mkdir()
    subprocess.run(
        [
            tool("systemd-sysusers"),
            f"--root={tmp_path}",
            "--inline",
            *(ROOT / "deploy/systemd/fleetd.sysusers").read_text("utf-8").splitlines()[1:],
        ],
        check=True,
        capture_output=True,
    )
    assert re.search(r"^fleetd:", (tmp_path / "etc" / "passwd").read_text("utf-8"), re.MULTILINE)
