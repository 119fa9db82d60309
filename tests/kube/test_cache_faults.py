"""What a cache does when its server, or the way to it, behaves badly."""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from fleetd.clock import LoopClock
from fleetd.kube import cache, client, errors
from fleetd.kube.client import KubeClient
from fleetd.sim import loop
from tests.kube.shelf import BOX, Object, Shelf, status
from tests.kube.stage import START, following
from topology.resource import Ref


def test_after_a_drop_it_goes_on_where_it_was() -> None:
    """A broken watch is resumed without another list, and nothing of the break is missed."""

    async def main() -> tuple[Any, list[str], int, int]:
        shelf = Shelf()
        shelf.put("a", size=1)
        shelf.put("b")
        async with following(shelf) as on:
            shelf.end_watches(errors.Unreachable("reset by peer"))
            await asyncio.sleep(0.01)
            shelf.put("a", size=2)
            shelf.delete("b")
            await asyncio.sleep(5)
            return on.spec("a"), on.names(), shelf.served["list"], shelf.served["watch"]

    assert loop.run(main()) == ({"size": 2}, ["a"], 1, 2)


@pytest.mark.parametrize(
    "line",
    [b'{"type":"MODIFIED","object":{"metad', b"<html>bad gateway</html>", b'{"type":"ADDED"}'],
    ids=["half a line", "not JSON", "no object"],
)
def test_a_line_that_cannot_be_read_costs_only_the_connection(line: bytes) -> None:
    """It connects again and has everything."""

    async def main() -> tuple[list[str], str, bool]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.say(line)
            await asyncio.sleep(0.1)
            error = on.cache.error
            shelf.put("b")
            await asyncio.sleep(5)
            return on.names(), error, on.cache.fresh_since is not None

    said = "the watch says what is no change, as no API server does; is the address of the "
    assert loop.run(main()) == (["a", "b"], f"{said}kubeconfig right?", True)


def test_an_object_without_metadata_costs_only_the_connection() -> None:
    """What is no object is not taken for one."""

    async def main() -> list[str]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.say({"type": "MODIFIED", "object": {"metadata": None}})
            await asyncio.sleep(5)
            shelf.put("b")
            await asyncio.sleep(1)
            return on.names()

    assert loop.run(main()) == ["a", "b"]


def test_a_forgotten_history_is_listed_anew_and_absences_are_deletions() -> None:
    """After a 410 it lists, wakes the readers of what changed or vanished, and nobody else."""

    async def main() -> tuple[list[str], list[Ref], int]:
        shelf = Shelf()
        for name in ("stays", "goes", "moves"):
            shelf.put(name)
        stays, goes, moves = (Ref("box", name) for name in ("stays", "goes", "moves"))
        async with following(shelf) as on:
            for ref in (stays, goes, moves):
                on.cache.get(ref.name, "ns", by=ref)
            shelf.mute = True
            shelf.delete("goes")
            shelf.put("moves", size=2)
            shelf.compact()
            shelf.mute = False
            shelf.end_watches(errors.Unreachable("reset by peer"))
            await asyncio.sleep(5)
            return on.names(), sorted(on.woken), shelf.served["list"]

    assert loop.run(main()) == (["moves", "stays"], [Ref("box", "goes"), Ref("box", "moves")], 2)


def test_an_error_in_the_watch_is_listed_over() -> None:
    """An ERROR line other than 410 is a break like any other, and nothing is missed."""

    async def main() -> list[str]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.say({"type": "ERROR", "object": status(500, "InternalError", "etcd is away")})
            shelf.put("b")
            await asyncio.sleep(5)
            return on.names()

    assert loop.run(main()) == ["a", "b"]


def test_a_silent_connection_is_given_up() -> None:
    """Without a word for two bookmark periods it connects again, and then knows what it missed."""

    async def main() -> list[Any]:
        shelf = Shelf()
        shelf.put("a", size=1)
        async with following(shelf) as on:
            shelf.mute = True
            shelf.put("a", size=2)
            await asyncio.sleep(cache.STALL - 1)
            seen = [on.spec("a")]
            shelf.mute = False
            await asyncio.sleep(5)
            seen.append(on.spec("a"))
            return [*seen, shelf.served["watch"], shelf.served["list"]]

    assert loop.run(main()) == [{"size": 1}, {"size": 2}, 2, 1]


