"""What a person allowed is for one thing: it ends when that was done, or is not asked for."""

from collections.abc import Callable, Coroutine
from typing import Any

from fleetd.engine import acceptance, grants, records
from fleetd.engine.grants import Grant, Kind
from fleetd.plan.policy import mass_consent
from fleetd.sim import loop
from tests.engine.life import Daemon, Life
from tests.engine.test_burial import large
from tests.engine.test_commands import MINUTE, SERVER, held
from tests.plan.fleets import EU, NOW, ref
from tests.toy import fleet

FLEET = fleet.bring_up(servers=1)


def play(story: Callable[[Life], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await story(Life())

    loop.run(run())


async def settled(life: Life, daemon: Daemon) -> None:
    await daemon.take(FLEET)
    assert await daemon.until(
        lambda: all(life.world.is_ready(one, life.clock.now()) for one in FLEET.resources),
        60 * MINUTE,
    )


async def lapsed(life: Life) -> list[str]:
    return [one.event.message for one in await life.store.events() if one.event.reason == "Lapsed"]


def test_consent_to_documents_is_used_up_when_they_are_in_force() -> None:
    """A to B to A to B asks twice: the second time the consent of the first is gone, also from the
    disk, and history says what became of it."""

    async def story(life: Life) -> None:
        life.asked = given = acceptance.consent_id(FLEET)
        async with life.daemon() as daemon:
            await daemon.commands.approve(given, who="ada")
            await daemon.commands.lapse()
            assert daemon.state.policy.consents == {given}
            await daemon.take(FLEET)
            await daemon.commands.lapse()
            assert daemon.state.policy.consents == frozenset()
        assert await life.store.load(records.APPROVALS) == {}
        (told,) = await lapsed(life)
        assert told.startswith(f"{given} by ada of ")
        assert told.endswith("it is used: these documents are in force")

    play(story)


def test_consent_to_a_mass_change_ends_with_the_documents_it_was_for() -> None:
    """Documents that come back later are asked about again."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            await settled(life, daemon)
            given = "mass-toy-0123456789ab"
            held(daemon, given)
            await daemon.commands.approve(given, who="ada")
            await daemon.commands.lapse()
            assert daemon.state.policy.consents == frozenset()
            assert "what is wanted has changed since" in (await lapsed(life))[0]

    play(story)


def test_what_nobody_asks_for_any_more_lapses_after_a_while() -> None:
    """Neither a step that became moot nor a mass change that settled stays allowed; but a moment
    without a question ends nothing."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            await settled(life, daemon)
            mass = mass_consent("toy", FLEET.digest)
            for given in ("s1", mass):
                held(daemon, given)
                await daemon.commands.approve(given, who="ada")
            daemon.state.nudge(SERVER)
            await daemon.until(lambda: daemon.state.plans["toy"].id != "p", MINUTE)
            await daemon.commands.lapse()
            assert daemon.commands.granted.keys() == {"s1", mass}
            await daemon.until(lambda: False, grants.UNASKED_MAX - MINUTE)
            await daemon.commands.lapse()
            assert daemon.commands.granted.keys() == {"s1", mass}
            await daemon.until(lambda: False, 2 * MINUTE)
            await daemon.commands.lapse()
            policy = daemon.state.policy
            assert not policy.approvals | policy.consents
        assert await life.store.load(records.APPROVALS) == {}
        assert len(await lapsed(life)) == 2

    play(story)


def test_a_step_is_asked_for_while_its_driver_proposes_it_or_cannot_know() -> None:
    """Whatever else holds it, and also while nobody can look."""
    state, _ = large()
    server = ref(f"server/{EU}-7")
    (step,) = state.planner.proposes(state.view, server)

    def asked(name: str) -> bool:
        grant = Grant(id=name, kind=Kind.STEP, who="ada", at=NOW, refs=(server,))
        return grants.asked_for(grant, state, "")

    assert asked(step.id)
    assert not asked("another")
    del state.view.seen[server]
    assert asked("another")


def test_a_mass_consent_is_asked_for_until_nothing_grave_is_left() -> None:
    """Also while windows or budgets hold it, and not because of another region."""
    state, _ = large()
    for region in (EU, "eu-2"):
        name = mass_consent(region, state.view.topology.digest)
        grant = Grant(id=name, kind=Kind.MASS, who="ada", at=NOW)
        assert grants.asked_for(grant, state, "")
        assert grants.regions(grant, state) == [region]


def test_a_record_of_an_older_fleetd_still_counts() -> None:
    """It holds the name of a person and nothing else."""

    async def story(life: Life) -> None:
        async with life.daemon() as daemon:
            await settled(life, daemon)
            mass = mass_consent("toy", FLEET.digest)
            await life.store.put(records.APPROVALS, {mass: b"ada", "0123abcd": b"bob"})
        async with life.daemon() as daemon:
            known = daemon.commands.granted
            assert {(one.id, one.kind, one.who) for one in known.values()} == {
                (mass, Kind.MASS, "ada"),
                ("0123abcd", Kind.STEP, "bob"),
            }
            assert daemon.state.policy.consents == {mass}
            assert daemon.state.policy.approvals == {"0123abcd"}
            await daemon.commands.reject("0123abcd", who="ada")
            assert daemon.state.policy.approvals == frozenset()

    play(story)
