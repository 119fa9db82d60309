"""
`fleetctl plan`: what would be done, in order, and what is held and why.

Offline, the real planner forecasts the whole order from an empty world, wave by wave. With a
daemon, documents are planned against the world it sees, and without documents its current plans
are shown as they are.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from fleetd import clock
from fleetd.cli import client, output, reading, states
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from fleetd.plan import offline, render, words
from fleetd.plan.offline import Wave
from fleetd.plan.policy import Policy
from fleetd.plan.render import Line, Style
from fleetd.surface import shapes
from fleetd.vocabulary import Hold, HoldReason, Plan, PlanId, Step, StepId, Wait
from topology.resource import Ref, Topology

STYLES = {
    Style.PLAIN: "",
    Style.TITLE: "bold",
    Style.ACT: "green",
    Style.DANGER: "bold red",
    Style.HELD: "yellow",
    Style.WAITS: "cyan",
    Style.QUIET: "dim",
    Style.GONE: "dim strike",
}


def run(
    frame: Frame,
    paths: tuple[Path, ...],
    catalogue: tuple[Path, ...],
    region: str | None,
    *,
    prune: bool,
    exit_code: bool,
) -> None:
    if frame.offline:
        busy = _offline(frame, paths, catalogue, region)
    elif catalogue:
        raise click.UsageError("a daemon has its own catalogue; use --catalogue with --offline")
    elif paths or prune:
        if region is not None:
            raise click.UsageError(
                "a plan for documents is for all they change; leave out --region"
            )
        busy = _documents(frame, paths, prune=prune)
    else:
        busy = _online(frame, region)
    if exit_code and busy:
        raise Stop(Exit.TO_DO)


def _documents(frame: Frame, paths: tuple[Path, ...], *, prune: bool) -> bool:
    # Imported here: that module shows plans with what is in this one.
    from fleetd.cli import applying  # noqa: PLC0415

    made = applying.draft(frame, client.of(frame), paths, prune=prune)
    if frame.machine:
        output.data(frame, made)
    else:
        applying.show(made, wide=frame.output == "wide")
    return bool(made["text"] or made["fresh"] or made["pruned"])


def show_waves(told: Iterable[dict[str, Any]], *, wide: bool) -> None:
    """What the daemon foresees, wave by wave."""
    waves = [
        Wave(
            number=one["number"],
            steps=tuple(_step(inner) for inner in one["steps"]),
            holds=tuple(_hold(inner) for inner in one["holds"]),
            waits=tuple(_wait(inner) for inner in one["waits"]),
        )
        for one in told
    ]
    _print(render.forecast(waves, width=output.width(), each=wide))


def _offline(
    frame: Frame, paths: tuple[Path, ...], catalogue: tuple[Path, ...], region: str | None
) -> bool:
    found = reading.fleet(frame, paths, catalogue)
    topology = _only(found.topology, region)
    policy = Policy.of(item.document for item in found.bundle.items)
    deeds = {name: component.spec.create for name, component in found.catalogue.items()}
    with output.working("planning"):
        waves = offline.forecast(topology, policy, deeds, clock.SystemClock().now())
    if frame.machine:
        output.data(frame, shape(topology, waves))
    else:
        _print(render.forecast(waves, width=output.width(), each=frame.output == "wide"))
        _sum_up(waves)
    return bool(waves)


def shape(topology: Topology, waves: Iterable[Wave]) -> dict[str, Any]:
    return {"offline": True, "topology": topology.digest, "waves": shapes.waves(waves)}


def _only(topology: Topology, region: str | None) -> Topology:
    """The part of one region. Nothing needs across regions, so nothing is missed."""
    if region is None:
        return topology
    members = topology.regions.get(region)
    if members is None:
        raise Stop(Exit.BAD, f"there is no region {region} in these documents")
    kept = {ref: topology.resources[ref] for ref in members}
    edges = tuple(edge for edge in topology.edges if edge.source in kept)
    return Topology(digest=topology.digest, resources=kept, edges=edges)


def _sum_up(waves: list[Wave]) -> None:
    steps = sum(len(wave.steps) for wave in waves)
    working = sum(bool(wave.steps) for wave in waves)
    held = sum(len(wave.holds) for wave in waves)
    text = f"{reading.count(steps, 'step')} in {reading.count(working, 'wave')}"
    if held:
        text += f", {held:,} held"
    output.answers().print()
    output.answers().print(Text(f"{text}, from an empty world", style="bold"))


def _online(frame: Frame, region: str | None) -> bool:
    answer = client.of(frame).get("/plan", region=region)
    told = answer["plans"]
    plans = [_plan(one) for one in told]
    if frame.machine:
        output.data(frame, answer)
    elif not plans:
        output.answers().print("No plan yet.")
    else:
        for place, one in enumerate(plans):
            if place:
                output.answers().print()
            for rests in told[place]["pauses"]:
                output.line(Text(f"! {_pause(rests)}", style="yellow"))
            _print(render.plan(one, width=output.width(), each=frame.output == "wide"))
    return any(plan.steps or plan.holds for plan in plans)


def _pause(told: dict[str, Any]) -> str:
    """As `why` says it; nothing new is begun, whatever the plan holds."""
    since = words.moment(states.moment(told["since"]))
    scope = told["scope"]
    return (
        f"paused by {told['who']} since {since}: {told['reason']} (pause on {scope}); "
        f"to go on: fleetctl resume {scope}"
    )


def _print(lines: Iterable[Line]) -> None:
    console = output.answers()
    for line in lines:
        text = Text.assemble(*((span.text, STYLES[span.style]) for span in line.spans))
        console.print(output.scrubbed(text), soft_wrap=True)


def _plan(told: dict[str, Any]) -> Plan:
    """The inverse of `shapes.plan`: what the daemon told, as the noun that `render` draws."""
    return Plan(
        id=PlanId(told["id"]),
        region=told["region"],
        topology=told["topology"],
        steps=tuple(_step(one) for one in told["steps"]),
        holds=tuple(_hold(one) for one in told["holds"]),
        waits=tuple(_wait(one) for one in told["waits"]),
        again=_moment(told["again"]),
    )


def _step(told: dict[str, Any]) -> Step:
    return Step(
        id=StepId(told["id"]),
        ref=_ref(told["ref"]),
        verb=told["verb"],
        args=told["args"],
        why=told["why"],
        deadline=timedelta(seconds=told["deadlineSeconds"]),
        generation=told["generation"],
        disrupts=frozenset(_ref(one) for one in told["disrupts"]),
        destroys=frozenset(_ref(one) for one in told["destroys"]),
        after=frozenset(StepId(one) for one in told["after"]),
    )


def _hold(told: dict[str, Any]) -> Hold:
    return Hold(
        ref=_ref(told["ref"]),
        reason=HoldReason(told["reason"]),
        message=told["message"],
        steps=tuple(_step(one) for one in told["steps"]),
        blocker=_ref(told["blocker"]) if told["blocker"] else None,
        approval=told["approval"] or "",
        until=_moment(told["until"]),
    )


def _wait(told: dict[str, Any]) -> Wait:
    return Wait(
        ref=_ref(told["ref"]),
        reason=told["reason"],
        message=told["message"],
        until=_moment(told["until"]),
    )


def _ref(text: str) -> Ref:
    kind, _, name = text.partition("/")
    return Ref(kind, name)


def _moment(text: str | None) -> datetime | None:
    return states.moment(text) if text else None
