"""Anything is found by a part of its name, the likeliest first."""

import pytest

from fleetd.surface import finder
from tests.surface import panels
from topology.resource import Ref

NAMES = (
    ("server", "hv-07"),
    ("flux-sync", "hv"),
    ("cluster", "hv"),
    ("cluster", "hv-lab"),
    ("cloud", "prod"),
    ("serverpool", "compute-hv"),
    ("hypervisors", "prod"),
)
INDEX = finder.index(panels.topology(*(panels.resource(kind, name) for kind, name in NAMES)))


def found(words: str, limit: int = 20) -> list[str]:
    return [str(ref) for ref in finder.find(INDEX, words, limit, INDEX.refs)]


def test_the_whole_name_comes_before_a_part_of_one() -> None:
    """Among things of that very name, the kind people ask for most is first."""
    assert found("hv")[:2] == ["cluster/hv", "flux-sync/hv"]
    assert found("hv")[2:] == ["cluster/hv-lab", "server/hv-07", "serverpool/compute-hv"]


def test_capitals_make_no_difference() -> None:
    """Who types HV-LAB means hv-lab."""
    assert found("HV-LAB") == ["cluster/hv-lab"]


@pytest.mark.parametrize("words", ["cluster/hv", "cluster hv"])
def test_a_kind_narrows(words: str) -> None:
    """A kind beside the name, with a slash or a space, leaves only things of that kind."""
    assert found(words)[0] == "cluster/hv"
    assert "server/hv-07" not in found(words)


def test_a_kind_alone_finds_its_things() -> None:
    """`hypervisors` is a kind, and what there is of it is found."""
    assert found("hypervisors") == ["hypervisors/prod"]


@pytest.mark.parametrize("words", ["", "   ", "nothing-like-it", "cloud/prod cluster"])
def test_nothing_is_found_for_what_no_name_has(words: str) -> None:
    """Nor for words of two things that stand beside each other in the index."""
    assert found(words) == []


def test_a_limit_holds() -> None:
    """No more than was asked for, and the best of them."""
    assert found("hv", 1) == ["cluster/hv"]


def test_one_letter_in_a_large_fleet_ranks_no_more_than_it_must() -> None:
    """The work is bounded, and what people ask for most is still among the hits."""
    servers = [panels.resource("server", f"a{number}") for number in range(finder.LOOKED_AT * 2)]
    index = finder.index(panels.topology(*servers, panels.resource("cluster", "a")))
    assert finder.find(index, "a", 1, set(index.refs)) == [Ref("cluster", "a")]


def test_what_the_caller_may_not_see_is_not_found() -> None:
    """And takes no place from what they may."""
    known = {Ref("server", "hv-07")}
    assert finder.find(INDEX, "hv", 1, known) == [Ref("server", "hv-07")]
