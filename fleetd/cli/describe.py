"""`fleetctl describe`: everything the daemon knows about one thing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from rich.text import Text

from fleetd.cli import client, naming, output, states, why
from fleetd.cli.frame import Frame
from fleetd.plan import words

NEAR_MAX = 12
"""Neighbours shown; those that are not Ready come first. -o wide shows all."""
TEXT_MAX = 160
"""Signs of one value of a fact; -o wide shows it whole."""

Shape = Mapping[str, Any]


def run(frame: Frame, *, kind: str, name: str | None) -> None:
    asked = client.of(frame)
    kind, name = naming.one(asked, kind, name)
    found = asked.get(naming.path(kind, name))
    if frame.machine:
        output.data(frame, found)
        return
    now = states.moment(found["now"])
    wide = frame.output == "wide"
    for line in _lines(found, now, wide=wide):
        for part in output.folded_text(line):
            output.line(part)


def _lines(found: Shape, now: datetime, *, wide: bool) -> Iterator[Text]:
    yield _head(found, now)
    yield from (Text(f"  {line}") for line in why.folded(found["why"]["paragraph"]))
    yield from _about(found, now)
    yield from _conditions(found["conditions"], now)
    yield from _plan(found, now)
    for relation, title in (("needs", "Needs"), ("neededBy", "Needed by")):
        near = [one for one in found["neighbours"] if one["relation"] == relation]
        yield from _near(title, near, len(found[relation]), now, wide=wide)
    yield from _tree("Desired", found["desired"], wide=wide)
    yield from _observed(found["observed"], now, wide=wide)
    yield from _limits(found["limits"], found["ready"]["reason"])
    yield from _events(found["events"])


def _head(found: Shape, now: datetime) -> Text:
    line = Text.assemble((f"{found['kind']}/{found['name']}", "bold"), "  ")
    if found["orphan"]:
        return line.append("Orphaned", style="yellow")
    line.append_text(states.sign(found["ready"])).append(" ")
    line.append_text(states.word(found["ready"]))
    return line.append(f"  {states.age(found['ready'].get('since'), now)}", style="dim")


def _title(text: str, note: str = "") -> Iterator[Text]:
    yield Text()
    yield Text.assemble((text, "bold"), (f"  {note}" if note else "", "dim"))


def _about(found: Shape, now: datetime) -> Iterator[Text]:
    seen = found["observedAt"]
    rows = [
        ("region", found["region"]),
        ("driver", f"{found['driver']} at {found['backend'] or 'nowhere'}"),
        ("document", found["owner"] or "-"),
        ("seen", f"{states.age(seen, now)} ago" if seen else "never"),
        ("domains", ", ".join(found["domains"])),
    ]
    yield Text()
    yield from (Text.assemble((f"  {name:<10}", "dim"), text) for name, text in rows if text)


def _conditions(given: Sequence[Shape], now: datetime) -> Iterator[Text]:
    if given:
        yield from _title("Conditions")
    wide = max((len(one["type"]) for one in given), default=0)
    for one in given:
        line = Text(f"  {one['type']:<{wide}}  ")
        line.append_text(states.sign(dict(one))).append(f" {one['reason']}")
        line.append(f"  {states.age(one['reasonSince'], now)}", style="dim")
        yield line.append(f"  {one['message']}" if one["message"] else "")


def _plan(found: Shape, now: datetime) -> Iterator[Text]:
    lines: list[Text] = []
    for step in found["steps"]:
        lines.append(Text.assemble(("  + ", "green"), f"{step['verb']}: {step['why']}"))
        lines.extend(
            Text(f"      {word} {', '.join(step[word][:8])}", style="bold red")
            for word in ("disrupts", "destroys")
            if step[word]
        )
    for hold in found["holds"]:
        until = f" until {words.moment(states.moment(hold['until']))}" if hold["until"] else ""
        lines.append(
            Text.assemble(("  ! ", "yellow"), f"held, {hold['reason']}{until}: {hold['message']}")
        )
        if hold["approval"]:
            lines.append(Text(f"      fleetctl approve {hold['approval']}"))
    lines += [
        Text.assemble(("  ~ ", "cyan"), f"waiting, {one['reason']}: {one['message']}")
        for one in found["waits"]
    ]
    if found["attempt"]:
        lines.append(_attempt(found["attempt"], now))
    if lines:
        yield from _title("Plan")
        yield from lines


def _attempt(one: Shape, now: datetime) -> Text:
    told = ": ".join(text for text in (one["reason"], one["message"]) if text)
    text = f"  last try: {one['verb'] or one['step']}, {one['result']}"
    text += f" ({told})" if told else ""
    text += f", {states.age(one['at'], now)} ago"
    return Text(text + (f", try {one['count']}" if one["count"] > 1 else ""))


def _near(
    title: str, near: Sequence[Shape], total: int, now: datetime, *, wide: bool
) -> Iterator[Text]:
    if not near:
        return
    ready = sum(one["ready"]["status"] == "True" for one in near)
    note = f"{ready} of {total:,} Ready" if len(near) == total else f"{total:,}"
    yield from _title(title, note)
    shown = near if wide else near[:NEAR_MAX]
    column = max(len(one["ref"]) for one in shown)
    for one in shown:
        line = Text(f"  {one['ref']:<{column}}  ")
        line.append_text(states.sign(one["ready"])).append(" ")
        line.append_text(states.word(one["ready"]))
        line.append(f"  {states.age(one['ready'].get('since'), now)}", style="dim")
        yield line.append(f"  {one['why']}" if one["why"] else "", style="dim")
    if total > len(shown):
        yield Text(f"  ... and {total - len(shown):,} more", style="dim")


def _observed(given: Shape | None, now: datetime, *, wide: bool) -> Iterator[Text]:
    if given is None:
        yield from _title("Observed", "never")
    elif given["facts"] is None:
        yield from _title("Observed", f"could not look: {given['error']}")
    elif not given["facts"]:
        yield from _title("Observed", f"{states.age(given['at'], now)} ago: it is not there")
    else:
        note = f"{states.age(given['at'], now)} ago"
        yield from _tree("Observed", given["facts"], note=note, wide=wide)


def _tree(title: str, given: object, *, note: str = "", wide: bool) -> Iterator[Text]:
    if not given:
        return
    yield from _title(title, note)
    for line in _values(given, "  "):
        cut = not wide and len(line) > TEXT_MAX
        yield Text(f"{line[: TEXT_MAX - 3]}..." if cut else line)


def _values(given: object, lead: str) -> Iterator[str]:
    """As YAML would write it, without its quotes: it is for reading."""
    if isinstance(given, dict):
        for key, value in cast("dict[str, Any]", given).items():
            if _flat(value):
                yield f"{lead}{key}: {_text(value)}"
            else:
                yield f"{lead}{key}:"
                yield from _values(value, f"{lead}  ")
    elif isinstance(given, list):
        for value in cast("list[Any]", given):
            if _flat(value):
                yield f"{lead}- {_text(value)}"
            else:
                first, *rest = _values(value, f"{lead}  ")
                yield f"{lead}- {first.strip()}"
                yield from rest
    else:
        yield f"{lead}{_text(given)}"


def _flat(value: object) -> bool:
    if isinstance(value, dict):
        return not value
    if isinstance(value, list):
        return all(not isinstance(one, (dict, list)) for one in cast("list[object]", value))
    return True


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(one) for one in cast('list[object]', value))}]"
    if value is None or isinstance(value, bool):
        return {None: "-", True: "true", False: "false"}[value]
    text = str(value)
    return text if text.isprintable() else " ".join(text.split())


def _limits(given: Iterable[Shape], state: str) -> Iterator[Text]:
    limits = list(given)
    if limits:
        yield from _title("Limits", "how long a state may last, and what to do then")
    for one in limits:
        span = words.span(timedelta(seconds=one["withinSeconds"]))
        here = one["state"] == state
        text = f"  {one['state']:<16} {span:>6}  {one['action']}"
        yield Text(text, style="bold" if here else "")


def _events(given: Sequence[Shape]) -> Iterator[Text]:
    if given:
        last = f"the last {len(given)}, " if len(given) > 1 else ""
        yield from _title("Events", f"{last}times in UTC")
    for one in given:
        at = states.moment(one["at"]).strftime("%m-%d %H:%M:%S")
        yield Text.assemble((f"  {at}  ", "dim"), f"{one['reason']:<12} {one['message']}")
