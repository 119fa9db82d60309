"""What every store promises about records."""

import asyncio

import pytest

from tests.conformance.store.keepers import Keeper


async def test_records_are_replaced_and_removed(keeper: Keeper) -> None:
    """A put replaces, None removes, and what is not named stays, also after a restart."""
    store = await keeper.opened()
    await store.put("conditions", {"a": b"1", "b": b"2", "c": b"3"})

    await store.put("conditions", {"a": b"4", "b": None, "missing": None})
    store = await keeper.reopened(store)

    assert await store.load("conditions") == {"a": b"4", "c": b"3"}


async def test_tables_are_apart(keeper: Keeper) -> None:
    """The same key in two tables is two records, and a table nobody wrote is empty."""
    store = await keeper.opened()

    await store.put("pauses", {"x": b"1"})
    await store.put("approvals", {"x": b"2", "größe/起": b""})

    assert await store.load("pauses") == {"x": b"1"}
    assert await store.load("approvals") == {"x": b"2", "größe/起": b""}
    assert await store.load("orphans") == {}


async def test_records_come_in_the_order_of_their_keys(keeper: Keeper) -> None:
    """Reading does not depend on the order of writing."""
    store = await keeper.opened()

    for key in ("b", "c", "a", "ä", "Z"):
        await store.put("t", {key: key.encode()})

    assert list(await store.load("t")) == ["Z", "a", "b", "c", "ä"]


async def test_a_put_is_all_or_none(keeper: Keeper) -> None:
    """A reader beside a writer sees a whole put or nothing of it."""
    store = await keeper.opened()
    seen: list[set[bytes]] = []

    async def write() -> None:
        for n in range(30):
            await store.put("t", {f"k{i}": b"%d" % n for i in range(20)})

    async def read() -> None:
        seen.extend([set((await store.load("t")).values()) for _ in range(30)])

    await asyncio.gather(write(), read(), read())

    assert all(len(values) <= 1 for values in seen)
    assert set((await store.load("t")).values()) == {b"29"}


async def test_what_is_returned_is_a_copy(keeper: Keeper) -> None:
    """Changing what was put or loaded changes nothing in the store."""
    store = await keeper.opened()
    values = {"a": b"1"}
    putting = asyncio.ensure_future(store.put("t", values))
    await asyncio.sleep(0)
    values["a"] = b"changed"
    await putting

    loaded = dict(await store.load("t"))
    loaded["b"] = b"2"

    assert await store.load("t") == {"a": b"1"}


@pytest.mark.parametrize("size", [0, 1, 5000, 200_000])
async def test_records_of_any_size(keeper: Keeper, size: int) -> None:
    """Empty values and values of many pages come back as they were."""
    store = await keeper.opened()
    value = bytes(i * 7 % 251 for i in range(size))

    await store.put("documents", {"Region/eu-1": value})
    store = await keeper.reopened(store)

    assert await store.load("documents") == {"Region/eu-1": value}
