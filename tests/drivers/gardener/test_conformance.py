"""The garden's driver keeps the contract of drivers, for each kind of thing that it makes."""

from drivers.gardener.driver import GardenerDriver
from drivers.ironcore.driver import IroncoreDriver
from fleetd.sim import loop
from tests.conformance.driver import suite
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want

LONG = "far-too-long-a-name"


def _garden(project: str) -> dict[str, object]:
    return {**want("garden-project").spec["garden"], "project": project}


async def _servers(region: Region) -> None:
    driver = IroncoreDriver(region.tools)
    for ref, resource in region.fleet.known.resources.items():
        if ref.kind == "server":
            await region.carry_out(driver, driver.propose(resource, await driver.observe(resource)))


def test_the_driver_keeps_the_contract_for_a_project() -> None:
    """From nothing to Ready, each step applied twice, then blind."""

    async def act(region: Region) -> None:
        project = want("garden-project")
        driver = GardenerDriver(region.tools)
        bad = changed(project, garden=_garden(LONG))
        assert await suite.check(region.bench(driver, project, bad, 10)) == []

    loop.run(place.play(act))


def test_the_driver_keeps_the_contract_for_credentials() -> None:
    """The token is written by a verb that finds its own work again."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        assert await region.road(driver, want("garden-project")) == "Ready"
        binding = want("credentials-binding")
        bad = changed(binding, garden=_garden(LONG))
        assert await suite.check(region.bench(driver, binding, bad, 10)) == []

    loop.run(place.play(act))


def test_the_driver_keeps_the_contract_for_a_cluster() -> None:
    """A Shoot comes up on bare metal within 50 rounds of two minutes."""

    async def act(region: Region) -> None:
        driver = GardenerDriver(region.tools)
        await _servers(region)
        assert await region.road(driver, want("garden-project")) == "Ready"
        assert await region.road(driver, want("credentials-binding")) == "Ready"
        cluster = want("cluster", "hv")
        bad = changed(cluster, name=LONG * 2)
        assert await suite.check(region.bench(driver, cluster, bad, 120)) == []

    loop.run(place.play(act))
