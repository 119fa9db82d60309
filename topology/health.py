"""
How a thing is, read from what was seen of it: the rules of a `catalogue.Health`, applied.

Pure: an object and the time go in, a `Verdict` comes out. It knows no component and no API; all
it knows of either is in the catalogue. A reader must know one rule: what is not there proves
nothing. A missing value passes no test but `present: false`, so a half-written status is Unknown
or Progressing, never healthy by accident.

`Reader` is a `Health` made ready; keep one per component where many objects are judged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, cast

from topology import blind, healthpath
from topology.catalogue import Health, Rule, Test, fill
from topology.documents.base import parse_duration, show_duration
from topology.healthpath import MISSING

Object = Mapping[str, Any]


class State(StrEnum):
    HEALTHY = "healthy"
    PROGRESSING = "progressing"
    FAILED = "failed"
    UNKNOWN = "unknown"


WORST_FIRST = (State.FAILED, State.PROGRESSING, State.UNKNOWN, State.HEALTHY)
"""What is known to be bad says more than what is not known."""

ABSENT = "Absent"
DELETING = "Deleting"
UNRECOGNISED = "Unrecognised"
INCOMPLETE = "Incomplete"
OWN_REASONS = frozenset({ABSENT, DELETING, UNRECOGNISED, INCOMPLETE}) | blind.REASONS
"""Reasons that no rule gives."""

QUOTE_MAX = 200
SHOWN_MAX = 3
"""Objects named one by one in a message about many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    state: State
    reason: str
    message: str
    """In the rule's words, with the values found; where it has none, which test decided. Nothing
    is told of what is healthy unless the rule does."""


def read(
    health: Health, seen: Object | Sequence[Object], *, now: datetime, wanted: int = 0
) -> Verdict:
    """Judge one object, or all there are. To judge many times, keep a `Reader`."""
    return Reader(health).read(seen, now=now, wanted=wanted)


def reasons(health: Health) -> frozenset[str]:
    """Every reason a verdict by these rules can have."""
    given = {
        rule.reason or default.value.capitalize()
        for default, rules in _ordered(health)
        for rule in rules
    }
    return frozenset(given) | OWN_REASONS


def _ordered(health: Health) -> tuple[tuple[State, list[Rule]], ...]:
    return (
        (State.FAILED, health.failed),
        (State.PROGRESSING, health.progressing),
        (State.HEALTHY, health.healthy),
    )


class Reader:
    """Rules with their paths read. Raises `healthpath.BadPath` for rules that were not checked."""

    __slots__ = ("_failed", "_healthy", "_kubernetes", "_others", "timeless")

    def __init__(self, health: Health) -> None:
        self._kubernetes = health.source in ("kubernetes", "metal")
        self._failed, progressing, self._healthy = (
            tuple(_Rule.of(rule, state) for rule in rules) for state, rules in _ordered(health)
        )
        self._others = (*progressing, *self._healthy)
        self.timeless = not any(
            any(True for _ in _times(test))
            for rules in (health.failed, health.progressing, health.healthy)
            for rule in rules
            for test in rule.when
        )
        """Whether no rule asks what time it is."""

    def read(self, seen: Object | Sequence[Object], *, now: datetime, wanted: int = 0) -> Verdict:
        """`wanted` is how many objects there should be, where all there are is judged: three
        healthy hosts of four are not a healthy cluster."""
        if isinstance(seen, Mapping):
            return self._one(seen, now)
        if not seen:
            return Verdict(state=State.UNKNOWN, reason=ABSENT, message="there is none")
        verdict = self._several(seen, now)
        if len(seen) < wanted and verdict.state is State.HEALTHY:
            message = f"{len(seen)} of {wanted} are there; {verdict.message}"
            return Verdict(state=State.PROGRESSING, reason=INCOMPLETE, message=message)
        return verdict

    def _one(self, seen: Object, now: datetime) -> Verdict:
        if not seen:
            return Verdict(state=State.UNKNOWN, reason=ABSENT, message="there is none")
        for rule in self._failed:
            if rule.holds(seen, now):
                return rule.verdict(seen, now)
        if self._kubernetes and (since := _deletion(seen)) is not MISSING:
            return Verdict(
                state=State.PROGRESSING,
                reason=DELETING,
                message=f"it is being deleted since {_show(since)}",
            )
        for rule in self._others:
            if rule.holds(seen, now):
                return rule.verdict(seen, now)
        return Verdict(state=State.UNKNOWN, reason=UNRECOGNISED, message=self._why_not(seen, now))

    def _why_not(self, seen: Object, now: datetime) -> str:
        """What keeps it from being healthy, of each way to be so."""
        parts: list[str] = []
        for rule in self._healthy:
            parts.extend(test.why_not(seen) for test in rule.tests if not test.holds(seen, now))
        return "its state is none that the catalogue knows: " + ", ".join(dict.fromkeys(parts))

    def _several(self, seen: Sequence[Object], now: datetime) -> Verdict:
        by_state: dict[State, list[tuple[str, Verdict]]] = {}
        for member in seen:
            verdict = self._one(member, now)
            by_state.setdefault(verdict.state, []).append((_name(member), verdict))
        counts = [f"{len(by_state[s])} {s}" for s in WORST_FIRST if s in by_state]
        worst = next(state for state in WORST_FIRST if state in by_state)
        members = sorted(by_state[worst], key=lambda named: (named[0], named[1].reason))
        message = f"of {len(seen)}: {', '.join(counts)}"
        if worst is not State.HEALTHY:
            shown = [f"{name} ({verdict.message})" for name, verdict in members[:SHOWN_MAX]]
            more = len(members) - len(shown)
            message += f"; {worst}: {'; '.join(shown)}" + (f" and {more} more" if more else "")
        return Verdict(state=worst, reason=members[0][1].reason, message=message)


