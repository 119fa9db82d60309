"""What every store promises about the journal."""

import asyncio
from datetime import timedelta

import pytest

from fleetd.store.base import Entry
from fleetd.vocabulary import Done, Ending, Failed, Lost, Waiting
from tests.conformance.store.keepers import Keeper

ENDINGS: list[Ending] = [
    Done(),
    Waiting("Booting", timedelta(minutes=3, microseconds=7)),
    Failed("BmcTimedOut", "no answer in 30 s", retry=True),
    Lost("the daemon died"),
]


async def test_intents_come_back_as_they_were_in_order(keeper: Keeper) -> None:
    """What was intended is read back equal, oldest first, with increasing numbers from 1."""
    store = await keeper.opened()

    numbers = [await store.intend(keeper.intent(n)) for n in range(1, 6)]

    assert numbers == [1, 2, 3, 4, 5]
    assert await store.journal() == [
        Entry(seq=n, intent=keeper.intent(n), ending=None, ended_at=None) for n in range(1, 6)
    ]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: type(ending).__name__)
async def test_an_ending_comes_back_as_it_was(keeper: Keeper, ending: Ending) -> None:
    """Every kind of ending is read back equal, with its moment, also after a restart."""
    store = await keeper.opened()
    seq = await store.intend(keeper.intent())

    await store.conclude(seq, ending, keeper.at(9))
    store = await keeper.reopened(store)

    assert await store.journal() == [
        Entry(seq=seq, intent=keeper.intent(), ending=ending, ended_at=keeper.at(9))
    ]


async def test_an_intent_survives_a_restart_and_is_unfinished(keeper: Keeper) -> None:
    """After a restart the intents without an ending are known, and only those."""
    store = await keeper.opened()
    for n in range(1, 5):
        await store.intend(keeper.intent(n))
    await store.conclude(2, Done(), keeper.at(9))

    store = await keeper.reopened(store)

    assert [entry.seq for entry in await store.unfinished()] == [1, 3, 4]
    assert await store.intend(keeper.intent(5)) == 5


async def test_an_intent_ends_once(keeper: Keeper) -> None:
    """A second ending for one number is refused, and the first one stays."""
    store = await keeper.opened()
    seq = await store.intend(keeper.intent())
    await store.conclude(seq, Done(), keeper.at(1))

    with pytest.raises(ValueError, match="has an ending already"):
        await store.conclude(seq, Lost("again"), keeper.at(2))

    (entry,) = await store.journal()
    assert (entry.ending, entry.ended_at) == (Done(), keeper.at(1))
    assert store.broken == ""


async def test_of_many_endings_at_once_one_wins(keeper: Keeper) -> None:
    """Eight tasks that conclude one number at the same time: one succeeds, seven are refused."""
    store = await keeper.opened()
    seq = await store.intend(keeper.intent())

    results = await asyncio.gather(
        *(store.conclude(seq, Lost(str(n)), keeper.at(n)) for n in range(8)),
        return_exceptions=True,
    )

    assert [type(result) for result in results].count(type(None)) == 1
    assert [type(result) for result in results].count(ValueError) == 7


async def test_an_ending_needs_an_intent(keeper: Keeper) -> None:
    """A number nobody was given cannot be concluded."""
    store = await keeper.opened()

    with pytest.raises(ValueError, match="no journal entry 7"):
        await store.conclude(7, Done(), keeper.at(1))


async def test_a_refused_neighbour_hurts_nobody(keeper: Keeper) -> None:
    """Writes that share a commit with a refused one are written all the same."""
    store = await keeper.opened()

    results = await asyncio.gather(
        store.intend(keeper.intent(1)),
        store.conclude(99, Done(), keeper.at(1)),
        store.intend(keeper.intent(2)),
        return_exceptions=True,
    )
    store = await keeper.reopened(store)

    assert [results[0], type(results[1]), results[2]] == [1, ValueError, 2]
    assert [entry.intent for entry in await store.journal()] == [
        keeper.intent(1),
        keeper.intent(2),
    ]


