"""A region from nothing to Ready, with real drivers and clients; then rest, restart and rebuild."""

import pytest

from fleetd.sim import loop
from tests.twin.stage import Power, PoweredStore, Region


@pytest.mark.parametrize("example", ["minimal", "two-zones"])
def test_a_region_comes_up_and_comes_to_rest(example: str) -> None:
    """All resources become Ready; then no daemon writes anything, not the same one, not one that
    was started again, and not one whose state directory was deleted."""

    async def story() -> list[str]:
        region = Region.of(example)
        reached = await region.live(Power(), until=lambda twin: twin.quiet())
        broken = await region.judge(reached=reached)
        broken += await region.rest()
        region.store = PoweredStore()
        return [*broken, *await region.rest()]

    assert loop.run(story()) == []
