"""
What the planner reads: the world as the engine knows it, and what was tried last.

The engine owns a View and changes it in place; the planner only reads it. Whoever changes it tells
the planner which names moved (`Planner.touch`), and nothing more: the planner reads again.
"""

from dataclasses import dataclass
from datetime import datetime

from fleetd.vocabulary import Condition, Ending, Observation, StepId
from topology.resource import Ref, Resource, Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The newest try at a step of one resource."""

    step: StepId
    at: datetime
    """When it began."""
    ending: Ending | None
    """None: in flight."""
    ended_at: datetime | None
    count: int
    """How often this step was tried in a row."""
    not_before: datetime | None
    """Backoff, `Waiting.again` or time to settle; worked out by the engine."""
    verb: str = ""
    """What is being done, for people."""
    disrupts: frozenset[Ref] | None = None
    """What the step disrupts or destroys, counted against the budgets. None: not known; then the
    step is looked up among the proposals, and if it is not there the thing itself counts."""


@dataclass(slots=True, kw_only=True)
class View:
    topology: Topology
    seen: dict[Ref, Observation]
    ready: dict[Ref, Condition]
    """Settled Ready conditions."""
    attempts: dict[Ref, Attempt]
    """The newest per resource."""
    orphans: dict[Ref, Resource]
    """What exists though no document names it any more, as it was last wanted."""
