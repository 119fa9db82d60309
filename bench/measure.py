"""
How things are measured here: in turn, in one run, by the processor's clock.

Contestants take turns, so that a machine that changes its mood changes it for all. What computes is
timed in CPU time of this process, which other processes cannot inflate much (they still share
caches and clock speed); what waits for a disk is timed by the wall. Figures are medians of rounds,
and ratios are medians of the ratios of the rounds.
"""

import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Timings = dict[str, list[float]]
"""Seconds of each round, by contestant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large everything is."""

    clusters: int
    servers: int
    growth: tuple[int, ...]
    """Servers; each twice the one before."""
    rounds: int
    """Of what is compared; each contestant once a round."""
    whole: int
    """Times that something is done for the whole fleet."""
    changes: int
    """Single changes that are planned, one after the other."""
    daemons: tuple[int, ...]
    """Servers of the daemons that are weighed, smallest first; 0 is an empty one."""
    traced: int
    """Servers of the fleet whose parts are weighed by tracemalloc."""
    syncs: int
    """Durable writes in a round of the journal."""
    stored: int
    """Conditions in the store that is opened again; there are twice as many journal entries."""
    nodes: int
    """Of the cluster that is followed."""
    storm: int
    """Objects that change at once."""
    storms: int
    pace: int
    """Changes a second, where they come steadily."""
    seconds: int
    views: int
    """Clusters that are seen after a restart."""
    many: int
    """The same, where they are many."""
    idle: int
    """Watches that are open at once."""
    questions: int
    """To each of nine clusters."""
    pause: float
    """Seconds in which whoever has nothing to do does nothing."""
    real: bool
    """Whether a real API server is used where there is one."""


FULL = Sizes(
    clusters=1000,
    servers=100_000,
    growth=(1000, 2000, 4000, 8000, 16_000),
    rounds=5,
    whole=3,
    changes=300,
    daemons=(0, 1000, 16_000, 100_000),
    traced=16_000,
    syncs=500,
    stored=100_000,
    nodes=10_000,
    storm=300,
    storms=3,
    pace=1000,
    seconds=10,
    views=100,
    many=1000,
    idle=200,
    questions=400,
    pause=0.5,
    real=True,
)
QUICK = Sizes(
    clusters=10,
    servers=200,
    growth=(100, 200),
    rounds=1,
    whole=1,
    changes=10,
    daemons=(0, 100, 200),
    traced=100,
    syncs=20,
    stored=200,
    nodes=20,
    storm=5,
    storms=1,
    pace=10,
    seconds=1,
    views=2,
    many=3,
    idle=5,
    questions=8,
    pause=0.1,
    real=False,
)


def cpu(act: Callable[[], object], *, apart: bool = False) -> float:
    """CPU seconds of one call. Garbage of the one before is not on its bill. `apart`: nor is the
    collector's walk over what was there before, which may be another's fleet. A call that has to
    prepare something times itself, and gives the seconds."""
    gc.collect()
    if apart:
        gc.freeze()
    began = time.process_time()
    kept = act()
    seconds = time.process_time() - began
    if isinstance(kept, float):
        seconds = kept
    del kept
    gc.unfreeze()
    return seconds


def in_turn(
    acts: Mapping[str, Callable[[], object]], rounds: int, *, apart: bool = False
) -> Timings:
    """Let each act once a round."""
    found: Timings = {name: [] for name in acts}
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for name, act in acts.items():
            found[name].append(cpu(act, apart=apart))
    return found


def ratio(timings: Timings, name: str, peer: str) -> float:
    """The median, over the rounds, of one over the other."""
    pairs = zip(timings[name], timings[peer], strict=True)
    return statistics.median(one / max(other, 1e-9) for one, other in pairs)


def median(values: list[float]) -> float:
    return statistics.median(values)


def progress(text: str) -> None:
    """For whoever waits; never among the answers."""
    print(f"    {text}", file=sys.stderr, flush=True)


def resident() -> int:
    """Bytes of memory that this process holds."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not say how much memory a process holds")


def machine() -> dict[str, str | int]:
    """What the figures were taken on, in general terms."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count() or 0,
        "memory_gib": round(memory / 2**30),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }


class Others:
    """What share of the machine other processes use from now on."""

    def __init__(self) -> None:
        self._busy, self._all = _ticks()
        self._own = _own()

    def share(self) -> float:
        busy, whole = _ticks()
        own = (_own() - self._own) * os.sysconf("SC_CLK_TCK")
        return max(0.0, busy - self._busy - own) / max(1.0, whole - self._all)


def _own() -> float:
    """CPU seconds of this process and of the children it has waited for."""
    return sum(os.times()[:4])


def _ticks() -> tuple[float, float]:
    """Ticks in which the processors worked, and all ticks, since the machine started."""
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    ticks = [int(word) for word in first.split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)
