"""What a cache believes, and whom it wakes."""

import asyncio
from typing import Any

from fleetd.kube import cache
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


def test_a_reader_of_some_gets_those_and_no_others() -> None:
    """By namespace, and by what they mention, all at once or one by one."""

    async def main() -> list[list[str]]:
        shelf = Shelf()
        for namespace in ("ns", "other"):
            for name in ("b", "a", "c"):
                shelf.put(name, namespace, host=f"host-{name}")
        async with following(shelf) as on:
            seen = [
                on.cache.items("ns"),
                on.cache.items(mentioning="host-a"),
                on.cache.items("other", mentioning="host-b"),
                tuple([one async for one in on.cache.each("ns", mentioning="host-c")]),
            ]
            return [[_name(one) for one in some] for some in seen]

    assert loop.run(main()) == [
        ["ns/a", "ns/b", "ns/c"],
        ["ns/a", "other/a"],
        ["other/b"],
        ["ns/c"],
    ]


def test_reading_all_lets_others_run_and_sees_one_moment() -> None:
    """Between pieces others run, even such that change the cache; what is read stays as it was,
    and the reader is woken for what it missed."""

    async def main() -> tuple[int, int, list[Ref]]:
        shelf = Shelf()
        for number in range(cache.PIECE + 10):
            shelf.put(f"b{number:04}", size=1)
        async with following(shelf) as on:
            sizes = 0
            async for one in on.cache.each(by=ME):
                sizes += one["spec"]["size"]
                if one["metadata"]["name"] == "b0000":
                    on.cache.note(shelf.put("b0100", size=1000))
            return sizes, len(on.cache.items()), on.woken

    assert loop.run(main()) == (cache.PIECE + 10, cache.PIECE + 10, [ME])


def test_a_write_during_a_long_list_is_not_undone_by_it() -> None:
    """While a list is taken in pieces, what we write or delete ourselves counts."""

    async def main() -> tuple[Any, list[str], int]:
        shelf = Shelf()
        for number in range(cache.PIECE + 10):
            shelf.put(f"b{number:04}", size=1)
        async with following(shelf) as on:
            last = f"b{cache.PIECE + 9:04}"
            gone = f"b{cache.PIECE + 8:04}"
            shelf.mute = True
            for name in [key[1] for key in shelf.objects]:
                shelf.put(name, size=2)

            def meddle() -> None:
                if shelf.objects.get(("ns", gone)):
                    on.cache.note(shelf.put(last, size=3))
                    uid = shelf.delete(gone)["metadata"]["uid"]
                    on.cache.note_deleted(gone, "ns", uid)

            def woken(_: Ref) -> None:
                asyncio.get_running_loop().call_soon(meddle)

            on.cache._readers._wake = woken
            on.cache.get("b0000", "ns", by=ME)
            shelf.compact()
            shelf.end_watches()
            await asyncio.sleep(30)
            sizes = {one["spec"]["size"] for one in on.cache.items()}
            return on.spec(last), [name for name in on.names() if name == gone], len(sizes)

    assert loop.run(main()) == ({"size": 3}, [], 2)


def _name(obj: Any) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
