"""The registry of API servers: access that comes, changes and goes while readers read."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube import cache, clusters, errors
from fleetd.kube.transport import Request
from fleetd.secrets import Secret
from fleetd.sim import loop
from tests import defaults
from tests.kube.shelf import BOX, GROUP, Shelf
from topology.resource import Ref

START = datetime(2026, 1, 1, tzinfo=UTC)
HV = "cluster:hv"
ME = Ref("box", "me")


class Stage:
    def __init__(self, **shelves: Shelf) -> None:
        self.shelves = shelves
        self.woken: list[Ref] = []
        self.clusters = clusters.Clusters(
            lambda kubeconfig: self.shelves[kubeconfig.reveal()],
            gates=Gates(defaults.LIMITS, LoopClock(START)),
            clock=LoopClock(START),
            rng=random.Random(1),
            wake=self.woken.append,
        )

    async def names(self) -> list[str]:
        kept = await self.clusters.cache(HV, GROUP, "Box")
        return [one["metadata"]["name"] for one in kept.items()]


@contextlib.asynccontextmanager
async def running(**shelves: Shelf) -> AsyncGenerator[Stage]:
    on = Stage(**shelves)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(on.clusters.run(), name="clusters")
        await asyncio.sleep(0)
        yield on
        task.cancel()


def _shelf(*names: str) -> Shelf:
    shelf = Shelf()
    for name in names:
        shelf.put(name)
    return shelf


def test_without_a_kubeconfig_there_is_no_access() -> None:
    """It says for which backend, for clients and caches alike."""

    async def main() -> None:
        on = Stage()
        assert not on.clusters.has(HV)
        assert on.clusters.expires(HV) is None
        with pytest.raises(clusters.NoAccess, match="no kubeconfig for cluster:hv yet"):
            on.clusters.client(HV)
        with pytest.raises(clusters.NoAccess, match="cluster:hv"):
            await on.clusters.cache(HV, GROUP, "Box")

    loop.run(main())


def test_readers_share_a_cache() -> None:
    """Many readers of one kind cost one list and one watch."""

    async def main() -> tuple[int, int]:
        shelf = _shelf("a")
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            async with asyncio.TaskGroup() as group:
                for number in range(20):
                    group.create_task(on.names(), name=str(number))
            await asyncio.sleep(1)
            return shelf.served["list"], shelf.served["watch"]

    assert loop.run(main()) == (1, 1)


def test_what_a_client_writes_is_read_at_once() -> None:
    """A write and a deletion are in the cache before the watch tells them, and wake readers."""

    async def main() -> list[Any]:
        shelf = _shelf()
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            kept = await on.clusters.cache(HV, GROUP, "Box")
            await asyncio.sleep(1)
            shelf.mute = True
            kept.get("a", "ns", by=ME)
            client = on.clusters.client(HV)
            await client.apply(BOX, {"metadata": {"name": "a", "namespace": "ns"}})
            seen: list[Any] = [await on.names(), list(on.woken)]
            await client.delete(BOX, "a", "ns")
            return [*seen, await on.names()]

    assert loop.run(main()) == [["a"], [ME], []]


def test_what_a_write_answers_is_what_readers_get() -> None:
    """Without managedFields, and decoded once for all of them."""

    async def main() -> tuple[bool, bool]:
        async with running(one=_shelf("a")) as on:
            on.clusters.put(HV, Secret("one"))
            kept = await on.clusters.cache(HV, GROUP, "Box")
            box = {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"size": 9}}
            answer = await on.clusters.client(HV).apply(BOX, box)
            return kept.get("a", "ns") is answer, "managedFields" in answer["metadata"]

    assert loop.run(main()) == (True, False)


def test_asking_the_server_itself_brings_the_cache_forward() -> None:
    """A fresh read is the server's newest word, and readers of the cache have it too."""

    async def main() -> tuple[Any, Any]:
        shelf = _shelf("a")
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            kept = await on.clusters.cache(HV, GROUP, "Box")
            await asyncio.sleep(1)
            shelf.mute = True
            shelf.put("a", size=2)
            live = await on.clusters.refresh(HV, BOX, "a", "ns")
            cached = kept.get("a", "ns")
            return live and live["spec"], cached and cached["spec"]

    assert loop.run(main()) == ({"size": 2}, {"size": 2})


