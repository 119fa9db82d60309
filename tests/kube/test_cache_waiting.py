"""How long a cache waits, and when it says that it cannot look."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from fleetd.kube import cache, errors
from fleetd.sim import loop
from tests.kube.shelf import Shelf
from tests.kube.stage import START, following
from topology.resource import Ref


def test_it_says_that_it_cannot_look_only_after_a_while() -> None:
    """A short break is nobody's business; a long one is, and ends when the server is back."""

    async def main() -> list[str]:
        shelf = Shelf()
        shelf.put("a")
        seen: list[str] = []
        async with following(shelf) as on:
            shelf.trouble = [errors.Unreachable("no route")] * 6
            shelf.end_watches()
            for seconds in (10, 35, 120):
                await asyncio.sleep(seconds)
                try:
                    on.cache.check()
                except cache.Stale as stale:
                    seen.append(str(stale))
                else:
                    seen.append("")
        return seen

    before, during, after = loop.run(main())
    assert (before, after) == ("", "")
    assert during == "nothing heard of Box since 2026-01-01 00:00:00: no route"


def test_a_resumed_quiet_watch_counts_as_a_connection() -> None:
    """Although nothing is heard on it for a minute, the cache is fresh again after a second."""

    async def main() -> tuple[bool, bool, timedelta | None]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.end_watches(errors.Unreachable("reset by peer"))
            await asyncio.sleep(0.1)
            lost = on.cache.fresh_since is None
            await asyncio.sleep(40)
            on.cache.check()
            since = on.cache.fresh_since
            return lost, since is not None, since - START if since else None

    lost, fresh, after = loop.run(main())
    assert lost
    assert fresh
    assert after is not None
    assert after < timedelta(seconds=2)


def test_waits_between_attempts_grow_and_stay_bounded() -> None:
    """An hour without a server takes tens of attempts, not thousands, and recovers in a minute."""

    async def main() -> tuple[int, list[str]]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.trouble = [errors.ServerFault("down", status=503)] * 10_000
            shelf.end_watches()
            await asyncio.sleep(3600)
            attempts = 10_000 - len(shelf.trouble)
            shelf.trouble = []
            shelf.put("b")
            await asyncio.sleep(cache.LONGEST_WAIT + 5)
            return attempts, on.names()

    attempts, names = loop.run(main())
    assert 60 <= attempts <= 140
    assert names == ["a", "b"]


def test_a_connection_that_drops_often_but_works_is_taken_up_quickly() -> None:
    """Each time something was heard, the next wait is short again."""

    async def main() -> list[Any]:
        shelf = Shelf()
        shelf.put("a")
        seen: list[Any] = []
        async with following(shelf) as on:
            for size in range(12):
                shelf.end_watches(errors.Unreachable("reset by peer"))
                await asyncio.sleep(0.1)
                shelf.put("a", size=size)
                await asyncio.sleep(2)
                seen.append(on.spec("a")["size"])
        return seen

    assert loop.run(main()) == list(range(12))


def test_a_server_that_says_when_to_come_back_is_obeyed() -> None:
    """After a 429 nobody asks before the time it named."""

    async def main() -> list[int]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf):
            busy = errors.TooMany("busy", status=429, reason="", retry_after=45)
            shelf.trouble = [busy, errors.ServerFault("still there", status=500)]
            shelf.end_watches()
            await asyncio.sleep(40)
            early = len(shelf.trouble)
            await asyncio.sleep(10)
            return [early, len(shelf.trouble)]

    assert loop.run(main()) == [1, 0]


def test_a_watch_that_always_ends_at_once_is_no_busy_loop() -> None:
    """A server that ends every watch at once is asked ever more rarely."""

    async def main() -> int:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf):
            async with asyncio.TaskGroup() as group:

                async def end() -> None:
                    while True:
                        shelf.end_watches()
                        await asyncio.sleep(0.02)

                task = group.create_task(end(), name="end")
                await asyncio.sleep(600)
                task.cancel()
            return shelf.served["watch"]

    assert loop.run(main()) < 40


def test_who_read_learns_once_that_nothing_is_told_any_more() -> None:
    """Not at a short break, and then at once: nobody looks often at what a watch tells of."""

    async def main() -> tuple[list[Ref], list[Ref], list[Ref]]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            on.cache.get("a", by=Ref("thing", "one"))
            on.cache.items(by=Ref("thing", "all"))
            shelf.trouble = [errors.Unreachable("no route")] * 40
            shelf.end_watches()
            await asyncio.sleep(10)
            short = list(on.woken)
            await asyncio.sleep(60)
            long = list(on.woken)
            await asyncio.sleep(600)
            return short, long, list(on.woken)

    short, long, later = loop.run(main())
    assert short == []
    assert sorted(long) == [Ref("thing", "all"), Ref("thing", "one")]
    assert later == long


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_jumps_makes_a_lost_cache_neither_fresh_nor_stale(hours: int) -> None:
    """How long nothing was heard is counted in time that only goes forward."""

    async def main() -> list[bool]:
        shelf = Shelf()
        shelf.put("a")
        told: list[bool] = []
        async with following(shelf) as on:
            shelf.trouble = [errors.Unreachable("no route")] * 7
            shelf.end_watches()
            for seconds in (5, 40):
                await asyncio.sleep(seconds)
                on.clock.off = timedelta(hours=hours)
                try:
                    on.cache.check()
                except cache.Stale:
                    told.append(True)
                else:
                    told.append(False)
        return told

    assert loop.run(main()) == [False, True]