class _Rule(NamedTuple):
    state: State
    reason: str
    tests: tuple["_Test", ...]
    says: str
    quote: healthpath.Path | None

    @classmethod
    def of(cls, rule: Rule, state: State) -> "_Rule":
        return cls(
            state,
            rule.reason or state.value.capitalize(),
            tuple(_Test.of(test) for test in rule.when),
            rule.says or "",
            healthpath.parse(rule.quote) if rule.quote else None,
        )

    def holds(self, seen: Object, now: datetime) -> bool:
        for test in self.tests:  # noqa: SIM110 - twice as fast as all(), and this is the hot path
            if not test.holds(seen, now):
                return False
        return True

    def verdict(self, seen: Object, now: datetime) -> Verdict:
        if self.says:
            message = fill(self.says, lambda path: self._told(path, seen, now))
        elif self.state is State.HEALTHY:
            message = ""
        else:
            message = ", ".join(test.decided(seen, now) for test in self.tests)
        said = self._quoted(seen, now)
        message += f": {said}" if said else ""
        return Verdict(state=self.state, reason=self.reason, message=message)

    def _told(self, text: str, seen: Object, now: datetime) -> str:
        path = healthpath.parse(text)
        if not path.several:
            return _show(path.value(seen))
        names = [name for test in self._of(path) for name, _ in test.passing(seen, now)]
        more = len(names) - SHOWN_MAX
        return ", ".join(names[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")

    def _quoted(self, seen: Object, now: datetime) -> str:
        if self.quote is None:
            return ""
        if self.quote.several:
            _, below = self.quote.split()
            found = [
                below.value(one)
                for test in self._of(self.quote)
                for _, one in test.passing(seen, now)
            ]
            said = next(iter(found), MISSING)
        else:
            said = self.quote.value(seen)
        text = " ".join(said.split()) if isinstance(said, str) else ""
        return text if len(text) <= QUOTE_MAX else text[: QUOTE_MAX - 3] + "..."

    def _of(self, path: healthpath.Path) -> list["_Test"]:
        """The tests about members of the same list."""
        head = path.split()[0]
        return [one for one in self.tests if one.path.several and one.path.split()[0] == head]


Check = Callable[[object, Object, datetime], bool]


class _Test(NamedTuple):
    path: healthpath.Path
    checks: tuple[Check, ...]
    because: str

    @classmethod
    def of(cls, test: Test) -> "_Test":
        checks: list[Check] = []
        words: list[str] = []
        if test.in_:
            checks.append(_is_in(test.in_))
            words.append(f"not {_either(test.in_)}")
        if test.not_in:
            checks.append(_is_not_in(test.not_in))
            words.append(f"{_either(test.not_in)} or missing")
        if test.equals_path is not None:
            checks.append(_equals(healthpath.parse(test.equals_path)))
            words.append(f"not equal to {test.equals_path}")
        if test.differs_from is not None:
            checks.append(_differs(healthpath.parse(test.differs_from)))
            words.append(f"equal to {test.differs_from} or missing")
        if test.present is not None:
            checks.append(_is_present if test.present else _is_empty)
            words.append("missing" if test.present else "present")
        for check, told in _times(test):
            checks.append(check)
            words.append(told)
        if test.prefix is not None:
            checks.append(_starts(test.prefix))
            words.append(f"not text that starts with {test.prefix!r}")
        if test.suffix is not None:
            checks.append(_ends(test.suffix))
            words.append(f"not text that ends with {test.suffix!r}")
        return cls(healthpath.parse(test.path), tuple(checks), ", ".join(words))

    def holds(self, seen: Object, now: datetime) -> bool:
        checks = self.checks
        if self.path.several:
            return self.path.holds(seen, lambda value: all(ok(value, seen, now) for ok in checks))
        value = self.path.value(seen)
        for ok in checks:  # noqa: SIM110 - twice as fast as all(), and this is the hot path
            if not ok(value, seen, now):
                return False
        return True

    def decided(self, seen: Object, now: datetime) -> str:
        """The place and value that made it hold; of many, the first and how many there are."""
        if not self.path.several:
            return f"{self.path.text} is {_show(self.path.value(seen))}"
        passed = [
            (place, value)
            for place, value in self.path.found(seen)
            if all(ok(value, seen, now) for ok in self.checks)
        ]
        place, value = passed[0]
        more = f" and {len(passed) - 1} more" if len(passed) > 1 else ""
        return f"{place} is {_show(value)}{more}"

    def passing(self, seen: Object, now: datetime) -> list[tuple[str, object]]:
        """Of a path with many values: the members of its first list for which it holds, with what
        they are called."""
        head, below = self.path.split()
        return [
            (name, member)
            for name, member in head.members(seen)
            if below.holds(member, lambda value: all(ok(value, seen, now) for ok in self.checks))
        ]

    def why_not(self, seen: Object) -> str:
        if not self.path.several:
            return f"{self.path.text} is {_show(self.path.value(seen))} ({self.because})"
        return f"{self.path.text} holds {self.because}"


def _times(test: Test) -> Iterator[tuple[Check, str]]:
    if test.younger_than is not None:
        yield (
            _younger(test.younger_than),
            f"not a time in the last {show_duration(test.younger_than)}",
        )
    if test.older_than is not None:
        yield _older(test.older_than), f"not a time more than {show_duration(test.older_than)} ago"
    if test.within_twice is not None:
        path = healthpath.parse(test.within_twice)
        yield _missed(path, missed=False), f"not a time within twice {path.text}"
    if test.beyond_twice is not None:
        path = healthpath.parse(test.beyond_twice)
        yield _missed(path, missed=True), f"not a time beyond twice {path.text}"


def _is_in(allowed: Sequence[str | int | bool]) -> Check:
    wanted = frozenset((type(value), value) for value in allowed)

    def check(value: object, _seen: Object, _now: datetime) -> bool:
        return isinstance(value, (str, int)) and (type(value), value) in wanted

    return check


def _is_not_in(refused: Sequence[str | int | bool]) -> Check:
    inside = _is_in(refused)

    def check(value: object, seen: Object, now: datetime) -> bool:
        return value is not MISSING and not inside(value, seen, now)

    return check


def _equals(other: healthpath.Path) -> Check:
    def check(value: object, seen: Object, _now: datetime) -> bool:
        wanted = other.value(seen)
        return wanted is not MISSING and type(value) is type(wanted) and value == wanted

    return check


def _differs(other: healthpath.Path) -> Check:
    equal = _equals(other)

    def check(value: object, seen: Object, now: datetime) -> bool:
        known = value is not MISSING and other.value(seen) is not MISSING
        return known and not equal(value, seen, now)

    return check


def _is_present(value: object, _seen: Object, _now: datetime) -> bool:
    return value is not MISSING


def _is_empty(value: object, _seen: Object, _now: datetime) -> bool:
    return value is MISSING or value in ("", [], {})


def _younger(age: timedelta) -> Check:
    def check(value: object, _seen: Object, now: datetime) -> bool:
        at = _moment(value)
        return at is not None and now - at < age

    return check


def _older(age: timedelta) -> Check:
    def check(value: object, _seen: Object, now: datetime) -> bool:
        at = _moment(value)
        return at is not None and now - at >= age

    return check


def _missed(interval: healthpath.Path, *, missed: bool) -> Check:
    def check(value: object, seen: Object, now: datetime) -> bool:
        at, text = _moment(value), interval.value(seen)
        span = parse_duration(text) if isinstance(text, str) else None
        return at is not None and span is not None and (now - at >= 2 * span) is missed

    return check


def _starts(prefix: str) -> Check:
    def check(value: object, _seen: Object, _now: datetime) -> bool:
        return isinstance(value, str) and value.startswith(prefix)

    return check


def _ends(suffix: str) -> Check:
    def check(value: object, _seen: Object, _now: datetime) -> bool:
        return isinstance(value, str) and value.endswith(suffix)

    return check


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


_DELETION = healthpath.parse("metadata.deletionTimestamp")
_OBJECT_NAME = healthpath.parse("metadata.name")


def _deletion(seen: Object) -> object:
    return _DELETION.value(seen)


def _name(seen: Object) -> str:
    name = _OBJECT_NAME.value(seen)
    if name is MISSING:
        name = seen.get("name")
    return name if isinstance(name, str) else "one without a name"


def _either(values: Sequence[str | int | bool]) -> str:
    return " or ".join(_show(value) for value in values)


def _show(value: object) -> str:
    match value:
        case healthpath.Missing():
            return "missing"
        case bool():
            return str(value).lower()
        case str():
            return value[:80] if value else "''"
        case list():
            return f"a list of {len(cast('list[Any]', value))}"
        case Mapping():
            return f"a mapping of {len(cast('Mapping[str, Any]', value))}"
        case _:
            return str(value)
