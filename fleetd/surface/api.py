"""
What `/api/v1` answers to readers: the panel as data, page by page. Knows nothing of HTTP.

A list is walked in the topology's own order and never further than `SCAN_MAX` resources in one
request, so that a rare filter over a large fleet costs several small requests instead of one that
stops the loop. A page may therefore be short or empty and still have a `continue`.
"""

import asyncio
import difflib
import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from fleetd.plan import policy
from fleetd.plan.policy import Pause
from fleetd.surface import (
    answers,
    asking,
    etags,
    finder,
    ledger,
    picture,
    problems,
    shapes,
    trouble,
)
from fleetd.surface.panel import Panel, Tally
from fleetd.surface.routes import Asked
from fleetd.vocabulary import Condition, Truth
from topology.resource import Ref, Resource, Topology

SCAN_MAX = 20_000
"""About 20 ms of work, where few are shown."""
PART = 50
"""Resources after which others have their turn: half a millisecond. What the engine does for one
change takes some fifteen turns, and each would wait for a part of every list."""
EVENTS_SHOWN = 20
NEIGHBOURS_MAX = 200
"""Things beside one, shown with their states; those that are not Ready come first."""
GUESSES_MAX = 2000
"""Names that are compared with a misspelt one: about 40 ms."""


async def regions(ask: Asked) -> answers.Regions:
    panel = ask.panel
    sums = _sums(panel)
    names = sorted(panel.topology().regions)
    return {"items": [_of_region(panel, name, sums) for name in names], "now": _now(panel)}


def _now(panel: Panel) -> str | None:
    """Ages are told against the daemon's own clock, which may run faster than life."""
    return shapes.moment(panel.now())


async def region(ask: Asked) -> answers.Region:
    _check_region(ask.panel, ask.path["name"])
    return _of_region(ask.panel, ask.path["name"], _sums(ask.panel))


def _check_region(panel: Panel, name: str | None) -> None:
    if name is not None and name not in panel.topology().regions:
        raise problems.Refused("not-found", f"no document names a region {name[:80]}")


class _Sums(NamedTuple):
    """Counts of all regions, from one walk."""

    tally: Tally
    resources: Mapping[str, Mapping[Truth, int]]
    held: Mapping[str, Mapping[str, int]]


def _sums(panel: Panel) -> _Sums:
    tally = panel.tally()
    resources: dict[str, dict[Truth, int]] = {}
    held: dict[str, dict[str, int]] = {}
    for slot, count in tally.resources.items():
        of_region = resources.setdefault(slot.region, dict.fromkeys(Truth, 0))
        of_region[slot.truth] += count
    for key, count in tally.held.items():
        if count:
            held.setdefault(key.region, {})[key.reason.value] = count
    return _Sums(tally, resources, held)


def _of_region(panel: Panel, name: str, sums: _Sums) -> answers.Region:
    tally = sums.tally
    counts = sums.resources.get(name, dict.fromkeys(Truth, 0))
    held = sums.held.get(name, {})
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
        "pauses": [shapes.pause(one) for one in _pauses(panel, name)],
        "conditions": [shapes.condition(one) for one in _conditions(panel, Ref("region", name))],
    }


def _pauses(panel: Panel, region: str) -> list[Pause]:
    return policy.touching(panel.pauses(), region, panel.topology().resources)


def _conditions(panel: Panel, ref: Ref) -> list[Condition]:
    """Ready first, then what its driver says."""
    summary = panel.ready(ref)
    others = [one for one in panel.conditions(ref) if one.type != "Ready"]
    return [summary, *others] if summary else others


