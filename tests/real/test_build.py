"""Building parts: what is there is not built again, and what cannot be built says why."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.real import build

GO = """#!/bin/sh
echo "$1" >> {calls}
[ "$1" = list ] && echo one-package && exit 0
{body}
while [ "$1" != -o ]; do shift; done
folder=$2
shift 2
for package; do
    name=$(basename "$package")
    [ "$name" = v3 ] && name=$(basename "$(dirname "$package")")
    echo built > "$folder/$name"
done
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and a compiler that writes down how often it was asked."""
    monkeypatch.setenv("FLEETD_PARTS", str(tmp_path / "cache"))
    return _compiler(tmp_path, monkeypatch)


def _compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str = "") -> Path:
    calls, go = folder / "calls", folder / "go"
    go.write_text(GO.format(calls=calls, body=body))
    go.chmod(0o700)
    monkeypatch.setenv("GO", str(go))
    return calls


def _npm(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    npm = folder / "npm"
    npm.write_text(f"#!/bin/sh\necho npm >> {folder / 'calls'}\n{body}\n")
    npm.chmod(0o700)
    monkeypatch.setenv("NPM", str(npm))


def _program(name: str = "etcd") -> build.Program:
    return next(one for one in build.programs() if one.name == name)


def test_a_second_run_builds_nothing(calls: Path) -> None:
    """What has the fingerprint of its pins is taken as it is."""
    first = build.build_all(["etcd"], io.StringIO())
    second = build.build_all(["etcd"], io.StringIO())

    assert (first, second) == ({}, {})
    assert calls.read_text().split() == ["list", "build"]
    assert _program().path.read_text() == "built\n"


def test_a_part_is_all_its_programs(calls: Path) -> None:
    """`PART=kubernetes` names three programs, `PART=kubectl` one."""
    of_part = [one.name for one in build.chosen(["kubernetes"])]
    alone = [one.name for one in build.chosen(["kubectl"])]

    assert sorted(of_part) == ["kube-apiserver", "kube-controller-manager", "kubectl"]
    assert alone == ["kubectl"]


def test_a_part_is_built_in_one_go(calls: Path) -> None:
    """Programs of one part share most of their packages; only what is missing is built."""
    alone = build.build_all(["kubectl"], io.StringIO())
    rest = build.build_all(["kubernetes"], io.StringIO())

    assert (alone, rest) == ({}, {})
    assert calls.read_text().split() == ["list", "build"] * 2
    assert all(one.path.read_text() == "built\n" for one in build.chosen(["kubernetes"]))


def test_a_changed_pin_is_another_binary(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line more in go.sum, and the old binary does not count any more."""
    before = _program().path
    shutil.copytree(build.PARTS, tmp_path / "parts")
    monkeypatch.setattr(build, "PARTS", tmp_path / "parts")
    same = _program().path
    with (tmp_path / "parts" / "etcd" / "go.sum").open("a") as sums:
        sums.write("example.com/more v1.0.0 h1:x=\n")

    assert same == before
    assert _program().path != before


def test_what_is_left_out_of_a_program_makes_it_another(calls: Path) -> None:
    """Its tags are in its fingerprint, and those that have none keep theirs."""
    one = next(one for one in build.programs() if one.tags)

    assert replace(one, tags="").path != one.path
    assert _program().tags == ""


def test_without_go_it_says_what_to_do(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which part, that Go is missing, and how to name one; the others are tried too."""
    monkeypatch.setenv("GO", "no-such-compiler")
    said = io.StringIO()
    failed = build.build_all(["etcd", "kubectl"], said)

    assert sorted(failed) == ["etcd", "kubectl"]
    assert "etcd: cannot be built: Go is not installed" in said.getvalue()
    assert "GO=" in failed["etcd"]


def test_a_failed_build_shows_the_end_of_its_output(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves nothing in the cache that a later run would take for a server."""
    _compiler(tmp_path, monkeypatch, "echo checksum mismatch >&2; exit 1")
    failed = build.build_all(["etcd"], io.StringIO())

    assert "checksum mismatch" in failed["etcd"]
    assert not _program().path.exists()


def test_without_room_it_does_not_begin(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk in the middle of a build would hit others; it is asked before."""
    monkeypatch.setattr(build, "GIB", 1 << 60)
    failed = build.build_all(["etcd"], io.StringIO())

    assert "make room" in failed["etcd"]
    assert not calls.exists()


def test_an_unknown_part_is_refused(calls: Path) -> None:
    """With the names that there are."""
    with pytest.raises(
        build.CannotBuild, match="there is no part grafana; choose of: alertmanager"
    ):
        build.chosen(["grafana"])


def test_modules_are_fetched_once(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part with a lock of npm is a folder of modules, named by its pins."""
    _npm(tmp_path, monkeypatch, "mkdir node_modules")
    first = build.build_all(["issuer"], io.StringIO())
    second = build.build_all(["issuer"], io.StringIO())
    (wanted,) = build.chosen(["issuer"])

    assert (first, second) == ({}, {})
    assert calls.read_text().split() == ["npm"]
    assert (wanted.path / "node_modules").is_dir()


def test_modules_that_cannot_be_fetched(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of what npm says is told, and nothing is left that a later run would take."""
    _npm(tmp_path, monkeypatch, "echo EINTEGRITY >&2; exit 1")
    failed = build.build_all(["issuer"], io.StringIO())
    monkeypatch.setenv("NPM", "no-such-npm")
    without = build.build_all(["issuer"], io.StringIO())

    assert "EINTEGRITY" in failed["issuer"]
    assert "Node.js and npm are not installed" in without["issuer"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".issuer.lock"]


def test_locks_of_npm_pin_without_naming_a_registry() -> None:
    """Every module has its checksum; where it comes from is the setting of whoever fetches it."""
    for one in build.modules():
        listed = json.loads(one.pins[1].read_text("utf-8"))["packages"]
        fetched = {name: entry for name, entry in listed.items() if name}

        assert fetched
        assert all(entry["integrity"].startswith("sha512-") for entry in fetched.values())
        assert not any("resolved" in entry for entry in fetched.values())
