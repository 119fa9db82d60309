"""
A plan, and the difference between two plans, as lines for people. Pure.

Lines carry spans with a meaning (`act`, `danger`, `held` ...) and no colours: whoever prints them
knows whether there is a terminal. What is the same for many things is one line with a count.
"""

import enum
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from fleetd.plan import names, words
from fleetd.plan import steps as marks
from fleetd.plan.offline import Wave
from fleetd.vocabulary import Hold, HoldReason, Plan, Step, Wait
from topology.resource import Ref

_One = TypeVar("_One", Step, Hold, Wait)

_SINCE = re.compile(r"since \d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC")
"""A moment as `words.moment` writes it; of two in the same words the lesser text is the earlier."""
FOLLOWERS_LINES = 4
"""Lines of names under one cause; who needs all of them asks for them."""
WIDTH_MIN = 80
WIDTH_MAX = 160


class Style(enum.StrEnum):
    PLAIN = "plain"
    TITLE = "title"
    ACT = "act"
    """Something will be done."""
    DANGER = "danger"
    """Something will be disrupted or destroyed."""
    HELD = "held"
    WAITS = "waits"
    QUIET = "quiet"
    """Reasons, ids and counts."""
    GONE = "gone"
    """In a difference: no longer so."""


class Span(NamedTuple):
    text: str
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True)
class Line:
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


class _Row(NamedTuple):
    """One thing said of some names of one kind."""

    sign: str
    style: Style
    head: str
    """Verb or reason."""
    kind: str
    body: str
    extra: tuple[str, ...]
    """Lines of their own: what it disrupts, what to approve."""
    danger: bool


def plan(shown: Plan, *, width: int = 100, each: bool = False) -> list[Line]:
    """The whole plan. `each`: what waits for another thing is told one by one, with all it waits
    for, and not under its cause."""
    counts = f"{_count(len(shown.steps), 'step')}, {len(shown.holds)} held, "
    counts += f"{len(shown.waits)} waiting"
    lines = [
        _line(
            ("plan ", Style.TITLE),
            (shown.id, Style.QUIET),
            (f" for {shown.region}: {counts}", Style.PLAIN),
        )
    ]
    if not (shown.steps or shown.holds or shown.waits):
        return [*lines, _line(("  nothing to do", Style.QUIET))]
    return [*lines, *_body(shown.steps, shown.holds, shown.waits, _clamp(width), each=each)]


def forecast(waves: Sequence[Wave], *, width: int = 100, each: bool = False) -> list[Line]:
    """The whole order from an empty world, wave by wave."""
    lines: list[Line] = []
    for wave in waves:
        if wave.steps:
            title = f"wave {wave.number}: {_count(len(wave.steps), 'step')}"
        else:
            title = f"never begun: {_count(len(wave.holds) + len(wave.waits), 'thing')}"
        lines.append(_line((title, Style.TITLE)))
        lines.extend(_body(wave.steps, wave.holds, wave.waits, _clamp(width), each=each))
    return lines or [_line(("nothing to do", Style.QUIET))]


def difference(old: Plan, new: Plan, *, width: int = 100) -> list[Line]:
    """What the new plan says that the old one did not, and the other way round."""
    if old.id == new.id:
        return [_line(("no difference", Style.QUIET))]
    width = _clamp(width)
    gone = _body(*_only(old, new), width, each=False)
    came = _body(*_only(new, old), width, each=False)
    lines = [_line(("plan ", Style.TITLE), (f"{old.id} -> {new.id}", Style.QUIET))]
    if gone:
        lines.append(_line(("no longer", Style.TITLE)))
        lines.extend(Line(tuple(Span(text, Style.GONE) for text, _ in line.spans)) for line in gone)
    if came:
        lines.append(_line(("now", Style.TITLE)))
        lines.extend(came)
    if old.topology != new.topology:
        lines.append(_line((f"topology {old.topology[:12]} -> {new.topology[:12]}", Style.QUIET)))
    return lines


def _only(one: Plan, other: Plan) -> tuple[list[Step], list[Hold], list[Wait]]:
    return (
        _without(one.steps, other.steps, marks.mark_step),
        _without(one.holds, other.holds, marks.mark_hold),
        _without(one.waits, other.waits, marks.mark_wait),
    )


def _body(
    steps: Iterable[Step], holds: Iterable[Hold], waits: Iterable[Wait], width: int, *, each: bool
) -> list[Line]:
    causes: dict[str, list[Hold]] = {}
    for hold in holds:
        causes.setdefault("" if each else _cause(hold), []).append(hold)
    # A cause with one follower is told in that one's words.
    alone = [hold for cause, held in causes.items() if not cause or len(held) == 1 for hold in held]
    lines = _alike(
        [
            *((_of_step(step), step.ref.name, None) for step in steps),
            *((_of_hold(hold), hold.ref.name, hold.until) for hold in alone),
        ],
        width,
    )
    for cause, held in causes.items():
        if cause and len(held) > 1:
            lines.extend(_draw_cause(cause, held, width))
    return lines + _alike([(_of_wait(one), one.ref.name, one.until) for one in waits], width)


def _alike(told: Iterable[tuple[_Row, str, datetime | None]], width: int) -> list[Line]:
    """What is said of several things in the same words is said once; of those that differ only in
    since when, with the earliest."""
    groups: dict[_Row, list[tuple[str, datetime | None]]] = {}
    first: dict[_Row, _Row] = {}
    for row, name, until in told:
        key = row._replace(body=_SINCE.sub("since", row.body))
        groups.setdefault(key, []).append((name, until))
        first[key] = min(first.get(key, row), row, key=lambda one: one.body)
    return [line for key, found in groups.items() for line in _draw(first[key], found, width)]