async def resources(ask: Asked) -> answers.Resources:
    panel, query = ask.panel, ask.as_(asking.Resources)
    wanted = Truth(query.ready.capitalize()) if query.ready is not None else None
    whole = panel.topology()
    name, among = _among(whole, query)
    start = _resume(query.continue_, name)
    items: list[answers.Resource] = []
    at = start
    for found in itertools.islice(among, start, start + SCAN_MAX):
        at += 1
        if at % PART == 0:
            await asyncio.sleep(0)
        one = whole.resources[found]
        judged = panel.ready(found)
        truth = judged.truth if judged else Truth.UNKNOWN
        reason = judged.reason if judged else "NotJudged"
        if (
            (wanted is None or truth is wanted)
            and query.reason in {None, reason}
            and _matches(one, query)
        ):
            items.append(_line(ask, one))
            if len(items) == query.limit:
                break
    token = f"{name}-{at}" if at < len(among) else None
    return {"items": items, "continue": token, "now": _now(panel)}


def _line(ask: Asked, one: Resource) -> answers.Resource:
    planned = ask.kept.said(one.region).get(one.ref)
    panel = ask.panel
    rests = policy.pausing(panel.pauses(), one.ref, one.region)
    return shapes.resource(one, panel.ready(one.ref), panel.seen(one.ref), planned, rests)


def _among(whole: Topology, query: asking.Resources) -> tuple[str, Collection[Ref]]:
    """The shortest list that has all that is asked for, and a name for it: a `continue` counts
    places in one list, and means nothing in another."""
    owner = whole.resources.get(ref(query.owner)) if query.owner else None
    region = query.region or (owner.region if owner is not None else None)
    if region is not None:
        return _name(whole, f"region {region}"), whole.regions.get(region, ())
    if query.kind is not None:
        kind = query.kind.lower()
        return _name(whole, f"kind {kind}"), whole.kinds.get(kind, ())
    return _name(whole, ""), whole.resources


def _name(whole: Topology, which: str) -> str:
    return etags.of_bytes(f"{whole.digest} {which}".encode())[:16]


async def resource(ask: Asked) -> answers.Thing:
    panel, ref = ask.panel, Ref(ask.path["kind"].lower(), ask.path["name"])
    topology = panel.topology()
    want = topology.resources.get(ref) or panel.orphans().get(ref)
    if want is None:
        raise _unknown(panel, ref)
    seen = panel.seen(ref)
    newest = await panel.events(ref=ref, newest=True, limit=EVENTS_SHOWN)
    needed_by = topology.needed_by.get(ref, ())
    return {
        **_line(ask, want),
        "now": _now(panel),
        "orphan": ref not in topology.resources,
        "retired": want.absent,
        "why": shapes.why(panel.why(ref)),
        "desired": want.spec,
        "observed": shapes.observation(seen),
        "conditions": [shapes.condition(one) for one in _conditions(panel, ref)],
        **shapes.concerning(panel.plan(want.region), ref),
        "attempt": shapes.attempt(panel.attempt(ref)),
        "events": [shapes.event(one) for one in reversed(newest)],
        "needs": shapes.refs(want.needs),
        "neededBy": shapes.refs(needed_by),
        "neighbours": [
            *_neighbours(ask, "needs", ref, want.needs),
            *_neighbours(ask, "neededBy", ref, needed_by),
        ],
        "limits": shapes.limits(want),
        "domains": list(want.domains),
    }


def _unknown(panel: Panel, ref: Ref) -> problems.Refused:
    """Says what may have been meant."""
    resources = panel.topology().resources
    names = (one.name for one in resources if one.kind == ref.kind)
    known = list(itertools.islice(names, GUESSES_MAX))
    near = difflib.get_close_matches(ref.name[:100], known, n=3, cutoff=0.7)
    close = [f"{ref.kind}/{name}" for name in near]
    if not known:
        kinds = sorted({slot.kind for slot in panel.tally().resources})
        alike = difflib.get_close_matches(ref.kind[:100], kinds, n=3)
        close = [f"{kind}/{ref.name}" for kind in alike if Ref(kind, ref.name) in resources]
    guess = f"; did you mean {' or '.join(close)}?" if close else ""
    return problems.Refused(
        "not-found", f"no document leads to {str(ref)[:300]}{guess}", didYouMean=close
    )


