"""
A driver that stands for any other when there is no world to look at: `fleetctl plan --offline`.

Everything takes one step and is then Ready. It never looks and never acts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from fleetd.errors import FleetError
from fleetd.vocabulary import READY, Condition, Observation, Outcome, Step, Truth, make_step
from topology.resource import Resource

ENSURE = "ensure"
"""Not "create": some things others make, and fleetd waits until they are healthy."""
_DEADLINE = timedelta(hours=1)
"""Only shown: nothing is ever carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NominalDriver:
    kind: str
    deeds: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is done first about a thing, by its kind: the catalogue's words."""

    def check(self, want: Resource) -> Sequence[str]:  # noqa: ARG002 - the Driver protocol
        return ()

    async def observe(self, want: Resource) -> Observation:
        raise FleetError(f"{want.ref} cannot be looked at offline; ask a running daemon")

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None or seen.facts:
            return ()
        why = self.deeds.get(want.ref.kind) or "it is not there"
        return (make_step(want, ENSURE, {}, why=why, deadline=_DEADLINE),)

    async def apply(self, step: Step) -> Outcome:
        raise FleetError(f"{step.verb} {step.ref} cannot be done offline; ask a running daemon")

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        if not seen.facts:
            return ()
        return (
            Condition(
                type=READY,
                truth=Truth.TRUE,
                reason=READY,
                message="nominal",
                generation=want.generation,
                since=seen.at,
                reason_since=seen.at,
            ),
        )
