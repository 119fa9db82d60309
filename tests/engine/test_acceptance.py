"""New documents at the door: taken whole, or refused with a reason while the old ones stay."""

import os
import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from structlog import testing

from fleetd.clock import LoopClock
from fleetd.daemon.documents import Documents
from fleetd.engine import recovery
from fleetd.engine.state import State
from fleetd.plan.policy import Policy
from fleetd.store.memory import MemoryStore
from tests import defaults
from tests.toy.universe import START
from topology import read
from topology.resource import Ref

EXAMPLE = Path(__file__).parents[2] / "topology" / "examples" / "minimal" / "region.yaml"


async def _daemon(store: MemoryStore, folder: Path, consents: Sequence[str] = ()) -> Documents:
    """What a daemon does with its documents when it starts."""
    state = State({}, Policy())
    documents = Documents(
        paths=[folder],
        catalogue=(),
        consents=frozenset(consents),
        state=state,
        store=store,
        every=timedelta(seconds=10),
        surrounded=lambda _: None,
        taken=lambda: None,
    )
    await documents.restore()
    await recovery.recover(state, store, LoopClock(START), defaults.BACKOFF, random.Random(1))
    await documents.look()
    return documents


def _write(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "region.yaml").write_text(text)


def _without(text: str, *names: str) -> str:
    """The example without the documents of these names."""
    kept = [
        part
        for part in text.split("\n---\n")
        if not any(f"metadata: {{name: {name}}}" in part for name in names)
    ]
    return "\n---\n".join(kept)


async def test_valid_documents_are_taken_and_remembered(tmp_path: Path) -> None:
    """A second start with the same files finds the same topology, from the store alone."""
    store = MemoryStore()
    await store.open()
    _write(tmp_path, EXAMPLE.read_text())
    first = await _daemon(store, tmp_path)
    (tmp_path / "region.yaml").unlink()
    second = await _daemon(store, tmp_path)

    assert first.complaint == ""
    assert second.complaint != ""
    assert second._state.view.topology == first._state.view.topology


async def test_bad_documents_change_nothing_and_are_named(tmp_path: Path) -> None:
    """A broken file leaves the last good state in force, policy included."""
    store = MemoryStore()
    await store.open()
    _write(tmp_path, EXAMPLE.read_text())
    good = await _daemon(store, tmp_path)
    _write(tmp_path, EXAMPLE.read_text().replace("role: management", "role: manager"))
    bad = await _daemon(store, tmp_path)

    assert "region.yaml:" in bad.complaint
    assert "role" in bad.complaint
    assert bad._state.view.topology.digest == good._state.view.topology.digest
    assert bad._state.policy.regions == good._state.policy.regions
    assert bad._state.policy.regions["eu-1"].windows


async def test_documents_that_lose_a_cluster_need_consent(tmp_path: Path) -> None:
    """A shortened file is refused whole; with the consent it names it is taken, and what it no
    longer names becomes an orphan that is remembered."""
    store = MemoryStore()
    await store.open()
    _write(tmp_path, EXAMPLE.read_text())
    whole = await _daemon(store, tmp_path)
    _write(tmp_path, _without(EXAMPLE.read_text(), "hv", "st", "prod", "compute", "disks"))
    refused = await _daemon(store, tmp_path)
    consent = refused.complaint.rsplit(" ", 1)[1]
    taken = await _daemon(store, tmp_path, [consent])
    later = await _daemon(store, tmp_path, [consent])

    assert "2 of 4 clusters (hv, st)" in refused.complaint
    assert refused._state.view.topology == whole._state.view.topology
    assert taken.complaint == ""
    assert {Ref("cluster", "hv"), Ref("cluster", "st")} <= set(taken._state.view.orphans)
    assert later._state.view.orphans == taken._state.view.orphans


async def test_an_orphan_that_is_named_again_is_no_orphan(tmp_path: Path) -> None:
    """Putting the document back is all it takes."""
    store = MemoryStore()
    await store.open()
    _write(tmp_path, EXAMPLE.read_text())
    await _daemon(store, tmp_path)
    _write(tmp_path, _without(EXAMPLE.read_text(), "hv", "st", "prod", "compute", "disks"))
    refused = await _daemon(store, tmp_path)
    await _daemon(store, tmp_path, [refused.complaint.rsplit(" ", 1)[1]])
    _write(tmp_path, EXAMPLE.read_text())
    back = await _daemon(store, tmp_path)

    assert back.complaint == ""
    assert back._state.view.orphans == {}


async def test_what_the_far_side_would_refuse_is_refused_at_the_door(tmp_path: Path) -> None:
    """A Kubernetes downgrade is not taken, and the words say so."""
    store = MemoryStore()
    await store.open()
    _write(tmp_path, EXAMPLE.read_text())
    await _daemon(store, tmp_path)
    _write(tmp_path, EXAMPLE.read_text().replace('"1.33.4"', '"1.32.1"'))
    refused = await _daemon(store, tmp_path)

    assert "1.32.1" in refused.complaint
    assert "cluster/" in refused.complaint


async def test_a_fault_of_the_reader_itself_leaves_the_old_documents_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug that a document brings out is shown and does not end the daemon; mended documents are
    taken as if nothing had been."""
    store = MemoryStore()
    await store.open()
    _write(tmp_path, EXAMPLE.read_text())
    documents = await _daemon(store, tmp_path)
    before = documents._state.view.topology.digest

    def stumble(*_: object) -> None:
        raise IndexError("list index out of range")

    with monkeypatch.context() as broken:
        broken.setattr(read, "read", stumble)
        _write(tmp_path, EXAMPLE.read_text() + "\n# more\n")
        await documents.look()
    assert "IndexError" in documents.complaint
    assert documents._state.view.topology.digest == before

    _write(tmp_path, EXAMPLE.read_text() + "\n# mended now\n")
    await documents.look()
    assert documents.complaint == ""


async def test_a_file_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    """`cp -p` puts the time back: a change is noticed all the same."""
    store = MemoryStore()
    await store.open()
    _write(tmp_path, EXAMPLE.read_text())
    documents = await _daemon(store, tmp_path)
    file = tmp_path / "region.yaml"
    times = file.stat()
    file.write_text(EXAMPLE.read_text().replace("role: management", "role: managemenx"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    await documents.look()

    assert "managemenx" in documents.complaint


async def test_every_problem_is_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads the log of a refused reload need not repair one fault to learn of the next."""
    store = MemoryStore()
    await store.open()
    text = EXAMPLE.read_text().replace("role: management", "role: manager")
    _write(tmp_path, text.replace("pool: metal, minimum: 4", "pool: metl, minimum: 4"))

    log = testing.LogCapture()
    silent = structlog.wrap_logger(None, processors=[log], wrapper_class=structlog.BoundLogger)
    monkeypatch.setattr("fleetd.daemon.documents._log", silent)

    documents = await _daemon(store, tmp_path)

    told = [str(line["why"]) for line in log.entries if line["event"] == "documents not taken"]
    assert documents.complaint == told[0]
    assert "(and 2 more; `fleetctl validate` shows all)" in told[0]
    assert ["metl" in line for line in told] == [False, True, True]
