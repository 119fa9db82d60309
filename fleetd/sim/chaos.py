"""
Chaos by seed: which mishaps befall a world, whom, when and for how long.

Everything that can be written in a script is a cell, and the cells are a deck of cards: seeds that
follow each other deal from one deck, so that every `SHARES` of them meet every cell that the world
has something for. All of it is over when `until` has passed. The faults of requests are drawn by
the `Climate`; here is only how likely they are.
"""

import random
from collections.abc import Iterable, Sequence
from datetime import timedelta

from fleetd.sim import script
from fleetd.sim.faults import Cell, Climate
from fleetd.sim.mishaps import Mishaps
from fleetd.sim.script import Line
from topology.resource import Ref, Topology

CHANCE = 0.02
"""Of a fault, per request."""
UNTIL = timedelta(hours=2)
"""A region on bare metal comes up in a good hour: each of its phases has its share of chaos."""
SHARES = 3
SHORTEST, LONGEST = 60.0, 1200.0
"""Seconds that a mishap lasts."""
_EARLIEST = {
    "shoot": 0.25,
    **dict.fromkeys(
        ("objects", "token", "openbao", "openstack", "ceph", "eso", "watch", "clock"), 0.5
    ),
}
"""Shares of the time that pass first: these need something that is there."""
IMAGE = (0.2, 0.8)
"""A bad image lasts from when components begin to be installed until long after Flux has given one
up, as shares of the time."""


def lines(
    seed: int,
    mishaps: Mishaps,
    topology: Topology,
    until: timedelta,
    *,
    since: timedelta | None = None,
    shares: int = SHARES,
) -> list[Line]:
    """The mishaps of this seed, in order of time. `since`: it begins in the middle, with a world in
    which nothing need be waited for."""
    deck = sorted(cells(mishaps))
    # Not with the world's own streams: seeds share a deck.
    random.Random(f"deck/{seed // shares}").shuffle(deck)  # noqa: S311 - no secret hangs on it
    rng = random.Random(f"chaos/{seed}")  # noqa: S311
    first = since.total_seconds() if since is not None else 0.0
    limit = until.total_seconds() - first
    found: list[Line] = []
    for what, how in deck[seed % shares :: shares]:
        whom = _whom(what, mishaps, topology)
        if not whom:
            continue  # of documents that name nothing of the kind
        earliest = _EARLIEST.get(what, 0.0) if since is None else 0.0
        begin = rng.uniform(earliest * limit, 0.9 * limit)
        span = rng.uniform(min(SHORTEST, limit - begin), min(LONGEST, limit - begin))
        if what == "image" and since is None:
            begin, span = IMAGE[0] * limit, (IMAGE[1] - IMAGE[0]) * limit
        found.append(
            Line(
                at=timedelta(seconds=round(first + begin)),
                what=what,
                whom=rng.choice(whom),
                how=how,
                span=timedelta(seconds=round(span)),
            )
        )
    return sorted(found, key=lambda line: line.at)


def cells(mishaps: Mishaps) -> set[tuple[str, str]]:
    """What can happen in this world. What single requests and lines meet, the weather draws."""
    return {
        (what, how)
        for what, hows in script.VOCABULARY.items()
        for how in hows
        if (what, how) not in script.AIMED and (what == "image" or mishaps.names(what))
    }


def _whom(what: str, mishaps: Mishaps, topology: Topology) -> Sequence[str]:
    refs = topology.resources
    if what == "image":
        return sorted(
            f"{ref.name}/{ref.kind}"
            for ref in refs
            if ref.kind.endswith("-operator") and Ref("cluster", ref.name) in refs
        )
    if what == "ceph":
        return sorted(ref.name for ref in refs if ref.kind == "cephcluster")
    return sorted(mishaps.names(what))


def never_met(runs: Iterable[tuple[Climate, Mishaps]]) -> list[str]:
    """Cells, of requests and of scripts, that had something to happen to in none of these runs:
    they prove nothing."""
    had: set[str] = set()
    could: set[str] = set()
    for climate, mishaps in runs:
        had |= met(climate, mishaps)
        could |= wanted(mishaps)
    return sorted(could - had)


def met(climate: Climate, mishaps: Mishaps) -> set[str]:
    """Cells that had something to happen to in this run."""
    return {
        *(cell.value for cell, count in climate.hits.items() if count),
        *(" ".join(cell) for cell, count in mishaps.hits.items() if count),
    }


def wanted(mishaps: Mishaps) -> set[str]:
    """Those that could be met in this world."""
    return {
        *(" ".join(cell) for cell in cells(mishaps)),
        *(cell.value for cell in Cell if cell is not Cell.LOCKED or mishaps.names("ironic")),
    }
