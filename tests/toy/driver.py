"""
The test driver: drives the toy world through a wire, for every kind of thing.

It keeps nothing between calls: what was done is read from the world, names and step ids follow
from what is wanted. That is what makes it safe to kill at any moment, and what the planted bugs
of `tests/crash` take away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from fleetd.clock import Clock
from fleetd.vocabulary import (
    READY,
    Condition,
    Done,
    Failed,
    Observation,
    Outcome,
    Step,
    Truth,
    Waiting,
    make_step,
)
from tests.toy.world import DEFAULT_LIFE, LIVES, REMOVE, UPGRADE
from topology.resource import Ref, Resource


class Wire(Protocol):
    """The way to the world; may fail with ConnectionError or take its time."""

    async def read(self, ref: Ref) -> dict[str, Any]: ...

    async def write(self, ref: Ref, verb: str, args: Mapping[str, Any], step: str) -> str: ...


@dataclass
class ToyDriver:
    wire: Wire
    clock: Clock
    kind: str = "toy"
    pace: float = 1.0
    """How many times faster than life the world is."""

    def check(self, want: Resource) -> Sequence[str]:
        version = want.spec.get("version", 1)
        if not isinstance(version, int) or version < 1:
            return [f"version {version!r} is not a whole number from 1 on"]
        return []

    async def observe(self, want: Resource) -> Observation:
        at = self.clock.now()
        try:
            facts = await self.wire.read(want.ref)
        except ConnectionError as cause:
            return Observation(ref=want.ref, at=at, facts=None, error=str(cause))
        return Observation(ref=want.ref, at=at, facts=facts)

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None or seen.facts.get("busy"):
            return ()
        if want.absent:
            return (self._removal(want),) if seen.facts else ()
        done: list[str] = seen.facts.get("done", [])
        life = LIVES.get(want.ref.kind, DEFAULT_LIFE)
        if len(done) < len(life):
            work = life[len(done)]
            return (
                self._step(want, work.verb, f"{work.verb}: step {len(done) + 1} of {len(life)}"),
            )
        if seen.facts["version"] != want.spec.get("version", 1):
            why = f"version {seen.facts['version']} becomes {want.spec.get('version', 1)}"
            return (self._step(want, UPGRADE.verb, why, disrupts=frozenset({want.ref})),)
        return ()

    async def apply(self, step: Step) -> Outcome:
        try:
            effect = await self.wire.write(step.ref, step.verb, step.args, step.id)
        except ConnectionError as cause:
            return Failed("Unreachable", str(cause), retry=True)
        if effect == "refused":
            return Failed("Refused", "the thing is not complete", retry=False)
        return Waiting("Working", timedelta(seconds=2) / self.pace) if effect != "again" else Done()

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        facts = seen.facts or {}
        complete = len(facts.get("done", [])) == len(LIVES.get(want.ref.kind, DEFAULT_LIFE))
        if facts.get("broken"):
            verdict = (Truth.FALSE, "Broken", str(facts["broken"]))
        elif not complete:
            verdict = (
                Truth.FALSE,
                "Incomplete",
                f"done so far: {', '.join(facts.get('done', [])) or 'nothing'}",
            )
        elif facts.get("busy"):
            verdict = (Truth.FALSE, "Working", "the world is at work on it")
        else:
            verdict = (Truth.TRUE, "Ready", "all done")
        return (_condition(want, verdict, seen.at),)

    def _removal(self, want: Resource) -> Step:
        return make_step(
            want,
            REMOVE.verb,
            {"name": want.ref.name},
            why="it was retired",
            deadline=timedelta(seconds=30),
            destroys=(want.ref,),
        )

    def _step(
        self, want: Resource, verb: str, why: str, *, disrupts: frozenset[Ref] = frozenset()
    ) -> Step:
        return make_step(
            want,
            verb,
            {"name": want.ref.name, "version": want.spec.get("version", 1)},
            why=why,
            deadline=timedelta(seconds=30),
            disrupts=disrupts,
        )


def _condition(want: Resource, verdict: tuple[Truth, str, str], at: datetime) -> Condition:
    truth, reason, message = verdict
    return Condition(
        type=READY,
        truth=truth,
        reason=reason,
        message=message,
        generation=want.generation,
        since=at,
        reason_since=at,
    )
