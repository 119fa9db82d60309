"""
What can be found out on this host: the interpreter, the state directory, the address, certificates.

Each check is a function that gives findings and changes nothing, but for a file of its own in the
state directory, which it removes again. What lies elsewhere is asked by `doctor`.
"""

import enum
import fcntl
import os
import shutil
import socket
import ssl
import statistics
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509

from fleetd import errors
from fleetd.clock import Clock
from fleetd.daemon.access.tls import Tls
from fleetd.settings import Address, TlsSettings
from fleetd.store import place
from fleetd.store.database import Database

PYTHON = (3, 11)
FILES = 4096
ROOM = 1 << 30
SLOW = 0.02
"""Seconds for a durable write. At 20 ms each, a region of a thousand steps waits 40 s for its
disk."""
SOON = timedelta(days=14)
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph")
PASSING = ("tmpfs", "ramfs")


class Level(enum.StrEnum):
    GOOD = "ok"
    NOTE = "note"
    """Works, and somebody should know."""
    BAD = "bad"


class Finding(NamedTuple):
    level: Level
    what: str
    message: str
    advice: str = ""


def host(version: Sequence[int], files: int) -> list[Finding]:
    shown = ".".join(str(part) for part in version)
    found = [
        Finding(Level.GOOD, "python", shown)
        if tuple(version) >= PYTHON
        else Finding(Level.BAD, "python", f"{shown} is too old", "install Python 3.11 or newer")
    ]
    if files < FILES:
        words = f"{files} open files are few: each cluster needs some twenty connections"
        advice = f"raise the limit to {FILES} or more (LimitNOFILE= in the unit, ulimit -n)"
        found.append(Finding(Level.NOTE, "open files", words, advice))
    else:
        found.append(Finding(Level.GOOD, "open files", f"{files} allowed"))
    return found


def state(folder: Path, clock: Clock) -> list[Finding]:
    """Whether the daemon can keep what it must remember there, and how fast."""
    if not folder.exists():
        above = next(one for one in folder.parents if one.exists())
        if not os.access(above, os.W_OK):
            advice = f"make it yourself: install -d -m 0700 -o fleetd {folder}"
            words = f"{folder} does not exist and cannot be made"
            return [Finding(Level.BAD, "state", words, advice)]
        return [Finding(Level.GOOD, "state", f"{folder} will be made")]
    found: list[Finding] = [*kept(folder)]
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077:
        words = f"{folder} can be read by others (mode {mode:04o})"
        found.append(Finding(Level.BAD, "state", words, f"chmod 700 {folder}"))
    kind = filesystem(folder, Path("/proc/self/mounts"))
    if kind in REMOTE:
        words = f"{folder} is on {kind}: its promises about durable writes are not to be relied on"
        found.append(Finding(Level.BAD, "state", words, "use a local disk"))
    elif kind in PASSING:
        words = f"{folder} is on {kind} and is gone after a restart of the machine"
        found.append(Finding(Level.NOTE, "state", words, "use a disk"))
    stat = os.statvfs(folder)
    free = stat.f_bavail * stat.f_frsize
    if free < ROOM:
        words = f"{free >> 20} MB are free at {folder}"
        found.append(Finding(Level.BAD, "state", words, "make room: at least 1 GB"))
    took = durable(folder, clock)
    words = f"a durable write in {folder} takes {took * 1000:.1f} ms"
    if took > SLOW:
        advice = "steps wait for it; use a faster disk for the state"
        found.append(Finding(Level.NOTE, "state", words, advice))
    else:
        found.append(Finding(Level.GOOD, "state", words))
    return found


def kept(folder: Path) -> Iterator[Finding]:
    """What a fleetd has left there: whose it is, whether one works with it, whether it is whole."""
    owner = folder.stat().st_uid
    there = [folder / name for name in (place.DATABASE, place.ANCHOR, place.LOCK)]
    for path in there:
        if path.exists() and path.stat().st_uid != owner:
            words = f"{path} belongs to another account than {folder}"
            yield Finding(Level.BAD, "state", words, f"chown -R --reference={folder} {folder}")
    if not there[0].exists():
        return
    if holder := _holder(there[2]):
        yield Finding(Level.GOOD, "state", f"a fleetd works with {folder}, process {holder}")
        return
    with tempfile.TemporaryDirectory(prefix="fleetd-doctor-") as copy:
        for path in folder.glob(f"{place.DATABASE}*"):
            shutil.copyfile(path, Path(copy) / path.name)
        shutil.copyfile(there[1], Path(copy) / place.ANCHOR)
        database = Database(Path(copy))
        try:
            database.open()
        except errors.StoreError as damage:
            yield Finding(Level.BAD, "state", f"{folder}: {damage}".replace(copy, str(folder)))
        else:
            yield Finding(Level.GOOD, "state", f"what is kept in {folder} is whole")
        finally:
            database.close()


