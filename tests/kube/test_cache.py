"""What a cache believes, and whom it wakes."""

import asyncio
from typing import Any

from fleetd.sim import loop
from tests.kube.shelf import Shelf
from tests.kube.stage import following
from topology.resource import Ref

ME, YOU = Ref("box", "me"), Ref("box", "you")


def test_it_has_what_the_server_has() -> None:
    """After the list and some changes it holds the server's objects, in order of their names."""

    async def main() -> list[tuple[str, Any]]:
        shelf = Shelf()
        shelf.put("b", size=1)
        shelf.put("a", size=1)
        async with following(shelf) as on:
            shelf.put("c", size=1)
            shelf.put("a", size=2)
            shelf.delete("b")
            await asyncio.sleep(1)
            return [(one["metadata"]["name"], one["spec"]["size"]) for one in on.cache.items()]

    assert loop.run(main()) == [("a", 2), ("c", 1)]


def test_one_namespace_is_all_it_holds() -> None:
    """A cache of one namespace has nothing of the others, whoever writes there."""

    async def main() -> list[str]:
        shelf = Shelf()
        shelf.put("a", "ns")
        shelf.put("b", "elsewhere")
        async with following(shelf, "ns") as on:
            on.cache.note(shelf.put("c", "elsewhere"))
            return on.names()

    assert loop.run(main()) == ["a"]


def test_managed_fields_are_left_out_unless_asked_for() -> None:
    """They cost a third of the memory; only who asks pays."""

    async def main(*, asked: bool) -> list[bool]:
        shelf = Shelf()
        shelf.put("listed")
        async with following(shelf, managed_fields=asked) as on:
            shelf.put("watched")
            on.cache.note(shelf.put("noted"))
            await asyncio.sleep(1)
            return ["managedFields" in one["metadata"] for one in on.cache.items()]

    assert loop.run(main(asked=False)) == [False] * 3
    assert loop.run(main(asked=True)) == [True] * 3


def test_a_reader_is_woken_once_for_what_it_read() -> None:
    """Only the reader of the changed object, once until it reads again, and also when what it
    looked for appears."""

    async def main() -> list[list[Ref]]:
        seen: list[list[Ref]] = []
        shelf = Shelf()
        shelf.put("a")
        shelf.put("b")
        async with following(shelf) as on:
            on.cache.get("a", "ns", by=ME)
            on.cache.get("missing", "ns", by=YOU)
            for change in ("b", "a", "a", "missing"):
                shelf.put(change, at=shelf.version)
                await asyncio.sleep(1)
                seen.append(list(on.woken))
        return seen

    assert loop.run(main()) == [[], [ME], [ME], [ME, YOU]]


def test_a_reader_of_all_is_woken_by_any_change_once() -> None:
    """Whatever changes wakes who read everything; who read both ways is woken once."""

    async def main() -> list[Ref]:
        shelf = Shelf()
        shelf.put("a")
        async with following(shelf) as on:
            on.cache.items(by=ME)
            on.cache.get("a", "ns", by=ME)
            on.cache.items(by=YOU)
            shelf.put("a", size=2)
            shelf.put("a", size=3)
            await asyncio.sleep(1)
            return on.woken

    assert loop.run(main()) == [ME, YOU]


def test_our_own_write_is_read_at_once_and_wakes_once() -> None:
    """A noted write is there before the watch tells it, and its echo is no second change."""

    async def main() -> tuple[Any, list[Ref], list[Ref]]:
        shelf = Shelf()
        shelf.put("a", size=1)
        async with following(shelf) as on:
            on.cache.get("a", "ns", by=ME)
            on.cache.note(shelf.put("a", size=2))
            now, woken = on.spec("a"), list(on.woken)
            on.cache.get("a", "ns", by=ME)
            await asyncio.sleep(1)
            return now, woken, on.woken

    assert loop.run(main()) == ({"size": 2}, [ME], [ME])


def test_a_late_word_does_not_undo_a_newer_one() -> None:
    """An older version of the same object is ignored, whether watched, noted or listed."""

    async def main() -> list[Any]:
        shelf = Shelf()
        old = shelf.put("a", size=1)
        shelf.freeze()
        async with following(shelf) as on:
            seen = [on.spec("a")]
            on.cache.note(shelf.put("a", size=2))
            shelf.say({"type": "MODIFIED", "object": old})
            await asyncio.sleep(1)
            seen.append(on.spec("a"))
            on.cache.note(old)
            seen.append(on.spec("a"))
            return seen

    assert loop.run(main()) == [{"size": 1}, {"size": 2}, {"size": 2}]


def test_versions_that_are_not_numbers_are_taken_as_they_come() -> None:
    """What cannot be compared is not compared: the last word counts."""

    async def main() -> Any:
        shelf = Shelf()
        shelf.put("a", size=1)
        async with following(shelf) as on:
            for version, size in (("zz9", 2), ("aa1", 3)):
                obj = {**shelf.objects["ns", "a"], "spec": {"size": size}}
                obj["metadata"] = {**obj["metadata"], "resourceVersion": version}
                shelf.say({"type": "MODIFIED", "object": obj})
            await asyncio.sleep(1)
            return on.spec("a")

    assert loop.run(main()) == {"size": 3}


def test_what_was_deleted_does_not_come_back_by_a_late_word() -> None:
    """Neither a noted nor a watched deletion is undone by an older word of the same uid."""

    async def main() -> list[str]:
        shelf = Shelf()
        noted, watched = shelf.put("noted"), shelf.put("watched")
        async with following(shelf) as on:
            on.cache.note_deleted("noted", "ns", noted["metadata"]["uid"])
            shelf.delete("watched")
            await asyncio.sleep(1)
            for old in (noted, watched):
                shelf.say({"type": "MODIFIED", "object": old})
            await asyncio.sleep(1)
            return on.names()

    assert loop.run(main()) == []


def test_a_new_object_of_the_same_name_is_another_one() -> None:
    """The late deletion of the old uid does not touch it, and the old one does not return."""

    async def main() -> tuple[Any, Any, list[Ref]]:
        shelf = Shelf()
        old = shelf.put("a", size=1)
        async with following(shelf) as on:
            on.cache.get("a", "ns", by=ME)
            shelf.mute = True
            gone = shelf.delete("a")
            on.cache.note(shelf.put("a", size=2))
            shelf.say({"type": "MODIFIED", "object": old})
            shelf.say({"type": "DELETED", "object": gone})
            await asyncio.sleep(1)
            on.cache.note_deleted("a", "ns", old["metadata"]["uid"])
            found = on.cache.get("a", "ns")
            assert found is not None
            return found["spec"], found["metadata"]["uid"], on.woken

    assert loop.run(main()) == ({"size": 2}, "uid-2", [ME])