def test_a_kind_that_is_not_served_yet_is_found_later() -> None:
    """No cache is kept for it; when its definition comes, the next reader has it."""

    async def main() -> list[str]:
        shelf = _shelf("a")
        shelf.unserved = True
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            with pytest.raises(errors.NotFound, match="does not serve Box of"):
                await on.names()
            shelf.unserved = False
            return await on.names()

    assert loop.run(main()) == ["a"]


def test_a_kind_that_vanished_for_good_is_said_to_be_gone() -> None:
    """First nobody knows, because servers forget kinds while they start; then it is NotServed."""

    async def main() -> list[str]:
        shelf = _shelf("a")
        said: list[str] = []
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            await on.names()
            await asyncio.sleep(1)
            shelf.unserved = True
            shelf.end_watches(errors.NotFound("404 page not found", status=404))
            for seconds in (60, 400):
                await asyncio.sleep(seconds)
                with pytest.raises(errors.KubeError) as caught:
                    await on.names()
                said.append(type(caught.value).__name__)
        return said

    assert loop.run(main()) == ["Stale", "NotServed"]


def test_what_is_handed_on_may_be_another_than_what_is_in_use() -> None:
    """It stays when the one in use is renewed; where none was lent they are the same."""

    async def main() -> list[Any]:
        later, soon = START + timedelta(hours=9), START + timedelta(hours=1)
        async with running(one=_shelf(), two=_shelf(), three=_shelf()) as on:
            on.clusters.put(HV, Secret("one"), expires=soon)
            seen: list[Any] = [on.clusters.alone(HV), on.clusters.kubeconfig(HV).reveal()]
            on.clusters.lend(HV, Secret("two"), expires=later)
            on.clusters.put(HV, Secret("three"), expires=soon)
            seen += [on.clusters.alone(HV), on.clusters.kubeconfig(HV).reveal()]
            return [*seen, on.clusters.expires(HV) == later, on.clusters.ends(HV) == soon]

    assert loop.run(main()) == [False, "one", True, "two", True, True]


def test_a_trial_changes_nothing() -> None:
    """Its requests go out with the other kubeconfig, and what it writes is in the caches."""

    async def main() -> list[Any]:
        old, new = _shelf("a"), _shelf("a")
        async with running(old=old, new=new) as on:
            on.clusters.put(HV, Secret("old"))
            before = await on.names()
            async with on.clusters.trial(HV, Secret("new")) as client:
                await client.apply(BOX, {"metadata": {"name": "b", "namespace": "ns"}})
            seen = [before, await on.names(), on.clusters.kubeconfig(HV).reveal(), new.closed]
            await asyncio.sleep(clusters.LINGER.total_seconds() + clusters.TEND + 1)
            return [*seen, new.closed, old.closed]

    assert loop.run(main()) == [["a"], ["a", "b"], "old", False, True, False]


def test_a_new_kubeconfig_takes_over_without_a_gap() -> None:
    """Caches go on with it, readers are woken by what differs, the old one is closed later."""

    async def main() -> list[Any]:
        old, new = _shelf("a"), _shelf("a", "b")
        async with running(old=old, new=new) as on:
            soon = START + timedelta(hours=1)
            on.clusters.put(HV, Secret("old"), expires=soon)
            kept = await on.clusters.cache(HV, GROUP, "Box")
            kept.items(by=ME)
            seen: list[Any] = [on.clusters.expires(HV)]
            on.clusters.put(HV, Secret("new"))
            await asyncio.sleep(1)
            seen += [await on.names(), on.woken, old.closed]
            await asyncio.sleep(clusters.LINGER.total_seconds() + clusters.TEND + 1)
            kept = await on.clusters.cache(HV, GROUP, "Box")
            return [*seen, old.closed, new.closed, on.clusters.expires(HV), len(new.watches)]

    assert loop.run(main()) == [
        START + timedelta(hours=1),
        ["a", "b"],
        [ME],
        False,
        True,
        False,
        None,
        1,
    ]


