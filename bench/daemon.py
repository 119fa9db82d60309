"""
What does a whole daemon weigh, and how long does it ever stand still?

A real daemon, wired as `fleetd serve` wires it, in a process of its own (`bench.weigh`): documents
on disk, SQLite, queue, observers, planner, HTTP server. It takes the documents, looks at everything
once and plans every region; then its memory is read. A *managed node* is a server with its share
of everything else (100 servers bring 23 other things). *All-in* is what the process holds more than
one without documents. The facts of a server are plain dicts, as decoded from JSON. The peer is a
process that holds the bare dicts of the same documents and the same facts, and nothing else.

Standing still: each callback of the event loop is timed by the CPU clock of its thread, so that
other processes do not count. The longest is how late anything else in the daemon may be.
"""

import subprocess
import sys
from collections.abc import Mapping

import msgspec

from bench import measure, weigh
from bench.measure import Sizes
from bench.table import Goal, Peer, Row
from bench.weigh import Weight

MEMORY = Goal(most=12)
STILL = Goal(most=20)


def run(sizes: Sizes) -> list[Row]:
    found: dict[int, Weight] = {}
    for servers in sizes.daemons:
        measure.progress(f"a daemon with {servers:,} servers")
        found[servers] = _alone(weigh.DAEMON, servers)
    largest = sizes.daemons[-1]
    measure.progress("the same as bare dicts")
    bare = _alone(weigh.DICTS, largest).memory - _alone(weigh.DICTS, 0).memory
    measure.progress(f"the parts of {sizes.traced:,} servers, by tracemalloc")
    traced = _alone(weigh.PARTS, sizes.traced)
    still = [_still(servers, found[servers]) for servers in sizes.daemons[-2:]]
    return [_all_in(found, bare), _one_more(found), _parts(sizes.traced, traced), *still]


def _alone(what: str, servers: int) -> Weight:
    """In a process that has held nothing else before."""
    command = [sys.executable, "-m", "bench.weigh", what, str(servers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Weight)


def _all_in(found: Mapping[int, Weight], bare: int) -> Row:
    smallest, *_, largest = found
    grown = found[largest].memory - found[smallest].memory
    return Row(
        what=f"memory of a node, all-in, of {largest:,}",
        value=grown / largest / 1000,
        unit="KB",
        goal=MEMORY,
        peers=(Peer(name="documents and facts as bare dicts", ratio=grown / max(bare, 1)),),
        note=f"the daemon holds {found[largest].memory / 1e6:.0f} MB; it looked at and planned "
        f"{found[largest].things:,} things in {found[largest].cpu:.0f} s of CPU",
        raw={f"{servers:,}": [float(weight.memory)] for servers, weight in found.items()},
    )


def _one_more(found: Mapping[int, Weight]) -> Row:
    _, small, large, *_ = found
    more = found[large].memory - found[small].memory
    return Row(
        what=f"memory of one more node, {small:,} to {large:,}",
        value=more / (large - small) / 1000,
        unit="KB",
        goal=MEMORY,
        note="resident memory of the process (RSS)",
    )


def _parts(servers: int, traced: Weight) -> Row:
    shown = ", ".join(f"{part} {size / servers / 1000:.2f}" for part, size in traced.parts.items())
    return Row(
        what=f"the same by tracemalloc, of {servers:,}",
        value=sum(traced.parts.values()) / servers / 1000,
        unit="KB",
        goal=MEMORY,
        note=f"objects in the engine's state, everything held: {shown}",
        raw={part: [float(size)] for part, size in traced.parts.items()},
    )


def _still(servers: int, weight: Weight) -> Row:
    longest = sorted(weight.still, key=lambda one: -one.seconds)
    names = ", ".join(
        f"{one.who} {one.seconds * 1000:.0f} ms ({one.collecting * 1000:.0f} of it garbage)"
        for one in longest[:3]
    )
    return Row(
        what=f"longest stand-still of a loop with {servers:,}",
        value=longest[0].seconds * 1000 if longest else 0.0,
        unit="ms",
        goal=STILL,
        note=f"{len(longest)} longer than {weigh.NOTABLE * 1000:.0f} ms: {names}",
        raw={"seconds": [one.seconds for one in longest]},
    )
