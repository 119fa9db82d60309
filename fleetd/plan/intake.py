"""
What drivers propose, as it comes in: checked at once, so that one bad answer holds one thing.

`lint` would refuse the same steps later, but with them the whole plan of the region. Here the
thing whose driver is at fault is held with the reason, and everything else goes on.
"""

from collections.abc import Iterable, Iterator

from fleetd.plan import steps
from fleetd.plan.verdict import Fault, Proposed
from fleetd.vocabulary import Driver, Observation, Step, StepId
from topology.resource import Ref, Resource

_WORDS_MAX = 200
"""Of an exception: enough to recognise it in a line or two of a plan."""


def ask(driver: Driver, want: Resource, seen: Observation) -> Proposed:
    """What the driver proposes, or why that cannot be used."""
    try:
        proposed = tuple(driver.propose(want, seen))
    except Exception as error:  # noqa: BLE001 - one bad answer of one far side must not stop the region
        text = " ".join(f"{type(error).__name__}: {error}".split())
        short = text if len(text) <= _WORDS_MAX else f"{text[:_WORDS_MAX]}..."
        return Fault(f"could not decide: {short}")
    return checked(want, proposed)


def checked(want: Resource, proposed: Proposed) -> Proposed:
    """The same, or what is wrong with it."""
    if isinstance(proposed, Fault):
        return proposed
    fault = next(_faults(want, proposed), None)
    return proposed if fault is None else Fault(f"proposes a bad step: {fault}")


def known(proposed: Proposed, index: Iterable[Ref]) -> Proposed:
    """The same, unless it disrupts what no document names: what cannot be counted is not done."""
    if isinstance(proposed, Fault):
        return proposed
    for step in proposed:
        if step.disrupts or step.destroys:
            for ref in sorted(step.disrupts | step.destroys):
                if ref not in index:
                    word = "destroys" if ref in step.destroys else "disrupts"
                    text = f"{step.verb} {word} {ref}, which no document names"
                    return Fault(f"proposes a bad step: {text}")
    return proposed


def _faults(want: Resource, proposed: Iterable[object]) -> Iterator[str]:
    earlier: set[StepId] = set()
    for step in proposed:
        if not isinstance(step, Step):
            yield f"a {type(step).__name__} is no step"
            return
        if step.ref != want.ref:
            yield f"{step.verb} is about {step.ref}"
        if step.generation != want.generation:
            yield f"{step.verb} is for generation {step.generation}, {want.generation} is wanted"
        yield from (f"{step.verb}: {fault}" for fault in steps.faults(step))
        if step.id in earlier:
            yield f"{step.verb} is there twice"
        if not step.after <= earlier:
            yield f"{step.verb} comes after a step that does not stand before it"
        earlier.add(step.id)
