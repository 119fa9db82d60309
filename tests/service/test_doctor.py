"""`fleetd doctor` finds what is wrong with a host, its settings and its far sides, and says so."""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleetd import checkup, doctor, errors
from fleetd.checkup import Finding, Level
from fleetd.clock import SystemClock
from fleetd.kube import errors as kube
from fleetd.kube.transport import Request, Response
from fleetd.net import RealNetwork
from fleetd.secrets import Secret
from fleetd.settings import Address, Settings, TlsSettings
from fleetd.store import runner, sqlite
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
    old, few = checkup.host((3, 9, 1), 256)
    assert (old.level, few.level) == (Level.BAD, Level.NOTE)
    assert "LimitNOFILE" in few.advice


def test_a_state_directory_that_others_can_read_is_bad(tmp_path: Path) -> None:
    """The advice is the command that mends it."""
    tmp_path.chmod(0o755)
    found = checkup.state(tmp_path, CLOCK)
    assert found[0].level is Level.BAD
    assert found[0].advice == f"chmod 700 {tmp_path}"
    tmp_path.chmod(0o700)
    assert Level.BAD not in {one.level for one in checkup.state(tmp_path, CLOCK)}
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
    assert checkup.filesystem(tmp_path / "state", mounts) == kind


def test_an_address_that_is_taken_is_bad() -> None:
    """Unless a fleetd is what answers there."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        found = checkup.listen(Address("127.0.0.1", port))
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
            await asyncio.to_thread(checkup.listen, address, pair.certificate)
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


def test_a_state_that_is_there_is_looked_at(tmp_path: Path) -> None:
    """Whole, in use, damaged, or left by another account: each is told, and nothing is changed."""
    tmp_path.chmod(0o700)

    async def work() -> None:
        store = sqlite.SqliteStore(tmp_path, runner.ThreadRunner(CLOCK))
        await store.open()
        await store.put("x", {"a": b"1"})
        assert _told(checkup.kept(tmp_path), "a fleetd works with") == [Level.GOOD]
        await store.close()

    asyncio.run(work())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert _told(checkup.kept(tmp_path), "is whole") == [Level.GOOD]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "fleetd.anchor").write_bytes(b"")
    assert _told(checkup.kept(tmp_path), str(tmp_path)) == [Level.BAD]
    if os.getuid() == 0:
        os.chown(tmp_path / "fleetd.db", 12345, 12345)
        assert Level.BAD in _told(checkup.kept(tmp_path), "another account")


def _told(found: Iterable[Finding], words: str) -> list[Level]:
    listed = list(found)
    assert any(words in one.message for one in listed), listed
    return [one.level for one in listed]


def test_certificates_are_looked_at(tmp_path: Path) -> None:
    """One that ends soon, has ended, does not hold yet, or has another's key; a key for all."""
    pair, other = (certs.Authority(tmp_path, name).server(name, "x") for name in ("a", "b"))
    now = datetime.now(UTC)
    pair.key.chmod(0o600)
    good = TlsSettings(certificate=pair.certificate, key=pair.key)
    assert _told(checkup.encryption(good, now - timedelta(minutes=1)), "ends on") == [Level.NOTE]
    assert _told(checkup.encryption(good, now + timedelta(days=8)), "has expired") == [Level.BAD]
    assert _told(checkup.encryption(good, now - timedelta(days=8)), "holds from") == [Level.BAD]
    pair.key.chmod(0o644)
    assert Level.BAD in _told(checkup.encryption(good, now), "read by others (mode 0644)")
    pair.key.chmod(0o640)
    assert Level.BAD not in _told(checkup.encryption(good, now), "read by others (mode 0640)")
    with pytest.raises(errors.SettingsError, match="KEY_VALUES_MISMATCH"):
        checkup.encryption(TlsSettings(certificate=pair.certificate, key=other.key), now)
    (tmp_path / "empty.pem").write_text("nothing")
    some = TlsSettings(certificate=pair.certificate, key=pair.key, clients=tmp_path / "empty.pem")
    with pytest.raises(errors.SettingsError):
        checkup.encryption(some, now)


def test_access_and_certificates_are_part_of_it(tmp_path: Path) -> None:
    """Files that are named and are not there, lie open, or have a token that has ended."""
    access, state = tmp_path / "access.toml", str(tmp_path / "s")
    entry = f'[[tokens]]\nname = "ci"\nsha256 = "{"0" * 64}"\nrole = "viewer"\n'
    options = ("--documents", str(MINIMAL), "--state", state, "--sim", "1")
    code, out = run(*options, "--access-file", str(access), "--tls-key", "/none", "-o", "json")
    assert code == 2  # a key without its certificate is no setting
    missing = ("--tls-certificate", str(tmp_path / "none.crt"), "--tls-key", "/none")
    code, out = run(*options, "--access-file", str(access), *missing, "-o", "json")
    bad = {one["what"]: one["message"] for one in json.loads(out)["findings"] if _bad(one)}
    assert code == 1
    assert "none.crt: No such file" in bad["tls"]
    assert "cannot be read: No such file" in bad["access"]
    access.write_text(f"{entry}expires = 2020-01-01T00:00:00Z\n")
    access.chmod(0o600)
    code, out = run(*options, "--access-file", str(access))
    assert code == 0, out
    assert "the token ci has expired" in out


def _bad(one: Mapping[str, str]) -> bool:
    return one["level"] == "bad"


async def test_far_sides_are_asked_side_by_side() -> None:
    """One that answers only when another was asked is no end of the others."""
    reading = read.read([MINIMAL], [])
    assert reading.topology is not None
    asked: list[str] = []
    all_asked = asyncio.Event()

    class Slow(doctor.Doctor):
        def _entered(self, region: Any, part: str) -> Any:
            async def check() -> list[Finding]:
                asked.append(part)
                if len(asked) == 3:
                    all_asked.set()
                async with asyncio.timeout(10):
                    await all_asked.wait()
                return [Finding(Level.GOOD, part, str(region.ref))]

            return check

    files = doctor.Files({}, MINIMAL)
    looking = Slow(settings=Settings(), net=RealNetwork(), clock=CLOCK, keeper=files)
    await looking._far_sides(reading, reading.topology)
    told = [one.what for one in looking.found]
    assert told[:3] == ["garden", "metal", "secrets"]
