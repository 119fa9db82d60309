"""A test that failed is asked once more in CI, and nothing else gets through that way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import again
from tests.tidy import files

PYTEST = [sys.executable, "-m", "pytest", "-q"]
SPARE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
"""Only what is needed: other plugins take seconds to import."""
ONCE = """
from pathlib import Path
def test_good(): pass
def test_bad():
    seen = Path({seen!r})
    if not seen.exists():
        seen.touch()
        raise AssertionError
"""


def _run(at: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """In a project of its own that has the tests of this one to import."""
    return subprocess.run(
        command,
        cwd=at,
        env={"PYTHONPATH": str(files.ROOT), "PATH": os.defpath, **SPARE},
        capture_output=True,
        text=True,
        check=False,
    )


def _project(at: Path, text: str) -> None:
    (at / "pytest.ini").write_text("[pytest]\n")
    (at / "test_it.py").write_text(text)


def test_what_passes_alone_is_told_by_name(tmp_path: Path) -> None:
    """What failed beside others and passes alone is no failure, and stands twice in the output."""
    _project(tmp_path, ONCE.format(seen=str(tmp_path / "seen")))
    assert _run(tmp_path, *PYTEST).returncode == 1
    done = _run(tmp_path, sys.executable, "-m", "tests.again", "pytest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("test_it.py::test_bad") == 2  # before, and in the end
    assert "1 passed" in done.stdout


def test_what_fails_again_is_a_failure(tmp_path: Path) -> None:
    """A test that is wrong stays wrong."""
    _project(tmp_path, "def test_bad():\n    assert False\n")
    assert _run(tmp_path, *PYTEST).returncode == 1
    done = _run(tmp_path, sys.executable, "-m", "tests.again", "pytest")
    assert done.returncode == 1
    assert "PASSED ALONE" not in done.stdout


def test_a_run_that_never_tested_does_not_pass(tmp_path: Path) -> None:
    """Nothing failed, or nothing could be read: there is nothing to ask, and no way to pass."""
    _project(tmp_path, "def test_good(): pass\n")
    assert _run(tmp_path, sys.executable, "-m", "tests.again", "pytest").returncode == 1
    _project(tmp_path, "import nothing_of_this_name\n")
    assert _run(tmp_path, *PYTEST).returncode == 2
    assert _run(tmp_path, sys.executable, "-m", "tests.again", "pytest").returncode != 0


def test_many_failures_are_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A change that breaks much is told at once."""
    at = tmp_path / again.FAILED
    at.parent.mkdir(parents=True)
    at.write_text(json.dumps({f"test_it.py::test_{one}": True for one in range(again.MOST + 1)}))
    monkeypatch.chdir(tmp_path)
    assert again.main(["no_such_module"]) == 1
    assert f"{again.MOST + 1} tests failed" in capsys.readouterr().out