def test_a_quiet_server_without_bookmarks_is_never_called_lost() -> None:
    """It connects again every two minutes for hours, and no reader is told anything."""

    async def main() -> tuple[list[bool], int]:
        shelf = Shelf()
        shelf.put("a")
        seen: list[bool] = []
        async with following(shelf) as on:
            for _ in range(300):
                await asyncio.sleep(30)
                on.cache.check(timedelta(seconds=5))
                seen.append(on.cache.lost_since is None)
        return seen, shelf.served["watch"]

    seen, watches = loop.run(main())
    assert sum(seen) > 290
    assert 60 < watches < 90


def test_bookmarks_keep_a_quiet_connection() -> None:
    """A bookmark a minute is enough to stay, and the next watch begins at the last of them."""

    async def main() -> tuple[int, int, bool]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            for _ in range(10):
                await asyncio.sleep(cache.BOOKMARK)
                shelf.version += 10
                shelf.bookmark()
            await asyncio.sleep(1)
            # Without the bookmarks, this would be a history that does not go back far enough.
            watches = shelf.served["watch"]
            shelf.compact()
            shelf.end_watches()
            await asyncio.sleep(5)
            return watches, shelf.served["list"], on.cache.fresh_since is not None

    assert loop.run(main()) == (1, 1, True)


def test_a_server_that_lags_is_not_believed() -> None:
    """A list from before what was seen is refused: neither the old state nor its objects return."""

    async def main() -> tuple[list[str], str, list[str]]:
        shelf = Shelf()
        shelf.put("deleted")
        shelf.freeze()
        async with following(shelf) as on:
            shelf.delete("deleted")
            shelf.put("new")
            await asyncio.sleep(1)
            shelf.compact()
            shelf.end_watches(errors.Gone("too old"))
            await asyncio.sleep(10)
            behind, error = on.names(), on.cache.error
            shelf.frozen = None
            await asyncio.sleep(60)
            return behind, error, on.names()

    behind, error, after = loop.run(main())
    assert (behind, after) == (["new"], ["new"])
    assert error == "the server is at version 101, but 103 was seen before"


def test_a_history_that_was_rewritten_is_believed_in_the_end() -> None:
    """After a restored backup the server is behind for good; ten minutes later it counts."""

    async def main() -> tuple[Any, list[str], str]:
        shelf = Shelf()
        shelf.put("a", size=1)
        async with following(shelf) as on:
            shelf.put("a", size=2)
            shelf.put("b")
            await asyncio.sleep(1)
            backup = {**shelf.objects["ns", "a"], "spec": {"size": 1}}
            backup["metadata"] = {**backup["metadata"], "resourceVersion": "50"}
            shelf.objects = {("ns", "a"): backup}
            shelf.version = shelf.oldest = 60
            shelf.history.clear()
            shelf.end_watches(errors.Unreachable("reset by peer"))
            await asyncio.sleep(cache.REWRITTEN.total_seconds() + 120)
            return on.spec("a"), on.names(), on.cache.error

    assert loop.run(main()) == ({"size": 1}, ["a"], "")


def test_what_we_wrote_while_a_list_was_on_its_way_stays() -> None:
    """A list that is older than our write does not delete what we made."""

    async def main() -> list[str]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.mute = True
            shelf.freeze()
            shelf.end_watches(errors.Gone("too old"))
            await asyncio.sleep(0.005)
            on.cache.note(shelf.put("mine"))
            await asyncio.sleep(1)
            assert shelf.served["list"] == 2
            return on.names()

    assert loop.run(main()) == ["a", "mine"]


def test_an_event_that_was_never_sent_is_put_right_by_the_next_list() -> None:
    """A watch that lost an event without a sign is corrected within the hour."""

    async def main() -> tuple[Any, Any]:
        shelf = Shelf()
        shelf.put("a", size=1)
        async with following(shelf) as on:
            shelf.mute = True
            shelf.put("a", size=2)
            shelf.mute = False
            shelf.bookmark()
            for _ in range(6):
                await asyncio.sleep(50)
                shelf.bookmark()
            before = on.spec("a")
            for _ in range(60):
                await asyncio.sleep(50)
                shelf.bookmark()
                if not _ % 10:
                    shelf.end_watches()
            return before, on.spec("a")

    assert loop.run(main()) == ({"size": 1}, {"size": 2})


