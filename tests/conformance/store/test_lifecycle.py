"""What every store promises about opening, closing and being held by one."""

import asyncio

import pytest

from fleetd import errors
from tests.conformance.store.keepers import Keeper


async def test_a_store_is_held_by_one(keeper: Keeper) -> None:
    """A second opening is refused until the first is closed."""
    store = await keeper.opened()

    with pytest.raises(errors.StoreLocked):
        await keeper.new().open()

    assert await store.intend(keeper.intent()) == 1
    assert len(await (await keeper.reopened(store)).journal()) == 1


async def test_a_store_that_is_not_open_says_so(keeper: Keeper) -> None:
    """Before open and after close every call is refused, and `broken` says why."""
    store = keeper.new()
    for _ in range(2):
        assert "not open" in store.broken or "closed" in store.broken
        with pytest.raises(errors.StoreBroken):
            await store.intend(keeper.intent())
        with pytest.raises(errors.StoreBroken):
            await store.load("t")
        with pytest.raises(errors.StoreBroken):
            await store.record([keeper.event(1)])
        await store.open()
        assert store.broken == ""
        await store.close()


async def test_closing_twice_is_closing_once(keeper: Keeper) -> None:
    """Close may be called again, and on a store that never was open."""
    store = keeper.new()
    await store.close()
    await store.open()
    await store.close()
    await store.close()

    assert "closed" in store.broken


async def test_close_finishes_what_was_handed_over(keeper: Keeper) -> None:
    """Writes that wait when close is called are written, and their callers are told."""
    store = await keeper.opened()
    tasks = [asyncio.ensure_future(store.intend(keeper.intent(n))) for n in range(1, 11)]
    await asyncio.sleep(0)

    await store.close()

    assert sorted(await asyncio.gather(*tasks)) == list(range(1, 11))
    assert len(await (await keeper.opened()).journal()) == 10


async def test_an_opening_that_is_cancelled_leaves_no_lock(keeper: Keeper) -> None:
    """After a cancelled open the state can be opened by the next one."""
    store = keeper.new()
    opening = asyncio.ensure_future(store.open())
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await store.close()

    again = await keeper.opened()

    assert await again.intend(keeper.intent()) == 1
