"""
What readers would work out again and again, kept until it changes: sketches of regions, the index
of names, and what plans say of each thing.

Made of the whole fleet. Who is limited to regions uses the same, and is shown only what their own
panel has.
"""

import asyncio
from collections.abc import Mapping, Sequence

from fleetd.surface import answers, finder, picture, shapes
from fleetd.surface.finder import Index
from fleetd.surface.panel import Panel
from fleetd.surface.picture import Sketch
from fleetd.vocabulary import Plan
from topology.resource import Edge, Ref, Topology

_Said = Mapping[Ref, answers.Said]


class Kept:
    def __init__(self, whole: Panel) -> None:
        self._whole = whole
        self._digest = ""
        self._sketches: dict[str, Sketch] = {}
        self._index: Index | None = None
        self._edges: Mapping[str, Sequence[Edge]] | None = None
        self._said: dict[str, tuple[Plan | None, _Said]] = {}

    def sketch(self, region: str) -> Sketch:
        self._renew()
        found = self._sketches.get(region)
        if found is None:
            found = self._sketches[region] = picture.sketch(self._whole.topology(), region)
        return found

    def said(self, region: str) -> _Said:
        """What the current plan of a region says, by thing."""
        self._renew()
        plan = self._whole.plan(region)
        known = self._said.get(region)
        if known is None or known[0] is not plan:
            known = self._said[region] = (plan, shapes.said(plan))
        return known[1]

    async def index(self) -> Index:
        """In a thread where it must be made: at 100,000 things that takes a while."""
        self._renew()
        if self._index is None:
            made = await asyncio.to_thread(finder.index, self._whole.topology())
            self._renew()
            if made.digest != self._digest:
                return made
            self._index = made
        return self._index

    async def edges(self, region: str) -> Sequence[Edge]:
        """Those that begin in a region; sorted out in a thread, once."""
        self._renew()
        if self._edges is None:
            whole = self._whole.topology()
            made = await asyncio.to_thread(_by_region, whole)
            self._renew()
            if whole.digest != self._digest:
                return made.get(region, ())
            self._edges = made
        return self._edges.get(region, ())

    def _renew(self) -> None:
        digest = self._whole.topology().digest
        if digest != self._digest:
            self._digest = digest
            self._sketches = {}
            self._index = None
            self._edges = None
            self._said = {}


def _by_region(whole: Topology) -> dict[str, list[Edge]]:
    found: dict[str, list[Edge]] = {}
    for edge in whole.edges:
        source = whole.resources.get(edge.source)
        if source is not None:
            found.setdefault(source.region, []).append(edge)
    return found
