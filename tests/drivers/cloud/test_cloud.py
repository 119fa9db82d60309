"""The aggregate driver: pools, clouds and regions are as well as their parts."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from drivers.cloud.driver import AggregateDriver
from fleetd.sim import loop
from fleetd.vocabulary import READY, Condition, Truth
from tests.drivers.openstack import stage
from tests.drivers.openstack.stage import TOPOLOGY
from topology.resource import Ref, Resource

AT = datetime(2026, 3, 3, tzinfo=UTC)
SERVERS = [ref for ref in TOPOLOGY.resources if ref.kind == "server"]


def thought(truth: Truth, reason: str = "Healthy") -> Condition:
    return Condition(
        type=READY, truth=truth, reason=reason, message="", generation=1, since=AT, reason_since=AT
    )


GOOD = thought(Truth.TRUE)


def judged(want: Resource, known: dict[Ref, Condition]) -> str:
    async def run() -> str:
        async with stage.stage() as on:
            on.fleet.thought.update(known)
            driver = AggregateDriver(on.tools)
            seen = await driver.observe(want)
            assert driver.propose(want, seen) == ()
            found = driver.judge(want, seen)
            return found[0].reason if found else "Absent"

    return loop.run(run())


def all_good(want: Resource) -> dict[Ref, Condition]:
    return dict.fromkeys((*want.needs, *TOPOLOGY.regions[want.region]), GOOD)


@pytest.mark.parametrize(
    ("good", "failed", "reason"),
    [
        (14, 0, "Healthy"),
        (13, 0, "ServersComing"),
        (0, 0, "ServersComing"),
        (12, 2, "TooFewServers"),
        (0, 14, "TooFewServers"),
    ],
)
def test_a_pool_is_as_well_as_enough_of_its_servers(good: int, failed: int, reason: str) -> None:
    """What is on its way counts as coming; what has failed does not come by itself."""
    known = dict.fromkeys(SERVERS[:good], GOOD)
    bad = thought(Truth.FALSE, "BmcRefused")
    known |= dict.fromkeys(SERVERS[good : good + failed], bad)

    assert judged(stage.want("serverpool", "metal"), known) == reason


@pytest.mark.parametrize(
    ("good", "failed", "truth", "reason"),
    [
        (13, 0, Truth.UNKNOWN, "ServersUnseen"),
        (12, 1, Truth.UNKNOWN, "ServersUnseen"),
        (0, 0, Truth.UNKNOWN, "ServersUnseen"),
        (14, 0, Truth.TRUE, "Healthy"),
    ],
)
def test_servers_that_cannot_be_looked_at_are_not_missing(
    good: int, failed: int, truth: Truth, reason: str
) -> None:
    """The metal API is away: nobody knows whether the pool has enough, unless it surely has."""
    known = dict.fromkeys(SERVERS, thought(Truth.UNKNOWN, "NotObserved"))
    known |= dict.fromkeys(SERVERS[:good], GOOD)
    known |= dict.fromkeys(SERVERS[good : good + failed], thought(Truth.FALSE, "BmcRefused"))
    want = stage.want("serverpool", "metal")

    async def run() -> tuple[Truth, str]:
        async with stage.stage() as on:
            on.fleet.thought.update(known)
            driver = AggregateDriver(on.tools)
            (found,) = driver.judge(want, await driver.observe(want))
            return found.truth, found.reason

    assert loop.run(run()) == (truth, reason)


def test_the_spares_of_a_pool_may_fail() -> None:
    """Only as many as the clusters ask for must be healthy."""
    want = stage.want("serverpool", "metal")
    fewer = replace(want, spec={**want.spec, "wanted": 12})
    known = dict.fromkeys(SERVERS[:12], GOOD)
    known |= dict.fromkeys(SERVERS[12:], thought(Truth.FALSE, "BmcRefused"))

    assert judged(fewer, known) == "Healthy"


@pytest.mark.parametrize("kind", [Ref("cloud", "prod"), Ref("region", "eu-1")], ids=str)
def test_a_sum_is_ready_when_all_its_parts_are(kind: Ref) -> None:
    """One that is not Ready holds it up; one that failed fails it."""
    want = TOPOLOGY.resources[kind]
    known = all_good(want)
    waits = known | {Ref("hypervisors", "hv"): thought(Truth.FALSE, "Onboarding")}
    fails = known | {Ref("hypervisors", "hv"): thought(Truth.FALSE, "EvictionFailed")}

    assert [judged(want, one) for one in (known, waits, fails)] == [
        "Healthy",
        "PartsNotReady",
        "PartsFailed",
    ]


def test_what_nobody_has_looked_at_is_not_ready() -> None:
    """Silence is no proof."""
    assert judged(stage.want("cloud", "prod"), {}) == "PartsNotReady"


def test_a_region_does_not_count_single_servers() -> None:
    """They count through their pools."""
    want = stage.want("region", "eu-1")
    known = all_good(want) | {SERVERS[0]: thought(Truth.FALSE, "BmcRefused")}

    assert judged(want, known) == "Healthy"


def test_a_retired_sum_is_gone_at_once() -> None:
    """There is nothing to delete."""
    assert judged(replace(stage.want("cloud", "prod"), absent=True), {}) == "Absent"


def test_a_pool_must_say_how_many_servers_are_asked_for() -> None:
    """Otherwise it could never be short."""

    async def run() -> tuple[int, int]:
        async with stage.stage() as on:
            driver, want = AggregateDriver(on.tools), stage.want("serverpool", "metal")
            return len(driver.check(want)), len(driver.check(replace(want, spec={})))

    assert loop.run(run()) == (0, 1)
