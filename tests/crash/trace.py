"""Prints all that happened under one seed: deeds, journal, events. For replay and comparison."""

import logging
import random
import sys

import structlog

from fleetd.sim import loop
from tests.crash import sweep
from tests.toy.universe import Power, Universe


async def _lines(world: Universe) -> list[str]:
    await world.store.open()
    rng = random.Random(world.seed)
    cut = Power(cut_at=(rng.randrange(30), rng.choice(sweep.SIDES)))
    for power in (cut, Power()):
        await world.live(power, until=world.all_ready, within=sweep.WITHIN)
    journal = await world.store.journal(limit=10**6)
    events = await world.store.events(limit=10**6)
    return [
        *(
            f"{deed.at} {deed.verb} {deed.ref} {deed.step} {deed.effect}"
            for deed in world.world.deeds
        ),
        *(f"{entry.seq} {entry.intent} {entry.ending} {entry.ended_at}" for entry in journal),
        *(f"{row.seq} {row.event}" for row in events),
    ]


def main() -> None:
    # Log lines carry the wall clock, which is no part of the seed.
    quiet = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=quiet)
    world = sweep.universe(sweep.BRING_UP, seed=int(sys.argv[1]), chance=0.05)
    print("\n".join(loop.run(_lines(world))))


if __name__ == "__main__":
    main()