def _cause(hold: Hold) -> str:
    """What is wrong with the thing that a hold waits for in the end; empty for other holds."""
    if hold.reason is not HoldReason.DEPENDENCY or hold.blocker is None:
        return ""
    return hold.message.partition("; ")[2].removeprefix("cause: ")


def _draw_cause(cause: str, held: Sequence[Hold], width: int) -> list[Line]:
    """One cause instead of forty complaints: what is wrong once, and all that waits for it."""
    kinds: dict[str, list[str]] = {}
    for hold in held:
        kinds.setdefault(hold.ref.kind, []).append(hold.ref.name)
    text = "; ".join(f"{kind} {', '.join(names.compress(of))}" for kind, of in kinds.items())
    # Wrapping a hundred thousand names to show four lines of them would take its time.
    waiting = _wrap(f"waiting: {text}"[: width * (FOLLOWERS_LINES + 1)], width)
    if len(waiting) > FOLLOWERS_LINES:
        waiting = [*waiting[:FOLLOWERS_LINES], "      ... (-o wide tells all)"]
    return [
        _line(
            (f"  ! {HoldReason.DEPENDENCY}", Style.HELD),
            (f" {_count(len(held), 'thing')} behind one cause", Style.PLAIN),
        ),
        *(_line((line, Style.PLAIN)) for line in _wrap(cause, width)),
        *(_line((line, Style.QUIET)) for line in waiting),
    ]


def _of_step(step: Step) -> _Row:
    extra: list[str] = []
    if step.disrupts:
        extra.append(f"disrupts {_own(step.disrupts, step.ref)}")
    if step.destroys:
        extra.append(f"destroys {_own(step.destroys, step.ref)}")
    return _Row(
        "+",
        Style.ACT,
        step.verb,
        step.ref.kind,
        _common(step.why, step.ref),
        tuple(extra),
        bool(extra),
    )


def _of_hold(hold: Hold) -> _Row:
    extra: list[str] = []
    if hold.steps:
        extra.append(f"would {', then '.join(dict.fromkeys(step.verb for step in hold.steps))}")
    if hold.approval and hold.approval not in hold.message:
        extra.append(f"fleetctl approve {hold.approval}")
    body = _common(hold.message, hold.ref)
    return _Row("!", Style.HELD, hold.reason, hold.ref.kind, body, tuple(extra), danger=False)


def _of_wait(wait: Wait) -> _Row:
    body = _common(wait.message, wait.ref)
    return _Row("~", Style.WAITS, wait.reason, wait.ref.kind, body, (), danger=False)


def _draw(row: _Row, found: Sequence[tuple[str, datetime | None]], width: int) -> list[Line]:
    parts = names.compress(name for name, _ in found)
    ends = sorted({until for _, until in found if until is not None})
    head = f"  {row.sign} {row.head} {row.kind} "
    tail = f" ({len(found)})" if len(found) > 1 else ""
    shown = _fit(parts, len(found), width - len(head) - len(tail))
    lines = [
        _line(
            (f"  {row.sign} {row.head}", row.style),
            (f" {row.kind} {shown}", Style.PLAIN),
            (tail, Style.QUIET),
        )
    ]
    lines.extend(_line((text, Style.QUIET)) for text in _wrap(row.body, width))
    style = Style.DANGER if row.danger else Style.QUIET
    extras = list(row.extra)
    # Things alike differ in when they end; the first tells when something may happen.
    end = f"until {words.moment(ends[0])}" if ends else ""
    if len(ends) > 1:
        extras.append(f"{end} or later")
    elif end not in row.body:
        extras.append(end)
    for extra in extras:
        lines.extend(_line((text, style)) for text in _wrap(extra, width))
    return lines


def _fit(parts: Sequence[str], count: int, room: int) -> str:
    """As many names as there is room for; the rest is in the count behind them."""
    text = ", ".join(parts)
    kept = len(parts)
    while len(text) > room and kept > 1:
        kept -= 1
        text = ", ".join(parts[:kept]) + ", ..."
    if len(text) <= room or count == 1:
        return text
    return text[: max(room - 3, 1)] + "..."


def _wrap(text: str, width: int) -> list[str]:
    indent = " " * 6
    return textwrap.wrap(
        text,
        width=width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _own(refs: Iterable[Ref], own: Ref) -> str:
    """`itself` keeps many steps alike that each disrupt what they are about."""
    others = sorted(ref for ref in refs if ref != own)
    text = words.listed(others, most=5) if others else ""
    if own not in set(refs):
        return text
    return f"itself, {text}" if text else "itself"


def _common(text: str, ref: Ref) -> str:
    """The same words for all: the thing's own name is drawn above already. Only the whole name:
    server/s1 is not the beginning of server/s10."""
    own = str(ref)
    if own not in text:
        return text
    return re.sub(rf"(?<![\w./-]){re.escape(own)}(?![\w/-]|\.\w)", "it", text)


def _without(
    some: Iterable[_One], others: Iterable[_One], mark: Callable[[_One], bytes]
) -> list[_One]:
    known = {mark(other) for other in others}
    return [one for one in some if mark(one) not in known]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _clamp(width: int) -> int:
    return min(max(width, WIDTH_MIN), WIDTH_MAX)


def _line(*spans: tuple[str, Style]) -> Line:
    return Line(tuple(Span(text, style) for text, style in spans if text))