def test_before_the_first_list_nobody_is_told_that_nothing_is_there() -> None:
    """Unlisted is not empty: reading is refused, and waiting ends with the reason."""

    async def main() -> list[str]:
        shelf = Shelf()
        shelf.trouble = [errors.Forbidden("you may not list boxes", status=403)] * 100
        kept = cache.Cache(
            KubeClient(shelf),
            BOX,
            clock=LoopClock(START),
            rng=random.Random(1),
            wake=lambda _: None,
        )
        said: list[str] = []

        async def refused(reading: Any) -> None:
            with pytest.raises(cache.Stale) as caught:
                await reading()
            said.append(str(caught.value))

        async def get() -> Object | None:
            return kept.get("a", "ns")

        await refused(get)
        await refused(lambda: kept.synced(3))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(kept.run(), name="cache")
            await refused(lambda: kept.synced(3))
            task.cancel()
        return said

    assert loop.run(main()) == [
        "Box was not listed yet",
        "Box was not listed within 3 s",
        "could not list Box: you may not list boxes",
    ]


def test_a_list_that_hangs_is_given_up_and_tried_again() -> None:
    """A server that accepts and never answers costs a minute, not for ever."""

    async def main() -> list[str]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.put("b")
            shelf.hangs = True
            shelf.end_watches(errors.Gone("too old"))
            await asyncio.sleep(cache.LIST_LIMIT - 1)
            shelf.hangs = False
            shelf.put("c")
            await asyncio.sleep(10)
            return on.names()

    assert loop.run(main()) == ["a", "b", "c"]


def test_a_kind_that_is_not_served_any_more_is_not_taken_for_empty() -> None:
    """A server that forgets a kind for a while has not deleted its objects."""

    async def main() -> tuple[list[str], bool, list[str]]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.unserved = True
            shelf.end_watches(errors.NotFound("404 page not found", status=404))
            await asyncio.sleep(20)
            away = on.names(), on.cache.unserved
            shelf.unserved = False
            shelf.put("b")
            await asyncio.sleep(60)
            return *away, on.names()

    assert loop.run(main()) == (["a"], True, ["a", "b"])


def test_a_kind_that_moved_to_another_version_is_followed_there() -> None:
    """The server stops serving the version the cache began with; the cache goes along."""

    async def main() -> tuple[str, list[str]]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            shelf.api = "v2"
            shelf.end_watches(errors.Unreachable("reset by peer"))
            await asyncio.sleep(20)
            shelf.put("b")
            await asyncio.sleep(1)
            return on.cache.kind.version, on.names()

    assert loop.run(main()) == ("v2", ["a", "b"])


def test_a_new_client_is_used_at_once_even_while_waiting() -> None:
    """A cache that waits for its next attempt does not wait with a new client."""

    async def main() -> tuple[list[str], list[str]]:
        old, new = Shelf(), Shelf()
        old.put("a")
        new.version = 5
        new.put("a2")
        async with following(old) as on:
            old.trouble = [errors.Unauthorized("expired", status=401)] * 100
            old.end_watches()
            await asyncio.sleep(200)
            before = on.names()
            on.cache.use(KubeClient(new))
            await asyncio.sleep(0.1)
            on.cache.check()
            return before, on.names()

    assert loop.run(main()) == (["a"], ["a2"])


def test_a_flood_of_changes_lets_others_run() -> None:
    """While thousands of changes are taken, somebody else gets his turn between them."""

    async def main() -> tuple[int, bool]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            for size in range(4 * client.BREATH):
                shelf.put("a", size=size)
            between = False
            for _ in range(100):
                await asyncio.sleep(0)
                found = on.spec("a")
                between = between or 0 < found.get("size", 0) < 4 * client.BREATH - 1
            await asyncio.sleep(1)
            return on.spec("a")["size"], between

    assert loop.run(main()) == (4 * client.BREATH - 1, True)