def _neighbours(
    ask: Asked, relation: Literal["needs", "neededBy"], ref: Ref, others: Iterable[Ref]
) -> list[answers.Neighbour]:
    panel = ask.panel

    def bad_first(other: Ref) -> tuple[bool, Ref]:
        judged = panel.ready(other)
        return judged is not None and judged.truth is Truth.TRUE, other

    return [
        {
            "relation": relation,
            "ref": str(other),
            "why": (panel.because(ref, other) if relation == "needs" else panel.because(other, ref))
            or None,
            "ready": shapes.ready(panel.ready(other)),
            "state": _doing(ask, other),
        }
        for other in sorted(others, key=bad_first)[:NEIGHBOURS_MAX]
    ]


def _doing(ask: Asked, ref: Ref) -> answers.Doing:
    known = ask.panel.topology().resources.get(ref)
    planned = ask.kept.said(known.region).get(ref) if known is not None else None
    return shapes.doing(ask.panel.ready(ref), planned)


async def kinds(ask: Asked) -> answers.Kinds:
    counts: dict[str, int] = {}
    for slot, count in ask.panel.tally().resources.items():
        counts[slot.kind] = counts.get(slot.kind, 0) + count
    for ref in ask.panel.orphans():
        counts[ref.kind] = counts.get(ref.kind, 0) + 1
    found = sorted((kind, count) for kind, count in counts.items() if count)
    return {"items": [{"kind": kind, "resources": count} for kind, count in found]}


async def orphans(ask: Asked) -> answers.Orphans:
    panel, region = ask.panel, ask.as_(asking.InRegion).region
    retired = panel.retired()
    items: list[answers.Orphan] = [
        {**_line(ask, one), "retired": ref in retired}
        for ref, one in sorted(panel.orphans().items())
        if region in {None, one.region}
    ]
    return {"items": items, "now": _now(panel)}


async def credentials(ask: Asked) -> answers.Credentials:
    panel, region = ask.panel, ask.as_(asking.InRegion).region
    _check_region(panel, region)
    # In a thread: over a large fleet it takes far longer than the loop has.
    items = await asyncio.to_thread(
        ledger.entries,
        panel.topology(),
        panel.component,
        panel.seen,
        now=panel.now(),
        region=region,
    )
    return {"items": items, "now": _now(panel)}


async def incidents(ask: Asked) -> trouble.Incidents:
    panel, region = ask.panel, ask.as_(asking.InRegion).region
    _check_region(panel, region)
    return trouble.incidents(panel.incidents(), _now(panel), region)


async def capacity(ask: Asked) -> trouble.CapacityShape:
    panel, region = ask.panel, ask.as_(asking.InRegion).region
    _check_region(panel, region)
    return trouble.capacity(panel.capacity(), region)


async def topology(ask: Asked) -> answers.Topology:
    panel, region, whole = ask.panel, ask.path["region"], ask.panel.topology()
    _check_region(panel, region)
    resources = whole.resources
    said, pauses = shapes.said(panel.plan(region)), panel.pauses()
    return {
        "region": region,
        "digest": whole.digest,
        "now": _now(panel),
        "nodes": [
            _node(panel, resources[ref], said.get(ref), pauses) for ref in whole.regions[region]
        ],
        "edges": [
            {"source": str(edge.source), "kind": edge.kind.value, "target": str(edge.target)}
            for edge in await ask.kept.edges(region)
            if edge.target in resources
        ],
    }


