"""The way into a cluster: not yet, minted, renewed, refused, ended; and adopted clusters."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from drivers.gardener import access
from drivers.gardener.access import PROOF, AccessDriver
from drivers.gardener.adopted import AdoptedDriver
from fleetd.kube import errors
from fleetd.secrets import Secret
from fleetd.sim import loop
from fleetd.sim.faults import Plight
from fleetd.vocabulary import Truth
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from tests.drivers.gardener.test_clusters import SHOOT, prepared, up
from tests.drivers.refusals import refusing
from topology.resource import Facts, Resource

HV = want("access", "hv")
BACKEND = "cluster:hv"
KUBECONFIGS = {"adminkubeconfig", "viewerkubeconfig"}


async def inside(region: Region) -> AccessDriver:
    """The cluster is up, and fleetd goes in with a token of its own."""
    await up(region)
    driver = AccessDriver(region.tools)
    assert await region.road(driver, HV) == "Ready"
    return driver


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
            await region.carry_out(driver, driver.propose(HV, await driver.observe(HV))[:1])
            await asyncio.sleep(10)
        assert list(dict.fromkeys(reasons)) == ["NotMinted", "NoAccount", "Healthy"]

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
        assert observed == {"minted": True, "expired": False, "own": False}
        assert list(told) == ["kubeconfig"]
        assert told["kubeconfig"].keys() == {"version", "madeAt", "expires", "next"}
        assert len(region.ledger.deeds) == before
        assert "token" not in json.dumps(seen.facts)

    loop.run(place.play(act))


def test_fleetd_makes_itself_an_account_and_goes_in_with_that() -> None:
    """Four planned writes are done as an administrator; everything after them is not."""

    async def act(region: Region) -> None:
        await up(region)
        driver = AccessDriver(region.tools)
        seen = await driver.observe(HV)
        steps = driver.propose(HV, seen)
        kinds = [step.args["manifest"]["kind"] for step in steps]
        assert kinds == ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"]
        assert not any(step.disrupts or step.destroys for step in steps)
        await region.carry_out(driver, steps)
        made = region.world.clusters["hv"].list(("rbac.authorization.k8s.io", "ClusterRole"))
        await region.carry_out(driver, steps)
        again = region.world.clusters["hv"].list(("rbac.authorization.k8s.io", "ClusterRole"))
        assert made == again
        assert await region.reason(driver, HV) == "Healthy"
        asked: list[tuple[str, str]] = []
        region.world.clusters["hv"].log = lambda user, request, _: asked.append(
            (user, f"{request.method} {request.path}")
        )
        for _ in range(20):
            assert await region.reason(driver, HV) == "Healthy"
            await asyncio.sleep(3600)
        account = "system:serviceaccount:fleetd-system:fleetd"
        assert account in {user for user, _ in asked}
        # By the garden's grace: nothing but whether it is let in.
        assert {what for user, what in asked if user != account} == {f"GET {PROOF}"}

    loop.run(place.play(act))


def test_both_are_renewed_long_before_they_end() -> None:
    """After 14 hours both are new ones, and nothing has been refused."""

    async def act(region: Region) -> None:
        driver, clusters = await inside(region), region.tools.clusters
        before = clusters.expires(BACKEND), clusters.ends(BACKEND)
        await asyncio.sleep(14 * 3600)
        assert await region.reason(driver, HV) == "Healthy"
        after = clusters.expires(BACKEND), clusters.ends(BACKEND)
        assert None not in before
        for old, new in zip(before, after, strict=True):
            assert old is not None
            assert new is not None
            assert timedelta(hours=14) <= new - old < timedelta(hours=15)
        assert region.world.clusters["hv"].tokens.late == []

    loop.run(place.play(act))


def test_a_new_one_is_tried_before_the_old_one_is_given_up() -> None:
    """The garden mints one that the cluster does not take: everybody goes on with the old one."""

    async def act(region: Region) -> None:
        driver, clusters = await inside(region), region.tools.clusters
        before = clusters.kubeconfig(BACKEND).reveal()
        there = region.world.clusters["hv"]
        issue = there.token
        there.token = _unknown
        await asyncio.sleep(14 * 3600)
        assert await region.reason(driver, HV) == "Healthy"
        assert clusters.kubeconfig(BACKEND).reveal() == before
        there.token = issue
        assert await region.reason(driver, HV) == "Healthy"
        assert clusters.kubeconfig(BACKEND).reveal() != before

    loop.run(place.play(act))


def _unknown(*_args: object, **_more: object) -> str:
    return "unknown"


def test_a_silent_cluster_does_not_have_one_minted_at_every_look() -> None:
    """What could not be tried is kept and tried again; minting costs the garden a key pair."""

    async def act(region: Region) -> None:
        driver = await inside(region)
        await asyncio.sleep(14 * 3600)
        minted: list[str] = []
        region.garden.log = lambda _user, request, _status: minted.append(request.path)
        region.climate.plights["hv"] = Plight.UNREACHABLE
        for _ in range(5):
            await driver.observe(HV)
            await asyncio.sleep(120)
        del region.climate.plights["hv"]
        await asyncio.sleep(120)
        assert await region.reason(driver, HV) == "Healthy"
        assert len([one for one in minted if one.endswith("adminkubeconfig")]) == 1

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
        driver = await inside(region)
        region.cut("garden-eu-1")
        await asyncio.sleep(15 * 3600)
        assert await region.reason(driver, HV) == "Healthy"
        region.tools.clusters.drop(BACKEND)
        seen = await driver.observe(HV)
        assert seen.facts is None
        assert seen.error

    loop.run(place.play(act))


def test_a_garden_that_is_away_for_days_is_told_by_what_others_hold() -> None:
    """fleetd renews its own token at the cluster; what it hands on ends, and that is said."""

    async def act(region: Region) -> None:
        driver = await inside(region)
        region.cut("garden-eu-1")
        for _ in range(72):
            await asyncio.sleep(3600)
            assert await region.reason(driver, HV) == "Healthy"
        told = [one.reason for one in driver.judge(HV, await driver.observe(HV))]
        assert told == ["Healthy", "ExpiresSoon"]
        assert region.world.clusters["hv"].tokens.late == []

    loop.run(place.play(act))


def test_a_kubeconfig_that_ended_is_told() -> None:
    """A daemon that slept for a day with a garden that is away has nothing left to go in with."""

    async def act(region: Region) -> None:
        driver = await inside(region)
        region.cut("garden-eu-1")
        await asyncio.sleep(25 * 3600)
        assert await region.reason(driver, HV) == "Expired"

    loop.run(place.play(act))


def test_a_refused_kubeconfig_is_minted_anew() -> None:
    """When certificate authorities were rotated the cluster refuses the old one, once."""

    async def act(region: Region) -> None:
        driver = await inside(region)
        region.world.clusters["hv"].tokens.passes.clear()
        assert await region.reason(driver, HV) == "Refused"
        assert await region.reason(driver, HV) == "Healthy"

    loop.run(place.play(act))


def test_what_could_not_be_read_of_the_account_is_not_missing() -> None:
    """One refused request: nobody knows, nothing is written, and the next look knows again."""

    async def act(region: Region) -> None:
        driver = await inside(region)
        assert driver.propose(HV, await driver.observe(HV)) == ()
        await asyncio.sleep(access.LOOKED.total_seconds())
        with refusing(region.climate, "hv", "/clusterroles/") as refused:
            seen = await driver.observe(HV)
        assert len(refused) == 1
        assert (seen.facts, driver.propose(HV, seen)) == (None, ())
        assert await region.reason(driver, HV) == "Healthy"

    loop.run(place.play(act))


def test_a_cluster_of_others_is_entered_as_a_viewer() -> None:
    """No administrator's kubeconfig is minted and no account made, until it is taken over."""

    async def act(region: Region) -> None:
        garden = await up(region)

        def forget(live: dict[str, Any]) -> None:
            live["metadata"]["annotations"].pop("fleet.c5c3.io/generation")

        region.garden.edit(SHOOT, "hv", "garden-cobalt", forget, manager="t")
        await asyncio.sleep(1)
        minted: list[str] = []
        region.garden.log = lambda _user, request, _status: minted.append(request.path)
        driver = AccessDriver(region.tools)
        assert await region.reason(driver, HV) == "Healthy"
        seen = await driver.observe(HV)
        assert driver.propose(HV, seen) == ()
        there = region.tools.clusters.client(BACKEND)
        with pytest.raises(errors.Forbidden):
            await there.get(await there.find("", "Secret"), "x", "kube-system")
        assert {one.rpartition("/")[2] for one in minted} & KUBECONFIGS == {"viewerkubeconfig"}

        region.fleet.put(changed(want("cluster", "hv"), takeOver=True))
        assert await region.road(driver, HV) == "Ready"
        assert region.tools.clusters.alone(BACKEND)
        assert garden

    loop.run(place.play(act))


