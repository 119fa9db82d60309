"""
A topology as numbered rows, made once per topology so that planning never walks it again.

Rows follow the topology's own order, which respects `needs`: everything a row needs has a lower
number. That is the one rule the rest of the planner builds on, so it is checked here.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from topology.resource import Ref, Resource, Topology

_LEVELS = ("rack", "zone", "pool", "role")
"""Levels of failure domains that have a budget."""

SERVER = "server"
CLUSTER = "cluster"


class Table:
    """After it is made, rows only leave it."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.resources: list[Resource] = list(topology.resources.values())
        self.refs: list[Ref] = [resource.ref for resource in self.resources]
        self.index: dict[Ref, int] = {ref: row for row, ref in enumerate(self.refs)}
        self.regions: dict[str, list[int]] = {}
        self.servers: dict[str, int] = {}
        """How many servers each region has."""
        self.needs: list[tuple[int, ...]] = []
        """Rows that each row needs, in order."""
        self.missing: dict[int, Ref] = {}
        """Rows that need something no document names, with the first such name."""
        self._dependents: dict[int, list[int]] = {}
        self.domains: list[tuple[str, ...]] = []
        """Of each row, those with a budget."""
        self.members: dict[str, int] = {}
        """How many rows each of these domains has."""
        self.gone: set[int] = set()
        """Rows that left; their numbers are not given again."""
        self._fill()
        self.near: dict[str, tuple[str, ...]] = self._near()
        """Regions whose state can change a plan of this one, itself first."""

    def dependents(self, row: int) -> Sequence[int]:
        """Rows that need this one, in order."""
        return self._dependents.get(row, ())

    def remove(self, ref: Ref, topology: Topology) -> list[int]:
        """Take one row out; `topology` is the same without it. Returns the rows that needed it.
        `near` stays: a region more in it costs a plan too many, never one too few."""
        row = self.index.pop(ref)
        resource = self.resources[row]
        self.topology = topology
        self.gone.add(row)
        rows = self.regions[resource.region]
        del rows[bisect_left(rows, row)]
        if ref.kind == SERVER:
            self.servers[resource.region] -= 1
        for domain in self.domains[row]:
            self.members[domain] -= 1
        for need in self.needs[row]:
            self._dependents[need].remove(row)
        dependents = self._dependents.pop(row, [])
        for dependent in dependents:
            fresh = topology.resources[self.refs[dependent]]
            self.resources[dependent] = fresh
            self.needs[dependent] = tuple(need for need in self.needs[dependent] if need != row)
            if ref in fresh.needs:
                self.missing[dependent] = min(ref, self.missing.get(dependent, ref))
        self.missing.pop(row, None)
        self.needs[row] = self.domains[row] = ()
        return dependents

    def _fill(self) -> None:
        # Thousands of servers share one set of needs and one tuple of domains.
        needs: dict[frozenset[Ref], tuple[tuple[int, ...], Ref | None]] = {}
        domains: dict[tuple[str, ...], tuple[str, ...]] = {}
        for row, resource in enumerate(self.resources):
            self.regions.setdefault(resource.region, []).append(row)
            if resource.ref.kind == SERVER:
                self.servers[resource.region] = self.servers.get(resource.region, 0) + 1
            found = needs.get(resource.needs)
            if found is None:
                found = needs[resource.needs] = self._rows(resource.needs)
            rows, missing = found
            if rows and rows[-1] >= row:
                raise ValueError(
                    f"{resource.ref} stands before {self.refs[rows[-1]]}, a need of it"
                )
            self.needs.append(rows)
            if missing is not None:
                self.missing[row] = missing
            for need in rows:
                self._dependents.setdefault(need, []).append(row)
            kept = domains.get(resource.domains)
            if kept is None:
                kept = domains[resource.domains] = tuple(
                    domain for domain in resource.domains if domain.split(":", 1)[0] in _LEVELS
                )
            self.domains.append(kept)
            for domain in kept:
                self.members[domain] = self.members.get(domain, 0) + 1

    def _rows(self, refs: Iterable[Ref]) -> tuple[tuple[int, ...], Ref | None]:
        known: list[int] = []
        missing: list[Ref] = []
        for ref in sorted(refs):
            row = self.index.get(ref)
            if row is None:
                missing.append(ref)
            else:
                known.append(row)
        return tuple(sorted(known)), missing[0] if missing else None

    def _near(self) -> dict[str, tuple[str, ...]]:
        """Followed through: a cause may lie several regions away."""
        direct: dict[str, set[str]] = {region: set() for region in self.regions}
        homes: dict[str, str] = {}
        for row, resource in enumerate(self.resources):
            region = resource.region
            for need in self.needs[row]:
                other = self.resources[need].region
                if other != region:
                    direct[region].add(other)
            for domain in self.domains[row]:
                other = homes.setdefault(domain, region)
                if other != region:
                    direct[region].add(other)
                    direct[other].add(region)
        return {region: _reach(region, direct) for region in direct}


def _reach(start: str, direct: dict[str, set[str]]) -> tuple[str, ...]:
    found: set[str] = set()
    todo = [start]
    while todo:
        region = todo.pop()
        for other in direct[region]:
            if other not in found and other != start:
                found.add(other)
                todo.append(other)
    return (start, *sorted(found))