def test_the_same_kubeconfig_again_changes_nothing() -> None:
    """Only its expiry is taken; the connection and the watch stay."""

    async def main() -> tuple[int, datetime | None, bool]:
        shelf = _shelf("a")
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            await on.names()
            await asyncio.sleep(1)
            on.clusters.put(HV, Secret("one"), expires=START)
            await asyncio.sleep(200)
            return shelf.served["list"], on.clusters.expires(HV), shelf.closed

    assert loop.run(main()) == (1, START, False)


def test_a_kubeconfig_that_is_no_good_leaves_the_old_one() -> None:
    """What cannot be used raises, and readers go on as before."""

    async def main() -> list[str]:
        async with running(one=_shelf("a")) as on:
            on.clusters.put(HV, Secret("one"))
            await on.names()
            with pytest.raises(KeyError):
                on.clusters.put(HV, Secret("bad"))
            return await on.names()

    assert loop.run(main()) == ["a"]


def test_what_is_dropped_is_gone_and_closed() -> None:
    """No client, no cache, no watch; and it can come back."""

    async def main() -> list[Any]:
        shelf, again = _shelf("a"), _shelf("b")
        async with running(one=shelf, two=again) as on:
            on.clusters.put(HV, Secret("one"))
            await on.names()
            await asyncio.sleep(1)
            on.clusters.drop(HV)
            await asyncio.sleep(1)
            gone: list[Any] = [on.clusters.has(HV), len(shelf.watches)]
            on.clusters.put(HV, Secret("two"))
            names = await on.names()
            await asyncio.sleep(clusters.LINGER.total_seconds() + clusters.TEND)
            return [*gone, names, shelf.closed]

    assert loop.run(main()) == [False, 0, ["b"], True]


def test_when_it_ends_nothing_is_left_open() -> None:
    """Neither a watch nor a connection outlives `run`; closing twice does no harm."""

    async def main() -> tuple[int, list[bool]]:
        one, two = _shelf("a"), _shelf()
        async with running(one=one, two=two) as on:
            on.clusters.put(HV, Secret("one"))
            on.clusters.put("cluster:two", Secret("two"))
            await on.names()
            await asyncio.sleep(1)
        await on.clusters.close()
        return len(one.watches), [one.closed, two.closed]

    assert loop.run(main()) == (0, [True, True])


def test_a_cache_that_nobody_reads_is_given_up() -> None:
    """After half an hour without a reader its watch ends; who reads on keeps it."""

    async def main() -> tuple[int, int, list[str]]:
        shelf = _shelf("a")
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            for _ in range(8):
                await on.names()
                await asyncio.sleep(600)
            read = len(shelf.watches)
            await asyncio.sleep(clusters.UNUSED.total_seconds() + clusters.TEND)
            return read, len(shelf.watches), await on.names()

    assert loop.run(main()) == (1, 0, ["a"])


class Shut(Shelf):
    """It may be listed, and not watched."""

    shut = True

    def lines(self, request: Request) -> Any:
        return self._refused() if self.shut else super().lines(request)

    async def _refused(self) -> Any:
        raise errors.Forbidden("you may not watch")
        yield b""


def test_what_may_not_be_watched_is_told_of_its_server() -> None:
    """After half a minute and for as long as it lasts, with the reason; of no other server."""

    async def main() -> list[list[str]]:
        bad, good = Shut(), _shelf("good")
        bad.put("b")
        told: list[list[str]] = []
        async with running(bad=bad, good=good) as on:
            on.clusters.put("cluster:bad", Secret("bad"))
            on.clusters.put(HV, Secret("good"))
            await on.names()
            await on.clusters.cache("cluster:bad", GROUP, "Box")
            told.append(on.clusters.deaf("cluster:bad"))
            for _ in range(5):
                await asyncio.sleep(100)
                told.append([said[-17:] for said in on.clusters.deaf("cluster:bad")])
            told.append(on.clusters.deaf(HV))
            bad.shut = False
            await asyncio.sleep(100)
            return [*told, on.clusters.deaf("cluster:bad"), on.clusters.deaf("cluster:none")]

    assert loop.run(main()) == [[], *[["you may not watch"]] * 5, [], [], []]


