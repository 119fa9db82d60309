"""
Builds the real servers that tests talk to, from pinned Go modules, and keeps the binaries.

A part is a folder in `parts/`: go.mod and go.sum pin every source by its checksum, part.toml names
its programs. Or it has package.json and package-lock.json: then it is a folder of npm modules. It
is not an installer: nothing is put on the PATH. The rule: what is built is named by a fingerprint
of all that decides what is in it, so a changed pin is a new file and an old one stays right. The
compiler's version is not in it: a cache serves a machine that has no Go.
"""

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PARTS = Path(__file__).parent / "parts"
GIB = 1 << 30
ROOMY = 30 * GIB
"""With less than this free, the compiler's own cache goes away after the build."""
_VERSION = re.compile(r"v\d+").fullmatch
TELL_EVERY = 15.0
LAST_LINES = 15


class CannotBuild(Exception):
    """Says why, and how to go on."""


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    part: str
    package: str
    ldflags: str
    minutes: int
    disk_gb: int
    tags: str = ""
    """What is left out of it, as its authors call that."""

    @property
    def folder(self) -> Path:
        return PARTS / self.part

    @property
    def path(self) -> Path:
        """Where the binary is, or will be."""
        return cache() / f"{self.name}-{self.fingerprint()}"

    @property
    def built(self) -> str:
        """How the compiler calls it: after the last element of its package that is no version."""
        return next(name for name in reversed(self.package.split("/")) if not _VERSION(name))

    def fingerprint(self) -> str:
        said = [self.package, self.ldflags, platform.system(), platform.machine()]
        said += [self.tags] if self.tags else []
        return _fingerprint(said, [self.folder / name for name in ("go.mod", "go.sum")])


@dataclass(frozen=True, slots=True)
class Modules:
    """A folder of npm modules, each pinned by its checksum."""

    name: str
    minutes: int = 1

    @property
    def part(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        """Where the folder is, or will be; what can be imported lies in its `node_modules`."""
        return cache() / f"{self.name}-{self.fingerprint()}"

    @property
    def pins(self) -> list[Path]:
        return [PARTS / self.name / name for name in ("package.json", "package-lock.json")]

    def fingerprint(self) -> str:
        return _fingerprint([platform.system(), platform.machine()], self.pins)


def _fingerprint(said: Sequence[str], sources: Sequence[Path]) -> str:
    made = hashlib.blake2b(digest_size=8)
    for one in [*(text.encode() for text in said), *(path.read_bytes() for path in sources)]:
        made.update(len(one).to_bytes(8, "big") + one)
    return made.hexdigest()


def cache() -> Path:
    """Where binaries are kept: FLEETD_PARTS, or a folder in the user's cache directory."""
    chosen = os.environ.get("FLEETD_PARTS")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fleetd" / "parts"


def programs() -> list[Program]:
    found: list[Program] = []
    for path in sorted(PARTS.glob("*/part.toml")):
        told = tomllib.loads(path.read_text("utf-8"))
        found += [
            Program(
                name=name,
                part=path.parent.name,
                package=package,
                ldflags=" ".join(told["ldflags"].split()),
                minutes=told["minutes"],
                disk_gb=told["disk_gb"],
                tags=told.get("tags", ""),
            )
            for name, package in told["programs"].items()
        ]
    return sorted(found, key=lambda one: one.minutes)


def modules() -> list[Modules]:
    return [Modules(path.parent.name) for path in sorted(PARTS.glob("*/package-lock.json"))]


def chosen(names: list[str]) -> list[Program | Modules]:
    """All of them, or those of the named parts and programs."""
    known = [*modules(), *programs()]
    strangers = set(names) - {one.name for one in known} - {one.part for one in known}
    if strangers:
        choice = ", ".join(sorted({one.part for one in known} | {one.name for one in known}))
        raise CannotBuild(f"there is no part {', '.join(sorted(strangers))}; choose of: {choice}")
    return [one for one in known if not names or one.name in names or one.part in names]


def build(group: Sequence[Program], say: IO[str]) -> None:
    """Builds what is missing of one part; raises CannotBuild. All in one call of the compiler: the
    programs of a part share most of their packages."""
    part, where = group[0].part, cache()
    if all(one.path.is_file() for one in group):
        return
    where.mkdir(parents=True, exist_ok=True)
    with _alone(where / f".{part}.lock"):
        lacking = [one for one in group if not one.path.is_file()]
        if not lacking:
            return
        go = _compiler(where, lacking[0])
        began = time.monotonic()
        names = ", ".join(one.name for one in lacking)
        print(f"{part}: building {names}, about {lacking[0].minutes} min", file=say, flush=True)
        with _environment() as environment:
            _compile(go, lacking, environment, say)
        took = time.monotonic() - began
        size = sum(one.path.stat().st_size for one in lacking) >> 20
        print(f"{part}: built in {took:.0f} s, {size} MB", file=say, flush=True)


def _compiler(where: Path, program: Program) -> str:
    go = os.environ.get("GO") or shutil.which("go")
    if not go or not shutil.which(go):
        raise CannotBuild(
            "Go is not installed; install the version in "
            f"tests/real/parts/{program.part}/go.mod or a newer one, or name it: GO=/path/to/go"
        )
    free = shutil.disk_usage(where).free
    if free < program.disk_gb * GIB:
        raise CannotBuild(
            f"{free / GIB:.1f} GB are free and it takes {program.disk_gb} GB; make room, "
            "or name another place: FLEETD_PARTS, GOCACHE, GOMODCACHE"
        )
    return go


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    """Two runs at once would build the same thing twice."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def _environment() -> Generator[dict[str, str]]:
    """Where modules come from is the user's setting; what is built is ours."""
    environment = {
        "GOGC": "300",  # the compiler spends a fifth of its time on saving memory
        **os.environ,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    if shutil.disk_usage(cache()).free >= ROOMY or "GOCACHE" in os.environ:
        yield environment
        return
    with tempfile.TemporaryDirectory(prefix=".compiled-", dir=cache()) as compiled:
        yield {**environment, "GOCACHE": compiled}


def _compile(
    go: str, group: Sequence[Program], environment: Mapping[str, str], say: IO[str]
) -> None:
    total = _packages(go, group, environment)
    first = group[0]
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix=".built-", dir=cache()) as built:
        command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-v"]
        command += ["-tags", first.tags] if first.tags else []
        command += ["-ldflags", first.ldflags, "-o", f"{built}/", *(one.package for one in group)]
        with subprocess.Popen(
            command, cwd=first.folder, env=dict(environment), stderr=subprocess.PIPE, text=True
        ) as running:
            teller = _Teller(first.part, total, lines, say)
            teller.start()
            try:
                lines.extend(running.stderr or ())  # as they come; the teller counts them
            finally:
                teller.stop()
        if running.returncode:
            raise CannotBuild(f"`{' '.join(command[:2])}` failed:\n{''.join(lines[-LAST_LINES:])}")
        for one in group:
            (Path(built) / one.built).replace(one.path)


def _packages(go: str, group: Sequence[Program], environment: Mapping[str, str]) -> int:
    """How many packages there are to compile; downloads the modules on the way."""
    asked = subprocess.run(
        [
            *(go, "list", "-mod=readonly", "-tags", group[0].tags, "-deps"),
            *(one.package for one in group),
        ],
        cwd=group[0].folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        said = "".join(asked.stderr.splitlines(keepends=True)[-LAST_LINES:])
        raise CannotBuild(
            f"its modules cannot be had; see that GOPROXY leads to a module proxy:\n{said}"
        )
    return len(asked.stdout.splitlines())


def install(wanted: Modules, say: IO[str]) -> None:
    """Fetches the modules of a part unless they are there; raises CannotBuild."""
    where = cache()
    where.mkdir(parents=True, exist_ok=True)
    with _alone(where / f".{wanted.part}.lock"):
        if wanted.path.is_dir():
            return
        npm = os.environ.get("NPM") or shutil.which("npm")
        if not npm or not shutil.which(npm) or not shutil.which("node"):
            raise CannotBuild(
                "Node.js and npm are not installed; install both, or NPM=/path/to/npm"
            )
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=".built-", dir=where) as built:
            whole = Path(built) / wanted.name
            whole.mkdir()
            for pin in wanted.pins:
                shutil.copy(pin, whole)
            # No script of a package is run: what is fetched is only read here.
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=whole, capture_output=True, text=True, check=False)
            if done.returncode:
                said = "".join(done.stderr.splitlines(keepends=True)[-LAST_LINES:])
                raise CannotBuild(f"`npm ci` failed; see that npm finds its registry:\n{said}")
            whole.rename(wanted.path)
        took = time.monotonic() - began
        print(f"{wanted.part}: modules fetched in {took:.0f} s", file=say, flush=True)


