"""A region from nothing to Ready, with real drivers and clients; then rest, restart and rebuild."""

import pytest

from fleetd.daemon import sealed
from fleetd.engine import loading
from fleetd.plan import intake
from fleetd.sim import loop
from fleetd.sim.twin import Twin
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


def test_what_a_driver_proposes_follows_from_what_it_is_given() -> None:
    """All the way up: drivers made for the same topology and catalogue, without a way out, propose
    of everything seen just what the drivers at work propose."""

    async def story() -> list[str]:
        region = Region.of("minimal")
        found: list[str] = []
        looks = 0

        def until(twin: Twin) -> bool:
            nonlocal looks
            looks += 1
            if looks % 12 == 0:
                found.extend(_unlike(twin, region))
            return twin.quiet()

        reached = await region.live(Power(), until=until)
        assert looks > 24
        return found if reached else ["it never came up"]

    assert loop.run(story()) == []


def _unlike(twin: Twin, region: Region) -> list[str]:
    view = twin.core.state.view
    tools = sealed.tools(view.topology, region.catalogue, {}, twin.clock.now())
    others = loading.load(region.modules, tools)
    found: list[str] = []
    for ref, seen in view.seen.items():
        want = view.topology.resources[ref]

        working, apart = (
            intake.ask(one[want.driver], want, seen) for one in (twin.drivers, others)
        )
        if working != apart:
            found.append(f"{ref}: {working!r} at work, {apart!r} sealed")
    return found
