"""
`make sweep`: every crash point of a workflow on a simulated region, and as many seeds as wanted.

The first part is the toy world's, where every write of every seed is cheap; the second is a whole
region with real drivers and clients, where each crash point costs seconds.
"""

import argparse
import multiprocessing
import os
import sys
import time

from fleetd.sim import loop
from tests.crash import big
from tests.crash.sweep import WORKFLOWS as TOY
from tests.twin import points
from tests.twin.stage import Region
from tests.twin.test_seeds import fair, story
from tests.twin.workflows import WORKFLOWS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--workflow", choices=sorted({*WORKFLOWS, *TOY}), default="bring-up")
    given = parser.parse_args()
    broken = 0
    if given.workflow in TOY:
        sys.argv[1:] = ["--seeds", str(given.seeds), "--workflow", given.workflow]
        broken += big.main()
    if given.workflow in WORKFLOWS:
        broken += _region(given.workflow, given.seeds)
    return 1 if broken else 0


def _region(name: str, seeds: int) -> int:
    began = time.monotonic()
    cores = os.cpu_count() or 1
    count, found = points.sweep(WORKFLOWS[name], Region.of, every=True, at_once=cores)
    print(f"{name}: {count} crash points, {len(found)} broken, {time.monotonic() - began:.0f} s")
    for words in found[:20]:
        print(f"  {words}")
    with multiprocessing.Pool(cores) as pool:
        bad = [one for one in pool.imap_unordered(_seed, range(seeds)) if one]
    print(f"{seeds} seeds, {len(bad)} broken, {time.monotonic() - began:.0f} s in all")
    for words in bad[:20]:
        print(f"  {words}")
    return len(found) + len(bad)


def _seed(number: int) -> str:
    fair()
    broken, _ = loop.run(story(number))
    return f"seed {number}: {'; '.join(broken[:3])}" if broken else ""


if __name__ == "__main__":
    sys.exit(main())
