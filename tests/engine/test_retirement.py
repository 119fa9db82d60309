"""What no document names any more: it stays until a person retires it, and then goes in order."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleetd.engine import records, retirement
from fleetd.engine.retirement import CannotRetire
from fleetd.sim import loop
from fleetd.vocabulary import HoldReason
from tests.engine.life import Daemon, Life
from tests.toy import fleet
from tests.toy.universe import Power
from topology.resource import Ref, Topology

HOUR = timedelta(hours=1)
OLD = Ref("cluster", "old")
SIDES = ("intent", "before", "inside", "after")


def fleets() -> tuple[Topology, Topology]:
    """With and without a cluster `old`, which carries a vault, which carries two agents."""
    things = [
        fleet._thing("server", "s0", ()),
        fleet._thing("cluster", "old", [Ref("server", "s0")]),
        fleet._thing("vault", "old", [OLD]),
        fleet._thing("agent", "old.a", [Ref("vault", "old")]),
        fleet._thing("agent", "old.b", [Ref("vault", "old"), OLD]),
    ]
    owned = [replace(one, owner=OLD if "old" in one.ref.name else one.ref) for one in things]
    return fleet.topology(owned), fleet.topology(owned[:1])


async def bring_up(life: Life, daemon: Daemon, topology: Topology) -> None:
    for ref, resource in topology.resources.items():
        life.world.needs[ref] = resource.needs
    await daemon.take(topology)

    def there() -> bool:
        now = life.clock.now()
        return all(life.world.is_ready(ref, now) for ref in topology.resources)

    assert await daemon.until(there, HOUR)


def gone(life: Life) -> bool:
    return not any("old" in ref.name for ref in life.world.things)


def buried(daemon: Daemon) -> bool:
    return not daemon.state.view.orphans and not daemon.state.retired


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop.run(story())


def test_nothing_goes_without_retire() -> None:
    """An orphan stays for a day as it is, is reported, and nobody touches it."""

    async def story() -> None:
        life, (whole, rest) = Life(), fleets()
        async with life.daemon() as daemon:
            await bring_up(life, daemon, whole)
            before = len(life.world.deeds)
            await daemon.take(rest)
            assert not await daemon.until(lambda: gone(life), timedelta(days=1))
            assert len(life.world.deeds) == before
            orphaned = {h.ref for h in daemon.state.plans["toy"].holds}
            assert orphaned == whole.resources.keys() - rest.resources.keys()
            reasons = {hold.reason for hold in daemon.state.plans["toy"].holds}
            assert reasons == {HoldReason.ORPHANED}

    play(story)


def test_a_retired_family_goes_from_the_top() -> None:
    """Who stands on another goes first; at the end nothing is known of any, on disk either."""

    async def story() -> None:
        life, (whole, rest) = Life(), fleets()
        async with life.daemon() as daemon:
            await bring_up(life, daemon, whole)
            await daemon.take(rest)
            shown = daemon.commands.retirable(OLD)
            with pytest.raises(retirement.OthersGo):
                await daemon.commands.retire(OLD, who="eve", agreed=lambda going: going == [OLD])
            assert daemon.core.state.retired == frozenset()
            going = await daemon.commands.retire(OLD, who="ada", agreed=lambda now: now == shown)
            assert going == shown
            assert await daemon.until(lambda: buried(daemon), HOUR)
        removed = [deed.ref for deed in life.world.deeds if deed.verb == "remove"]
        assert removed[2:] == [Ref("vault", "old"), OLD]
        assert set(removed[:2]) == {Ref("agent", "old.a"), Ref("agent", "old.b")}
        assert set(removed) == set(going)
        assert life.world.harm == []
        assert gone(life)
        for table in (records.ORPHANS, records.RETIRED):
            assert await life.store.load(table) == {}
        told = [one.event.message for one in await life.store.events(ref=OLD)]
        assert "by ada, and 3 more with it" in told

    play(story)


@pytest.mark.parametrize("side", SIDES)
def test_a_crash_at_any_removal_changes_nothing_about_the_end(side: str) -> None:
    """After a power cut around each removal the next daemon goes on from the records alone."""

    async def story(number: int) -> None:
        life, (whole, rest) = Life(), fleets()
        async with life.daemon() as daemon:
            await bring_up(life, daemon, whole)
            await daemon.take(rest)
            await daemon.commands.retire(OLD, who="ada")
        power = Power(cut_at=(number, side))
        async with life.daemon(power) as daemon:
            await daemon.until(lambda: not power.on, HOUR)
        assert power.was_cut
        async with life.daemon() as daemon:
            assert await daemon.until(lambda: buried(daemon), HOUR)
        assert gone(life)
        assert life.world.harm == []

    for number in range(4):
        loop.run(story(number))


@pytest.mark.parametrize("kept", ["", records.CONDITIONS, records.ORPHANS])
def test_a_crash_between_the_records_of_a_burial_is_mended(kept: str) -> None:
    """Whatever of the three records is gone already, the next start finishes or forgets."""

    async def story() -> None:
        life, (whole, rest) = Life(), fleets()
        async with life.daemon() as daemon:
            await bring_up(life, daemon, whole)
            await daemon.take(rest)
            await daemon.commands.retire(Ref("agent", "old.a"), who="ada")
        del life.world.things[Ref("agent", "old.a")]
        for table in (records.CONDITIONS, records.ORPHANS):
            if kept:
                await life.store.put(table, {"agent/old.a": None})
            if table == kept:
                break
        async with life.daemon() as daemon:

            def forgotten() -> bool:
                return Ref("agent", "old.a") not in daemon.state.view.orphans

            assert await daemon.until(forgotten, HOUR)
        async with life.daemon() as daemon:
            # Asked for again, it is made again: an old retirement does not follow it.
            await daemon.take(whole)
            there = life.world.things
            assert await daemon.until(lambda: Ref("agent", "old.a") in there, HOUR)
            assert daemon.state.retired == frozenset()

    play(story)


def test_a_document_that_comes_back_ends_the_retirement() -> None:
    """What is named again is kept, or made again where it was gone already."""

    async def story() -> None:
        life, (whole, rest) = Life(), fleets()
        async with life.daemon() as daemon:
            await bring_up(life, daemon, whole)
            await daemon.take(rest)
            await daemon.commands.retire(OLD, who="ada")
            agents = [Ref("agent", "old.a"), Ref("agent", "old.b")]
            there = life.world.things
            assert await daemon.until(lambda: not any(a in there for a in agents), HOUR)
            await bring_up(life, daemon, whole)
            assert daemon.state.retired == frozenset()
            assert not await daemon.until(lambda: OLD not in there, HOUR)
        assert await life.store.load(records.RETIRED) == {}
        assert [d.effect for d in life.world.deeds if (d.ref, d.verb) == (OLD, "remove")] == []

    play(story)


def test_what_a_document_names_cannot_be_retired() -> None:
    """It would be made again, so the document is to be changed first."""
    whole, _ = fleets()
    with pytest.raises(CannotRetire, match="still named by a document"):
        retirement.check(OLD, whole, {}, frozenset())


def test_what_is_unknown_cannot_be_retired() -> None:
    """The refusal says where to look."""
    _, rest = fleets()
    with pytest.raises(CannotRetire, match="get orphans"):
        retirement.check(OLD, rest, {}, frozenset())


def test_what_is_still_needed_cannot_be_retired() -> None:
    """Neither by what is wanted nor by another orphan that nobody retired."""
    whole, rest = fleets()
    orphans = {ref: one for ref, one in whole.resources.items() if ref not in rest.resources}
    vault = Ref("vault", "old")
    with pytest.raises(CannotRetire, match=r"agent/old.a is an orphan too .* retire cluster/old"):
        retirement.check(vault, rest, orphans, frozenset())
    agents = frozenset({Ref("agent", "old.a"), Ref("agent", "old.b")})
    retirement.check(vault, rest, orphans, agents)
    user = replace(fleet._thing("cloud", "prod", [vault]), region="toy")
    wanted = Topology(digest="d", resources={user.ref: user}, edges=())
    with pytest.raises(CannotRetire, match="cloud/prod still needs vault/old"):
        retirement.check(vault, wanted, orphans, agents)


def test_a_sum_goes_after_its_parts_and_they_after_whoever_needs_it() -> None:
    """A pool outlives its servers, and these the cluster that stands on the pool; the parts of a
    sum can be retired though the sum, an orphan too, names them."""
    pool, server, cluster = Ref("pool", "p"), Ref("server", "s"), Ref("cluster", "c")
    region = Ref("region", "r")
    things = {
        one.ref: replace(one, owner=owner)
        for one, owner in (
            (fleet._thing("server", "s", ()), pool),
            (fleet._thing("pool", "p", ()), pool),
            (fleet._thing("cluster", "c", [pool]), cluster),
            (fleet._thing("agent", "a", [cluster]), cluster),
            (fleet._thing("project", "x", ()), region),
            (fleet._thing("region", "r", [Ref("agent", "a")]), region),
        )
    }
    tombs = retirement.tombstones(things, things.keys())

    assert {str(ref): sorted(map(str, tomb.needs)) for ref, tomb in tombs.items()} == {
        "agent/a": [],
        "cluster/c": ["agent/a"],
        "server/s": ["cluster/c"],
        "pool/p": ["cluster/c", "server/s"],
        "project/x": [],
        "region/r": ["agent/a", "project/x"],
    }
    assert tombs[server].rank > tombs[cluster].rank
    retirement.check(cluster, fleet.topology([]), things, frozenset())
    with pytest.raises(CannotRetire, match="cluster/c"):
        retirement.check(pool, fleet.topology([]), things, frozenset())


def test_what_watches_over_others_goes_after_them() -> None:
    """Those of its own cluster; others are none of its business."""
    registration = fleet._thing("registration", "c", ())
    there = {"cluster": "c"}
    things = {
        one.ref: one
        for one in (
            replace(registration, spec={**there, "outlives": ["hosts"]}),
            replace(fleet._thing("hosts", "c", ()), spec=there),
            replace(fleet._thing("hosts", "d", ()), spec={"cluster": "d"}),
        )
    }

    tombs = retirement.tombstones(things, things.keys())

    assert tombs[registration.ref].needs == {Ref("hosts", "c")}
    assert tombs[registration.ref].rank > tombs[Ref("hosts", "c")].rank
