"""Thirty days of logins: no kubeconfig ever ends in use, also while the garden is away."""

import asyncio
import base64
import json
import random
from collections.abc import Sequence

import pytest

from drivers.flux.driver import FluxDriver
from drivers.gardener.access import AccessDriver
from fleetd.sim import loop
from fleetd.sim.faults import Plight
from fleetd.sim.kube.cluster import Cluster
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, want
from tests.drivers.gardener.test_clusters import up

LOOKS = 20 * 60
"""Seconds between two looks; a daemon looks every minute."""
HOUR = 3600
DAYS = 30
CLUSTERS = ("mgmt", "hv")
AWAY = 6


@pytest.mark.parametrize("away", [False, True], ids=["garden-there", "garden-away"])
def test_no_kubeconfig_ever_ends_in_use(*, away: bool) -> None:
    """Neither fleetd nor Flux is ever refused for a token that has ended; each is renewed at
    least once a day, and not much more often. With outages of six hours every other day."""

    async def act(region: Region) -> None:
        access, flux = await _begin(region)
        outages = _outages(region) if away else ()
        hv, mgmt = (region.world.clusters[name] for name in ("hv", "mgmt"))
        minted: list[str] = []
        region.garden.log = lambda _user, request, _status: minted.append(request.path)
        begun = region.world.elapsed()
        while (hours := (region.world.elapsed() - begun) / HOUR) < DAYS * 24:
            gone = any(start <= hours < start + AWAY for start in outages)
            _weather(region, gone=gone)
            await _look(region, access, flux)
            assert _taken(hv, mgmt), f"what Flux has ended after {hours:.1f} hours"
            await asyncio.sleep(LOOKS)
        assert [region.world.clusters[name].tokens.late for name in CLUSTERS] == [[], []]
        asked = sum(path.endswith("hv/adminkubeconfig") for path in minted)
        assert DAYS <= asked <= 3 * DAYS

    loop.run(place.play(act))


async def _begin(region: Region) -> tuple[AccessDriver, FluxDriver]:
    for name in CLUSTERS:
        await up(region, name)
    access, flux = AccessDriver(region.tools), FluxDriver(region.tools)
    for name in CLUSTERS:
        assert await region.road(access, want("access", name)) == "Ready"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}
    region.world.clusters["mgmt"].create(space, manager="t")
    await _look(region, access, flux)
    return access, flux


def _outages(region: Region) -> Sequence[float]:
    """At hours that follow from the seed."""
    chance = random.Random(region.world.seed)
    return [day * 24 + chance.uniform(0, 24 - AWAY) for day in range(0, DAYS, 2)]


def _weather(region: Region, *, gone: bool) -> None:
    if gone:
        region.climate.plights["garden-eu-1"] = Plight.UNREACHABLE
    else:
        region.climate.plights.pop("garden-eu-1", None)


async def _look(region: Region, access: AccessDriver, flux: FluxDriver) -> None:
    for name in CLUSTERS:
        assert await region.reason(access, want("access", name)) == "Healthy"
    target = want("flux-target", "hv")
    await region.carry_out(flux, flux.propose(target, await flux.observe(target)))


def _taken(hv: Cluster, mgmt: Cluster) -> bool:
    """Whether the cluster lets in who has what lies in Flux's Secret."""
    secret = mgmt.get(("", "Secret"), "hv-kubeconfig", "flux-system")
    assert secret is not None
    config = json.loads(base64.b64decode(secret["data"]["value"]))
    given = hv.tokens.passes[config["users"][0]["user"]["token"]]
    return given.expires is not None and given.expires > hv.time.now()
