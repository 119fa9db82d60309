"""
A panel as somebody sees it who is limited to regions: nothing outside of them is there.

All reading goes through this, so that no list, count, guess or neighbour can tell what its caller
may not know. Made once for each set of regions and each topology, not for each request.
"""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, cast

from fleetd.plan.capacity import Capacity
from fleetd.plan.incidents import Incident, Report
from fleetd.plan.policy import Pause
from fleetd.plan.view import Attempt
from fleetd.plan.why import Answer
from fleetd.store.base import Recorded
from fleetd.surface.panel import BackendState, Figures, Panel, QueueState, Tally, Unready, Work
from fleetd.vocabulary import Condition, Observation, Plan
from topology.catalogue import Component
from topology.resource import Ref, Resource, Topology

ELSEWHERE = "something outside of your regions"
_NAMES = re.compile(r"(?<![\w/.-])([a-z][a-z0-9-]*)/([a-z0-9](?:[\w.-]*\w)?)")
KEPT = 64
"""Sets of regions whose topology is kept."""


def region_of(document: Mapping[str, Any]) -> str:
    """The region that a document belongs to; empty if it is about the whole fleet."""
    kind, meta, spec = (document.get(name) for name in ("kind", "metadata", "spec"))
    if str(kind).lower() == "region" and isinstance(meta, Mapping):
        return str(cast("Mapping[str, Any]", meta).get("name") or "")
    if isinstance(spec, Mapping):
        return str(cast("Mapping[str, Any]", spec).get("region") or "")
    return ""


@dataclass
class Views:
    """Makes panels for callers."""

    panel: Panel
    _kept: dict[frozenset[str], tuple[Topology, Topology]] = field(
        default_factory=dict[frozenset[str], tuple[Topology, Topology]]
    )

    def of(self, regions: frozenset[str] | None) -> Panel:
        if regions is None:
            return self.panel
        whole = self.panel.topology()
        known = self._kept.get(regions)
        if known is None or known[0] is not whole:
            self._kept.pop(regions, None)
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            known = self._kept[regions] = (whole, _within(whole, regions))
        return Narrow(self.panel, regions, known[1])


def _within(whole: Topology, regions: frozenset[str]) -> Topology:
    found = {ref: one for ref, one in whole.resources.items() if one.region in regions}
    resources = {ref: _cut(one, found) for ref, one in found.items()}
    edges = tuple(
        edge for edge in whole.edges if edge.source in resources and edge.target in resources
    )
    return Topology(digest=whole.digest, resources=resources, edges=edges)


def _cut(one: Resource, known: Container[Ref]) -> Resource:
    """A thing without what it needs elsewhere."""
    if all(need in known for need in one.needs):
        return one
    return replace(one, needs=frozenset(need for need in one.needs if need in known))