class Rotten(Shelf):
    """A transport with a fault of its own: it raises what no transport may."""

    rotten = False

    def lines(self, request: Request) -> Any:
        if self.rotten:
            raise ZeroDivisionError("a defect")
        return super().lines(request)


def test_a_cache_that_fails_for_good_ends_nothing_else() -> None:
    """A defect in one cache is logged; the others go on, and the next reader makes a new one."""

    async def main() -> tuple[list[str], list[str]]:
        bad, good = Rotten(), _shelf("good")
        bad.put("bad")
        async with running(bad=bad, good=good) as on:
            bad.rotten = True
            on.clusters.put("cluster:bad", Secret("bad"))
            on.clusters.put(HV, Secret("good"))
            with contextlib.suppress(cache.Stale):
                await on.clusters.cache("cluster:bad", GROUP, "Box")
            bad.rotten = False
            bad.put("later")
            await asyncio.sleep(60)
            kept = await on.clusters.cache("cluster:bad", GROUP, "Box")
            return [one["metadata"]["name"] for one in kept.items()], await on.names()

    assert loop.run(main()) == (["bad", "later"], ["good"])


def test_a_reader_does_not_wait_for_a_server_that_hangs() -> None:
    """Waiting for the first list ends in time, with words; other servers answer meanwhile."""

    async def main() -> tuple[float, list[str]]:
        dead = _shelf()
        async with running(dead=dead, good=_shelf("good")) as on:
            on.clusters.put("cluster:dead", Secret("dead"))
            on.clusters.put(HV, Secret("good"))
            await on.clusters.client("cluster:dead").find(GROUP, "Box")
            dead.hangs = True
            began = asyncio.get_running_loop().time()
            with pytest.raises(cache.Stale, match="not listed within 3 s"):
                await on.clusters.cache("cluster:dead", GROUP, "Box", within=3)
            return asyncio.get_running_loop().time() - began, await on.names()

    took, names = loop.run(main())
    assert took < 3.1
    assert names == ["good"]


def test_a_lost_server_is_not_read_from_memory_for_long() -> None:
    """Half a minute after the connection is lost, a reader is told that nobody could look."""

    async def main() -> None:
        shelf = _shelf("a")
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            await on.names()
            await asyncio.sleep(1)
            shelf.trouble = [errors.Unreachable("no route to host")] * 100
            shelf.end_watches()
            await asyncio.sleep(10)
            assert await on.names() == ["a"]
            await asyncio.sleep(60)
            await on.names()

    with pytest.raises(ExceptionGroup) as caught:
        loop.run(main())
    assert caught.group_contains(cache.Stale, match="no route to host")


def test_caches_of_a_namespace_and_of_all_stand_side_by_side() -> None:
    """Who may only read one namespace reads that one; a write is noted in both."""

    async def main() -> list[list[str]]:
        shelf = _shelf("a")
        shelf.put("b", "other")
        async with running(one=shelf) as on:
            on.clusters.put(HV, Secret("one"))
            everything = await on.clusters.cache(HV, GROUP, "Box")
            some = await on.clusters.cache(HV, GROUP, "Box", "ns")
            await asyncio.sleep(1)
            shelf.mute = True
            body = {"metadata": {"name": "c", "namespace": "ns"}}
            await on.clusters.client(HV).create(BOX, body)
            return [
                [one["metadata"]["name"] for one in kept.items()] for kept in (everything, some)
            ]

    assert loop.run(main()) == [["a", "c", "b"], ["a", "c"]]
