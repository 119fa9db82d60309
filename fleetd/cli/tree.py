"""
`fleetctl tree`: a region as a tree with state, age and reason.

Documents stand below their region, components below the document they come from. Many servers of
one pool become one line with counts, followed by those that are not Ready: what is well needs no
space.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.text import Text

from fleetd import clock
from fleetd.cli import client, output, reading, states, watching
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from fleetd.vocabulary import HoldReason
from topology.resource import Topology

ALIKE_MAX = 6
"""Servers of one pool that are still shown one by one."""

Node = dict[str, Any]


class Row(NamedTuple):
    lead: str
    label: str
    ready: Node | None
    plan: Node | None = None
    note: str = ""
    """In place of the age."""
    pause: Node | None = None
    """What holds it, where that is not told further up."""


def run(frame: Frame, *, name: str | None, catalogue: tuple[Path, ...], watch: bool) -> None:
    if watch:
        watching.check(frame)
        if frame.offline:
            raise click.UsageError("files alone have no states to watch; leave out --offline")
        watching.forever(lambda: [line for part in _parts(frame, name, ()) for line in part])
    if frame.machine:
        found, _ = _regions(frame, name, catalogue)
        output.data(frame, {"regions": found})
        return
    for place, lines in enumerate(_parts(frame, name, catalogue)):
        if place:
            output.answers().print()
        _print(frame, lines)


def _regions(
    frame: Frame, name: str | None, catalogue: tuple[Path, ...]
) -> tuple[list[Node], datetime]:
    now = clock.SystemClock().now()
    if frame.offline:
        topology = reading.fleet(frame, (), catalogue).topology
        regions = [of_topology(topology, region) for region in sorted(topology.regions)]
    else:
        asked = client.of(frame)
        answer = asked.get("/regions")
        now = states.moment(answer["now"])
        names = [region["name"] for region in answer["items"]]
        wanted = [one for one in names if name in {None, one}]
        regions = [asked.get(f"/topology/{one}") for one in wanted]
    found = [region for region in regions if name in {None, region["region"]}]
    if name is not None and not found:
        raise Stop(Exit.BAD, f"there is no region {name}")
    return found, now


def _parts(frame: Frame, name: str | None, catalogue: tuple[Path, ...]) -> Iterator[list[Text]]:
    """The lines of each region."""
    found, now = _regions(frame, name, catalogue)
    if not found:
        yield [Text("No regions yet: no documents are accepted.")]
    for region in found:
        lines = _lines(list(rows(region["nodes"], region["region"])), now)
        yield [*lines, *_sum_up(region["nodes"])]


def of_topology(topology: Topology, region: str) -> Node:
    """The same shape as the daemon's, without states."""
    return {
        "region": region,
        "digest": topology.digest,
        "nodes": [
            {
                "id": str(ref),
                "kind": ref.kind,
                "name": ref.name,
                "rank": topology.resources[ref].rank,
                "owner": str(topology.resources[ref].owner or "") or None,
                "ready": None,
                "current": False,
                "plan": None,
                "pause": None,
            }
            for ref in topology.regions[region]
        ],
        "edges": [
            {"source": str(edge.source), "kind": edge.kind.value, "target": str(edge.target)}
            for edge in topology.edges
            if edge.source in topology.resources
            and topology.resources[edge.source].region == region
        ],
    }


def rows(nodes: list[Node], region: str) -> Iterator[Row]:
    known = {node["id"]: node for node in nodes}
    top = f"region/{region}"
    children: dict[str, list[Node]] = {}
    for node in nodes:
        if node["id"] == top:
            continue
        owner = node["owner"]
        own = owner in known and owner != node["id"]
        children.setdefault(owner if own else top, []).append(node)
    head = known.get(top, {})
    whole = head.get("pause")
    yield Row("", top, head.get("ready"), head.get("plan"), pause=whole)
    yield from _below(top, children, "", whole["scope"] if whole else "")


