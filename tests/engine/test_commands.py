"""What people tell a daemon: durable before it counts, and it counts again after a restart."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleetd.engine.commands import FLEET, BadCommand
from fleetd.sim import loop
from fleetd.vocabulary import Hold, HoldReason, Plan, PlanId
from tests.engine.life import Daemon, Life
from tests.toy import fleet
from topology.resource import Ref

MINUTE = timedelta(minutes=1)
SERVER = Ref("server", "s00")


def play(story: Callable[[Life], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await story(Life())

    loop.run(run())


async def started(life: Life, daemon: Daemon) -> None:
    await daemon.take(fleet.bring_up(servers=1))
    await daemon.until(lambda: bool(daemon.state.plans), MINUTE)


def held(daemon: Daemon, approval: str) -> None:
    """Let a plan wait for this approval."""
    hold = Hold(ref=SERVER, reason=HoldReason.APPROVAL, message="ask", approval=approval)
    plan = Plan(id=PlanId("p"), region="toy", topology="t", steps=(), holds=(hold,), waits=())
    daemon.state.plans["toy"] = plan


@pytest.mark.parametrize("scope", ["all", "region:toy", "kind:server", "server/s00"])
def test_a_pause_holds_over_a_restart(scope: str) -> None:
    """Nothing is begun while it lasts, in this daemon and the next; after resume it is."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            await daemon.take(replace(fleet.bring_up(servers=1), digest="d"))
            await daemon.commands.pause(scope, who="ada", why="moving")
            await daemon.until(lambda: SERVER in life.world.things, MINUTE)
        async with life.daemon() as daemon:
            assert not await daemon.until(lambda: SERVER in life.world.things, MINUTE)
            assert daemon.state.policy.pauses[scope].why == "moving"
            await daemon.commands.resume(scope, who="bob")
            assert await daemon.until(lambda: SERVER in life.world.things, MINUTE)
        async with life.daemon() as daemon:
            assert daemon.state.policy.pauses == {}
        told = [one.event.reason for one in await life.store.events()]
        assert [reason for reason in told if reason in {"Paused", "Resumed"}] == [
            *("Paused", "Resumed")
        ]

    play(story)


@pytest.mark.parametrize(
    "scope", ["server/nobody", "kind:rocket", "region:moon", "server", "everything", ""]
)
def test_a_pause_names_something(scope: str) -> None:
    """A pause on nothing would be believed and hold nobody."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            await started(life, daemon)
            with pytest.raises(BadCommand, match="names nothing"):
                await daemon.commands.pause(scope, who="ada", why="x")

    play(story)


def test_a_pause_needs_a_reason() -> None:
    """Spaces are none."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            with pytest.raises(BadCommand, match="needs a reason"):
                await daemon.commands.pause("all", who="ada", why="  ")
            with pytest.raises(BadCommand, match="nothing is paused"):
                await daemon.commands.resume("all", who="ada")

    play(story)


@pytest.mark.parametrize("given", ["0123456789abcdef0123", "mass-toy-0123456789ab"])
def test_an_approval_counts_after_a_restart(given: str) -> None:
    """A step's approval and a consent each come back as what they are, until taken back."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            await started(life, daemon)
            held(daemon, given)
            assert await daemon.commands.approve(given, who="ada") == [SERVER]
        async with life.daemon() as daemon:
            policy = daemon.state.policy
            kept = policy.consents if given.startswith("mass") else policy.approvals
            assert kept == {given}
            assert await daemon.commands.reject(given, who="bob") == []
        async with life.daemon() as daemon:
            assert not daemon.state.policy.approvals | daemon.state.policy.consents

    play(story)


def test_what_nobody_waits_for_cannot_be_approved() -> None:
    """A misspelt id is told, not kept for a day on which it fits."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            await started(life, daemon)
            for decide in (daemon.commands.approve, daemon.commands.reject):
                with pytest.raises(BadCommand, match="nothing waits for 'x'"):
                    await decide("x", who="ada")
        assert await life.store.load("approvals") == {}

    play(story)


def test_a_rejection_pauses_the_thing() -> None:
    """What was rejected does not ask again; a resume lets it."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            await started(life, daemon)
            held(daemon, "s1")
            assert await daemon.commands.reject("s1", who="ada") == [SERVER]
            assert daemon.state.policy.pauses["server/s00"].why == "s1 was rejected"

    play(story)


def test_documents_at_the_door_can_be_consented_to() -> None:
    """The consent that refused documents name is approved like any other id."""

    async def story(life: Life) -> None:
        life.asked = "accept-0123456789ab"
        async with life.daemon() as daemon:
            await started(life, daemon)
            with pytest.raises(BadCommand, match="put the old ones back"):
                await daemon.commands.reject(life.asked, who="ada")
            assert await daemon.commands.approve(life.asked, who="ada") == [FLEET]
            assert daemon.state.policy.consents == {life.asked}

    play(story)
