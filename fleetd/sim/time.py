"""
Time in a simulated world, as the parts of it see it.

The world implements this over its event loop. Nothing in `fleetd.sim` asks any other clock, and
nothing waits: a part that wants something later says what to call, and when.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol


class Time(Protocol):
    def now(self) -> datetime:
        """With a time zone, always UTC."""
        ...

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls once, later, never from inside this call; calls due together come in the order
        in which they were asked for."""
        ...
