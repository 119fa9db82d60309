"""Order, ranks and circles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import graph
from topology.resource import Ref


def ref(name: str) -> Ref:
    return Ref("thing", name)


def chain(length: int) -> dict[Ref, list[Ref]]:
    return {ref(f"{n:06d}"): [ref(f"{n - 1:06d}")] if n else [] for n in range(length)}


def test_rank_is_the_longest_chain_below() -> None:
    """A thing with a short and a long way down has the rank of the long one."""
    needs = {ref("a"): [], ref("b"): [ref("a")], ref("c"): [ref("a"), ref("b")]}

    assert graph.ranks(needs) == {ref("a"): 0, ref("b"): 1, ref("c"): 2}


def test_a_chain_longer_than_the_stack_is_ordered() -> None:
    """Nothing recurses: 50,000 things in a row have ranks."""
    needs = chain(50_000)

    assert graph.ranks(needs)[ref("049999")] == 49_999


def test_a_circle_longer_than_the_stack_is_found() -> None:
    """Nothing recurses when looking for circles either."""
    needs = chain(50_000)
    needs[ref("000000")] = [ref("049999")]

    found = graph.cycle(needs)

    assert found is not None
    assert len(found) == 50_000


def test_a_circle_is_named_from_its_smallest_member() -> None:
    """The error says who waits for whom, the same way whatever the order of the input."""
    needs = {ref("c"): [ref("a")], ref("a"): [ref("b")], ref("b"): [ref("c")], ref("d"): []}

    with pytest.raises(graph.Cycle) as caught:
        graph.order(needs)

    assert caught.value.members == (ref("a"), ref("b"), ref("c"))
    assert str(caught.value).startswith("thing/a needs thing/b needs thing/c needs thing/a")


def test_what_waits_for_a_circle_is_not_part_of_it() -> None:
    """A thing above a circle is not blamed for it."""
    needs = {ref("a"): [ref("b")], ref("b"): [ref("z")], ref("z"): [ref("b")]}

    assert graph.cycle(needs) == (ref("b"), ref("z"))


def test_needs_of_others_give_no_order() -> None:
    """A need that is not among the things is left out."""
    assert graph.ranks({ref("a"): [ref("elsewhere")]}) == {ref("a"): 0}


def test_closure_has_everything_below() -> None:
    """What a thing needs, and what those need."""
    needs = {ref("a"): [], ref("b"): [ref("a")], ref("c"): [ref("b")], ref("d"): []}

    assert graph.closure(needs, [ref("c")]) == {ref("a"), ref("b"), ref("c")}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=120))
def test_order_respects_needs_or_there_is_a_circle(pairs: list[tuple[int, int]]) -> None:
    """Either each thing comes after all it needs, or the circle named is really there."""
    needs: dict[Ref, set[Ref]] = {ref(f"{n:02d}"): set() for n in range(31)}
    for above, below in pairs:
        needs[ref(f"{above:02d}")].add(ref(f"{below:02d}"))

    try:
        order = graph.order(needs)
    except graph.Cycle as error:
        circle = [Ref(*member) for member in error.members if isinstance(member, tuple)]
        following = [*circle[1:], circle[0]]
        assert all(below in needs[above] for above, below in zip(circle, following, strict=True))
    else:
        place = {one: number for number, one in enumerate(order)}
        assert len(order) == 31
        assert all(place[need] < place[one] for one in order for need in needs[one])
