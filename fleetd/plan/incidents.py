"""
What has failed, once each, at its cause, with what it affects. Pure.

A thing is in trouble when it served and does not any more, is in a state that the catalogue calls
failed, could not be looked at for a while, or goes on only when a person does something. What waits
for another thing is not in trouble: it is affected by that one's. What fails together for one
reason (a rack without power, a far side that does not answer) is one incident, of what they share.

The one rule: it costs what is in trouble and what that affects, never the fleet, and not more than
`SCAN_MAX` and `REACH_MAX` of those. `Troubles` keeps who is in trouble, one condition at a time.
"""

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetd.plan import words
from fleetd.plan.view import View
from fleetd.vocabulary import Condition, Failed, Hold, HoldReason, Plan, Truth
from topology import blind
from topology.resource import Backend, Ref, Resource

SCAN_MAX = 4_000
"""Things in trouble that are looked at, those that fell first: about 20 ms."""
REACH_MAX = 4_000
"""Things affected that are walked over, all incidents together."""
AFFECTED_MAX = 100
"""Things affected that are named, of one incident."""
ITEMS_MAX = 500
SERVER, CLOUD, REGION = "server", "cloud", "region"
_SUMS = frozenset({CLOUD, REGION})
"""These only tell how their parts are."""
_PERSON = frozenset({HoldReason.OVERDUE, HoldReason.FAILED, HoldReason.STUCK})
"""Holds that end only when somebody finds out what is wrong. Approvals and pauses are meant."""
_LEVELS = ("zone", "rack")
_MUTE = frozenset({blind.NO_ANSWER, blind.NOT_TRUSTED, blind.NOT_AN_API_SERVER})
"""One thing that cannot be looked at for one of these is enough to know who is silent."""
RECOVERY = timedelta(minutes=5)
"""So long a thing may take to come back after what it stands on did."""

FailedReasons = Callable[[str], frozenset[str]]
"""Of a kind: the reasons that the catalogue calls failed."""


def _nothing(_kind: str) -> frozenset[str]:
    return frozenset()


class Severity(enum.StrEnum):
    CRITICAL = "critical"
    """A cloud that served is not Ready because of it."""
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    ref: Ref
    """The thing that failed, or what those that failed share: `rack/a3`, `garden/eu-1`."""
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    id: str
    """The same for as long as the cause is the same, also after a restart."""
    region: str
    severity: Severity
    cause: Cause
    affected: tuple[Ref, ...]
    """Not Ready because of it; the first so many, those nearest to the cause first."""
    total: int
    """How many are affected; if `more`, at least so many."""
    more: bool
    advice: str
    """What a person should do, where somebody wrote that down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The worst first, then the oldest."""

    items: tuple[Incident, ...] = ()
    left: int = 0
    """Things in trouble, or incidents, that are too many to be told one by one."""


class Troubles:
    """Things that may be in trouble, kept up to date one condition at a time. What time or a plan
    decides is decided when somebody asks."""

    def __init__(self, failed: FailedReasons = _nothing) -> None:
        self.failed = failed
        """Of the catalogue in force."""
        self._found: dict[Ref, None] = {}
        """In the order in which they fell."""
        self._held: dict[str, tuple[Hold, ...]] = {}
        self._stepped: dict[str, frozenset[Ref]] = {}
        self.version = 0
        """Moves when an answer may be another."""

    def __iter__(self) -> Iterator[Ref]:
        """Each once; first those of whom a plan says that a person is needed."""
        held = self.held()
        yield from held
        yield from (ref for ref in self._found if ref not in held)

    def held(self) -> dict[Ref, Hold]:
        """What goes on only when a person does something."""
        return {hold.ref: hold for holds in self._held.values() for hold in holds}

    def stepped(self, want: Resource) -> bool:
        """Whether the newest plan does something about it."""
        return want.ref in self._stepped.get(want.region, ())

    def judged(self, ref: Ref, old: Condition | None, new: Condition) -> None:
        # What is as it was before a restart is news to us.
        self.version += old is not new
        if self._may_be(ref, new):
            self._found.setdefault(ref)
        else:
            self._found.pop(ref, None)

    def planned(self, plan: Plan) -> None:
        """What a plan says, and that steps came and went, are news."""
        self.version += 1
        held = tuple(hold for hold in plan.holds if hold.reason in _PERSON)
        self._held[plan.region] = held
        self._stepped[plan.region] = frozenset(step.ref for step in plan.steps)

    def reset(self, ready: Mapping[Ref, Condition], known: Iterable[Ref]) -> None:
        """There are other documents or another catalogue: what was judged stays."""
        self.version += 1
        self._held.clear()
        self._stepped.clear()
        self._found = {ref: None for ref in known if ref in ready and self._may_be(ref, ready[ref])}

    def forget(self, ref: Ref) -> None:
        self.version += 1
        self._found.pop(ref, None)

    def _may_be(self, ref: Ref, condition: Condition) -> bool:
        if condition.truth is Truth.TRUE or ref.kind in _SUMS:
            return False
        if condition.truth is Truth.UNKNOWN:
            return True
        return condition.served or condition.reason in self.failed(ref.kind)


