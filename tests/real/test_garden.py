"""Our way into a Shoot through a real garden, and what we hear when its server is away."""

import asyncio
import base64
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drivers.gardener import client
from fleetd.kube import errors
from fleetd.kube.client import KubeClient
from tests.conformance.garden.gardens import GARDEN, NAME, Plot
from tests.conformance.kube.api import CORE, RBAC, Answer, eventually
from tests.real import lab
from tests.real.certs import Authority
from tests.real.garden import Garden
from tests.real.kube import Kube
from tests.real.reach import reached

pytestmark = pytest.mark.real

ADMINS = "gardener.cloud:system:admins"
PATIENCE = 2.0
SOON = 60.0


async def _fault(call: Callable[[], Awaitable[object]]) -> str:
    """How a request fails."""
    try:
        await call()
    except errors.KubeError as found:
        return f"{type(found).__name__} {found.status}"
    return "none"


async def _give_address(plot: Plot, address: str) -> Answer:
    """As a gardenlet does when the API server of a Shoot is up."""
    status = {"advertisedAddresses": [{"name": "external", "url": address}]}
    return await plot.api.merge(plot.shoot(part="status"), {"status": status})


async def _give_authorities(plot: Plot, shoot: Kube, guests: Authority) -> None:
    """As a gardenlet does: who may sign for it, and by what it is known."""
    pair = {"ca.crt": guests.certificate.read_bytes(), "ca.key": guests.key()}
    secret = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "InternalSecret",
        "metadata": {"name": f"{NAME}.ca-client"},
        "data": {name: base64.b64encode(value).decode() for name, value in pair.items()},
    }
    await plot.api.post(f"{GARDEN}/namespaces/{plot.space}/internalsecrets", secret)
    authority = {"ca.crt": shoot.authority.certificate.read_text()}
    named = {"metadata": {"name": f"{NAME}.ca-cluster"}, "data": authority}
    await plot.api.post(f"{CORE}/namespaces/{plot.space}/configmaps", named)


async def _mint(kube: KubeClient, plot: Plot) -> client.Minted:
    """The garden's server hears a little later of what was written to it."""
    async with asyncio.timeout(SOON):
        while True:
            try:
                return await client.kubeconfig(kube, plot.space, NAME, 3600)
            except client.NotYet:
                await asyncio.sleep(0.1)


async def test_a_garden_lets_us_into_a_shoot(tmp_path: Path) -> None:
    """Not yet while the Shoot is young; then with a kubeconfig that another API server takes."""
    document = lab.admin("garden")
    guests = Authority(tmp_path, "shoot-clients", rsa_key=True)
    with Kube(tmp_path / "shoot", controllers=False, guests=guests) as shoot:
        async with reached(document) as api:
            plot, kube = Plot(api, "entered"), KubeClient(api.transport)
            await plot.lay()
            await plot.plant()

            async def ask(seconds: int = 3600, name: str = NAME) -> client.Minted:
                return await client.kubeconfig(kube, plot.space, name, seconds)

            homeless = await _fault(ask)
            addressed = await _give_address(plot, shoot.server)
            unsigned = await _fault(ask)
            await _give_authorities(plot, shoot, guests)
            minted = await _mint(kube, plot)
            short, stranger = await _fault(lambda: ask(60)), await _fault(lambda: ask(name="none"))
        async with reached(minted.secret) as inside:
            before = await inside.get(f"{CORE}/namespaces")
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
            group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": ADMINS}
            bound = {
                "metadata": {"name": "admins"},
                "roleRef": {**role, "name": "cluster-admin"},
                "subjects": [group],
            }
            shoot.send("POST", f"{RBAC}/clusterrolebindings", bound)
            after = await eventually(lambda: inside.get(f"{CORE}/namespaces"), 200)

    assert addressed.status == 200
    assert (homeless, unsigned) == ("NotYet 422", "NotYet 500")
    assert (short, stranger) == ("Invalid 422", "NotFound 404")
    assert abs(minted.expires - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=2)
    assert (before.status, after.status) == (403, 200)


async def test_a_garden_that_is_away_says_so(tmp_path: Path) -> None:
    """Frozen, it costs its caller no more than his patience; dead, it is a fault that may pass;
    neither is taken for a Shoot that is gone, and the server in front goes on."""
    lab.need(*lab.missing("garden"))
    with Garden(tmp_path) as garden:
        async with reached(garden.kubeconfig(pair=garden.admin)) as api:
            kube = KubeClient(api.transport)
            shoots = await kube.find("core.gardener.cloud", "Shoot")

            async def ask() -> object:
                return await kube.get(shoots, NAME, "default")

            absent = await ask()
            os.kill(garden.running[-1].pid, signal.SIGSTOP)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await ask()
            meanwhile = await api.get(f"{CORE}/namespaces")
            os.kill(garden.running[-1].pid, signal.SIGCONT)
            thawed = await eventually(lambda: api.get(f"{GARDEN}/shoots"), 200, SOON)
            garden.running[-1].stop()
            dead = await _fault(ask)
            unknown = await _fault(
                lambda: KubeClient(api.transport).find("core.gardener.cloud", "Shoot")
            )

    assert absent is None
    assert (meanwhile.status, thawed.status) == (200, 200)
    assert (dead, unknown) == ("ServerFault 503", "ServerFault 503")
