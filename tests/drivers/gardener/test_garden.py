"""What fleetd keeps in a garden beside clusters, and what it only looks at."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from drivers.gardener import credentials
from drivers.gardener.driver import GardenerDriver
from fleetd.sim import loop
from fleetd.sim.faults import Plight
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want

BINDING = ("security.gardener.cloud", "CredentialsBinding")
PROFILE = ("core.gardener.cloud", "CloudProfile")
SEED = ("core.gardener.cloud", "Seed")
SECRET = ("", "Secret")


async def _ready(region: Region) -> GardenerDriver:
    driver = GardenerDriver(region.tools)
    assert await region.road(driver, want("garden-project")) == "Ready"
    assert await region.road(driver, want("credentials-binding")) == "Ready"
    return driver


def _token(region: Region) -> str:
    secret = region.garden.get(SECRET, "metal", "garden-cobalt")
    assert secret is not None
    return str(secret["data"]["token"])


def test_no_token_is_in_facts_or_steps() -> None:
    """The token for the metal API is written by a verb, and seen by nobody else."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        assert await region.road(driver, want("garden-project")) == "Ready"
        binding = want("credentials-binding")
        steps = driver.propose(binding, await driver.observe(binding))
        assert steps[-2].verb == credentials.MINT
        await region.carry_out(driver, steps)
        await asyncio.sleep(1)
        seen = await driver.observe(binding)
        told = json.dumps([seen.facts, [step.args for step in steps]])
        assert _token(region) not in told
        assert (seen.facts or {})["observed"]["secret"] == "present"

    loop.run(place.play(act))


def test_a_token_that_is_refused_is_replaced() -> None:
    """The metal API does not know it any more: fleetd writes a new one."""

    async def act(region: Region) -> None:
        driver = await _ready(region)
        before = _token(region)
        region.metal.tokens.passes = {
            token: given
            for token, given in region.metal.tokens.passes.items()
            if given.account is None
        }
        binding = want("credentials-binding")
        assert await region.reason(driver, binding) == "Refused"
        assert await region.road(driver, binding) == "Ready"
        assert _token(region) != before

    loop.run(place.play(act))


def test_a_token_is_renewed_with_a_month_left() -> None:
    """It is good for 60 days and replaced after 30; Ready all the while."""

    async def act(region: Region) -> None:
        driver = await _ready(region)
        binding = want("credentials-binding")
        before = _token(region)
        await asyncio.sleep(timedelta(days=29).total_seconds())
        assert list(driver.propose(binding, await driver.observe(binding))) == []
        await asyncio.sleep(timedelta(days=2).total_seconds())
        assert await region.road(driver, binding) == "Ready"
        assert _token(region) != before

    loop.run(place.play(act))


def test_a_binding_of_others_is_left_as_it_is() -> None:
    """Made by fleetd only if missing; what is there belongs to who made it."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        assert await region.road(driver, want("garden-project")) == "Ready"
        metadata = {"name": "metal", "namespace": "garden-cobalt"}
        region.garden.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {}}, manager="me"
        )
        named = {"apiVersion": "v1", "kind": "Secret", **metadata}
        region.garden.create(
            {
                "apiVersion": "security.gardener.cloud/v1alpha1",
                "kind": "CredentialsBinding",
                "metadata": metadata,
                "provider": {"type": "ironcore-metal"},
                "credentialsRef": named,
            },
            manager="me",
        )
        await asyncio.sleep(1)
        binding = want("credentials-binding")
        assert await region.reason(driver, binding) == "Refused"
        assert list(driver.propose(binding, await driver.observe(binding))) == []

    loop.run(place.play(act))


def test_a_project_shared_by_two_regions_has_one_owner() -> None:
    """The second region finds it and leaves it; two owners would overwrite each other for ever."""

    async def act(region: Region) -> None:
        driver = await _ready(region)
        mine = want("garden-project")
        other = replace(mine, ref=mine.ref._replace(name="eu-9"))
        seen = await driver.observe(other)
        assert driver.judge(other, seen)[0].reason == "Healthy"
        assert driver.propose(other, seen) == ()

    loop.run(place.play(act))


def test_a_retired_project_is_confirmed_first() -> None:
    """A garden deletes a Project only with the confirmation, and its namespace after it."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        assert await region.road(driver, want("garden-project")) == "Ready"
        gone = replace(want("garden-project"), absent=True)
        steps = driver.propose(gone, await driver.observe(gone))
        assert [(step.verb, step.args["kind"]) for step in steps] == [
            ("confirm-deletion", "Project"),
            ("delete", "Project"),
            ("delete", "Namespace"),
        ]
        await region.carry_out(driver, steps)
        await asyncio.sleep(10)
        assert (await driver.observe(gone)).facts == {}

    loop.run(place.play(act))


