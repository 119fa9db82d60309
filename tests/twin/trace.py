"""`python -m tests.twin.trace SEED`: all that happens in one seed, the same on every machine."""

import logging
import sys

import structlog

from fleetd.sim import loop
from tests.twin.test_seeds import fair, story


def main() -> int:
    # The daemon's own lines have the time on the wall; what happened is told below.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    seed = int(sys.argv[1])
    fair()  # a loop of its own
    broken, region = loop.run(story(seed))
    for deed in region.ledger.deeds:
        sys.stdout.write(f"{deed}\n")
    for happening in region.world.trace:
        sys.stdout.write(f"{happening}\n")
    for words in broken:
        sys.stdout.write(f"BROKEN {words}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
