"""The demo: what it offers, what it shows, and how it ends when something is wrong."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fleetd.kube.transport import Request, Response
from fleetd.sim import build, demo, loop, script, serve
from fleetd.sim.faults import Climate
from fleetd.sim.ledger import Ledger
from fleetd.sim.mishaps import Mishaps
from topology import read
from topology.resource import Topology

ROOT = Path(demo.__file__).parents[2]


def racks() -> Topology:
    topology = read.read([demo.EXAMPLE]).topology
    assert topology is not None
    return topology


def mishaps() -> Mishaps:
    world = build.build(racks(), 7)
    clusters = [ref.name for ref in racks().resources if ref.kind == "cluster"]
    return Mishaps(world, Climate(world, Ledger()), clusters)


def test_every_failure_that_is_offered_can_be_had() -> None:
    """A dead BMC, a sealed OpenBao, a lost rack, a bad image; each names something that exists."""
    offered = demo.faults(racks(), "eu-1")

    async def story() -> None:
        mishaps().check([script.read(f"at 0: {line}") for line in offered])

    loop.run(story())
    assert offered == [
        "bmc r1-s01 unreachable",
        "openbao eu-1 sealed",
        "rack r2 dark",
        "image hv/nova-compute bad",
    ]


def test_the_rack_that_is_lost_holds_most_monitors() -> None:
    """Wherever three monitors stand on the four storage servers, two of them are in it."""
    disks = [want for want in racks().resources.values() if want.spec.get("pool") == "disks"]
    lost = [want for want in disks if "rack:eu-1/r2" in want.domains]

    assert (len(disks), len(lost)) == (4, 3)


def test_what_was_broken_is_mended_over_the_wire() -> None:
    """`mend` ends what has no end and says what it was; then there is nothing left."""

    async def story() -> list[str]:
        faults = serve.Faults(mishaps())
        answers = [
            faults.handle(Request(method="POST", path="/", body=text), {})
            for text in (b"bmc r1-s01 unreachable", b"mend", b"mend")
        ]
        return [one.body.decode() for one in answers if isinstance(one, Response)]

    begun, mended, nothing = loop.run(story())
    assert (begun, mended) == ("it begins\n", "no longer:\nbmc r1-s01 unreachable\n")
    assert nothing.startswith("nothing is broken")


def test_what_is_to_break_later_breaks_later() -> None:
    """`at` counts from the moment at which it is said, and a thing that is not there is refused."""

    async def story() -> list[str]:
        faults = serve.Faults(mishaps())
        answers: list[str] = []

        def say(text: bytes) -> None:
            answer = faults.handle(Request(method="POST", path="/", body=text), {})
            assert isinstance(answer, Response)
            answers.append(answer.body.decode())

        await asyncio.sleep(3600)
        say(b"at 12m: bmc r1-s01 unreachable")
        say(b"mend")
        await asyncio.sleep(721)
        say(b"mend")
        say(b"at 12m: bmc nobody unreachable")
        return answers

    said, early, late, wrong = loop.run(story())
    assert said == "it begins in 12m\n"
    assert early.startswith("nothing is broken")
    assert late == "no longer:\nbmc r1-s01 unreachable\n"
    assert "nobody" in wrong


def test_documents_with_a_problem_end_it(tmp_path: Path) -> None:
    """With the complaint and a code that is not zero, and no traceback."""
    (tmp_path / "bad.yaml").write_text("kind: Region\n")
    done = run("--once", "--documents", str(tmp_path), folder=tmp_path)
    out, err = done.communicate(timeout=120)

    assert (done.returncode, out) == (1, "")
    assert err.startswith("make demo: the world did not start:")
    assert "Traceback" not in err
    assert not list(tmp_path.glob("fleetd-demo-*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_whatever_ends_it_nothing_stays(number: signal.Signals, tmp_path: Path) -> None:
    """A closed terminal and `kill` take both processes and the folder along, as Ctrl-C does."""
    process = run(folder=tmp_path)
    assert process.stdout is not None
    timer = threading.Timer(600, process.terminate)
    timer.start()
    try:
        told = [process.stdout.readline() for _ in range(2)]
        children = below(process.pid)
    finally:
        process.send_signal(number)
        _, complaints = process.communicate(timeout=120)
        timer.cancel()

    assert told[0].startswith("fleetd serves "), complaints
    assert told[1].startswith("no Prometheus is installed or built")
    assert process.returncode == 0
    assert len(children) == 2
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    assert not list(tmp_path.glob("fleetd-demo-*"))


def run(*args: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "fleetd.sim.demo", *args],
        cwd=ROOT,
        # No Prometheus of this machine, if there is one.
        env={**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1", "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def below(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8")
    return [int(one) for one in found.split()]
