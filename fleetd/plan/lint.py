"""
The last check of a plan before anybody acts on it. Pure; says what is wrong, in words.

The planner should never make such a plan. The executor trusts nothing it did not check: a plan may
come from a bug, a driver's bad step, or a file. One fault refuses the whole plan. Whether the plan
hangs together is asked here; whether it keeps to the limits of the moment, in `guard`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from fleetd.plan import steps
from fleetd.vocabulary import Driver, HoldReason, Plan, Step, StepId
from topology.resource import Ref, Topology


def lint(plan: Plan, topology: Topology, drivers: Mapping[str, Driver]) -> list[str]:
    """Everything that is wrong; empty if the plan may be carried out."""
    return [
        *_whole(plan, topology),
        *_ids(plan),
        *_order(plan, topology),
        *(fault for step in plan.steps for fault in _step(step, plan, topology, drivers)),
        *_holds(plan, topology),
    ]


def _whole(plan: Plan, topology: Topology) -> Iterator[str]:
    if plan.topology != topology.digest:
        yield f"the plan answers topology {plan.topology}, but {topology.digest} is wanted now"
    expected = steps.id_of(plan)
    if plan.id != expected:
        yield f"the plan's id is {plan.id}, but its contents give {expected}"


def _ids(plan: Plan) -> Iterator[str]:
    counts = Counter(step.id for step in plan.steps)
    for step in plan.steps:
        if counts[step.id] > 1:
            yield f"{_name(step)}: the id {step.id} is there {counts.pop(step.id)} times"


def _order(plan: Plan, topology: Topology) -> Iterator[str]:
    places: dict[StepId, int] = {}
    last: dict[Ref, int] = {}
    for place, step in enumerate(plan.steps):
        places.setdefault(step.id, place)
        last[step.ref] = place
    for place, step in enumerate(plan.steps):
        for after in sorted(step.after):
            other = places.get(after)
            if other is None:
                yield f"{_name(step)}: comes after {after}, which is not in the plan"
            elif other == place:
                yield f"{_name(step)}: comes after itself"
            elif other > place:
                yield f"{_name(step)}: comes after {after}, which stands later in the plan"
        resource = topology.resources.get(step.ref)
        for need in sorted(resource.needs) if resource else ():
            if last.get(need, -1) > place:
                yield f"{_name(step)}: stands before a step of {need}, which it needs"
    yield from _cycles(plan)


def _cycles(plan: Plan) -> Iterator[str]:
    """Steps that wait for each other: a step that points forward is found above, but whoever
    mends that one by moving it must be told of the cycle."""
    known = {step.id for step in plan.steps}
    left = {step.id: step.after & known for step in plan.steps}
    free = [step for step, after in left.items() if not after]
    counts = {step: len(after) for step, after in left.items() if after}
    followers: dict[StepId, list[StepId]] = {}
    for step in counts:
        for after in left[step]:
            followers.setdefault(after, []).append(step)
    while free:
        step = free.pop()
        del left[step]
        for follower in followers.get(step, ()):
            counts[follower] -= 1
            if not counts[follower]:
                free.append(follower)
    if left:
        yield f"steps wait for each other in a cycle: {', '.join(sorted(left))}"


def _step(
    step: Step, plan: Plan, topology: Topology, drivers: Mapping[str, Driver]
) -> Iterator[str]:
    yield from _fits(step, plan, topology, drivers)
    yield from (f"{_name(step)}: {fault}" for fault in steps.faults(step))
    for word, refs in (("disrupts", step.disrupts), ("destroys", step.destroys)):
        for ref in sorted(refs):
            if ref not in topology.resources:
                yield f"{_name(step)}: {word} {ref}, which no document names"
    # What a person retired is meant to go; that was the consent.
    lost = [
        ref
        for ref in sorted(step.destroys)
        if ref not in topology.resources or not topology.resources[ref].absent
    ]
    if lost and step.id not in plan.approved:
        yield f"{_name(step)}: destroys {', '.join(map(str, lost))} unapproved"


def _fits(
    step: Step, plan: Plan, topology: Topology, drivers: Mapping[str, Driver]
) -> Iterator[str]:
    """Whether the step is about something that is wanted, here and like this."""
    resource = topology.resources.get(step.ref)
    if resource is None:
        yield f"{_name(step)}: no document names {step.ref}"
        return
    if resource.driver not in drivers:
        yield f"{_name(step)}: there is no driver {resource.driver!r}"
    if resource.region != plan.region:
        yield f"{_name(step)}: is in {resource.region}, the plan is for {plan.region}"
    if resource.generation != step.generation:
        wanted = resource.generation
        yield f"{_name(step)}: is for generation {step.generation}, but {wanted} is wanted"


def _holds(plan: Plan, topology: Topology) -> Iterator[str]:
    acting = {step.ref for step in plan.steps}
    planned = {step.id for step in plan.steps}
    for hold in plan.holds:
        if not hold.message.strip():
            yield f"{hold.ref}: is held ({hold.reason}) without a word"
        if hold.reason is HoldReason.DEPENDENCY and hold.ref in acting:
            yield f"{hold.ref}: has a step and waits for {hold.blocker} at the same time"
        for step in hold.steps:
            if step.id in planned:
                yield f"{_name(step)}: is planned and held ({hold.reason}) at the same time"
        if hold.reason is not HoldReason.ORPHANED and hold.ref not in topology.resources:
            yield f"{hold.ref}: is held, but no document names it"
    for wait in plan.waits:
        if wait.ref in acting:
            yield f"{wait.ref}: has a step and waits ({wait.reason}) at the same time"
        if wait.ref not in topology.resources:
            yield f"{wait.ref}: is waited for, but no document names it"


def _name(step: Step) -> str:
    return f"{step.verb or '?'} {step.ref}"
