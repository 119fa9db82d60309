"""
What should exist, compiled: resources, the edges between them, and a digest of it all.

Plain frozen data; validation happened before (`topology.load`, `topology.checks`), so nothing
here is checked twice. A reader must know one rule: an edge reads as a sentence, from left to
right. `cluster/hv needs serverpool/compute`, `server/r1-s01 feeds serverpool/compute`,
`cluster/st hosts cephcluster/st`.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, NamedTuple

Facts = Mapping[str, Any]


class Ref(NamedTuple):
    """The only way one thing names another. `kind` is lower case: server, serverpool, openbao."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Backend(NamedTuple):
    """A far side, read from how it is written: `garden:eu-1`, `metal:eu-1`, `cluster:hv`."""

    kind: str
    name: str

    @classmethod
    def of(cls, text: str) -> "Backend":
        """The only place that reads the spelling."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class EdgeKind(enum.StrEnum):
    """How one thing depends on another. Only `needs` gives order."""

    NEEDS = "needs"
    """Left is not worked on until right is Ready."""
    FEEDS = "feeds"
    """Left gives right something to work with (capacity, a key, a kubeconfig). Right may be
    worked on without it, but a fault on the left explains a fault on the right."""
    HOSTS = "hosts"
    """Right runs on left: when left is down, right is down. Read for blast radius."""


class Edge(NamedTuple):
    source: Ref
    kind: EdgeKind
    target: Ref

    def __str__(self) -> str:
        return f"{self.source} {self.kind} {self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How long a thing may stay in one state, and what a person should do after that."""

    within: timedelta
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One thing that should exist."""

    ref: Ref
    driver: str
    """Name of the driver that looks after it: gardener, ironcore, flux ..."""
    region: str
    spec: Facts
    generation: int
    """Fingerprint of `spec` and `driver`: moves whenever they move, and is the same for the same
    content on every machine. Not a counter; nothing may order by it."""
    needs: frozenset[Ref] = frozenset()
    backend: str = ""
    """Which far side is asked: `garden:eu-1`, `metal:eu-1`, `cluster:hv`. Limits and circuit
    breakers are per backend."""
    domains: tuple[str, ...] = ()
    """Failure domains it is in, as `level:name`: `rack:eu-1/r1`, `zone:eu-1/a`, `cluster:hv`."""
    limits: Mapping[str, Limit] = field(default_factory=dict[str, Limit])
    """By state (a condition's reason); the entry `*` is for every other state."""
    rank: int = 0
    """Length of the longest chain of needs below it. Lower ranks come up first."""
    owner: Ref | None = None
    """The document it was compiled from."""
    absent: bool = False
    """It should not exist any more: a person retired it. Its driver proposes how it goes, and it
    is Ready when it is gone."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """All of it. `resources` are in an order that respects `needs`; equal content, equal digest."""

    digest: str
    resources: Mapping[Ref, Resource]
    edges: Sequence[Edge]

    @cached_property
    def needed_by(self) -> Mapping[Ref, tuple[Ref, ...]]:
        """For each thing, those that need it: who must be planned again when it changes."""
        found: dict[Ref, list[Ref]] = {}
        for ref, resource in self.resources.items():
            for need in resource.needs:
                found.setdefault(need, []).append(ref)
        # In the order of the resources: that of a set would depend on the hash seed.
        return {ref: tuple(found[ref]) for ref in self.resources if ref in found}

    @cached_property
    def carriers(self) -> Mapping[Ref, tuple[Ref, ...]]:
        """For each thing, those that feed or host it: whose fault explains its own."""
        found: dict[Ref, list[Ref]] = {}
        for edge in self.edges:
            if edge.kind is not EdgeKind.NEEDS:
                found.setdefault(edge.target, []).append(edge.source)
        return {ref: tuple(sources) for ref, sources in found.items()}

    @cached_property
    def carries(self) -> Mapping[Ref, tuple[Ref, ...]]:
        """For each thing, those that it feeds or hosts."""
        found: dict[Ref, list[Ref]] = {}
        for edge in self.edges:
            if edge.kind is not EdgeKind.NEEDS:
                found.setdefault(edge.source, []).append(edge.target)
        return {ref: tuple(targets) for ref, targets in found.items()}

    @cached_property
    def domains(self) -> Mapping[str, tuple[Ref, ...]]:
        """The members of each failure domain, in order."""
        found: dict[str, list[Ref]] = {}
        for ref, resource in self.resources.items():
            for domain in resource.domains:
                found.setdefault(domain, []).append(ref)
        return {domain: tuple(refs) for domain, refs in found.items()}

    @cached_property
    def regions(self) -> Mapping[str, tuple[Ref, ...]]:
        """The resources of each region, in order."""
        found: dict[str, list[Ref]] = {}
        for ref, resource in self.resources.items():
            found.setdefault(resource.region, []).append(ref)
        return {region: tuple(refs) for region, refs in found.items()}

    @cached_property
    def kinds(self) -> Mapping[str, tuple[Ref, ...]]:
        """The resources of each kind, in order."""
        found: dict[str, list[Ref]] = {}
        for ref in self.resources:
            found.setdefault(ref.kind, []).append(ref)
        return {kind: tuple(refs) for kind, refs in found.items()}


EMPTY = Topology(digest="", resources={}, edges=())
