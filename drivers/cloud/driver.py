"""
What is only the sum of others: serverpool, cloud, region.

Nothing is made here and no wire is used; what the daemon thinks of the members is all there is to
see. A pool counts the servers that feed it against the number the clusters ask for; a cloud counts
what it needs; a region everything in it but its servers, which count through their pools. The one
rule: a member that nobody has looked at is not Ready, but it has not failed either.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from fleetd import objects
from fleetd.tools import Tools
from fleetd.vocabulary import Condition, Done, Observation, Outcome, Step, Truth
from topology.resource import EdgeKind, Facts, Ref, Resource, Topology

UNSEEN = "ServersUnseen"
"""Reason of a pool of which so many cannot be looked at that they may make the difference."""
SHOWN = 5
"""Members named one by one; the rest is a number."""


class AggregateDriver:
    kind = "aggregate"

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self._feeders: tuple[str, dict[Ref, list[Ref]]] = ("", {})

    def check(self, want: Resource) -> Sequence[str]:
        if want.ref.kind == "serverpool":
            number = want.spec.get("wanted")
            if not isinstance(number, int) or number < 0:
                return ("the pool does not say how many servers its clusters ask for",)
        return ()

    async def observe(self, want: Resource) -> Observation:
        at = self.tools.clock.now()
        if want.absent:
            return Observation(ref=want.ref, at=at, facts={})
        topology = self.tools.fleet.topology()
        match want.ref.kind:
            case "serverpool":
                found = self._servers(want, self._fed(topology).get(want.ref, []))
            case "region":
                found = self._members(_of_region(topology, want.ref))
            case _:
                found = self._members(sorted(want.needs))
        return Observation(ref=want.ref, at=at, facts=found)

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        """Never anything: its parts are worked on, not the sum."""
        del want, seen
        return ()

    async def apply(self, step: Step) -> Outcome:
        del step
        return Done()

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        if not seen.facts:
            return ()
        verdict = self.tools.rules.reader(want.ref.kind).read(seen.facts, now=seen.at)
        made = objects.condition(want, verdict, seen)
        # Nobody knows whether any is missing.
        return (replace(made, truth=Truth.UNKNOWN) if made.reason == UNSEEN else made,)

    def _members(self, refs: Iterable[Ref]) -> Facts:
        count, failed, waiting = 0, list[str](), list[str]()
        for ref in refs:
            count += 1
            ready = self.tools.fleet.ready(ref)
            if self._has_failed(ref, ready):
                failed.append(str(ref))
            elif ready is None or ready.truth is not Truth.TRUE:
                waiting.append(str(ref))
        return {
            "members": {
                "count": count,
                "failed": len(failed),
                "notReady": len(waiting) + len(failed),
                "failing": failed[:SHOWN],
                "waiting": waiting[:SHOWN],
            }
        }

    def _servers(self, want: Resource, refs: Sequence[Ref]) -> Facts:
        healthy = failed = unseen = 0
        for ref in refs:
            ready = self.tools.fleet.ready(ref)
            healthy += ready is not None and ready.truth is Truth.TRUE
            failed += self._has_failed(ref, ready)
            unseen += ready is not None and ready.truth is Truth.UNKNOWN
        wanted = int(want.spec["wanted"])
        return {
            "servers": {
                "wanted": wanted,
                "healthy": healthy,
                "failed": failed,
                "working": len(refs) - healthy - failed - unseen,
                "unseen": unseen,
                "short": max(wanted - healthy, 0),
            }
        }

    def _has_failed(self, ref: Ref, ready: Condition | None) -> bool:
        """By the catalogue: its rules say which reasons are failures."""
        if ready is None or ready.truth is not Truth.FALSE:
            return False
        rules: Any = self.tools.rules.component(ref.kind).spec.health.failed
        return any(ready.reason == (rule.reason or "Failed") for rule in rules)

    def _fed(self, topology: Topology) -> dict[Ref, list[Ref]]:
        """Who feeds whom; made once per topology, for a fleet has a hundred thousand servers."""
        digest, known = self._feeders
        if digest != topology.digest:
            known = dict[Ref, list[Ref]]()
            for edge in topology.edges:
                if edge.kind is EdgeKind.FEEDS:
                    known.setdefault(edge.target, []).append(edge.source)
            self._feeders = (topology.digest, known)
        return known


def _of_region(topology: Topology, region: Ref) -> list[Ref]:
    refs = topology.regions.get(region.name, ())
    return [ref for ref in refs if ref.kind != "server" and ref != region]