def _node(
    panel: Panel, one: Resource, said: answers.Said | None, pauses: Mapping[str, Pause]
) -> answers.Node:
    judged, rests = panel.ready(one.ref), policy.pausing(pauses, one.ref, one.region)
    return {
        "id": str(one.ref),
        "kind": one.ref.kind,
        "name": one.ref.name,
        "rank": one.rank,
        "owner": str(one.owner) if one.owner else None,
        "ready": shapes.ready(judged),
        "current": judged is not None
        and judged.generation == one.generation
        and panel.seen(one.ref) is not None,
        "plan": said,
        "pause": shapes.pause(rests) if rests else None,
    }


async def picture_of(ask: Asked) -> answers.Picture:
    region = ask.path["region"]
    _check_region(ask.panel, region)
    return picture.draw(ask.panel, region, ask.kept.sketch(region), ask.kept.said(region))


async def search(ask: Asked) -> answers.Hits:
    query, resources = ask.as_(asking.Search), ask.panel.topology().resources
    found = finder.find(await ask.kept.index(), query.q, query.limit, resources)
    return {
        "items": [
            {
                "kind": one.kind,
                "name": one.name,
                "region": resources[one].region,
                "ready": shapes.ready(ask.panel.ready(one)),
                "state": _doing(ask, one),
            }
            for one in found
        ]
    }


async def plan(ask: Asked) -> answers.Plans:
    panel, query = ask.panel, ask.as_(asking.PlanOf)
    region, brief = query.region, query.brief == "true"
    _check_region(panel, region)
    known = sorted(panel.topology().regions)
    plans = [panel.plan(name) for name in known if region in {None, name}]
    return {
        "plans": [
            shapes.plan(one, _pauses(panel, one.region), brief=brief)
            for one in plans
            if one is not None
        ]
    }


async def events(ask: Asked) -> answers.Events:
    query = ask.as_(asking.Events)
    backwards, token = query.newest == "true", query.continue_
    found = await ask.panel.events(
        after=token if token and not backwards else query.after,
        before=token if token and backwards else None,
        ref=ref(query.for_) if query.for_ is not None else None,
        limit=query.limit,
        newest=backwards,
    )
    return {
        "items": [shapes.event(one) for one in found if ask.sees(one.event.ref)],
        "continue": str(found[-1].seq) if len(found) == query.limit else None,
        "now": _now(ask.panel),
    }


def ref(text: str) -> Ref:
    kind, _, name = text.partition("/")
    return Ref(kind.lower(), name)


async def documents(ask: Asked) -> answers.Documents:
    return {"items": list(ask.panel.documents())}


async def document(ask: Asked) -> answers.Plain:
    return find_document(ask.panel, ask.path["kind"], ask.path["name"])


def find_document(panel: Panel, kind: str, name: str) -> Mapping[str, Any]:
    for one in panel.documents():
        called: object = one.get("metadata", {}).get("name")
        if str(one.get("kind")).lower() == kind.lower() and called == name:
            return one
    raise problems.Refused("not-found", f"there is no {kind[:80]}/{name[:80]}")


async def whoami(ask: Asked) -> answers.Caller:
    caller = ask.caller
    return {
        "name": ask.who,
        "role": caller.role.word,
        "regions": None if caller.regions is None else sorted(caller.regions),
        "how": caller.how,
        "csrf": caller.csrf or None,
    }


def _resume(token: str | None, list_: str) -> int:
    if token is None:
        return 0
    name, _, place = token.rpartition("-")
    if name != list_:
        raise problems.Refused(
            "continue-expired",
            "new documents were accepted, or the filters are others; begin again",
        )
    return int(place)


def _matches(one: Resource, query: asking.Resources) -> bool:
    if query.kind is not None and query.kind.lower() != one.ref.kind:
        return False
    if query.region not in {None, one.region}:
        return False
    cluster = query.cluster
    if (
        cluster is not None
        and one.ref != ("cluster", cluster)
        and (f"cluster:{cluster}" not in (one.backend, *one.domains))
    ):
        return False
    if query.owner is not None and str(one.owner) != query.owner:
        return False
    return query.q.lower() in str(one.ref).lower()
