"""
The gate before each backend: how many calls at once, how many a second, and whether at all.

One dead cluster must never slow the others, so every backend has its own gate. A call passes in
this order: the breaker (refused at once while it is open), a token (rate), a slot (concurrency).
The caller says afterwards whether the far side answered; it is not asked whether it liked the
answer: a refusal is an answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import timedelta

from fleetd.clock import Clock


class GateClosed(Exception):
    """The breaker is open; nothing was sent."""

    def __init__(self, backend: str, again: timedelta) -> None:
        seconds = max(round(again.total_seconds()), 1)
        super().__init__(f"{backend} did not answer several times; asked again in {seconds} s")
        self.again = again


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    concurrency: int = 16
    """Calls under way at once. A BMC or an API server answers in about a second when it is slow;
    16 in parallel are then 16 a second, below the rate."""
    rate: float = 50.0
    """Calls a second, on average. Above the default client limits of controllers (20), below what
    one API server gives many clients."""
    burst: int = 100
    """Calls that may go at once after a quiet time."""
    failures_max: int = 5
    """Calls in a row without an answer before the breaker opens."""
    open_for: timedelta = timedelta(seconds=10)
    """First pause of the breaker; doubles while the probe fails."""
    open_max: timedelta = timedelta(minutes=2)


@dataclass
class Gate:
    backend: str
    limits: GateLimits
    clock: Clock
    waited: float = 0.0
    """Seconds that calls have waited for a token or a slot: the limit nobody sees, made visible."""
    failures: int = 0
    in_flight: int = 0

    _slots: asyncio.Semaphore = field(init=False)
    _tokens: float = field(init=False)
    _filled: float = field(init=False)
    _open_until: float | None = None
    _heard: bool = False
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

    @property
    def width(self) -> int:
        """How many looks should be under way at once. A backend that owes an answer gets one: if
        it is dead, it then holds one worker for a deadline and not all that it may have."""
        return self.limits.concurrency if self._heard and not self.failures else 1

    @contextlib.asynccontextmanager
    async def passing(self) -> AsyncGenerator[None]:
        """Wait for a turn. Raises GateClosed without waiting while the breaker is open."""
        self._refuse_if_open()
        started = self.clock.monotonic()
        await self._token()
        async with self._slots:
            self.waited += self.clock.monotonic() - started
            # The wait may have been long enough for the breaker to open.
            probe = self._refuse_if_open()
            if probe:
                self._probing = True
            self.in_flight += 1
            try:
                yield
            finally:
                self.in_flight -= 1
                if probe:
                    self._probing = False

    def answered(self) -> None:
        """The far side spoke, whatever it said."""
        self.failures = 0
        self._heard = True
        self._open_until = None
        self._pause = self.limits.open_for

    def silent(self) -> None:
        """No answer: refused, reset, timed out."""
        self.failures += 1
        now = self.clock.monotonic()
        if self._open_until is not None and now >= self._open_until:
            self._pause = min(self._pause * 2, self.limits.open_max)
            self._open_until = now + self._pause.total_seconds()
        elif self._open_until is None and self.failures >= self.limits.failures_max:
            self._open_until = now + self._pause.total_seconds()

    def _refuse_if_open(self) -> bool:
        """True if this call is the one probe that may go through."""
        if self._open_until is None:
            return False
        left = self._open_until - self.clock.monotonic()
        if left > 0:
            raise GateClosed(self.backend, timedelta(seconds=left))
        if self._probing:
            raise GateClosed(self.backend, self.limits.open_for)
        return True

    async def _token(self) -> None:
        now = self.clock.monotonic()
        self._tokens = min(
            self._tokens + (now - self._filled) * self.limits.rate, float(self.limits.burst)
        )
        self._filled = now
        # Taking below zero books a turn: each waiter sleeps for its own place in the line.
        self._tokens -= 1.0
        if self._tokens < 0:
            try:
                await asyncio.sleep(-self._tokens / self.limits.rate)
            except asyncio.CancelledError:
                self._tokens += 1.0
                raise


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
