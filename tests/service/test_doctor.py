"""`fleetd doctor` finds what is wrong with a host, its settings and its far sides, and says so."""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fleetd import doctor
from fleetd.clock import SystemClock
from fleetd.doctor import Level
from fleetd.kube import errors as kube
from fleetd.kube.transport import Request, Response
from fleetd.secrets import Secret
from fleetd.settings import Address
from tests.real import certs
from topology import read

ROOT = Path(__file__).parents[2]
MINIMAL = ROOT / "topology" / "examples" / "minimal"
CLOCK = SystemClock()


def run(*args: str) -> tuple[int, str]:
    environment = {name: text for name, text in os.environ.items() if "FLEETD" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "fleetd", "doctor", "--listen", "127.0.0.1:0", *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    return done.returncode, done.stdout


def test_all_is_well_on_a_simulated_world(tmp_path: Path) -> None:
    """Every check is passed, and the exit says so."""
    code, out = run("--documents", str(MINIMAL), "--state", str(tmp_path / "s"), "--sim", "1")
    assert code == 0, out
    assert "garden of eu-1: answers, and takes the credentials" in out
    assert out.splitlines()[-1] == "nothing is wrong"


def test_what_is_missing_is_named_with_what_to_do(tmp_path: Path) -> None:
    """A kubeconfig that is not there: the file, its owner, exit 1; the other checks go on."""
    code, out = run("--documents", str(MINIMAL), "--state", str(tmp_path / "s"), "-o", "json")
    found = json.loads(out)["findings"]
    assert code == 1
    bad = {one["what"]: one["message"] for one in found if one["level"] == "bad"}
    assert "garden.kubeconfig does not exist; create it" in bad["garden of eu-1"]
    assert "metal of eu-1" in bad
    assert "secret of serverpool/metal" in bad
    assert {one["what"] for one in found if one["level"] == "ok"} >= {"python", "documents"}


def test_bad_documents_are_told_with_their_place(tmp_path: Path) -> None:
    """As `fleetctl validate` would, and nothing after them is guessed."""
    (tmp_path / "a.yaml").write_text("kind: Region\n")
    code, out = run("--documents", str(tmp_path), "--state", str(tmp_path / "s"))
    assert code == 1
    assert "a.yaml:1:" in out


def test_an_old_python_and_few_files_are_found() -> None:
    """The one cannot work, the other should be known."""
    old, few = doctor.host((3, 9, 1), 256)
    assert (old.level, few.level) == (Level.BAD, Level.NOTE)
    assert "LimitNOFILE" in few.advice


def test_a_state_directory_that_others_can_read_is_bad(tmp_path: Path) -> None:
    """The advice is the command that mends it."""
    tmp_path.chmod(0o755)
    found = doctor.state(tmp_path, CLOCK)
    assert found[0].level is Level.BAD
    assert found[0].advice == f"chmod 700 {tmp_path}"
    tmp_path.chmod(0o700)
    assert Level.BAD not in {one.level for one in doctor.state(tmp_path, CLOCK)}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("mounted", "kind"), [("nfs4", "nfs4"), ("tmpfs", "tmpfs"), ("ext4", "ext4")]
)
def test_the_file_system_of_the_state_is_known(tmp_path: Path, mounted: str, kind: str) -> None:
    """The innermost mount counts, and not one whose name only begins alike."""
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"disk / ext4 rw 0 0\nx {tmp_path}-other xfs rw 0 0\nsrv {tmp_path} {mounted} rw 0 0\n"
    )
    assert doctor.filesystem(tmp_path / "state", mounts) == kind


def test_an_address_that_is_taken_is_bad() -> None:
    """Unless a fleetd is what answers there."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        found = doctor.listen(Address("127.0.0.1", port))
    assert [one.level for one in found] == [Level.BAD]


async def test_a_fleetd_with_a_certificate_is_known_by_it(tmp_path: Path) -> None:
    """And whoever else is there with another one is not taken for it."""
    ours, other = (certs.Authority(tmp_path, name).server(name, "x") for name in ("a", "b"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ours.certificate, ours.key)

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0, ssl=context) as server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        found = [
            await asyncio.to_thread(doctor.listen, address, pair.certificate)
            for pair in (ours, other)
        ]

    assert [[one.level for one in some] for some in found] == [[Level.GOOD], [Level.BAD]]


class Far:
    """An API server that answers as told."""

    def __init__(self, answer: Response | Exception) -> None:
        self._answer = answer
        self.closed = False

    def kube(self, _kubeconfig: Secret) -> "Far":
        return self

    async def send(self, _request: Request) -> Response:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def close(self) -> None:
        self.closed = True


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(status=401, body=b"{}"), "does not take the credentials; renew"),
        (Response(status=503, body=b"down"), "down"),
        (kube.Unreachable("connection refused"), "connection refused"),
        (
            Response(status=200, headers={"date": "Sun, 01 Jan 2023 00:00:00 GMT"}),
            "s apart; tokens will be refused",
        ),
    ],
    ids=["unauthorized", "down", "unreachable", "clock"],
)
async def test_a_far_side_that_does_not_do_is_found(
    answer: Response | Exception, said: str
) -> None:
    """In its own words, and the connection is closed again."""
    far: Any = Far(answer)
    found = await doctor.api_server(far, CLOCK, Secret("x" * 8), "garden of eu-1")
    assert found[-1].level is Level.BAD
    assert said in found[-1].message
    assert far.closed


def test_every_secret_that_documents_name_is_looked_at_once() -> None:
    """Of a pool of fourteen servers the one access; of a region each of its own."""
    topology = read.read([MINIMAL]).topology
    assert topology is not None
    owners = [str(owner) for owner, _, _ in doctor.accesses(topology)]
    assert owners.count("serverpool/metal") == 1
    assert len(owners) == len({repr(access) for _, access, _ in doctor.accesses(topology)})