def _below(parent: str, children: dict[str, list[Node]], lead: str, told: str) -> Iterator[Row]:
    """`told`: the pause that was told further up."""
    here = children.get(parent, [])
    servers = [node for node in here if node["kind"] == "server"]
    many = len(servers) > ALIKE_MAX
    shown = [node for node in here if not (many and node["kind"] == "server")]
    # What has something below it comes after what has not, as a folder after files.
    shown.sort(key=lambda node: (node["id"] in children, node["rank"], node["id"]))
    lines = [*_summary(servers), *shown] if many else shown
    for place, node in enumerate(lines):
        last = place == len(lines) - 1
        label = node.get("label", node["id"])
        rests = node.get("pause")
        yield Row(
            f"{lead}{'└─ ' if last else '├─ '}",
            label,
            node["ready"],
            node.get("plan"),
            node.get("note", ""),
            rests if rests and rests["scope"] != told else None,
        )
        deeper = f"{lead}{'   ' if last else '│  '}"
        yield from _below(node["id"], children, deeper, rests["scope"] if rests else told)


def _summary(servers: list[Node]) -> Iterator[Node]:
    """One line for all, and one for each that needs a look."""
    judged = [node for node in servers if node["ready"] is not None]
    counts = Counter(node["ready"]["status"] for node in judged)
    worst = next((status for status in ("False", "Unknown", "True") if counts[status]), None)
    note = f"{counts['True']:,} of {len(servers):,}" if judged else ""
    ready = None if worst is None else {"status": worst, "reason": "NotAllReady", "message": ""}
    yield {"id": "", "label": f"{len(servers):,} servers", "ready": ready, "note": note}
    bad = [node for node in judged if node["ready"]["status"] != "True"]
    bad.sort(key=lambda node: (node["ready"]["status"] != "False", node["id"]))
    yield from bad[:ALIKE_MAX]
    if len(bad) > ALIKE_MAX:
        more = f"... and {len(bad) - ALIKE_MAX:,} more that are not Ready"
        yield {"id": "", "label": more, "ready": None}


def _lines(found: list[Row], now: datetime) -> list[Text]:
    wide = max(len(row.lead) + len(row.label) for row in found) + 2
    lines: list[Text] = []
    for row in found:
        line = Text.assemble((row.lead, "dim"), (row.label, "bold" if not row.lead else ""))
        if row.ready is not None:
            line.append(" " * (wide - len(line)))
            line.append_text(_state(row, row.ready, now))
        if row.pause is not None:
            line.append(f"  {states.pause(row.pause, now)}", style="yellow")
        lines.append(output.scrubbed(line))
    return lines


def _print(frame: Frame, lines: list[Text]) -> None:
    console = output.answers()
    # A tree keeps its shape: on a terminal a line is cut at the edge, unless -o wide.
    cut = console.is_terminal and frame.output != "wide"
    for line in lines:
        console.print(
            line, no_wrap=True, overflow="ellipsis" if cut else "ignore", soft_wrap=not cut
        )


def _sum_up(nodes: list[Node]) -> list[Text]:
    judged = [node for node in nodes if node["ready"] is not None]
    if not judged:
        return []
    ready = sum(node["ready"]["status"] == "True" for node in judged)
    text = f"{ready:,} of {reading.count(len(nodes), 'resource')} Ready"
    said = Counter(node["plan"]["state"] for node in nodes if node["plan"])
    for state, words in (("step", "being worked on"), ("waiting", "at work"), ("held", "held")):
        if said[state]:
            text += f", {said[state]:,} {words}"
    return [Text(text, style="bold")]


def _state(row: Row, ready: Node, now: datetime) -> Text:
    """`● Ready  3h`, or `○ Progressing  12m  BudgetSpent: ...`."""
    plan = row.plan or {"state": "", "blocker": None, "message": ""}
    busy = plan["state"] in {"step", "waiting"}
    word = states.word(ready, busy=busy)
    note = row.note or states.age(ready.get("since"), now)
    text = Text.assemble(states.sign(ready, busy=busy), " ", word)
    text.append(f"{'':<{max(12 - len(word), 1)}}{note:>4}", style="dim")
    if ready["status"] == "True":
        return text
    if plan["blocker"]:
        # The commonest hold in the fewest words.
        text.append(f"  after {plan['blocker']}", style="dim")
        return text
    reason, told = plan["state"] and plan["reason"], plan["message"] if plan["state"] else ""
    if reason == HoldReason.OVERDUE:
        # Since when stands before it already; what is wrong comes before what to do.
        told = "; ".join(one for one in (ready["message"], told.partition("; ")[2]) if one)
    if reason and reason != ready["reason"]:
        text.append(f"  {reason}", style="yellow" if plan["state"] == "held" else "")
        text.append(f": {told}", style="dim")
    elif told or ready["message"]:
        text.append(f"  {told or ready['message']}", style="dim")
    return text