def test_a_version_that_the_profile_lacks_is_counted() -> None:
    """A document asks for a version that nobody offers: the profile says which."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        profile = want("cloud-profile")
        assert await region.reason(driver, profile) == "Healthy"
        region.fleet.put(changed(want("cluster", "hv"), kubernetes="1.99.0"))
        assert await region.reason(driver, profile) == "VersionMissing"
        seen = await driver.observe(profile)
        assert (seen.facts or {})["observed"]["missing"] == ["Kubernetes 1.99.0 for hv"]

    loop.run(place.play(act))


def test_an_image_that_expired_counts_as_missing_and_one_that_will_is_named() -> None:
    """Gardener replaces what has expired by itself, so it is told ahead."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        profile = want("cloud-profile")
        await _expire(region, timedelta(days=20))
        seen = await driver.observe(profile)
        assert (seen.facts or {})["observed"]["expiring"] == [
            "image gardenlinux 1877.4.0 expires soon"
        ]
        await asyncio.sleep(timedelta(days=21).total_seconds())
        assert await region.reason(driver, profile) == "ImageMissing"

    loop.run(place.play(act))


async def _expire(region: Region, left: timedelta) -> None:
    until = (region.world.now() + left).strftime("%Y-%m-%dT%H:%M:%SZ")

    def change(live: dict[str, Any]) -> None:
        for version in live["spec"]["machineImages"][0]["versions"]:
            if version["version"] == "1877.4.0":
                version["expirationDate"] = until

    region.garden.edit(PROFILE, "metal", "", change, manager="t")
    await asyncio.sleep(1)


def test_only_seeds_that_may_carry_the_region_are_judged() -> None:
    """A broken Seed of another provider does not make this region's unhealthy."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        ours = region.garden.get(SEED, "seed-eu-1")
        assert ours is not None
        spec = {**ours["spec"], "provider": {"type": "openstack", "region": "eu-1"}}
        region.garden.create(
            {
                "apiVersion": "core.gardener.cloud/v1beta1",
                "kind": "Seed",
                "metadata": {"name": "other"},
                "spec": spec,
            },
            manager="t",
        )
        await asyncio.sleep(1)
        seen = await driver.observe(want("seed"))
        names = [one["metadata"]["name"] for one in (seen.facts or {})["objects"]]
        assert names == ["seed-eu-1"]
        assert await region.reason(driver, want("seed")) == "Healthy"

    loop.run(place.play(act))


def test_a_garden_that_fails_in_plain_text_leaves_everything_unknown() -> None:
    """An aggregated API that is away answers 503 without a Status (danger 12)."""

    async def act(region: Region) -> None:
        driver = await _ready(region)
        region.climate.plights["garden-eu-1"] = Plight.FAILING
        region.garden.end_watches()
        await asyncio.sleep(120)
        for kind in ("garden-project", "credentials-binding", "cloud-profile", "seed"):
            seen = await driver.observe(want(kind))
            assert (seen.facts, bool(seen.error)) == (None, True)
            assert driver.propose(want(kind), seen) == ()

    loop.run(place.play(act))


def test_a_dead_metal_api_is_not_held_against_the_garden() -> None:
    """Looks that ask both say who was silent; the metal API is left alone, the garden is not."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        binding, project = want("credentials-binding"), want("garden-project")
        assert await region.road(driver, project) == "Ready"
        region.cut("metal-eu-1")
        said: list[str] = []
        for _ in range(20):
            said.append((await driver.observe(binding)).error)
            await asyncio.sleep(5)
        assert {one for one in said if "metal:eu-1" not in one} == set()
        assert region.gates.of("metal:eu-1").is_open
        assert not region.gates.of("garden:eu-1").is_open
        assert region.gates.of("garden:eu-1").failures == 0
        assert (await driver.observe(project)).facts

    loop.run(place.play(act))
