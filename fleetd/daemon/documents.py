"""
The documents on disk: read when they change, away from the event loop, taken whole or not at all.

It polls names, sizes and times (a look at a thousand files costs milliseconds) because files come
by rsync, git and mounted ConfigMaps, which no one notification mechanism covers. What is wrong
with the newest documents stays visible until they are mended; the daemon goes on with the last
good ones.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from fleetd.engine import acceptance, records
from fleetd.engine.records import Surroundings
from fleetd.engine.state import State
from fleetd.plan.policy import Policy
from fleetd.store.base import Store
from topology import catalogue_load, collector, files, read
from topology.documents.base import Document
from topology.documents.region import Region
from topology.resource import EMPTY, Ref, Topology

_log = structlog.stdlib.get_logger("fleetd.documents")

LOGGED_MAX = 50
"""Problems in the log, each time the documents become worse."""

Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """What came of reading the documents once."""

    signature: Signature
    complaint: str
    """The first problem and the number of the others: what fits into an answer."""
    more: tuple[str, ...] = ()
    """The others, for the log; of very many the first."""
    offer: acceptance.Offer | None = None
    documents: tuple[Document, ...] = ()
    shown: Sequence[Mapping[str, Any]] = ()
    """The documents as people wrote them, for those who ask."""
    surroundings: Surroundings | None = None


class Documents:
    def __init__(
        self,
        *,
        paths: Sequence[Path],
        catalogue: Sequence[Path],
        consents: frozenset[str],
        state: State,
        store: Store,
        every: timedelta,
        surrounded: Callable[[Surroundings], None],
        taken: Callable[[], None],
        handed: Path | None = None,
    ) -> None:
        self._files = paths
        self._handed = handed
        """Where documents lie that people handed over; it need not be there."""
        self._catalogue = catalogue
        self._consents = consents
        self._state = state
        self._store = store
        self._every = every
        self._surrounded = surrounded
        self._taken = taken
        self._signature: Signature | None = None
        self._rows: Mapping[str, bytes] = {}
        self._folders: Mapping[Ref, Path] = {}
        self.complaint = "they were not read yet"
        self.accepted: Sequence[Mapping[str, Any]] = ()
        self.asks = ""
        """The consent that the newest documents wait for."""
        self._nudged = asyncio.Event()
        """Set to look at once."""
        self._looking = asyncio.Lock()

    async def restore(self) -> None:
        """Take up what was in force when the daemon ended."""
        self._rows = await self._store.load(records.ACCEPTED)
        around = await asyncio.to_thread(records.decode_surroundings, self._rows)
        if around is None:
            catalogue, _ = await asyncio.to_thread(catalogue_load.load, self._catalogue)
            around = Surroundings(catalogue=catalogue, folders={})
        self._surround(around)
        old = await asyncio.to_thread(records.decode_topology, self._rows)
        await acceptance.restore(self._state, self._store, old)
        regions = await self._store.load(records.REGIONS)
        self._set_policy([Region.model_validate_json(regions[name]) for name in sorted(regions)])

    def nudge(self) -> None:
        self._nudged.set()

    async def run(self) -> None:
        while True:
            await self.look()
            try:
                async with asyncio.timeout(self._every.total_seconds()):
                    await self._nudged.wait()
            except TimeoutError:
                continue
            self._nudged.clear()
            self._signature = None

    async def look(self) -> None:
        # Until what was read is in force and frozen: it all stays, so looking through it for
        # garbage finds none and stops the loop.
        with collector.at_rest():
            async with self._looking:
                await self._look()

    async def read_now(self) -> str:
        """Read them whether they look changed or not; says what is wrong with them."""
        self._signature = None
        await self.look()
        return self.complaint

    @property
    def _paths(self) -> Sequence[Path]:
        if self._handed is None or not files.is_folder(self._handed):
            return self._files
        return (*self._files, self._handed)

    async def _look(self) -> None:
        orphaned = {orphan.owner for orphan in self._state.view.orphans.values()}
        found = await asyncio.to_thread(self._read, self._state.declared, orphaned)
        if found is None:
            return
        self._signature = found.signature
        self.asks = found.offer.asks if found.offer is not None else ""
        if found.offer is None or found.offer.refused:
            complaint = found.offer.refused if found.offer is not None else found.complaint
            if complaint != self.complaint:
                _log.error("documents not taken", why=complaint)
                for problem in found.more:
                    _log.error("documents not taken", why=problem)
            self.complaint = complaint
            return
        await self._take(found, found.offer)

    async def _take(self, found: _Found, offer: acceptance.Offer) -> None:
        changed = offer.topology.digest != self._state.declared.digest
        changed = changed or records.CATALOGUE in offer.rows
        regions = [document for document in found.documents if isinstance(document, Region)]
        await self._remember_regions(regions)
        orphans = await acceptance.keep(self._state, self._store, offer)
        self._rows = {
            **{region: row for region, row in self._rows.items() if region not in offer.rows},
            **{region: row for region, row in offer.rows.items() if row is not None},
        }
        # On disk. In force at one stroke: nobody may see the one without the other.
        if found.surroundings is not None:
            self._surround(found.surroundings)
        if changed:
            self._state.accept(offer.topology, orphans, offer.table)
        self._set_policy(regions)
        self.complaint = ""
        self.accepted = found.shown
        if changed:
            _log.info(
                "documents taken",
                digest=offer.topology.digest[:12],
                resources=len(offer.topology.resources),
                orphans=len(self._state.view.orphans),
            )
            self._taken()

    def _surround(self, around: Surroundings) -> None:
        self._folders = around.folders
        self._surrounded(around)

    async def _remember_regions(self, regions: Sequence[Region]) -> None:
        """Windows and budgets must hold after a restart too, whatever the files say then."""
        old = await self._store.load(records.REGIONS)
        rows: dict[str, bytes | None] = dict.fromkeys(old)
        rows.update((region.metadata.name, _kept(region)) for region in regions)
        news = {name: row for name, row in rows.items() if old.get(name) != row}
        if news:
            await self._store.put(records.REGIONS, news)

    def _set_policy(self, regions: Sequence[Region]) -> None:
        now = self._state.policy
        fresh = Policy.of(
            regions,
            pauses=now.pauses.values(),
            approvals=now.approvals,
            consents=now.consents,
            stale_after=now.stale_after,
            mass_max=now.mass_max,
        )
        if fresh != now:
            self._state.set_policy(fresh)

    def _read(self, old: Topology, orphaned: AbstractSet[Ref | None]) -> _Found | None:
        """In a thread. None if nothing changed since the last look."""
        signature = _signature([*self._paths, *self._catalogue])
        if signature == self._signature:
            return None
        try:
            return self._found(signature, old, orphaned)
        except Exception as cause:  # noqa: BLE001 - a file must not end the daemon, whatever it holds
            _log.error("documents not read", exc_info=cause)
            return _Found(
                signature,
                f"fleetd itself failed over them ({type(cause).__name__}): its log has the place; "
                "undo the last change, and report this",
            )

    def _found(
        self, signature: Signature, old: Topology, orphaned: AbstractSet[Ref | None]
    ) -> _Found:
        reading = read.read(self._paths, self._catalogue)
        if reading.topology is None:
            first, *others = map(str, reading.problems)
            count = f" (and {len(others)} more; `fleetctl validate` shows all)" if others else ""
            return _Found(signature, first + count, tuple(others[:LOGGED_MAX]))
        documents = tuple(item.document for item in reading.bundle.items)
        # What no document names any more must still be looked at, and perhaps removed.
        leaving = orphaned | {resource.owner for resource in old.resources.values()}
        folders = {ref: folder for ref, folder in self._folders.items() if ref in leaving}
        for item in reading.bundle.items:
            folders[Ref(item.kind.lower(), item.name)] = item.folder.absolute()
        around = Surroundings(catalogue=reading.catalogue, folders=folders)
        return _Found(
            signature,
            "",
            offer=acceptance.offer(
                old if old.resources else EMPTY,
                reading.topology,
                self._rows,
                self._consents | self._state.policy.consents,
                around,
            ),
            documents=documents,
            shown=[
                document.model_dump(mode="json", by_alias=True, exclude_unset=True)
                for document in documents
            ],
            surroundings=around,
        )


def _kept(region: Region) -> bytes:
    """As it was given: what is unset written out as null would be refused when it is read."""
    return region.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _signature(paths: Sequence[Path]) -> Signature:
    """Names, sizes and times of all files that would be read. The time of the last change of the
    file itself too: `rsync -t` and `cp -p` put the other one back."""
    found: list[tuple[str, int, int, int]] = []
    for path in paths:
        every = files.below(path, _closed) if files.is_folder(path) else [path]
        for file in every:
            try:
                status = file.stat()
            except (OSError, ValueError):
                found.append((str(file), -1, -1, -1))
            else:
                found.append((str(file), status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(sorted(found))


def _closed(_folder: Path, _cause: OSError) -> None:
    """Reading them tells it; here it only matters that they are not among the files."""