def incidents(view: View, troubles: Troubles, *, now: datetime, grace: timedelta) -> Report:
    """`grace`: how long a thing may not be seen before that is a failure."""
    return _Hunt(view, troubles, now, grace).report()


@dataclass(frozen=True, slots=True)
class _Group:
    """Things that failed for one reason."""

    ref: Ref
    region: str
    roots: tuple[Ref, ...]
    message: str = ""
    """Empty: what is told of the first."""
    unseen: bool = False
    """They could not be looked at, and it is about who did not answer."""


class _Hunt:
    def __init__(self, view: View, troubles: Troubles, now: datetime, grace: timedelta) -> None:
        self._view = view
        self._troubles = troubles
        self._resources = view.topology.resources
        self._now = now
        self._grace = grace
        self._holds = troubles.held()
        self._left_to_reach = REACH_MAX

    def report(self) -> Report:
        roots: list[Ref] = []
        scanned = 0
        for ref in self._troubles:
            if scanned == SCAN_MAX:
                break
            scanned += 1
            if self._in_trouble(ref) and not self._explained(ref):
                roots.append(ref)
        groups = list(self._groups(roots))
        found = [self._incident(group) for group in groups[:ITEMS_MAX]]
        found.sort(key=lambda one: (one.severity, one.cause.since, one.cause.ref))
        left = sum(1 for _ in self._troubles) - scanned + max(len(groups) - ITEMS_MAX, 0)
        return Report(items=tuple(found), left=left)

    def _in_trouble(self, ref: Ref) -> bool:
        want, condition = self._resources.get(ref), self._view.ready.get(ref)
        if want is None or condition is None or condition.generation != want.generation:
            return False
        if ref in self._holds:
            return True
        if want.absent or ref not in self._view.seen:
            return False
        if condition.truth is not Truth.FALSE and not self._blind(ref):
            return False  # it has its time of grace
        if not condition.served or self._blind(ref):
            return self._now - condition.since >= self._grace and not self._at_work(want, condition)
        return not self._at_work(want, condition)

    def _blind(self, ref: Ref) -> bool:
        seen = self._view.seen.get(ref)
        return seen is not None and seen.facts is None

    def _at_work(self, want: Resource, condition: Condition) -> bool:
        """Whether fleetd is mending it. If that takes too long, the plan says so."""
        attempt = self._view.attempts.get(want.ref)
        if attempt is None:
            return self._troubles.stepped(want)
        if isinstance(attempt.ending, Failed):
            return False
        return attempt.ending is None or attempt.at >= condition.since - self._grace

    def _explained(self, ref: Ref) -> bool:
        """Whether something that it stands on is not Ready, or was not until just now. That one
        is in trouble, or will be when its time of grace is over, or is coming up."""
        fell = self._view.ready[ref].since
        below = (*self._resources[ref].needs, *self._view.topology.carriers.get(ref, ()))
        return any(
            (not self._ready(one) or self._came_back(one, fell)) and not self._together(ref, one)
            for one in below
        )

    def _together(self, ref: Ref, other: Ref) -> bool:
        """Whether neither can be looked at, and for the same far side: then that is the cause, and
        the one that is noticed later does not hide it for its own time of grace."""
        unseen = self._blind(ref) and self._blind(other)
        return unseen and self._silent(ref) == self._silent(other) != ""

    def _came_back(self, ref: Ref, after: datetime) -> bool:
        condition = self._view.ready.get(ref)
        return condition is not None and condition.since > max(after, self._now - RECOVERY)

    def _ready(self, ref: Ref) -> bool:
        want, condition = self._resources.get(ref), self._view.ready.get(ref)
        return want is None or (
            condition is not None
            and ref in self._view.seen
            and condition.truth is Truth.TRUE
            and condition.generation == want.generation
        )

    # What failed together.

    def _groups(self, roots: Sequence[Ref]) -> Iterator[_Group]:
        unseen: dict[str, list[Ref]] = {}
        servers: list[Ref] = []
        for ref in roots:
            if self._blind(ref):
                unseen.setdefault(self._silent(ref), []).append(ref)
            elif ref.kind == SERVER:
                servers.append(ref)
            else:
                yield self._alone(ref)
        for backend, refs in unseen.items():
            side = self._far_side(backend)
            if side in refs:
                yield _Group(side, self._resources[side].region, tuple(refs), self._message(side))
            elif side in self._resources and not self._ready(side):
                continue  # it is an incident of its own, or will be
            elif len(refs) == 1 and not self._is_told(refs[0]):
                yield self._alone(refs[0])
            else:
                yield self._unseen(side, refs)
        yield from self._of_servers(servers)

    def _alone(self, ref: Ref) -> _Group:
        return _Group(ref, self._resources[ref].region, (ref,))

    def _is_told(self, ref: Ref) -> bool:
        """Whether this one look is enough to know who did not answer as it should."""
        seen = self._view.seen[ref]
        return bool(seen.silent or (self._resources[ref].backend and self._reason(ref) in _MUTE))

    def _far_side(self, backend: str) -> Ref:
        """What stands behind it, if that is a thing of the documents; of a cluster its API."""
        side = Backend.of(backend)
        api = Ref("access", side.name)
        if side.kind == "cluster" and api in self._resources:
            return api
        known = [
            ref
            for ref in self._view.topology.kinds.get(side.kind, ())
            if ref.name == side.name or self._resources[ref].region == side.name
        ]
        return known[0] if len(known) == 1 else Ref(side.kind or "driver", side.name)

    def _silent(self, ref: Ref) -> str:
        """The backend that did not answer when it was looked at."""
        return self._view.seen[ref].silent or self._resources[ref].backend

    def _unseen(self, side: Ref, refs: list[Ref]) -> _Group:
        """Things cannot be looked at, and one far side is asked for all of them."""
        told = self._view.seen[refs[0]].error
        things = "1 thing" if len(refs) == 1 else f"{len(refs)} things"
        message = f"{things} cannot be looked at, {words.names(refs)}"
        message += f": {told}" if told else ""
        return _Group(side, self._resources[refs[0]].region, tuple(refs), message, unseen=True)

    def _of_servers(self, servers: list[Ref]) -> Iterator[_Group]:
        """A zone or a rack in which no server is Ready; a rack, else a pool, in which several are
        in the same state."""
        left = dict.fromkeys(servers)
        for level in _LEVELS:
            for domain, refs in self._by_domain(left, level).items():
                members = self._view.topology.domains[domain]
                there = sum(one.kind == SERVER for one in members)
                if len(refs) > 1 and (there == len(refs) or level == "rack"):
                    yield self._domain(domain, refs, there)
                    for ref in refs:
                        del left[ref]
        pools: dict[tuple[Ref | None, str], list[Ref]] = {}
        for ref in left:
            pools.setdefault((self._resources[ref].owner, self._reason(ref)), []).append(ref)
        for (pool, reason), refs in pools.items():
            if len(refs) > 1 and pool is not None:
                message = f"{len(refs)} of its servers are {reason}: {words.names(refs)}"
                yield _Group(pool, self._resources[refs[0]].region, tuple(refs), message)
            else:
                yield from map(self._alone, refs)

    def _by_domain(self, servers: Iterable[Ref], level: str) -> dict[str, list[Ref]]:
        found: dict[str, list[Ref]] = {}
        for ref in servers:
            for domain in self._resources[ref].domains:
                if domain.startswith(f"{level}:"):
                    found.setdefault(domain, []).append(ref)
        return found

    def _domain(self, domain: str, refs: list[Ref], there: int) -> _Group:
        level, _, name = domain.partition(":")
        bad = f"{len(refs)} of its {there} servers" if there > len(refs) else "none of its servers"
        verb = "are not" if there > len(refs) else "is"
        message = f"{bad} {verb} Ready ({self._reason(refs[0])}); power or network?"
        cause = Ref(level, name.rpartition("/")[2])
        return _Group(cause, self._resources[refs[0]].region, tuple(refs), message)

    def _reason(self, ref: Ref) -> str:
        hold, condition = self._holds.get(ref), self._view.ready[ref]
        return hold.reason.value if hold and condition.truth is Truth.TRUE else condition.reason

    # What is told.

    def _incident(self, group: _Group) -> Incident:
        first = min(group.roots, key=lambda ref: (self._view.ready[ref].since, ref))
        reached, more = self._reach(group)
        judged = self._view.ready
        hit = any(ref.kind == CLOUD and ref in judged and judged[ref].served for ref in reached)
        mark = f"{group.region} {group.ref}"
        return Incident(
            id=hashlib.blake2b(mark.encode(), digest_size=6).hexdigest(),
            region=group.region,
            severity=Severity.CRITICAL if hit else Severity.WARNING,
            cause=Cause(
                ref=group.ref,
                reason=self._reason(first),
                message=group.message or self._message(first),
                since=self._since(first),
            ),
            affected=tuple(reached[:AFFECTED_MAX]),
            total=len(reached),
            more=more,
            advice=self._advice(group, first),
        )

    def _message(self, ref: Ref) -> str:
        hold, condition = self._holds.get(ref), self._view.ready[ref]
        return hold.message if hold and condition.truth is Truth.TRUE else condition.message

    def _since(self, ref: Ref) -> datetime:
        """Of what is Ready and cannot be changed: when that was tried last."""
        condition, attempt = self._view.ready[ref], self._view.attempts.get(ref)
        if condition.truth is not Truth.TRUE:
            return condition.since
        return attempt.at if attempt is not None else condition.since

    def _advice(self, group: _Group, first: Ref) -> str:
        if group.unseen:
            side = self._silent(first)
            mute = self._reason(first) in {*_MUTE, blind.NOT_OBSERVED}
            told = f"See whether {side} is up, and whether the machine of fleetd reaches it."
            return told if mute else ""
        want = self._resources[group.ref if group.ref in group.roots else first]
        limit = want.limits.get(self._reason(want.ref)) or want.limits.get("*")
        return words.filled(limit.action, want) if limit is not None else ""

    def _reach(self, group: _Group) -> tuple[list[Ref], bool]:
        """What is not Ready because of it, the nearest first, and whether there may be more."""
        own = [ref for ref in group.roots if ref != group.ref]
        found: dict[Ref, None] = dict.fromkeys(own)
        passed = {group.ref, *group.roots}
        front: list[Ref] = [*group.roots]
        while front:
            ahead: list[Ref] = []
            for ref in front:
                for other in self._above(ref):
                    if other in passed:
                        continue
                    if not self._left_to_reach:
                        return [*found], True
                    self._left_to_reach -= 1
                    passed.add(other)
                    if self._hit(other):
                        found[other] = None
                        ahead.append(other)
            front = ahead
        region = Ref(REGION, group.region)
        if region not in found and region in self._resources and self._hit(region):
            found[region] = None
        return [*found], False

    def _above(self, ref: Ref) -> Iterator[Ref]:
        topology = self._view.topology
        yield from topology.needed_by.get(ref, ())
        yield from topology.carries.get(ref, ())

    def _hit(self, ref: Ref) -> bool:
        """Not Ready, whether it failed or waits to come up."""
        want: Resource | None = self._resources.get(ref)
        return want is not None and not want.absent and not self._ready(ref)
