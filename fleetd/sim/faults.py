"""
Faults of the way: what a network and tired servers do to requests, drawn from the seed or by hand.

`Climate` is the weather of one world. Each cell of the matrix is a way to fail that the facts list;
with a chance, any request may meet one, and `hits` counts them, so that a cell that is never met
can fail a run. By hand a backend is put into a state (`unreachable`, `frozen` ...) until it is
lifted; `suffered` counts the requests that met one. It also keeps the ledger, because every request
passes here. What happens to machines and controllers instead of requests is `fleetd.sim.mishaps`.
"""

import enum
import json
import random
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import requests

from fleetd.kube.transport import Request, Response
from fleetd.sim.faces.weather import FAIR, Fate, Passage
from fleetd.sim.ledger import Ledger, changes
from fleetd.sim.world import HttpRequest, HttpResponse, Service, World

LATENCY = (0.002, 0.02)
"""Seconds of an ordinary request."""
RARE = 5.0
"""So much more often than others a request is met that a run has few of."""
NEVER = 10_000.0
"""Seconds; longer than any deadline."""
_SILENCE = Fate(wait=NEVER, lost="no answer came")
"""Whoever has no deadline is told in the end; what was lost never arrives late."""
_STALL = Passage(lines=(), wait=NEVER, lost="the watch fell silent")


class Cell(enum.StrEnum):
    """The ways to fail on the way, in the words of a script."""

    TOO_MANY = "requests 429"
    SERVER_ERROR = "requests 5xx"
    PLAIN_503 = "requests 503"
    RESET = "requests reset"
    LOST_BEFORE = "requests lost-before"
    LOST_AFTER = "requests lost-after"
    CONFLICT = "requests 409"
    STALE_READ = "requests stale"
    TWICE = "requests twice"
    WATCH_DROPPED = "watch ended"
    HALF_LINE = "watch torn"
    STALLED = "watch silent"
    GONE = "watch gone"
    DUPLICATED = "watch doubled"
    REORDERED = "watch swapped"
    MISSED = "watch missing"
    UNAUTHORIZED = "requests 401"
    BAD_TOKEN = "requests bad-token"  # noqa: S105 - words
    AUDIT_BLOCKED = "requests audit-blocked"
    CAS_MISMATCH = "requests cas-mismatch"
    LOCKED = "requests locked"


class Plight(enum.StrEnum):
    """What a whole backend can suffer until it is lifted."""

    UNREACHABLE = "unreachable"
    FROZEN = "frozen"
    """Takes requests and never answers."""
    FAILING = "failing"
    """Answers 500."""
    BUSY = "busy"
    """Answers 429."""
    SLOW = "slow"
    """Answers after some seconds."""
    ONE_WAY = "one-way"
    """Gets and does what is asked; no answer comes back."""
    EXPIRED = "expired"
    """Refuses fleetd's token: 401."""
    STANDBY = "standby"
    """An OpenBao without a leader."""
    AUDIT_BLOCKED = "audit-blocked"
    """An OpenBao that cannot write its audit log, and so answers nothing."""
    LOCKED = "locked"
    """An Ironic whose conductor holds every node."""


_ON_READS = (
    *(Cell.TOO_MANY, Cell.SERVER_ERROR, Cell.PLAIN_503, Cell.RESET, Cell.STALE_READ),
    Cell.UNAUTHORIZED,
)
_ON_WRITES = (
    *(Cell.TOO_MANY, Cell.SERVER_ERROR, Cell.PLAIN_503, Cell.RESET),
    *(Cell.LOST_BEFORE, Cell.LOST_AFTER, Cell.CONFLICT, Cell.TWICE, Cell.UNAUTHORIZED),
)
_ON_LINES = (
    *(Cell.WATCH_DROPPED, Cell.HALF_LINE, Cell.STALLED, Cell.GONE),
    *(Cell.DUPLICATED, Cell.REORDERED, Cell.MISSED),
)
_ON_SERVICES = (Cell.SERVER_ERROR, Cell.RESET, Cell.LOST_BEFORE, Cell.LOST_AFTER)
_KV_DATA = re.compile(r"/v1/[^/]+/data/")
_OPENBAO, _IRONIC = "openbao-", "ironic-"


@dataclass(slots=True)
class Aim:
    """A fault for what a backend is asked or says next, or, if not `once`, until it is lifted."""

    cell: Cell
    once: bool
    met: int = 0
    over: bool = False


@dataclass(slots=True)
class _Draw:
    """What was drawn for a request, to be carried out after it reached the server."""

    cell: Cell | None = None


