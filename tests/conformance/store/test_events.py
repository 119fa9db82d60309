"""What every store promises about history."""

from fleetd.store.base import Recorded
from tests.conformance.store.keepers import Keeper
from topology.resource import Ref


async def test_events_come_back_as_they_were_in_order(keeper: Keeper) -> None:
    """Events are read back equal, oldest first, at once and after a restart."""
    store = await keeper.opened()
    await store.record([keeper.event(1), keeper.event(2)])
    await store.record([])
    await store.record([keeper.event(3)])

    expected = [Recorded(seq=n, event=keeper.event(n)) for n in (1, 2, 3)]
    assert await store.events() == expected
    store = await keeper.reopened(store)
    assert await store.events() == expected


async def test_a_clean_close_loses_no_event(keeper: Keeper) -> None:
    """What was recorded just before the close is there after the restart."""
    store = await keeper.opened()
    await store.record([keeper.event(1)])

    store = await keeper.reopened(store)

    assert [recorded.event for recorded in await store.events()] == [keeper.event(1)]


async def test_events_of_one_thing_are_paged(keeper: Keeper) -> None:
    """`ref`, `after` and `limit` walk the history of one thing and of nothing else."""
    store = await keeper.opened()
    one, other = Ref("server", "a"), Ref("serverpool", "a")
    await store.record([keeper.event(n, one if n % 3 else other) for n in range(1, 13)])

    first = await store.events(ref=one, limit=5)
    rest = await store.events(ref=one, after=first[-1].seq)

    assert [recorded.seq for recorded in first] == [1, 2, 4, 5, 7]
    assert [recorded.seq for recorded in rest] == [8, 10, 11]
    assert [recorded.seq for recorded in await store.events(ref=other)] == [3, 6, 9, 12]
    assert await store.events(ref=Ref("server", "b")) == []


async def test_the_newest_events_come_first_when_asked(keeper: Keeper) -> None:
    """`newest` gives the end of history, newest first, of one thing or all, page by page."""
    store = await keeper.opened()
    one, other = Ref("server", "a"), Ref("serverpool", "a")
    await store.record([keeper.event(n, one if n % 3 else other) for n in range(1, 13)])

    last = await store.events(newest=True, limit=3)
    earlier = await store.events(newest=True, limit=3, before=last[-1].seq)

    assert [recorded.seq for recorded in last] == [12, 11, 10]
    assert [recorded.seq for recorded in earlier] == [9, 8, 7]
    assert last[0].event == keeper.event(12, other)
    assert [r.seq for r in await store.events(newest=True, ref=one, limit=2)] == [11, 10]
    assert [r.seq for r in await store.events(newest=True, ref=one, after=8)] == [11, 10]
    assert [r.seq for r in await store.events(after=3, before=7)] == [4, 5, 6]
    assert await store.events(newest=True, before=1) == []


async def test_trim_forgets_the_oldest_events(keeper: Keeper) -> None:
    """Beyond the bound the oldest go, in steps of any size, and numbers are not used again."""
    store = await keeper.opened()
    await store.record([keeper.event(n) for n in range(1, 2502)])

    await store.trim(events_max=3, journal_max=0)
    store = await keeper.reopened(store)
    await store.trim(events_max=3, journal_max=0)

    assert [recorded.seq for recorded in await store.events()] == [2499, 2500, 2501]
    await store.trim(events_max=0, journal_max=0)
    store = await keeper.reopened(store)
    await store.record([keeper.event(1)])
    assert [recorded.seq for recorded in await store.events()] == [2502]
