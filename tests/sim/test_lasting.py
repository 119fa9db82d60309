"""A simulated world beside a daemon runs for days, and what it remembers of them is bounded."""

from fleetd.sim import build, loop, recent
from fleetd.sim.ledger import Deed
from fleetd.sim.world import World


def test_a_world_that_goes_on_remembers_the_latest() -> None:
    """However much happens and is written, no more than twice the limit is kept; and the last of
    it is always there."""

    async def main() -> None:
        world = World(1, build.START)
        climate = build.lasting(world)
        most = 0
        for number in range(5 * recent.MOST):
            world.tell("done", "world", str(number))
            climate._ledger.note(0.0, "hv", "POST", f"/api/v1/{number}", 201)
            most = max(most, len(world.trace), len(climate._ledger.deeds))
        assert recent.MOST <= len(climate._ledger.deeds) <= most <= 2 * recent.MOST
        assert world.trace[-1].detail == climate._ledger.deeds[-1].path.rpartition("/")[2]

    loop.run(main())


def test_a_world_that_is_judged_remembers_all() -> None:
    """Nothing that a rehearsal or a test is judged by is forgotten."""
    kept = recent.Recent[Deed]()
    for number in range(5 * recent.MOST):
        kept.append(Deed(float(number), "hv", "POST", "/", 201, ""))

    assert len(kept) == 5 * recent.MOST