@dataclass(frozen=True, slots=True)
class Narrow:
    """Implements `Panel`."""

    whole: Panel
    regions: frozenset[str]
    inside: Topology

    def now(self) -> datetime:
        return self.whole.now()

    def topology(self) -> Topology:
        return self.inside

    def sees(self, ref: Ref) -> bool:
        return ref in self.inside.resources or ref in self.orphans()

    def ready(self, ref: Ref) -> Condition | None:
        return self.whole.ready(ref) if self.sees(ref) else None

    def conditions(self, ref: Ref) -> Sequence[Condition]:
        return self.whole.conditions(ref) if self.sees(ref) else ()

    def seen(self, ref: Ref) -> Observation | None:
        return self.whole.seen(ref) if self.sees(ref) else None

    def plan(self, region: str) -> Plan | None:
        return self.whole.plan(region) if region in self.regions else None

    def orphans(self) -> Mapping[Ref, Resource]:
        found = self.whole.orphans().items()
        return {
            ref: _cut(one, self.inside.resources)
            for ref, one in found
            if one.region in self.regions
        }

    def pauses(self) -> Mapping[str, Pause]:
        """Those that hold something here; a reason names nothing of elsewhere."""
        return {
            scope: replace(one, why=self._told(one.why))
            for scope, one in self.whole.pauses().items()
            if self._is_near(scope)
        }

    def _is_near(self, scope: str) -> bool:
        kind, slash, name = scope.partition("/")
        if slash:
            return self.sees(Ref(kind, name))
        what, _, name = scope.partition(":")
        return what != "region" or name in self.regions

    def retired(self) -> frozenset[Ref]:
        return self.whole.retired() & self.orphans().keys()

    def attempt(self, ref: Ref) -> Attempt | None:
        return self.whole.attempt(ref) if self.sees(ref) else None

    def component(self, kind: str) -> Component | None:
        return self.whole.component(kind)

    def why(self, ref: Ref) -> Answer:
        """The way to the cause ends where the regions end, and no sentence names what is beyond."""
        found = self.whole.why(ref)
        links = tuple(takewhile(lambda link: self.sees(link.ref), found.chain))
        chain = tuple(replace(link, text=self._told(link.text)) for link in links)
        cut = len(chain) < len(found.chain)
        last = chain[-1].ref if chain else ref
        return replace(
            found,
            chain=chain,
            cause=last if last != ref else None,
            advice="" if cut else self._told(found.advice),
            beside="" if cut else self._told(found.beside),
            also=() if cut else tuple(one for one in found.also if self.sees(one)),
        )

    def _told(self, text: str) -> str:
        resources, orphans = self.whole.topology().resources, self.whole.orphans()

        def hidden(found: re.Match[str]) -> str:
            ref = Ref(found[1], found[2])
            known = ref in resources or ref in orphans
            return ELSEWHERE if known and not self.sees(ref) else found[0]

        return _NAMES.sub(hidden, text)

    def incidents(self) -> Report:
        """What else is affected outside of the regions is not counted either."""
        report = self.whole.incidents()
        items = tuple(self._inside(one) for one in report.items if one.region in self.regions)
        return Report(items=items, left=report.left)

    def _inside(self, one: Incident) -> Incident:
        kept = tuple(ref for ref in one.affected if ref in self.inside.resources)
        return replace(
            one,
            cause=replace(one.cause, message=self._told(one.cause.message)),
            affected=kept,
            total=one.total - (len(one.affected) - len(kept)),
            advice=self._told(one.advice),
        )

    def capacity(self) -> Capacity:
        return self.whole.capacity().within(self.regions)

    def because(self, source: Ref, target: Ref) -> str:
        return self.whole.because(source, target)

    async def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        ref: Ref | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Recorded]:
        if ref is not None and not self.sees(ref):
            return ()
        return await self.whole.events(
            after=after, before=before, ref=ref, limit=limit, newest=newest
        )

    def documents(self) -> Sequence[Mapping[str, Any]]:
        return [one for one in self.whole.documents() if region_of(one) in self.regions]

    def unready(self) -> Sequence[Unready]:
        return self.whole.unready()

    def drivers(self) -> Sequence[str]:
        return self.whole.drivers()

    def tally(self) -> Tally:
        found = self.whole.tally()
        return Tally(
            resources={k: n for k, n in found.resources.items() if k.region in self.regions},
            held={k: n for k, n in found.held.items() if k.region in self.regions},
            waiting={k: n for k, n in found.waiting.items() if k in self.regions},
            planned={k: n for k, n in found.planned.items() if k in self.regions},
        )

    def marks(self) -> Mapping[str, int]:
        return {region: n for region, n in self.whole.marks().items() if region in self.regions}

    def figures(self, region: str) -> Figures:
        return self.whole.figures(region)

    def work(self) -> Work:
        return self.whole.work()

    def queue(self) -> QueueState:
        return self.whole.queue()

    def backends(self) -> Sequence[BackendState]:
        return self.whole.backends()
