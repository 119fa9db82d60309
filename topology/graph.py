"""
Order from needs: who comes first, how deep a thing stands, and where a circle is.

Works on plain mappings of "this needs those" and knows no resources. Nothing here recurses,
because a chain of needs may be longer than Python's stack. Needs that are not keys of the
mapping are left out: they are somebody else's and give no order here.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from topology.resource import Ref

Node = TypeVar("Node", bound=tuple[str, ...] | str)


class Cycle(ValueError):
    """Things that wait for each other. `members` are in order; the last needs the first."""

    def __init__(self, members: tuple[object, ...]) -> None:
        self.members = members
        shown = " needs ".join(str(member) for member in (*members, members[0]))
        super().__init__(f"{shown}: none of them can ever be first")


def ranks(needs: Mapping[Node, Collection[Node]]) -> dict[Node, int]:
    """Length of the longest chain below each node; 0 for what needs nothing. Raises `Cycle`."""
    waiting: dict[Node, int] = {}
    needed_by: dict[Node, list[Node]] = {}
    found: dict[Node, int] = {}
    ready: list[Node] = []
    for node, below in needs.items():
        count = 0
        for need in below:
            if need in needs:
                needed_by.setdefault(need, []).append(node)
                count += 1
        if count:
            waiting[node] = count
        else:
            ready.append(node)
        found[node] = 0
    while ready:
        node = ready.pop()
        rank = found[node] + 1
        for above in needed_by.get(node, ()):
            found[above] = max(found[above], rank)
            waiting[above] -= 1
            if not waiting[above]:
                del waiting[above]
                ready.append(above)
    if waiting:
        circle = cycle(needs, among=waiting)
        raise Cycle(circle if circle is not None else tuple(sorted(waiting)))
    return found


def order(needs: Mapping[Node, Collection[Node]]) -> list[Node]:
    """Every node after all it needs; among equals by name, so that the input's order and the
    hash seed do not show. Raises `Cycle`."""
    rank = ranks(needs)
    return sorted(rank, key=lambda node: (rank[node], node))


def cycle(
    needs: Mapping[Node, Collection[Node]], *, among: Iterable[Node] | None = None
) -> tuple[Node, ...] | None:
    """One circle, starting at its smallest member; None if there is none. The same circle for
    the same content, whatever the order of the input."""
    within = set(needs if among is None else among)
    done: set[Node] = set()
    for start in sorted(within):
        if start in done:
            continue
        path = [start]
        place = {start: 0}
        branches = [iter(_below(needs, start, within))]
        while path:
            step = next(branches[-1], None)
            if step is None:
                branches.pop()
                done.add(path[-1])
                del place[path.pop()]
            elif step in place:
                return _from_smallest(path[place[step] :])
            elif step not in done:
                place[step] = len(path)
                path.append(step)
                branches.append(iter(_below(needs, step, within)))
    return None


def closure(needs: Mapping[Ref, Collection[Ref]], start: Iterable[Ref]) -> frozenset[Ref]:
    """Everything that `start` needs, directly or not, with `start` itself."""
    found = set(start)
    todo = list(found)
    while todo:
        for need in needs.get(todo.pop(), ()):
            if need not in found:
                found.add(need)
                todo.append(need)
    return frozenset(found)


def _below(
    needs: Mapping[Node, Collection[Node]], node: Node, within: Collection[Node]
) -> list[Node]:
    return sorted(need for need in needs.get(node, ()) if need in within)


def _from_smallest(path: list[Node]) -> tuple[Node, ...]:
    first = path.index(min(path))
    return (*path[first:], *path[:first])