def _holder(lock: Path) -> str:
    """The process that holds it; empty if none does."""
    try:
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read(32).decode(errors="replace").strip() or "unknown"
    except FileNotFoundError:
        pass
    return ""


def encryption(tls: TlsSettings, now: datetime) -> list[Finding]:
    """Certificates that are there, hold, and have their key, which nobody else can read."""
    found: list[Finding] = []
    for path in (tls.certificate, tls.clients):
        found += [] if path is None else _ends(path, now)
    if tls.certificate is None or tls.key is None:
        return found
    mode = tls.key.stat().st_mode & 0o777
    if mode & 0o077:
        level = Level.BAD if mode & 0o007 else Level.NOTE
        words = f"{tls.key} can be read by others (mode {mode:04o})"
        found.append(Finding(level, "tls", words, f"chmod 600 {tls.key}"))
    Tls(tls.certificate, tls.key, tls.clients)  # whether they fit together
    if not found:
        found.append(Finding(Level.GOOD, "tls", f"{tls.certificate} holds, and the key is its own"))
    return found


def _ends(path: Path, now: datetime) -> Iterator[Finding]:
    try:
        listed = x509.load_pem_x509_certificates(path.read_bytes())
    except ValueError:
        yield Finding(Level.BAD, "tls", f"{path} has no certificate in PEM")
        return
    for one in listed:
        begins, ends = one.not_valid_before_utc, one.not_valid_after_utc
        if now >= ends:
            words = f"a certificate in {path} has expired on {ends:%Y-%m-%d}"
            yield Finding(Level.BAD, "tls", words, "replace it; no restart is needed")
        elif now < begins:
            words = f"a certificate in {path} holds from {begins:%Y-%m-%d} only"
            yield Finding(Level.BAD, "tls", words, "see the clock of this host")
        elif ends - now < SOON:
            words = f"a certificate in {path} ends on {ends:%Y-%m-%d}"
            yield Finding(Level.NOTE, "tls", words, "replace it; no restart is needed")


def durable(folder: Path, clock: Clock) -> float:
    """Median of a few small writes that are flushed to the disk."""
    times: list[float] = []
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
        for _ in range(5):
            began = clock.monotonic()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            times.append(clock.monotonic() - began)
    return statistics.median(times)


def filesystem(folder: Path, mounts: Path) -> str:
    """The type of the file system that a folder is on; empty where nobody says."""
    try:
        lines = mounts.read_text("utf-8").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    place = str(folder.resolve())
    for line in lines:
        _, point, type_, *_ = line.split(" ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, type_
    return kind


def listen(address: Address, certificate: Path | None = None) -> list[Finding]:
    """Free, or a fleetd is there already. `certificate`: what it shows, if it has one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((address.host, address.port))
    except OSError as cause:
        if _shows(address, certificate) if certificate is not None else _answers(address):
            return [Finding(Level.GOOD, "listen", f"a fleetd serves on {address}")]
        words = f"cannot listen on {address}: {cause.strerror}"
        return [Finding(Level.BAD, "listen", words, "stop what uses it, or choose another")]
    return [Finding(Level.GOOD, "listen", f"{address} is free")]


def _answers(address: Address) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/healthz", timeout=5) as answer:
            return answer.read(16) == b"ok\n"
    except (OSError, urllib.error.URLError, ValueError):
        return False


def _shows(address: Address, certificate: Path) -> bool:
    """Whether who is there has our certificate, and by the handshake its key: that is fleetd."""
    try:
        shown = ssl.get_server_certificate((address.host, address.port), timeout=5)
        ours = certificate.read_text("ascii").partition(ssl.PEM_FOOTER)[0] + ssl.PEM_FOOTER
        return ssl.PEM_cert_to_DER_cert(shown) == ssl.PEM_cert_to_DER_cert(ours)
    except (OSError, ValueError):
        return False
