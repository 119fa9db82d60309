"""
The servers that tests share, and the same by hand: `python -m tests.real.lab up`.

Tests have three clusters: `kube` with controllers, `crds` for definitions of all systems we drive,
`garden` with gardener-apiserver behind it. The runner starts them once for all its workers and says
where in FLEETD_REAL_LAB; a test that is run alone starts what it needs for itself. By hand there is
one for each role, and a garden.
"""

import argparse
import atexit
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.real import build, garden, kube
from tests.real.garden import Garden
from tests.real.kube import Kube

PLACE = "FLEETD_REAL_LAB"
REQUIRED = "FLEETD_REQUIRE_REAL"
CLUSTERS: dict[str, tuple[tuple[str, ...], Callable[[Path], Kube]]] = {
    "kube": (kube.programs(controllers=True), Kube),
    "crds": (kube.programs(controllers=False), lambda folder: Kube(folder, controllers=False)),
    "garden": (garden.programs(), Garden),
    "management": (kube.programs(controllers=True), Kube),
    "control-plane": (kube.programs(controllers=True), Kube),
    "hypervisor": (kube.programs(controllers=True), Kube),
}
"""By name: what has to be built for it, and how it is made."""
TESTED = ("kube", "crds", "garden")
BY_HAND = ("management", "control-plane", "hypervisor", "garden")
WATCHERS = ("alertmanager", "prometheus", "promtool")
MODULES = ("grafana-schemas", "issuer")
PROGRAMS = sorted(
    {"kubectl", *WATCHERS, *MODULES, *(one for needed, _ in CLUSTERS.values() for one in needed)}
)
"""All that tests run."""


def missing(name: str) -> list[str]:
    """The programs of a cluster that are not built."""
    there = {one.name for one in build.programs() if one.path.is_file()}
    return [one for one in CLUSTERS[name][0] if one not in there]


def need(*lacking: str) -> None:
    """Skips the test by name, or fails it where real servers are required."""
    if not lacking:
        return
    said = f"{', '.join(lacking)} is not built: make parts"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(said, pytrace=False)
    pytest.skip(said)


def program(name: str) -> Path:
    """The binary of one program; the test is skipped, or fails, without it."""
    path = next(one.path for one in build.programs() if one.name == name)
    need(*(() if path.is_file() else (name,)))
    return path


def modules(name: str) -> Path:
    """Where the npm modules of a part are; the test is skipped, or fails, without them."""
    path = next(one.path for one in build.modules() if one.name == name)
    need(*(() if path.is_dir() and shutil.which("node") else (name,)))
    return path / "node_modules"


def admin(name: str) -> dict[str, Any]:
    """The administrator's kubeconfig for a cluster, which runs."""
    need(*missing(name))
    return json.loads(_admin(name).read_text("utf-8"))


def for_token(name: str, token: str) -> dict[str, Any]:
    """The kubeconfig of whoever holds a token; of nobody with an empty one."""
    document = admin(name)
    document["users"][0]["user"] = {"token": token} if token else {}
    return document


@lru_cache
def _admin(name: str) -> Path:
    place = os.environ.get(PLACE)
    if place:
        return Path(place) / name / "admin.kubeconfig"
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(started([name])) / name / "admin.kubeconfig"


@contextmanager
def started(names: list[str]) -> Generator[Path]:
    """The named clusters, until the block ends; in a folder for each."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetd-lab-")))
        clusters = {name: CLUSTERS[name][1](place / name) for name in names}
        for one in clusters.values():
            stack.callback(one.stop)
            one.begin()
        for one in clusters.values():
            one.finish()
        (place / "pids.json").write_text(
            json.dumps(
                {
                    name: {one.name: one.pid for one in cluster.running}
                    for name, cluster in clusters.items()
                }
            )
        )
        yield place


def up(names: list[str]) -> int:
    """Starts clusters, prints where they are, and waits to be interrupted."""
    lacking = sorted({one for name in names for one in missing(name)})
    if lacking:
        print(f"lab: {', '.join(lacking)} is not built: make parts", file=sys.stderr)
        return 1
    for one in (signal.SIGTERM, signal.SIGINT):  # the latter is ignored in a shell's background
        signal.signal(one, signal.default_int_handler)
    began = time.monotonic()
    try:
        with started(names) as place:
            took = time.monotonic() - began
            print(f"lab: up in {took:.1f} s; Ctrl-C ends it, and deletes {place}")
            for name in names:
                print(f"export KUBECONFIG={place / name / 'admin.kubeconfig'}  # {name}")
            sys.stdout.flush()
            signal.pause()
    except KeyboardInterrupt:
        print("lab: down")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.lab")
    parser.add_argument("command", choices=["up"])
    parser.add_argument("cluster", nargs="*", help=f"of {', '.join(CLUSTERS)}")
    given = parser.parse_args()
    names: list[str] = given.cluster or list(BY_HAND)
    strangers = [name for name in names if name not in CLUSTERS]
    if strangers:
        parser.error(f"there is no cluster {', '.join(strangers)}")
    return up(names)


if __name__ == "__main__":
    sys.exit(main())
