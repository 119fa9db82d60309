"""
What `/api/v1` answers: the panel as JSON, page by page. Knows nothing of HTTP but its parameters.

A list is walked in the topology's own order and never further than `SCAN_MAX` resources in one
request, so that a rare filter over a large fleet costs several small requests instead of one that
stops the loop. A page may therefore be short or empty and still have a `continue`.
"""

import difflib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from fleetd.surface import ledger, problems, shapes
from fleetd.surface.panel import Panel
from fleetd.surface.shapes import Shape
from fleetd.vocabulary import Truth
from topology.resource import Ref, Resource, Topology

Reader = Callable[[Mapping[str, str], Mapping[str, str]], Awaitable[Shape]]

LIMIT = 100
LIMIT_MAX = 1000
SCAN_MAX = 20_000
"""About 20 ms of work."""
EVENTS_SHOWN = 20
NEIGHBOURS_MAX = 200
"""Things beside one, shown with their states; those that are not Ready come first."""
GUESSES_MAX = 2000
"""Names that are compared with a misspelt one: about 40 ms."""


class Api:
    def __init__(self, panel: Panel) -> None:
        self._panel = panel

    def routes(self) -> Sequence[tuple[str, Reader]]:
        return (
            ("/regions", self._regions),
            ("/regions/{name}", self._region),
            ("/resources", self._resources),
            ("/resources/{kind}/{name}", self._resource),
            ("/topology/{region}", self._topology),
            ("/plan", self._plan),
            ("/events", self._events),
            ("/kinds", self._kinds),
            ("/orphans", self._orphans),
            ("/credentials", self._credentials),
            ("/documents", self._documents),
            ("/documents/{kind}/{name}", self._document),
        )

    async def _regions(self, _match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query)
        regions = sorted(self._panel.topology().regions)
        return {"items": [self._of_region(name) for name in regions], "now": self._now()}

    def _now(self) -> str | None:
        """Ages are told against the daemon's own clock, which may run faster than life."""
        return shapes.moment(self._panel.now())

    async def _region(self, match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query)
        name = match["name"]
        if name not in self._panel.topology().regions:
            raise problems.Refused("not-found", f"no document names a region {name}")
        return self._of_region(name)

    def _of_region(self, name: str) -> Shape:
        panel = self._panel
        tally = panel.tally()
        counts = dict.fromkeys(Truth, 0)
        for slot, count in tally.resources.items():
            if slot.region == name:
                counts[slot.truth] += count
        held = {key.reason.value: n for key, n in tally.held.items() if key.region == name and n}
        current = panel.plan(name)
        return {
            "name": name,
            "resources": {
                "total": sum(counts.values()),
                "ready": counts[Truth.TRUE],
                "notReady": counts[Truth.FALSE],
                "unknown": counts[Truth.UNKNOWN],
            },
            "plan": current.id if current else None,
            "steps": tally.planned.get(name, 0),
            "waits": tally.waiting.get(name, 0),
            "holds": dict(sorted(held.items())),
            "conditions": [shapes.condition(one) for one in self._conditions(Ref("region", name))],
        }

    def _conditions(self, ref: Ref) -> list[Any]:
        """Ready first, then what its driver says."""
        summary = self._panel.ready(ref)
        others = [one for one in self._panel.conditions(ref) if one.type != "Ready"]
        return [summary, *others] if summary else others

    async def _resources(self, _match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query, "kind", "region", "cluster", "ready", "reason", "q", "limit", "continue")
        wanted = _truth(query.get("ready"))
        limit = _number(query, "limit", LIMIT, 1, LIMIT_MAX)
        topology = self._panel.topology()
        start = _resume(query.get("continue"), topology)
        items: list[Shape] = []
        at = start
        rest = itertools.islice(topology.resources.values(), start, start + SCAN_MAX)
        for resource in rest:
            at += 1
            judged = self._panel.ready(resource.ref)
            truth = judged.truth if judged else Truth.UNKNOWN
            reason = judged.reason if judged else "NotJudged"
            if (
                (wanted is None or truth is wanted)
                and query.get("reason", reason) == reason
                and _matches(resource, query)
            ):
                seen = self._panel.seen(resource.ref)
                items.append(shapes.resource(resource, judged, seen))
                if len(items) == limit:
                    break
        more = at < len(topology.resources)
        token = f"{topology.digest[:16]}-{at}" if more else None
        return {"items": items, "continue": token, "now": self._now()}

    async def _resource(self, match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query)
        panel, ref = self._panel, Ref(match["kind"].lower(), match["name"])
        topology = panel.topology()
        want = topology.resources.get(ref) or panel.orphans().get(ref)
        if want is None:
            raise self._unknown(ref)
        seen = panel.seen(ref)
        newest = await panel.events(ref=ref, newest=True, limit=EVENTS_SHOWN)
        needed_by = topology.needed_by.get(ref, ())
        return {
            **shapes.resource(want, panel.ready(ref), seen),
            "now": self._now(),
            "orphan": ref not in topology.resources,
            "retired": want.absent,
            "why": shapes.why(panel.why(ref)),
            "desired": want.spec,
            "observed": shapes.observation(seen),
            "conditions": [shapes.condition(one) for one in self._conditions(ref)],
            **shapes.concerning(panel.plan(want.region), ref),
            "attempt": shapes.attempt(panel.attempt(ref)),
            "events": [shapes.event(one) for one in reversed(newest)],
            "needs": shapes.refs(want.needs),
            "neededBy": shapes.refs(needed_by),
            "neighbours": [
                *self._neighbours("needs", ref, want.needs),
                *self._neighbours("neededBy", ref, needed_by),
            ],
            "limits": shapes.limits(want.limits),
            "domains": list(want.domains),
        }

    def _unknown(self, ref: Ref) -> problems.Refused:
        """Says what may have been meant."""
        resources = self._panel.topology().resources
        names = (one.name for one in resources if one.kind == ref.kind)
        known = list(itertools.islice(names, GUESSES_MAX))
        near = difflib.get_close_matches(ref.name[:100], known, n=3, cutoff=0.7)
        close = [f"{ref.kind}/{name}" for name in near]
        if not known:
            kinds = sorted({slot.kind for slot in self._panel.tally().resources})
            alike = difflib.get_close_matches(ref.kind[:100], kinds, n=3)
            close = [f"{kind}/{ref.name}" for kind in alike if Ref(kind, ref.name) in resources]
        guess = f"; did you mean {' or '.join(close)}?" if close else ""
        return problems.Refused("not-found", f"no document leads to {ref}{guess}", didYouMean=close)

    def _neighbours(self, relation: str, ref: Ref, others: Iterable[Ref]) -> list[Shape]:
        panel = self._panel

        def bad_first(other: Ref) -> tuple[bool, Ref]:
            judged = panel.ready(other)
            return judged is not None and judged.truth is Truth.TRUE, other

        return [
            {
                "relation": relation,
                "ref": str(other),
                "why": (
                    panel.because(ref, other) if relation == "needs" else panel.because(other, ref)
                )
                or None,
                "ready": shapes.ready(panel.ready(other)),
            }
            for other in sorted(others, key=bad_first)[:NEIGHBOURS_MAX]
        ]

    async def _kinds(self, _match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query)
        counts: dict[str, int] = {}
        for slot, count in self._panel.tally().resources.items():
            counts[slot.kind] = counts.get(slot.kind, 0) + count
        for ref in self._panel.orphans():
            counts[ref.kind] = counts.get(ref.kind, 0) + 1
        found = sorted((kind, count) for kind, count in counts.items() if count)
        return {"items": [{"kind": kind, "resources": count} for kind, count in found]}

    async def _orphans(self, _match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query, "region")
        panel = self._panel
        retired = panel.retired()
        items = [
            shapes.resource(orphan, panel.ready(ref), panel.seen(ref)) | {"retired": ref in retired}
            for ref, orphan in sorted(panel.orphans().items())
            if query.get("region", orphan.region) == orphan.region
        ]
        return {"items": items, "now": self._now()}

    async def _credentials(self, _match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query, "region")
        panel = self._panel
        region = query.get("region")
        if region is not None and region not in panel.topology().regions:
            raise problems.Refused("not-found", f"no document names a region {region}")
        items = ledger.entries(
            panel.topology(),
            panel.component,
            panel.seen,
            now=panel.now(),
            region=region,
        )
        return {"items": items, "now": self._now()}

    async def _topology(self, match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query)
        region, topology = match["region"], self._panel.topology()
        members = topology.regions.get(region)
        if members is None:
            raise problems.Refused("not-found", f"no document names a region {region}")
        resources = topology.resources
        said = shapes.said(self._panel.plan(region))
        return {
            "region": region,
            "digest": topology.digest,
            "now": self._now(),
            "nodes": [self._node(resources[ref], said.get(ref)) for ref in members],
            "edges": [
                {"source": str(edge.source), "kind": edge.kind.value, "target": str(edge.target)}
                for edge in topology.edges
                if edge.source in resources and resources[edge.source].region == region
            ],
        }

    def _node(self, resource: Resource, said: Shape | None) -> Shape:
        """`current`: it was judged as it is asked for now, and since the daemon started."""
        judged = self._panel.ready(resource.ref)
        return {
            "id": str(resource.ref),
            "kind": resource.ref.kind,
            "name": resource.ref.name,
            "rank": resource.rank,
            "owner": str(resource.owner) if resource.owner else None,
            "ready": shapes.ready(judged),
            "current": judged is not None
            and judged.generation == resource.generation
            and self._panel.seen(resource.ref) is not None,
            "plan": said,
        }

    async def _plan(self, _match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query, "region")
        known = sorted(self._panel.topology().regions)
        if "region" in query and query["region"] not in known:
            raise problems.Refused("not-found", f"no document names a region {query['region']}")
        plans = [self._panel.plan(name) for name in known if query.get("region", name) == name]
        return {"plans": [shapes.plan(one) for one in plans if one is not None]}

    async def _events(self, _match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        """Oldest first; with `newest=true` from the end backwards."""
        _only(query, "for", "after", "limit", "continue", "newest")
        newest = query.get("newest", "false")
        if newest not in {"true", "false"}:
            raise problems.Refused("bad-parameter", "newest must be true or false")
        backwards = newest == "true"
        token = _number(query, "continue", 0, 0, 2**62)
        after = token if token and not backwards else _number(query, "after", 0, 0, 2**62)
        limit = _number(query, "limit", LIMIT, 1, LIMIT_MAX)
        found = await self._panel.events(
            after=after,
            before=token if token and backwards else None,
            ref=_ref(query["for"]) if "for" in query else None,
            limit=limit,
            newest=backwards,
        )
        return {
            "items": [shapes.event(one) for one in found],
            "continue": str(found[-1].seq) if len(found) == limit else None,
            "now": self._now(),
        }

    async def _documents(self, _match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query)
        return {"items": list(self._panel.documents())}

    async def _document(self, match: Mapping[str, str], query: Mapping[str, str]) -> Shape:
        _only(query)
        for document in self._panel.documents():
            name: object = document.get("metadata", {}).get("name")
            if str(document.get("kind")).lower() == match["kind"].lower() and name == match["name"]:
                return dict(document)
        raise problems.Refused("not-found", f"there is no {match['kind']}/{match['name']}")


def _only(query: Mapping[str, str], *known: str) -> None:
    for name in query:
        if name not in known:
            offered = f"; there are {', '.join(known)}" if known else ""
            raise problems.Refused("unknown-parameter", f"{name[:40]} is not a parameter{offered}")


def _number(query: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
        raise problems.Refused("bad-parameter", f"{name} must be a number from {low} to {high}")
    return int(text)


def _truth(text: str | None) -> Truth | None:
    if text is None:
        return None
    by_name = {truth.value.lower(): truth for truth in Truth}
    if text.lower() not in by_name:
        raise problems.Refused("bad-parameter", "ready must be true, false or unknown")
    return by_name[text.lower()]


def _ref(text: str) -> Ref:
    kind, slash, name = text.partition("/")
    if not slash or not kind or not name:
        raise problems.Refused("bad-parameter", "for must be KIND/NAME")
    return Ref(kind.lower(), name)


def _resume(token: str | None, topology: Topology) -> int:
    if token is None:
        return 0
    digest, _, place = token.rpartition("-")
    if not (place.isascii() and place.isdigit() and len(place) < 12):
        raise problems.Refused("bad-parameter", "continue must be what the last answer gave")
    if digest != topology.digest[:16]:
        raise problems.Refused("continue-expired", "new documents were accepted; begin again")
    return int(place)


def _matches(resource: Resource, query: Mapping[str, str]) -> bool:
    ref = resource.ref
    if query.get("kind", ref.kind).lower() != ref.kind:
        return False
    if query.get("region", resource.region) != resource.region:
        return False
    cluster = query.get("cluster")
    if (
        cluster is not None
        and ref != ("cluster", cluster)
        and (f"cluster:{cluster}" not in (resource.backend, *resource.domains))
    ):
        return False
    return query.get("q", "").lower() in str(ref).lower()
