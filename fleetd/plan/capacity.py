"""
Servers, counted: how many there are, are free, are used, and are not to be had. Pure.

Counted by region, pool, class and zone, and the used ones by cluster as well. A reader must know
one rule: used is what somebody holds, whatever its state; free is what nobody holds and is Ready.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from fleetd.vocabulary import Condition, Observation, Truth
from topology.resource import Ref, Resource, Topology

SERVER, CLUSTER = "server", "cluster"
_MACHINE = re.compile(r"shoot--.+?--(.+)")
"""How Gardener names a machine: after project, shoot and worker."""
_HELD = frozenset({"active", "deploying", "wait call-back", "deploy hold"})
"""States of an Ironic node that somebody has."""


class Place(NamedTuple):
    region: str
    pool: str
    machine: str
    """Its class."""
    zone: str


@dataclass(slots=True)
class Count:
    total: int = 0
    free: int = 0
    used: int = 0

    @property
    def unavailable(self) -> int:
        """Neither used nor to be had now: coming up, in maintenance, broken, not seen."""
        return self.total - self.free - self.used


class Capacity:
    """Counts, kept up to date one server at a time."""

    def __init__(self) -> None:
        self.regions: dict[str, dict[Place, Count]] = {}
        self.clusters: Counter[tuple[str, str]] = Counter()
        """Servers in use by region and cluster; under an empty name those of whom it is not
        known."""
        self._names: dict[str, list[str]] = {}

    def reset(
        self,
        topology: Topology,
        ready: Mapping[Ref, Condition],
        seen: Mapping[Ref, Observation],
    ) -> None:
        """There are other documents: count all."""
        self.regions, self.clusters, self._names = {}, Counter(), {}
        for ref in topology.kinds.get(CLUSTER, ()):
            self._names.setdefault(topology.resources[ref].region, []).append(ref.name)
        for names in self._names.values():
            names.sort(key=len, reverse=True)  # `hv-a` and `hv` may both be there
        for ref in topology.kinds.get(SERVER, ()):
            self.add(topology.resources[ref], ready.get(ref), seen.get(ref), 1)

    def add(
        self, want: Resource, ready: Condition | None, seen: Observation | None, by: int
    ) -> None:
        """Count one more (1) or less (-1) that is as it was seen and judged."""
        spec = want.spec
        texts = (str(spec.get(name) or "") for name in ("pool", "class", "zone"))
        places = self.regions.setdefault(want.region, {})
        count = places.setdefault(Place(want.region, *texts), Count())
        count.total += by
        holder = _holder(seen)
        if holder is not None:
            count.used += by
            self.clusters[want.region, self._cluster(holder, want.region)] += by
        elif ready is not None and seen is not None and ready.truth is Truth.TRUE:
            count.free += by

    @property
    def places(self) -> dict[Place, Count]:
        """Those of all regions."""
        return {place: one for several in self.regions.values() for place, one in several.items()}

    def within(self, regions: Collection[str]) -> "Capacity":
        """That of some regions, as it is now."""
        found = Capacity()
        found.regions = {name: one for name, one in self.regions.items() if name in regions}
        found.clusters.update({key: n for key, n in self.clusters.items() if key[0] in regions})
        return found

    def _cluster(self, holder: str, region: str) -> str:
        machine = _MACHINE.fullmatch(holder)
        rest = machine[1] if machine else holder
        return next((one for one in self._names.get(region, ()) if rest.startswith(f"{one}-")), "")


def _holder(seen: Observation | None) -> str | None:
    """Who has it, by the name of a claim; empty if that is not told. None: nobody."""
    facts: Any = seen.facts if seen is not None else None
    if not isinstance(facts, Mapping):
        return None
    known = cast("Mapping[str, Any]", facts)
    spec: Any = known.get("spec")
    claim: Any = cast("Mapping[str, Any]", spec).get("serverClaimRef") if spec else None
    if claim:
        return str(cast("Mapping[str, Any]", claim).get("name") or "")
    if known.get("provision_state") not in _HELD:
        return None
    instance: Any = known.get("instance_info") or {}
    return str(cast("Mapping[str, Any]", instance).get("display_name") or "")