class _Teller(threading.Thread):
    """Says now and then how far a build is."""

    def __init__(self, name: str, total: int, lines: list[str], say: IO[str]) -> None:
        super().__init__(daemon=True)
        self._name, self._total, self._lines, self._say = name, total, lines, say
        self._over = threading.Event()

    def run(self) -> None:
        began = time.monotonic()
        while not self._over.wait(TELL_EVERY):
            took = time.monotonic() - began
            said = f"{len(self._lines)} of at most {self._total} packages, {took:.0f} s"
            print(f"{self._name}: {said}", file=self._say, flush=True)

    def stop(self) -> None:
        self._over.set()
        self.join()


def build_all(names: list[str], say: IO[str]) -> dict[str, str]:
    """Builds what is missing; the programs that could not be built, and why."""
    failed: dict[str, str] = {}
    wanted = chosen(names)
    for part in dict.fromkeys(one.part for one in wanted):
        group = [one for one in wanted if one.part == part]
        try:
            for one in group:
                if isinstance(one, Modules):
                    install(one, say)
            if compiled := [one for one in group if isinstance(one, Program)]:
                build(compiled, say)
        except CannotBuild as why:
            failed |= {one.name: str(why) for one in group if not one.path.exists()}
            print(f"{part}: cannot be built: {why}", file=say, flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="make parts", description="builds the real servers")
    parser.add_argument("part", nargs="*", help="a part or a program; all if none is named")
    parser.add_argument("--where", metavar="PROGRAM", help="print where one is, if it is built")
    given = parser.parse_args()
    names: list[str] = given.part
    if given.where:
        print(*(one.path for one in programs() if one.name == given.where and one.path.is_file()))
        return 0
    try:
        failed = build_all(names, sys.stdout)
        there = [one.name for one in chosen(names) if one.path.exists()]
    except CannotBuild as why:
        print(f"parts: {why}", file=sys.stderr)
        return 2
    print(f"parts: {', '.join(there) or 'none'} in {cache()}")
    if failed:
        print(f"parts: missing {', '.join(failed)}; tests that need them are skipped by name")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
