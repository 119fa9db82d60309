"""
The gate before each backend: how many calls at once, how many a second, and whether at all.

It stands where requests leave the process (`fleetd.kube.gated`, `fleetd.net.Ways`) and nowhere
else, so that a silence counts against whoever was silent. One dead cluster must never slow the
others, so every backend has its own gate. A call passes in this order: the breaker (refused at once
while it is open), a token (rate), a slot (concurrency). Who sent it says afterwards whether the far
side answered; it is not asked whether it liked the answer: a refusal is an answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta

from fleetd import errors
from fleetd.clock import Clock

PATIENCE = 5.0
"""Seconds. Who is given up after less may only have been called off; after more it was silent. So
long a call also waits for a backend that asks for a pause; a longer one is refused at once."""
SILENT = "did not answer several times"
GIVEN_UP: ContextVar[list[str] | None] = ContextVar("GIVEN_UP", default=None)
"""Where somebody who sets a time for a look that asks several backends is told which of them it was
that did not answer in that time."""
LONGEST_PAUSE = 300.0
"""Seconds that a backend may ask for. One that wants more is asked again all the same."""


class GateClosed(errors.FleetError):
    """Nothing was sent: the breaker is open, or the backend asked for a pause."""

    def __init__(self, backend: str, again: timedelta, why: str) -> None:
        seconds = max(round(again.total_seconds()), 1)
        super().__init__(f"{backend} {why}; asked again in {seconds} s")
        self.backend = backend
        self.again = again


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    concurrency: int
    """Calls under way at once."""
    rate: float
    """Calls a second, on average."""
    burst: int
    """Calls that may go at once after a quiet time."""
    failures_max: int
    """Calls in a row without an answer before the breaker opens."""
    open_for: timedelta
    """First pause of the breaker; doubles while the probe fails."""
    open_max: timedelta


@dataclass
class Gate:
    backend: str
    limits: GateLimits
    clock: Clock
    waited: float = 0.0
    """Seconds that calls have waited for a token or a slot: the limit nobody sees, made visible."""
    failures: int = 0
    in_flight: int = 0
    calls: int = 0
    """Ended so far, and of those without an answer, and how long all of them took."""
    unanswered: int = 0
    called: float = 0.0

    _slots: asyncio.Semaphore = field(init=False)
    _tokens: float = field(init=False)
    _filled: float = field(init=False)
    _open_until: float | None = None
    _paused_until: float = 0.0
    _pause: timedelta = field(init=False)
    _probing: bool = False

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.limits.concurrency)
        self._tokens = float(self.limits.burst)
        self._filled = self.clock.monotonic()
        self._pause = self.limits.open_for

    @property
    def is_open(self) -> bool:
        """True from the first silence too many until an answer comes."""
        return self._open_until is not None

    @property
    def breaker(self) -> str:
        """closed: calls pass; open: none does; half-open: one may try."""
        if self._open_until is None:
            return "closed"
        return "open" if self.clock.monotonic() < self._open_until else "half-open"

    @contextlib.asynccontextmanager
    async def passing(self) -> AsyncGenerator[None]:
        """Wait for a turn, and have it. Raises GateClosed as `enter` does."""
        turn = await self.enter()
        try:
            yield
        finally:
            turn.end()

    async def enter(self) -> "Turn":
        """Wait for a turn, which lasts until its `end`. Raises GateClosed without waiting while the
        breaker is open."""
        now = self.clock.monotonic()
        probe = self.check(now)
        wait = self._booked(now)
        if wait > 0 or self._slots.locked():
            await self._sleep(wait)
            await self._slots.acquire()
            began, now = now, self.clock.monotonic()
            self.waited += now - began
            try:
                # The wait may have been long enough for the breaker to open.
                probe = self.check(now)
            except GateClosed:
                self._slots.release()
                raise
        else:
            await self._slots.acquire()  # at once
        self._probing = self._probing or probe
        self.in_flight += 1
        return Turn(self, probe=probe, since=now)

    async def begin_watch(self) -> None:
        """A turn that takes no slot: it lasts for minutes. It is no probe either, because whether
        it is answered shows only when something happens."""
        now = self.clock.monotonic()
        if self.check(now):
            raise GateClosed(self.backend, self.limits.open_for, SILENT)
        await self._sleep(self._booked(now))

    def check(self, now: float | None = None) -> bool:
        """Raises GateClosed if nothing may be sent now. True: a call would be the one probe that
        may go through."""
        now = self.clock.monotonic() if now is None else now
        if self._paused_until - now > PATIENCE:
            left = timedelta(seconds=self._paused_until - now)
            raise GateClosed(self.backend, left, "asked for a pause")
        if self._open_until is None:
            return False
        left = timedelta(seconds=self._open_until - now)
        if left > timedelta(0):
            raise GateClosed(self.backend, left, SILENT)
        if self._probing:
            raise GateClosed(self.backend, self.limits.open_for, SILENT)
        return True

    def leave(self, *, probe: bool, since: float) -> None:
        self.in_flight -= 1
        self.calls += 1
        self.called += self.clock.monotonic() - since
        self._slots.release()
        if probe:
            self._probing = False

    def heard(self, status: int, headers: Mapping[str, str]) -> None:
        """An answer over HTTP. One that says when to come back is obeyed."""
        self.answered()
        if status in (429, 503) and "retry-after" in headers:
            seconds = min(_seconds(headers["retry-after"]), LONGEST_PAUSE)
            self._paused_until = max(self._paused_until, self.clock.monotonic() + seconds)

    def given_up(self, since: float) -> None:
        """Whoever waited has been called off, by a deadline or otherwise."""
        if self.clock.monotonic() - since >= PATIENCE:
            self.silent()
            told = GIVEN_UP.get()
            if told is not None:
                told.append(self.backend)

    def answered(self) -> None:
        """The far side spoke, whatever it said."""
        self.failures = 0
        self._open_until = None
        self._pause = self.limits.open_for

    def silent(self) -> None:
        """No answer: refused, reset, timed out."""
        self.failures += 1
        self.unanswered += 1
        now = self.clock.monotonic()
        if self._open_until is not None and now >= self._open_until:
            self._pause = min(self._pause * 2, self.limits.open_max)
            self._open_until = now + self._pause.total_seconds()
        elif self._open_until is None and self.failures >= self.limits.failures_max:
            self._open_until = now + self._pause.total_seconds()

    def _booked(self, now: float) -> float:
        """Takes a token; gives the seconds until it is there."""
        self._tokens = min(
            self._tokens + (now - self._filled) * self.limits.rate, float(self.limits.burst)
        )
        self._filled = now
        # Taking below zero books a turn: each waiter sleeps for its own place in the line.
        self._tokens -= 1.0
        return max(-self._tokens / self.limits.rate, self._paused_until - now)

    async def _sleep(self, wait: float) -> None:
        if wait > 0:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self._tokens += 1.0
                raise


@dataclass(slots=True)
class Turn:
    """A place at a gate. Whoever has it ends it, once."""

    gate: Gate
    probe: bool = field(kw_only=True)
    since: float = field(kw_only=True)

    def end(self) -> None:
        self.gate.leave(probe=self.probe, since=self.since)


@dataclass
class Gates:
    """A gate per backend, made on first use."""

    limits: GateLimits
    clock: Clock
    _gates: dict[str, Gate] = field(default_factory=dict[str, Gate])

    def of(self, backend: str) -> Gate:
        gate = self._gates.get(backend)
        if gate is None:
            gate = self._gates[backend] = Gate(backend, self.limits, self.clock)
        return gate

    def all(self) -> list[Gate]:
        return [self._gates[name] for name in sorted(self._gates)]


def _seconds(text: str) -> float:
    """A number; a date, the other way to say it, is rare and counts as one second."""
    try:
        return max(float(text), 0.0)
    except ValueError:
        return 1.0
