"""`make sweep`: every crash point of a workflow, and as many seeds as wanted, on all cores."""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable
from functools import partial

from tests.crash import sweep


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--workflow", choices=sorted(sweep.WORKFLOWS), default="bring-up")
    given = parser.parse_args()
    workflow = sweep.WORKFLOWS[given.workflow]
    known = sweep.reference(workflow)
    points = [(number, side) for number in range(known.writes) for side in sweep.SIDES]
    print(
        f"{workflow.name}: {known.writes} writes, {len(points)} crash points, {given.seeds} seeds"
    )
    started = time.monotonic()
    with multiprocessing.Pool(os.cpu_count()) as pool:
        crashes = pool.imap(partial(_crash, given.workflow, known), points, chunksize=4)
        broken = _report("crash points", len(points), crashes)
        seeds = pool.imap(partial(_seed, given.workflow, known), range(given.seeds), chunksize=4)
        broken += _report("seeds", given.seeds, seeds)
    print(f"{broken} broken, {time.monotonic() - started:.0f} s")
    return 1 if broken else 0


def _crash(name: str, known: sweep.Reference, point: tuple[int, str]) -> tuple[str, list[str]]:
    return f"crash point {point}", sweep.crash(sweep.WORKFLOWS[name], point, known)


def _seed(name: str, known: sweep.Reference, number: int) -> tuple[str, list[str]]:
    return f"seed {number}", sweep.seed(sweep.WORKFLOWS[name], number, known)


def _report(what: str, total: int, results: Iterable[tuple[str, list[str]]]) -> int:
    broken = 0
    for number, (where, found) in enumerate(results, 1):
        if found:
            broken += 1
            print(f"{where}: {'; '.join(found[:3])}", flush=True)
        if sys.stdout.isatty():
            print(f"\r{what}: {number} of {total}", end="", flush=True)
    print(f"\r{what}: {total} done, {broken} broken")
    return broken


if __name__ == "__main__":
    sys.exit(main())
