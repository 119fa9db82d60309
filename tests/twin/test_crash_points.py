"""
Crash safety of a whole region: the power may go at any write of any workflow, on any side of it.

Points are classed by what is written, how, where, and on which side. One of each class is tried
here, by forking; `make sweep` tries every single write. OpenBao's init is the one place where a
person is needed: whoever dies between its answer and the write of the keys has lost them, and the
driver then asks before it starts over.
"""

from fleetd.sim import loop
from fleetd.sim.twin import Twin
from fleetd.vocabulary import Hold, HoldReason
from tests.twin import points, workflows
from tests.twin.stage import Power, Region

FIRST = {"bring-up": workflows.bring_up}
LATER = {name: one for name, one in workflows.WORKFLOWS.items() if name not in FIRST}


def test_every_kind_of_crash_in_a_bring_up_is_survived() -> None:
    """Converged, stable, the same end, every write accounted for, nobody hurt."""
    (done,) = points.sweep(FIRST, workflows.region, workflows.bring_up)

    assert done.broken == []
    assert done.points == done.classes > 60


def test_every_kind_of_crash_in_the_other_workflows_is_survived() -> None:
    """The same, of a region that was up; all of them share one bring-up."""
    done = points.sweep(LATER, workflows.region, workflows.bring_up)

    assert {one.name: one.broken for one in done if one.broken} == {}
    assert {one.name for one in done if one.points == one.classes > 0} == LATER.keys()


def test_only_a_person_has_lost_keys_thrown_away() -> None:
    """Dead between OpenBao's answer to its init and the write of the keys: held until somebody
    approves, and then the region comes up."""

    async def story() -> list[str]:
        region = Region.of()

        def answered(side: str, _: str) -> bool:
            deeds = region.ledger.deeds
            return side == "inside" and bool(deeds) and deeds[-1].path.endswith("/sys/init")

        def asks(twin: Twin) -> bool:
            return _hold(twin) is not None

        assert not await region.live(Power(at=answered), until=region.done)
        assert await region.live(Power(), until=asks)
        hold = _hold(region.twin)
        assert hold is not None
        assert hold.reason is HoldReason.APPROVAL
        assert "its keys was lost" in hold.steps[0].why
        say = workflows.approve(workflows.OPENBAO)
        reached = await region.live(Power(), until=region.settled(), say=say)
        return [*await region.judge(reached=reached), *await region.rest()]

    assert loop.run(story()) == []


def _hold(twin: Twin | None) -> Hold | None:
    assert twin is not None
    plans = twin.core.state.plans.values()
    return next(
        (
            hold
            for plan in plans
            for hold in plan.holds
            if hold.ref == workflows.OPENBAO and hold.approval
        ),
        None,
    )
