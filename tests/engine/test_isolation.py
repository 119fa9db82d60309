"""I16: whoever does not answer, or answers slowly, slows nobody else."""

import asyncio
import functools
from collections import Counter

import pytest

from fleetd.sim import loop
from tests.engine.stage import Stage, fleet, thing
from topology.resource import Resource

BACKENDS = 10
THINGS = 100
"""On each backend: many more than there are workers."""


def _looks(answer_in: dict[str, float]) -> Counter[str]:
    """Looks at each backend in five minutes, when some of them take so many seconds to answer."""

    async def main() -> Counter[str]:
        stage = Stage(
            fleet(
                *(
                    thing(f"b{backend}-t{number:02}", backend=f"cluster:b{backend}")
                    for backend in range(BACKENDS)
                    for number in range(THINGS)
                )
            )
        )
        # All is there already: this is about looking.
        stage.driver.made.update(stage.topology.resources)

        async def observe(want: Resource) -> None:
            await asyncio.sleep(answer_in.get(want.backend, 0.05))

        stage.driver.on_observe = observe
        await stage.play(300)
        return Counter(name.partition("-")[0] for _, name in stage.driver.looked)

    return loop.run(main())


@functools.cache
def _healthy() -> Counter[str]:
    return _looks({})


@pytest.mark.parametrize(
    "sick",
    [
        {"cluster:b0": 86_400.0},
        {"cluster:b0": 15.0},
        dict.fromkeys([f"cluster:b{number}" for number in range(5)], 86_400.0),
    ],
    ids=["one hangs", "one is slow", "half of them hang"],
)
def test_the_pace_of_the_others_is_kept(sick: dict[str, float]) -> None:
    """With one of ten backends hung or slow, or half of them hung, each of the others is looked at
    at least 0.95 times as often as before. There are as many workers as one backend may use."""
    before, after = _healthy(), _looks(sick)

    well = sorted(before.keys() - {backend.partition(":")[2] for backend in sick})
    assert min(before.values()) > 4 * THINGS
    assert {name: count for name in well if (count := after[name]) < 0.95 * before[name]} == {}


def test_a_slow_backend_is_still_looked_at() -> None:
    """What waits beside its lane gets its turn: everything is seen within five minutes."""
    assert _looks({"cluster:b0": 5.0})["b0"] >= THINGS
