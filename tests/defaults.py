"""How a daemon is tuned when nobody sets anything, for tests that run parts of one."""

from dataclasses import replace

from fleetd.daemon import assembly
from fleetd.engine.core import Tuning
from fleetd.settings import Settings

TUNING = assembly.tuning(Settings())
LIMITS = TUNING.gates
BACKOFF = TUNING.backoff


def tuning(*, workers: int) -> Tuning:
    """With fewer looks at once: each is a task, and a test has thousands of them."""
    return replace(TUNING, upkeep=replace(TUNING.upkeep, workers=workers))
