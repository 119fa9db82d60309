"""
What a driver is given when it is made: the clock, the ways out, and the rules to judge by.

A driver keeps nothing between calls but this; what far sides answered is kept by `polls`.
Everything in it works the same against the real world and the simulated one; which of the two it
is, only `fleetd.app` and `fleetd.sim` know.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from fleetd import errors
from fleetd.kube.clusters import Clusters
from fleetd.net import Ways
from fleetd.polls import Polls
from fleetd.reads import Reads
from fleetd.secrets import Secret
from fleetd.vocabulary import Clock, Condition, Driver, Observation
from topology import health
from topology.catalogue import Component
from topology.resource import Facts, Ref, Resource, Topology


class SecretReader(Protocol):
    """Reads what a document names, at the moment of use."""

    async def read(self, access: Facts, want: Resource) -> Secret:
        """`access` is `{file: …}`, `{env: …}`, `{openbao: {path, key}}` or `{secret: {…}}`; a
        relative file is relative to the document that `want` was compiled from. Raises
        SecretError, with what to do."""
        ...

    def provide(self, kind: str, reader: Callable[[Facts, Resource], Awaitable[Secret]]) -> None:
        """A driver that can read one kind of access says so: `openbao`."""
        ...


class SecretKeeper(SecretReader, Protocol):
    """The same for whoever takes documents; drivers do not."""

    def take(self, folders: Mapping[Ref, Path]) -> None:
        """Where each document in force lies."""
        ...


class Fleet(Protocol):
    """What the daemon knows and thinks of other things."""

    def topology(self) -> Topology:
        """What is worked on: what the documents name, and what was retired and is not gone yet.
        Counted in `Rules.reads` by whoever implements this."""
        ...

    def everything(self) -> Topology:
        """Also what no document names any more: it stays, and so must what it lives on (the way
        into its region, its rights in OpenBao). Counted likewise."""
        ...

    def ready(self, ref: Ref) -> Condition | None: ...


_Judged = tuple[int, int, health.Verdict]
"""Digest of what was seen, how many were wanted, and what came of it."""
JUDGED_MAX = 100_000
"""Verdicts that are remembered: one of each server of the largest fleet."""


class Rules:
    """The catalogue in force, as rules that judge. It changes when documents are taken."""

    def __init__(self) -> None:
        self._components: Mapping[str, Component] = {}
        self._readers: dict[str, health.Reader] = {}
        self._failed: dict[str, frozenset[str]] = {}
        self._judged: dict[Ref, _Judged] = {}
        self.reads = Reads()

    def take(self, catalogue: Mapping[str, Component]) -> None:
        self._components = catalogue
        self._readers.clear()
        self._failed.clear()
        self._judged.clear()

    def catalogue(self) -> Mapping[str, Component]:
        self.reads.note()
        return self._components

    def component(self, kind: str) -> Component:
        self.reads.note()
        return self._components[kind]

    def reader(self, kind: str) -> health.Reader:
        self.reads.note()
        found = self._readers.get(kind)
        if found is None:
            found = health.Reader(self._components[kind].spec.health)
            self._readers[kind] = found
        return found

    def verdict(self, ref: Ref, seen: Observation, wanted: int) -> health.Verdict:
        """By the rules of its kind. Nearly every look sees what the last one saw, and then, where
        no rule asks for the time, the verdict is the last one too. Of something seen."""
        reader = self.reader(ref.kind)
        digest = seen.digest if reader.timeless else 0
        old = self._judged.get(ref)
        if digest and old is not None and old[:2] == (digest, wanted):
            return old[2]
        facts: Facts = seen.facts or {}
        judged: Any = facts.get("objects", facts)
        found = reader.read(judged, now=seen.at, wanted=wanted)
        if digest:
            if len(self._judged) >= JUDGED_MAX:
                self._judged.clear()
            self._judged[ref] = digest, wanted, found
        return found

    def failed(self, kind: str) -> frozenset[str]:
        """The reasons of a kind that are failures. For incidents, from which no driver proposes."""
        found = self._failed.get(kind)
        if found is None:
            component = self._components.get(kind)
            rules = component.spec.health.failed if component is not None else ()
            found = self._failed[kind] = frozenset(rule.reason or "Failed" for rule in rules)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    clock: Clock
    clusters: Clusters
    net: Ways
    polls: Polls
    secrets: SecretReader
    rules: Rules
    fleet: Fleet


MakeDriver = Callable[[Tools], Driver]
"""A driver's module has `DRIVERS: Mapping[str, MakeDriver]`, by the name that a Resource's
`driver` has; one that serves a single name may have `DRIVER` instead."""


def unseen(want: Resource, at: datetime, cause: errors.FleetError) -> Observation:
    """A look that ended with `cause`: nothing was seen, for this reason, and it was he who did not
    answer."""
    return Observation(
        ref=want.ref,
        at=at,
        facts=None,
        error=str(cause),
        blind=cause.blind,
        silent=cause.silent,
    )
