"""Gardener at the metal API by tokens of the garden, without a Secret."""

import asyncio
import json
from dataclasses import replace
from typing import Any

from drivers.gardener import manifests
from drivers.gardener.driver import GardenerDriver
from drivers.ironcore.driver import IroncoreDriver
from fleetd.sim import loop
from fleetd.vocabulary import Failed
from tests.contract import crds
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from topology.resource import Resource

SECRET = ("", "Secret")
METAL = "https://metal-eu-1.sim.invalid"


def _binding(*audiences: str) -> Resource:
    binding = want("credentials-binding")
    identity = {"audiences": list(audiences or (METAL,)), "prefix": ""}
    return changed(binding, garden={**binding.spec["garden"], "workloadIdentity": identity})


async def _project(region: Region) -> GardenerDriver:
    driver = GardenerDriver(region.tools)
    assert await region.road(driver, want("garden-project")) == "Ready"
    return driver


def test_a_cluster_comes_up_without_a_secret() -> None:
    """The identity, its rights at the metal API and the binding; then servers are claimed."""

    async def act(region: Region) -> None:
        metal = IroncoreDriver(region.tools)
        for ref, one in region.fleet.known.resources.items():
            if ref.kind == "server":
                await region.carry_out(metal, metal.propose(one, await metal.observe(one)))
        driver = await _project(region)
        assert await region.road(driver, _binding()) == "Ready"
        assert region.garden.get(SECRET, "metal", "garden-cobalt") is None
        grants = region.metal.get(
            (manifests.RBAC, "RoleBinding"), manifests.ACCOUNT, "garden-cobalt"
        )
        assert grants is not None
        name = grants["subjects"][0]["name"]
        assert name.startswith("gardener.cloud:workloadidentity:garden-cobalt:metal:")
        assert await region.road(driver, want("cluster", "hv")) == "Ready"

    loop.run(place.play(act))


def test_a_metal_api_that_does_not_believe_the_garden_is_told() -> None:
    """It refuses the token, for it is made for somebody else; nothing secret is in the facts."""

    async def act(region: Region) -> None:
        driver = await _project(region)
        binding = _binding("somebody-else")
        assert await region.road(driver, binding, seconds=300) == "Refused"
        seen = await driver.observe(binding)
        assert "eyJ" not in json.dumps(seen.facts)
        assert driver.propose(binding, seen) == ()

    loop.run(place.play(act))


def test_a_binding_is_not_switched_from_one_kind_to_the_other() -> None:
    """What it names is immutable; the step says what to do instead."""

    async def act(region: Region) -> None:
        driver = await _project(region)
        assert await region.road(driver, want("credentials-binding")) == "Ready"
        binding = _binding()
        (step,) = driver.propose(binding, await driver.observe(binding))
        outcome = await driver.apply(step)
        assert isinstance(outcome, Failed)
        assert "give garden.credentialsBinding another name" in outcome.message

    loop.run(place.play(act))


def test_it_goes_with_its_rights() -> None:
    """A retired one leaves nothing at the metal API that would let anybody in."""

    async def act(region: Region) -> None:
        driver = await _project(region)
        assert await region.road(driver, _binding()) == "Ready"
        gone = replace(_binding(), absent=True)
        for _ in range(20):
            steps = driver.propose(gone, await driver.observe(gone))
            await region.carry_out(driver, steps[:1])
            await asyncio.sleep(10)
        left = region.metal.list((manifests.RBAC, "RoleBinding"))
        assert left == []

    loop.run(place.play(act))


def test_it_fits_the_schema() -> None:
    """The identity and the binding that names it are as Gardener has them."""
    bodies: dict[str, dict[str, Any]] = {
        "security.v1alpha1.WorkloadIdentity": {
            **manifests.identity(_binding()).body,
            "status": {"sub": ""},
        },
        "security.v1alpha1.CredentialsBinding": {**manifests.binding(_binding()).body},
    }
    for name, body in bodies.items():
        body["apiVersion"] = "security.gardener.cloud/v1alpha1"
        assert crds.openapi_problems(body, name) == []
