"""
What `/metrics` answers: figures of the fleet by a renderer that keeps its text, those of the
process by prometheus_client.

Values are read from the `Panel` when somebody scrapes; nothing is counted here but requests. The
one rule: a scrape costs what changed since the last one, plus a glance at each region and backend.
Every series that counts failures exists from the start with zero, so that the first one is seen.
"""

import asyncio
import gzip
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple, cast

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector, exposition
from prometheus_client.openmetrics import exposition as openmetrics_exposition

import fleetd
from fleetd.plan.incidents import Severity
from fleetd.surface import accept as accepting
from fleetd.surface import exposition as text
from fleetd.surface import families as f
from fleetd.surface import ledger
from fleetd.surface.exposition import Samples, Sheet
from fleetd.surface.panel import BackendState, Histogram, Panel
from fleetd.vocabulary import HoldReason, Truth

PLAIN = exposition.CONTENT_TYPE_PLAIN_0_0_4
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LEDGER_FRESH = 30.0
"""Seconds for which the ends of credentials are good: to read them all costs milliseconds."""
LEVEL = 1
"""Of gzip: a tenth of the size, at a third of the time of the best."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
LARGE = 64 * 1024
"""Bytes of a piece that is not worth copying."""
BOUNDS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0)
"""Seconds of an HTTP request."""


class Body(NamedTuple):
    pieces: list[bytes]
    headers: dict[str, str]

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


async def send(request: web.Request, found: Body) -> web.StreamResponse:
    """Piece by piece: the whole is megabytes, and to copy it costs as much as to send it."""
    response = web.StreamResponse(headers=found.headers)
    response.content_length = found.size
    await response.prepare(request)
    if request.method != "HEAD":
        for piece in found.pieces:
            await response.write(piece)
    await response.write_eof()
    return response


class Requests:
    """How HTTP requests went, by route. Whoever answers them tells; the routes are a fixed table,
    so that a stranger's path is never a label."""

    def __init__(self) -> None:
        self.answered: Counter[tuple[str, str, str]] = Counter()
        self.times: dict[str, tuple[list[int], float]] = {}
        self.marks: Counter[str] = Counter()

    def expect(self, route: str, method: str, codes: Iterable[int]) -> None:
        """That some answers would be failures of ours, of which there are none yet."""
        for code in codes:
            self.answered[route, method, str(code)] += 0
        self.marks[route] += 1

    def request(self, route: str, method: str, code: int, seconds: float) -> None:
        method = method if method in METHODS else "other"
        self.answered[route, method, str(code)] += 1
        counts, total = self.times.get(route) or ([0] * (len(BOUNDS) + 1), 0.0)
        place = next((at for at, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        counts[place] += 1
        self.times[route] = counts, total + seconds
        self.marks[route] += 1


class Metrics:
    """What `/metrics` answers for one panel."""

    def __init__(self, source: Panel) -> None:
        self.requests = Requests()
        self._panel = source
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        self._sheet = Sheet(f.ALL)
        self._marks: dict[str, int] = {}
        self._listed: Collection[str] = ()
        """Regions that have series."""
        self._counted: Counter[tuple[str, Severity]] | None = None
        self._far: dict[str, BackendState] = {}
        self._ledger = float("-inf"), ""
        """When the ends of credentials were read, and of which topology."""
        self._dates: tuple[tuple[float, str], ledger.Dates] | None = None
        """What was read then."""

    async def answer(self, accept: str, encodings: str) -> Body:
        """As the headers `Accept` and `Accept-Encoding` ask. Reading the ledger of a large fleet
        and packing are done in a thread."""
        if self._ledger_is_old():
            mark = self._ledger
            self._dates = mark, await asyncio.to_thread(self._ledger_reader())
        openly = accepting.openmetrics(accept)
        headers = {"Content-Type": OPEN if openly else PLAIN, "Vary": "Accept, Accept-Encoding"}
        await self._ahead()
        pieces = self._pieces(openmetrics=openly)
        if accepting.gzip(encodings):
            pieces = [await asyncio.to_thread(_packed, pieces)]
            headers["Content-Encoding"] = "gzip"
        return Body(pieces, headers)

    async def _ahead(self) -> None:
        """Regions one by one: after a start, or when a secret is new, all of them are written
        anew, and the loop has other work."""
        self._forget()
        marks = dict(self._panel.marks())
        for region in self._changed(marks):
            self._region(region, marks[region])
            self._marks[region] = marks[region]
            await asyncio.sleep(0)

    def render(self, *, openmetrics: bool = False) -> bytes:
        if self._ledger_is_old():
            self._dates = self._ledger, self._ledger_reader()()
        return b"".join(self._pieces(openmetrics=openmetrics))

    def _pieces(self, *, openmetrics: bool) -> list[bytes]:
        self._refresh()
        whole = (
            *self._sheet.pieces(openmetrics=openmetrics),
            self._of_process(openmetrics=openmetrics),
            text.end(openmetrics=openmetrics),
        )
        return [*_gathered(whole)]

    def _of_process(self, *, openmetrics: bool) -> bytes:
        if openmetrics:
            make = cast("Callable[..., bytes]", openmetrics_exposition.generate_latest)  # pyright: ignore[reportUnknownMemberType]
            return make(self._process).removesuffix(text.end(openmetrics=True))
        return exposition.generate_latest(self._process)

    def _forget(self) -> None:
        if self._sheet.forget_secrets():
            self._marks, self._far, self._counted = {}, {}, None

    def _refresh(self) -> None:
        self._forget()
        self._single()
        self._regions()
        self._backends()
        self._credentials()
        self._drivers()
        self._routes()

    def _put(self, declared: text.Declared, mark: object, samples: Samples) -> None:
        """A family that is one block."""
        self._sheet.put(declared, None, mark, lambda: samples)

    def _single(self) -> None:
        source, work, queue = self._panel, self._panel.work(), self._panel.queue()
        self._put(f.BUILD_INFO, 1, [((fleetd.__version__,), 1)])
        for declared, value in (
            (f.READY, 0 if source.unready() else 1),
            (f.REFUSED, work.plans_refused),
            (f.ABANDONED, work.abandoned),
            (f.COMMITS, work.commits),
            (f.STORE_SIZE, work.store_bytes),
        ):
            self._put(declared, value, [((), value)])
        for declared, times in (
            (f.PLAN, work.plans),
            (f.WRITTEN, work.writes),
            (f.LAG, work.lag),
            (f.QUEUED, work.queued),
        ):
            self._put(declared, (times.total, *times.counts), [((), times)])
        depths = (("ready", queue.ready), ("delayed", queue.delayed), ("working", queue.working))
        self._put(f.QUEUE, depths, [((state,), depth) for state, depth in depths])

    # Regions.

    def _regions(self) -> None:
        marks = dict(self._panel.marks())
        if marks != self._marks:
            for region in self._changed(marks):
                self._region(region, marks[region])
            self._marks = marks
        if marks.keys() != self._listed:
            self._listed = marks.keys()
            self._counted = None
            for declared in (*f.PER_REGION, *f.PER_OBJECT):
                self._sheet.keep(declared, marks)
        self._incidents(marks)

    def _changed(self, marks: Mapping[str, int]) -> list[str]:
        return [name for name, mark in marks.items() if self._marks.get(name) != mark]

    def _region(self, region: str, mark: int) -> None:
        figures = self._panel.figures(region)
        held = figures.held
        ready: Samples = [
            ((kind, region), figures.resources.get((kind, Truth.TRUE), 0)) for kind in figures.kinds
        ]
        states: Samples = [
            ((kind, region, f.STATES[truth]), figures.resources.get((kind, truth), 0))
            for kind, truth in itertools.product(figures.kinds, Truth)
        ]
        holds: Samples = [((region, one.value), held.get(one, 0)) for one in HoldReason]
        pools: Samples = [
            ((region, place.pool, place.machine, place.zone, state), number)
            for place, count in figures.places.items()
            for state, number in (
                ("free", count.free),
                ("used", count.used),
                ("unavailable", count.unavailable),
            )
        ]
        clusters: Samples = [((region, name), int(good)) for name, good in figures.clusters.items()]
        since, changing = (
            at.timestamp() if at is not None else 0 for at in (figures.not_ready, figures.changing)
        )
        for declared, samples in (
            (f.RESOURCE_READY, ready),
            (f.RESOURCES, states),
            (f.PLANNED, [((region,), figures.planned)]),
            (f.HOLDS, holds),
            (f.CLUSTER_READY, clusters),
            (f.REGION_NOT_READY, [((region,), since)]),
            (f.REGION_CHANGE, [((region,), changing)]),
            (f.POOL, pools),
            (f.WAITS, [((region,), figures.waiting)]),
        ):
            self._sheet.put(declared, region, mark, lambda samples=samples: samples)

    def _incidents(self, regions: Iterable[str]) -> None:
        """Of every region, also of those where nothing is wrong."""
        counted = Counter((one.region, one.severity) for one in self._panel.incidents().items)
        if counted == self._counted:
            return
        self._counted = counted
        for region in regions:
            found = tuple(counted[region, severity] for severity in Severity)
            self._sheet.put(
                f.INCIDENTS,
                region,
                found,
                lambda region=region, found=found: [
                    ((region, severity.value), number)
                    for severity, number in zip(Severity, found, strict=True)
                ],
            )

    # Far sides.

    def _backends(self) -> None:
        backends = {one.name: one for one in self._panel.backends()}
        changed = [one for one in backends.values() if self._far.get(one.name) != one]
        for one in changed:
            for declared, value in (
                (f.BREAKER, int(one.breaker != "closed")),
                (f.IN_FLIGHT, one.in_flight),
                (f.WAITED, one.waited_seconds),
                (f.CALLS, one.calls),
                (f.UNANSWERED, one.unanswered),
                (f.CALLED, one.called_seconds),
            ):
                self._sheet.put(
                    declared, one.name, value, lambda one=one, value=value: [((one.name,), value)]
                )
        if backends.keys() != self._far.keys():
            for declared in f.PER_BACKEND:
                self._sheet.keep(declared, backends)
        self._far = backends

    def _ledger_is_old(self) -> bool:
        """If so it is to be read now, by who asked; others go on with what was read before."""
        digest, now = self._panel.topology().digest, self._panel.now().timestamp()
        at, of = self._ledger
        if 0 <= now - at < LEDGER_FRESH and of == digest:
            return False
        self._ledger = now, digest
        return True

    def _ledger_reader(self) -> Callable[[], ledger.Dates]:
        """Made where the loop is, for some clocks are the loop's; called anywhere."""
        source, topology, now = self._panel, self._panel.topology(), self._panel.now()
        return lambda: ledger.dates(topology, source.component, source.seen, now=now)

    def _credentials(self) -> None:
        if self._dates is None:
            return
        mark, dates = self._dates
        sheet, regions = self._sheet, self._panel.topology().regions
        sheet.put(f.EXPIRY, None, mark, lambda: _moments(dates.ends))
        sheet.put(f.ROTATION, None, mark, lambda: _moments(dates.due))
        keys = itertools.product(regions, ledger.STATES)
        sheet.put(f.CREDENTIALS, None, mark, lambda: [(key, dates.states[key]) for key in keys])

    # What was done.

    def _drivers(self) -> None:
        source, work = self._panel, self._panel.work()
        outcomes = {(driver, ending.lower()): n for (driver, ending), n in work.outcomes.items()}
        drivers = sorted({*source.drivers(), *(driver for driver, _ in outcomes)})
        steps: Samples = [
            ((driver, outcome), outcomes.get((driver, outcome), 0))
            for driver, outcome in itertools.product(drivers, f.OUTCOMES)
        ]
        looks: Samples = [
            ((driver, result), work.looked.get((driver, result), 0))
            for driver, result in itertools.product(drivers, f.RESULTS)
        ]
        self._put(f.STEPS, [value for _, value in steps], steps)
        self._put(f.LOOKS, [value for _, value in looks], looks)
        for declared, found in ((f.APPLY, work.steps), (f.OBSERVE, work.looks)):
            for by, times in sorted(found.items()):
                self._sheet.put(
                    declared,
                    " ".join(by),
                    (times.total, *times.counts),
                    lambda by=by, times=times: [(by, times)],
                )

    def _routes(self) -> None:
        told = self.requests
        self._put(f.REQUESTS, told.marks.total(), sorted(told.answered.items()))
        for route, (counts, total) in told.times.items():
            times = Histogram(BOUNDS, counts, total)
            self._sheet.put(
                f.REQUEST_TIME,
                route,
                told.marks[route],
                lambda route=route, times=times: [((route,), times)],
            )


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Small ones together, large ones as they are."""
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < LARGE:
            small.append(piece)
            continue
        yield b"".join(small)
        yield piece
        small = []
    yield b"".join(small)


def _packed(pieces: list[bytes]) -> bytes:
    return gzip.compress(b"".join(pieces), LEVEL, mtime=0)


def _moments(found: Mapping[ledger.Named, datetime]) -> Samples:
    return [(key, at.timestamp()) for key, at in found.items()]
