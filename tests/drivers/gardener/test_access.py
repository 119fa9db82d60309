"""The way into a cluster: not yet, minted, renewed, refused, ended; and adopted clusters."""

import asyncio
import json
from datetime import timedelta

from drivers.gardener import access
from drivers.gardener.access import AccessDriver
from drivers.gardener.adopted import AdoptedDriver
from fleetd.secrets import Secret
from fleetd.sim import loop
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from tests.drivers.gardener.test_clusters import prepared, up
from topology.resource import Facts, Resource

HV = want("access", "hv")


def test_a_young_shoot_is_not_yet_an_error() -> None:
    """The garden answers 422, then 500, while there is no address or no CA (danger 13)."""

    async def act(region: Region) -> None:
        garden = await prepared(region)
        cluster = want("cluster", "hv")
        await region.carry_out(garden, garden.propose(cluster, await garden.observe(cluster)))
        driver = AccessDriver(region.tools)
        reasons: list[str] = []
        for _ in range(60):
            reasons.append(await region.reason(driver, HV))
            await asyncio.sleep(10)
        assert list(dict.fromkeys(reasons)) == ["NotMinted", "Healthy"]

    loop.run(place.play(act))


def test_what_has_no_shoot_is_absent() -> None:
    """Looked for and not there, which is not the same as not seen."""

    async def act(region: Region) -> None:
        seen = await AccessDriver(region.tools).observe(HV)
        assert seen.facts == {}

    loop.run(place.play(act))


def test_a_login_is_a_read_and_leaves_nothing_behind() -> None:
    """Nothing in the facts is the kubeconfig, and no write is in the ledger."""

    async def act(region: Region) -> None:
        await up(region)
        before = len(region.ledger.deeds)
        seen = await AccessDriver(region.tools).observe(HV)
        assert seen.facts is not None
        observed = dict(seen.facts["observed"])
        told = observed.pop("credentials")
        assert observed == {"minted": True, "expired": False}
        assert list(told) == ["kubeconfig"]
        assert told["kubeconfig"].keys() == {"version", "madeAt", "expires", "next"}
        assert len(region.ledger.deeds) == before
        assert "token" not in json.dumps(seen.facts)

    loop.run(place.play(act))


def test_it_is_renewed_long_before_it_ends() -> None:
    """After 14 hours the kubeconfig is a new one; a day later nothing has been refused."""

    async def act(region: Region) -> None:
        await up(region)
        driver = AccessDriver(region.tools)
        assert await region.reason(driver, HV) == "Healthy"
        first = region.tools.clusters.expires("cluster:hv")
        await asyncio.sleep(14 * 3600)
        assert await region.reason(driver, HV) == "Healthy"
        second = region.tools.clusters.expires("cluster:hv")
        assert first is not None
        assert second is not None
        assert second - first == timedelta(hours=14)

    loop.run(place.play(act))


def test_clusters_are_renewed_at_different_times() -> None:
    """The spread follows from the name, is bounded, and differs."""
    spreads = [access.spread(f"cluster-{number}") for number in range(50)]

    assert len(set(spreads)) > 40
    assert all(timedelta(0) <= one <= access.SPREAD for one in spreads)
    assert access.spread("hv") == access.spread("hv")


def test_a_garden_that_is_away_does_not_lock_us_out() -> None:
    """With a kubeconfig that is good the cluster is reached; without one nothing is known (12)."""

    async def act(region: Region) -> None:
        await up(region)
        driver = AccessDriver(region.tools)
        assert await region.reason(driver, HV) == "Healthy"
        region.cut("garden-eu-1")
        await asyncio.sleep(15 * 3600)
        assert await region.reason(driver, HV) == "Healthy"
        region.tools.clusters.drop("cluster:hv")
        seen = await driver.observe(HV)
        assert seen.facts is None
        assert seen.error

    loop.run(place.play(act))


def test_a_kubeconfig_that_ended_is_told() -> None:
    """A garden away for more than a day ends the access, and the reason says which it is."""

    async def act(region: Region) -> None:
        await up(region)
        driver = AccessDriver(region.tools)
        await region.reason(driver, HV)
        region.cut("garden-eu-1")
        await asyncio.sleep(25 * 3600)
        assert await region.reason(driver, HV) == "Expired"

    loop.run(place.play(act))


def test_a_refused_kubeconfig_is_minted_anew() -> None:
    """When certificate authorities were rotated the cluster refuses the old one, once."""

    async def act(region: Region) -> None:
        await up(region)
        driver = AccessDriver(region.tools)
        await region.reason(driver, HV)
        region.world.clusters["hv"].tokens.passes.clear()
        assert await region.reason(driver, HV) == "Refused"
        assert await region.reason(driver, HV) == "Healthy"

    loop.run(place.play(act))


class _Given:
    """Reads one kubeconfig, whatever is asked."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def read(self, access: Facts, want: Resource) -> Secret:
        return Secret(self.text)


def test_an_adopted_cluster_is_looked_at_and_never_changed() -> None:
    """It answers, or refuses its kubeconfig; nothing is ever proposed."""

    async def act(region: Region) -> None:
        there = region.world.add_cluster("old")
        config = there.kubeconfig(region.world.address("old"), there.admin_token())
        driver = AdoptedDriver(region.tools)
        object.__setattr__(region.tools, "secrets", _Given(json.dumps(config)))
        adopted = changed(want("cluster", "mgmt"), adopted={"access": {"file": "old"}})
        object.__setattr__(adopted, "backend", "cluster:old")
        assert await region.reason(driver, adopted) == "Adopted"
        there.tokens.passes.clear()
        assert await region.reason(driver, adopted) == "NotAnswering"
        assert driver.propose(adopted, await driver.observe(adopted)) == ()
        assert region.ledger.deeds == []

    loop.run(place.play(act))