class _Given:
    """Reads one kubeconfig, whatever is asked."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def read(self, access: Facts, want: Resource) -> Secret:
        return Secret(self.text)


def test_what_a_cluster_does_not_let_us_follow_is_told_beside_ready() -> None:
    """A look at the cluster itself works, so nothing else would say why all on it is blind."""

    async def act(region: Region) -> None:
        driver = await inside(region)
        assert {one.type for one in driver.judge(HV, await driver.observe(HV))} == {"Ready"}
        region.tools.clusters.deaf = lambda backend: [f"nothing heard of Node: {backend} refuses"]
        told = {one.type: one for one in driver.judge(HV, await driver.observe(HV))}
        assert told["Ready"].truth is Truth.TRUE
        assert (told["Followed"].truth, told["Followed"].reason) == (Truth.FALSE, "NotFollowed")
        assert told["Followed"].message == "nothing heard of Node: cluster:hv refuses"

    loop.run(place.play(act))


def test_an_adopted_cluster_is_looked_at_and_never_changed() -> None:
    """It answers, or refuses its kubeconfig; nothing is ever proposed."""

    async def act(region: Region) -> None:
        there = region.world.add_cluster("old")
        config = there.kubeconfig(region.world.address("old"), there.admin_token())
        driver = AdoptedDriver(region.tools)
        object.__setattr__(region.tools, "secrets", _Given(json.dumps(config)))
        adopted = changed(
            want("cluster", "mgmt"), adopted={"access": {"file": "old"}, "manage": True}
        )
        object.__setattr__(adopted, "backend", "cluster:old")
        assert await region.reason(driver, adopted) == "Adopted"
        there.tokens.passes.clear()
        assert await region.reason(driver, adopted) == "Refused"
        assert driver.propose(adopted, await driver.observe(adopted)) == ()
        assert region.ledger.deeds == []

    loop.run(place.play(act))