class Climate:
    """Implements `faces.weather.Weather`, and stands before the services as well."""

    def __init__(self, world: World, ledger: Ledger, *, chance: float = 0.0) -> None:
        self.chance = chance
        """Of a fault, per request and per line."""
        self.hits: Counter[Cell] = Counter()
        self.suffered: Counter[Plight] = Counter()
        self.sufferers: Counter[tuple[str, Plight]] = Counter()
        """The same by backend."""
        self.aims: dict[str, list[Aim]] = {}
        """What requests and lines of a backend are to meet, in the order it was said."""
        self.remembered: set[str] = set()
        """Backends whose answers are kept, for a stale one to be told again."""
        self.plights: dict[str, Plight] = {}
        self.stalled: set[str] = set()
        """Backends whose watches have gone silent."""
        self._world = world
        self._ledger = ledger
        self._rng: random.Random = world.stream("weather")
        self._drawn: dict[int, _Draw] = {}
        self._old: dict[tuple[str, str], Response] = {}
        self._held: dict[int, bytes] = {}
        """Lines that are to come after the next one, by their watch."""

    def turn(self, chance: float) -> None:
        """Other weather from now on, drawn anew from the world's luck."""
        self.chance = chance
        self._rng = self._world.stream("weather")

    # Kubernetes.

    def before(self, backend: str, request: Request) -> Fate:
        # One that was given up before it arrived may have left its draw under the same number.
        self._drawn.pop(id(request), None)
        self._held.pop(id(request), None)
        wait = self._rng.uniform(*LATENCY)
        plight = self.plights.get(backend)
        if plight is not None:
            self._note(backend, plight)
            return self._suffer(plight, wait)
        cell = self._cell(
            _ON_WRITES if changes(request.method, request.path) else _ON_READS,
            backend,
            known=_key(backend, request) in self._old,
        )
        match cell:
            case None:
                return Fate(wait=wait)
            case Cell.LOST_AFTER | Cell.STALE_READ:
                self._drawn[id(request)] = _Draw(cell)
                return Fate(wait=wait)
            case Cell.TWICE:
                return Fate(wait=wait, times=2)
            case Cell.LOST_BEFORE:
                return _SILENCE
            case Cell.RESET:
                return Fate(wait=wait, lost="connection reset by peer")
            case _:
                return Fate(wait=wait, answer=_answer(cell))

    def after(self, backend: str, request: Request, response: Response) -> Fate:
        self._ledger.note(
            self._world.elapsed(), backend, request.method, request.path, response.status
        )
        drawn = self._drawn.pop(id(request), None)
        lost = drawn is not None and drawn.cell is Cell.LOST_AFTER
        if lost or self.plights.get(backend) is Plight.ONE_WAY:
            return _SILENCE
        kept = self.chance or backend in self.remembered
        if kept and _is_read(request, response):
            key = _key(backend, request)
            old = self._old.get(key)
            stale = drawn is not None and drawn.cell is Cell.STALE_READ
            if stale and old is not None and backend in self.remembered:
                return Fate(answer=old)
            self._old[key] = response
            if stale and old is not None:
                return Fate(answer=old)
        return FAIR

    def line(self, backend: str, request: Request, line: bytes) -> Passage:
        plight = self.plights.get(backend)
        if backend in self.stalled or plight in (Plight.FROZEN, Plight.ONE_WAY):
            return _STALL
        if plight in (Plight.UNREACHABLE, Plight.FAILING):
            return Passage(lines=(), lost="connection reset by peer")
        return self._passage(self._cell(_ON_LINES, backend, share=0.1), request, line)

    def _passage(self, cell: Cell | None, request: Request, line: bytes) -> Passage:
        match cell:
            case Cell.WATCH_DROPPED:
                return Passage(lines=(line,), end=True)
            case Cell.HALF_LINE:
                return Passage(lines=(line[: len(line) // 2],), end=True)
            case Cell.STALLED:
                return _STALL
            case Cell.GONE:
                return Passage(lines=(_GONE,), end=True)
            case Cell.MISSED:
                return Passage(lines=())
            case Cell.DUPLICATED:
                return Passage(lines=(*self._in_order(request, line), line))
            case Cell.REORDERED if id(request) not in self._held:
                self._held[id(request)] = line
                return Passage(lines=())
            case _:
                return Passage(lines=self._in_order(request, line))

    def _in_order(self, request: Request, line: bytes) -> tuple[bytes, ...]:
        """With the one that was held back: after this one, unless both are about one object or
        this one says that all before it has come. A watch that ends takes it with it, and the
        next one brings it."""
        held = self._held.pop(id(request), None)
        if held is None:
            return (line,)
        one, other = _about(held), _about(line)
        return (held, line) if other is None or one == other else (line, held)

    # Services behind `requests`.

    def over(self, name: str, request: HttpRequest, service: Service) -> HttpResponse:
        """Send it. There is no waiting here: what never answers is a timeout at once."""
        plight = self.plights.get(name)
        cell = None
        if plight is not None:
            refused = self._refused(name, plight, request)
            if refused is not None:
                return refused
        else:
            cell = self._aimed(_could(name, request), name, known=True)
            if cell is None:
                cells, share = _on_service(name, request)
                cell = self._cell(cells, name, share=share)
        if cell is Cell.RESET or cell is Cell.LOST_BEFORE:
            raise requests.ConnectionError("connection reset by peer")
        if cell is not None and cell is not Cell.LOST_AFTER:
            return _SERVICES[cell]
        answer = service.handle(request)
        self._ledger.note(self._world.elapsed(), name, request.method, request.path, answer.status)
        if cell is Cell.LOST_AFTER or plight is Plight.ONE_WAY:
            raise requests.ReadTimeout("no answer came")
        return answer

    def _refused(self, name: str, plight: Plight, request: HttpRequest) -> HttpResponse | None:
        """What a service in a plight answers; None: what it always does."""
        self._note(name, plight)
        match plight:
            case Plight.UNREACHABLE | Plight.FROZEN:
                raise requests.ConnectTimeout(f"{name} does not answer")
            case Plight.FAILING | Plight.BUSY:
                return HttpResponse(status=503, body=b"service unavailable\n")
            case Plight.STANDBY if not request.path.startswith("/v1/sys/"):
                return _NO_LEADER
            case Plight.AUDIT_BLOCKED if not request.path.startswith("/v1/sys/"):
                return _SERVICES[Cell.AUDIT_BLOCKED]
            case Plight.LOCKED if changes(request.method, request.path):
                return _SERVICES[Cell.LOCKED]
            case _:
                return None

    def _note(self, backend: str, plight: Plight) -> None:
        self.suffered[plight] += 1
        self.sufferers[backend, plight] += 1

    def aim(self, backend: str, aim: Aim) -> None:
        self.aims.setdefault(backend, []).append(aim)
        if aim.cell is Cell.STALE_READ:
            self.remembered.add(backend)

    def _aimed(self, cells: tuple[Cell, ...], backend: str, *, known: bool) -> Cell | None:
        for aim in self.aims.get(backend, ()):
            fits = aim.cell in cells and (known or aim.cell is not Cell.STALE_READ)
            if fits and not aim.over:
                aim.met += 1
                aim.over = aim.once
                self.hits[aim.cell] += 1
                return aim.cell
        return None

    def _cell(
        self, cells: tuple[Cell, ...], backend: str, *, share: float = 1.0, known: bool = True
    ) -> Cell | None:
        """What this one meets. `known`: whether there is an older answer to it."""
        aimed = self._aimed(cells, backend, known=known) if self.aims else None
        if aimed is not None:
            return aimed
        if not self.chance or self._rng.random() >= self.chance * share:
            return None
        cell = self._rng.choice(cells)
        self.hits[cell] += 1
        return cell

    def _suffer(self, plight: Plight, wait: float) -> Fate:
        match plight:
            case Plight.UNREACHABLE:
                return Fate(wait=wait, lost="connection refused")
            case Plight.FROZEN:
                return _SILENCE
            case Plight.FAILING:
                return Fate(wait=wait, answer=_answer(Cell.SERVER_ERROR))
            case Plight.BUSY:
                return Fate(wait=wait, answer=_answer(Cell.TOO_MANY))
            case Plight.EXPIRED:
                return Fate(wait=wait, answer=_answer(Cell.UNAUTHORIZED))
            case Plight.SLOW:
                return Fate(wait=self._rng.uniform(3, 8))
            case _:
                return Fate(wait=wait)


def _key(backend: str, request: Request) -> tuple[str, str]:
    return backend, f"{request.path}?{sorted(request.query.items())}"


def fitting(name: str, *, cluster: bool) -> frozenset[Cell]:
    """What requests to it, or lines from it, can meet."""
    if cluster:
        return frozenset((*_ON_READS, *_ON_WRITES, *_ON_LINES))
    more: tuple[Cell, ...] = ()
    if name.startswith(_OPENBAO):
        more = (Cell.AUDIT_BLOCKED, Cell.BAD_TOKEN, Cell.CAS_MISMATCH)
    elif name.startswith(_IRONIC):
        more = (Cell.LOCKED,)
    return frozenset((*_ON_SERVICES, *more))


def _is_read(request: Request, response: Response) -> bool:
    """Whether it can be read again as it was: a watch cannot, and a refusal was no reading."""
    return request.method == "GET" and response.status == 200 and "watch" not in request.query


def _about(line: bytes) -> tuple[str, str] | None:
    """Namespace and name of the object that a line of a watch is about; None for a bookmark."""
    told: Any = json.loads(line)
    if told["type"] == "BOOKMARK":
        return None
    metadata: dict[str, Any] = told["object"].get("metadata") or {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _could(name: str, request: HttpRequest) -> tuple[Cell, ...]:
    """All that can happen to it, however seldom."""
    more: tuple[Cell, ...] = ()
    if name.startswith(_OPENBAO) and not request.path.startswith("/v1/sys/"):
        more = (Cell.AUDIT_BLOCKED, Cell.BAD_TOKEN)
        if request.method != "GET" and _KV_DATA.match(request.path) is not None:
            more = (*more, Cell.CAS_MISMATCH)
    elif name.startswith(_IRONIC) and changes(request.method, request.path):
        more = (Cell.LOCKED,)
    return (*_ON_SERVICES, *more)


def _on_service(name: str, request: HttpRequest) -> tuple[tuple[Cell, ...], float]:
    """What it may meet, and how much more often than others: a value is written once."""
    if name.startswith(_OPENBAO) and not request.path.startswith("/v1/sys/"):
        if request.method != "GET" and _KV_DATA.match(request.path) is not None:
            return (Cell.AUDIT_BLOCKED, Cell.LOST_AFTER, Cell.CAS_MISMATCH), RARE
        return (*_ON_SERVICES, Cell.AUDIT_BLOCKED, Cell.BAD_TOKEN), 1.0
    if name.startswith(_IRONIC) and changes(request.method, request.path):
        return (*_ON_SERVICES, Cell.LOCKED), 1.0
    return _ON_SERVICES, 1.0


def _errors(status: int, *said: str) -> HttpResponse:
    """As OpenBao says it."""
    body = json.dumps({"errors": list(said)}).encode()
    return HttpResponse(status=status, body=body, headers={"content-type": "application/json"})


def _answer(cell: Cell) -> Response:
    match cell:
        case Cell.TOO_MANY:
            body = _status(429, "TooManyRequests", "too many requests, please try again later")
            return Response(status=429, body=body, headers={"retry-after": "3"})
        case Cell.PLAIN_503:
            return Response(status=503, body=b"service unavailable\n")
        case Cell.CONFLICT:
            words = "Operation cannot be fulfilled: the object has been modified"
            return Response(status=409, body=_status(409, "Conflict", words))
        case Cell.UNAUTHORIZED:
            return Response(status=401, body=_status(401, "Unauthorized", "Unauthorized"))
        case _:
            return Response(status=500, body=_status(500, "InternalError", "etcdserver: timeout"))


def _status(code: int, reason: str, message: str) -> bytes:
    return json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message,
        }
    ).encode()


_GONE = (
    json.dumps(
        {
            "type": "ERROR",
            "object": json.loads(_status(410, "Expired", "too old resource version")),
        }
    ).encode()
    + b"\n"
)

_NO_LEADER = _errors(500, "local node not active but active cluster node not found")
_IRONIC_LOCKED = {
    "faultstring": "Node is locked by host conductor-0, please retry after the current operation "
    "is completed.",
    "faultcode": "Client",
    "debuginfo": None,
}
_SERVICES = {
    Cell.SERVER_ERROR: HttpResponse(status=502, body=b"bad gateway\n"),
    Cell.BAD_TOKEN: _errors(403, "permission denied", "invalid token"),
    Cell.AUDIT_BLOCKED: _errors(500, "1 error occurred:\n\t* no audit backend succeeded\n\n"),
    Cell.CAS_MISMATCH: _errors(400, "check-and-set parameter did not match the current version"),
    Cell.LOCKED: HttpResponse(
        status=409,
        body=json.dumps({"error_message": json.dumps(_IRONIC_LOCKED)}).encode(),
        headers={"content-type": "application/json"},
    ),
}
"""What a service says instead."""