async def test_the_journal_is_read_in_pages(keeper: Keeper) -> None:
    """`after` and `limit` walk the journal without a gap or a repetition."""
    store = await keeper.opened()
    for n in range(1, 8):
        await store.intend(keeper.intent(n))

    pages: list[list[int]] = []
    after = 0
    while page := await store.journal(after=after, limit=3):
        pages.append([entry.seq for entry in page])
        after = page[-1].seq

    assert pages == [[1, 2, 3], [4, 5, 6], [7]]


async def test_tasks_at_once_get_distinct_increasing_numbers(keeper: Keeper) -> None:
    """32 tasks with 10 intents each: every number once, increasing in each task, none lost."""
    store = await keeper.opened()

    async def work(task: int) -> list[int]:
        return [await store.intend(keeper.intent(task)) for _ in range(10)]

    given = await asyncio.gather(*(work(task) for task in range(32)))
    store = await keeper.reopened(store)

    assert all(numbers == sorted(numbers) for numbers in given)
    assert sorted(n for numbers in given for n in numbers) == list(range(1, 321))
    found = {entry.seq: entry.intent for entry in await store.journal()}
    for task, numbers in enumerate(given):
        assert [found[n] for n in numbers] == [keeper.intent(task)] * 10


async def test_a_caller_that_stops_waiting_loses_nothing(keeper: Keeper) -> None:
    """Cancelled callers get no answer, but the journal has no gap and goes on."""
    store = await keeper.opened()
    tasks = [asyncio.ensure_future(store.intend(keeper.intent(n))) for n in range(1, 21)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()

    results = await asyncio.gather(*tasks, return_exceptions=True)
    last = await store.intend(keeper.intent(99))
    store = await keeper.reopened(store)

    found = {entry.seq: entry.intent for entry in await store.journal()}
    assert sorted(found) == list(range(1, last + 1))
    told = {result for result in results if isinstance(result, int)}
    assert told <= set(found)
    assert len(told) == 10
    assert found[last] == keeper.intent(99)
    assert store.broken == ""


async def test_trim_forgets_the_oldest_finished(keeper: Keeper) -> None:
    """Beyond the bound the oldest finished entries go; unfinished ones stay, however old."""
    store = await keeper.opened()
    for n in range(1, 11):
        await store.intend(keeper.intent(n))
    for n in (1, 2, 4, 5, 6, 8):
        await store.conclude(n, Done(), keeper.at(n))

    await store.trim(events_max=0, journal_max=6)
    store = await keeper.reopened(store)

    assert [entry.seq for entry in await store.journal()] == [3, 6, 7, 8, 9, 10]
    await store.trim(events_max=0, journal_max=0)
    store = await keeper.reopened(store)
    assert [entry.seq for entry in await store.journal()] == [3, 7, 9, 10]


async def test_a_trimmed_number_is_never_given_again(keeper: Keeper) -> None:
    """Numbers go on after everything was forgotten, also across a restart."""
    store = await keeper.opened()
    seq = await store.intend(keeper.intent())
    await store.conclude(seq, Done(), keeper.at(1))
    await store.trim(events_max=0, journal_max=0)

    store = await keeper.reopened(store)

    assert await store.journal() == []
    assert await store.intend(keeper.intent()) == seq + 1


async def test_what_is_not_plain_data_is_refused_before_it_is_written(keeper: Keeper) -> None:
    """An argument of a type of its own is a TypeError, and leaves no entry behind."""
    store = await keeper.opened()

    class Wrapped(str):
        __slots__ = ()

    bad = keeper.intent()
    bad = type(bad)(
        step=bad.step,
        ref=bad.ref,
        verb=bad.verb,
        args={"password": Wrapped("hunter2")},
        generation=bad.generation,
        plan=bad.plan,
        at=bad.at,
    )

    with pytest.raises(TypeError) as caught:
        await store.intend(bad)

    assert "hunter2" not in str(caught.value)
    assert await store.journal() == []
