"""
`python -m tests.twin.trace SEED`: all that happens in one seed, the same on every machine.

A seed strikes in the middle of a workflow (`tests.twin.storms`); with `--whole` it is one that
begins with nothing (`tests.twin.test_seeds`).
"""

import argparse
import logging
import sys

import structlog

from fleetd.sim import loop
from tests.twin import points, storms
from tests.twin.test_seeds import fair, story


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    # The daemon's own lines have the time on the wall; what happened is told below.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    if given.whole:
        fair()  # a loop of its own
        broken, region = loop.run(story(given.seed))
        happened = storms.trace(region)
    else:
        (told,) = storms.sweep([given.seed], points.How(), tell_all=True)
        broken, happened = told.broken, [told.point, *told.trace]
    for line in happened:
        sys.stdout.write(f"{line}\n")
    for words in broken:
        sys.stdout.write(f"BROKEN {words}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
