"""A list that is asked for again: names first, and in whole only what is not as it was."""

import asyncio
from typing import Any

import pytest

from fleetd.kube import client, errors
from fleetd.kube.client import KubeClient
from fleetd.sim import loop
from tests.kube.shelf import BOX, Shelf
from tests.kube.stage import following


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAGE", 2)


def _again(change: Any) -> tuple[list[str], list[tuple[str, Any, bool]]]:
    """In which forms the pages came, and name and size of all, and whether each is the very same,
    after six of size 1 were listed and then changed."""

    async def main() -> tuple[list[str], list[tuple[str, Any, bool]]]:
        shelf = Shelf()
        for name in "abcdef":
            shelf.put(name, size=1)
        asker = KubeClient(shelf)
        known = {one.key: one for one in (await asker.list(BOX)).items}
        shelf.pages.clear()
        change(shelf)
        listing = await asker.list_again(BOX, known=known)
        told = [
            (one.name, one.object()["spec"]["size"], known.get(one.key) is one)
            for one in listing.items
        ]
        return shelf.pages, told

    return loop.run(main())


def _nothing(_: Shelf) -> None:
    pass


def _as_it_was(names: str) -> list[tuple[str, Any, bool]]:
    return [(name, 1, True) for name in names]


def test_what_is_as_it_was_is_not_sent_again() -> None:
    """Names and versions are enough, and what is kept stays the very same."""
    assert _again(_nothing) == (["short"] * 3, _as_it_was("abcdef"))


def test_a_page_on_which_something_changed_comes_in_whole() -> None:
    """That page alone."""

    def change(shelf: Shelf) -> None:
        shelf.put("c", size=2)

    pages, told = _again(change)
    assert pages == ["short", "short", "whole", "short"]
    assert told == [*_as_it_was("ab"), ("c", 2, False), ("d", 1, False), *_as_it_was("ef")]


def test_another_of_the_same_name_and_version_is_another() -> None:
    """Only its uid tells, as of one that was made anew from a backup."""

    def change(shelf: Shelf) -> None:
        shelf.objects["ns", "a"]["metadata"]["uid"] = "uid-other"
        shelf.objects["ns", "a"]["spec"] = {"size": 7}

    assert _again(change)[1][0] == ("a", 7, False)


def test_what_came_and_went_is_seen() -> None:
    """Though the pages have moved."""

    def change(shelf: Shelf) -> None:
        shelf.delete("a")
        shelf.put("g", size=3)

    pages, told = _again(change)
    assert pages == ["short"] * 3 + ["whole"]
    assert [(name, size) for name, size, _ in told] == [*((name, 1) for name in "bcdef"), ("g", 3)]


def test_where_most_has_changed_names_are_not_asked_for_first() -> None:
    """It would only cost more."""

    def change(shelf: Shelf) -> None:
        for name in "abcdef":
            shelf.put(name, size=2)

    assert _again(change)[0] == ["short", "whole", "whole", "whole"]


def test_a_server_that_knows_no_short_form_is_taken_at_its_word() -> None:
    """What it gives instead is whole, and is not asked for twice."""

    def change(shelf: Shelf) -> None:
        shelf.shortens = False

    pages, told = _again(change)
    assert pages == ["whole"] * 3
    assert [name for name, _, _ in told] == [*"abcdef"]


def test_a_page_that_lacks_what_its_names_promised_is_not_believed() -> None:
    """All is asked for as if for the first time; else the rest would be taken for deleted."""

    def change(shelf: Shelf) -> None:
        shelf.put("a", size=2)
        shelf.swallows = 1

    assert [name for name, _, _ in _again(change)[1]] == [*"abcdef"]


def test_a_server_that_cannot_look_back_is_asked_for_all() -> None:
    """It refuses a page at a moment that it has forgotten; nothing is lost by that."""

    def change(shelf: Shelf) -> None:
        shelf.put("a", size=2)
        shelf.refuses_exact = True

    pages, told = _again(change)
    assert pages == ["short", "whole"]
    assert told[0] == ("a", 2, False)


def test_a_cache_that_lists_again_asks_for_names() -> None:
    """And is right about what changed, came and went while nobody told it."""

    async def main() -> tuple[list[str], list[tuple[str, Any]]]:
        shelf = Shelf()
        for name in "abcdef":
            shelf.put(name, size=1)
        async with following(shelf) as on:
            shelf.pages.clear()
            shelf.mute = True
            shelf.put("f", size=2)
            shelf.delete("c")
            shelf.compact()
            shelf.end_watches(errors.Unreachable("reset by peer"))
            await asyncio.sleep(30)
            return shelf.pages, [(name, on.spec(name)["size"]) for name in on.names()]

    pages, told = loop.run(main())
    assert pages[:1] == ["short"]
    assert told == [("a", 1), ("b", 1), ("d", 1), ("e", 1), ("f", 2)]


def test_objects_of_a_kind_that_moved_are_in_the_new_version() -> None:
    """Their names and versions are as they were, and their bytes are not."""

    async def main() -> list[str]:
        shelf = Shelf()
        shelf.put("a", size=1)
        async with following(shelf) as on:
            shelf.api = "v2"
            shelf.end_watches(errors.Unreachable("reset by peer"))
            await asyncio.sleep(20)
            return [one["apiVersion"].rpartition("/")[2] for one in on.cache.items()]

    assert loop.run(main()) == ["v2"]
