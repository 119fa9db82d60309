"""What our driver has a Shoot believe, on a real API server: tokens of another real one."""

from pathlib import Path
from typing import Any

import pytest

from drivers.gardener import account, manifests
from fleetd.kube import tokens, trust
from fleetd.kube.client import KubeClient
from tests.conformance.kube.api import CORE, RBAC, Api, eventually
from tests.drivers.gardener.region import COMPONENTS, changed, want
from tests.real import lab
from tests.real.kube import Kube
from tests.real.reach import reached

pytestmark = pytest.mark.real

BELIEVED = 60.0
"""Seconds. The server reads the keys of the other by itself, a while after it has started."""


def _written(hub: Kube) -> str:
    """The file that a Shoot's API server is started with."""
    given = {"issuer": hub.server, "authority": hub.authority.certificate.read_text()}
    cluster = changed(want("cluster", "hv"), trust=given, kubernetes="1.34.2")
    (config,) = manifests.authentication(cluster)
    return str(config.body["data"]["config.yaml"])


async def _publish(hub: Api) -> None:
    """Who runs a management cluster does this: anybody may read its keys."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    anybody = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group"}
    bound = {
        "metadata": {"name": "keys"},
        "roleRef": {**role, "name": "system:service-account-issuer-discovery"},
        "subjects": [{**anybody, "name": "system:unauthenticated"}],
    }
    assert (await hub.post(f"{RBAC}/clusterrolebindings", bound)).status == 201


async def _account(hub: Api) -> None:
    await hub.post(f"{CORE}/namespaces", {"metadata": {"name": trust.NAMESPACE}})
    path = f"{CORE}/namespaces/{trust.NAMESPACE}/serviceaccounts"
    assert (await hub.post(path, {"metadata": {"name": trust.ACCOUNT}})).status == 201


async def test_a_server_believes_the_tokens_of_another_that_are_for_it(tmp_path: Path) -> None:
    """The file that we write is taken; who comes with a token of the other server for this one is
    the user whom we bind, and one for another cluster is refused."""
    lab.need(*lab.missing("crds"))
    with Kube(tmp_path / "hub", controllers=False) as hub:
        written = _written(hub)
        async with reached(hub.kubeconfig(pair=hub.admin)) as api:
            await _publish(api)
            await _account(api)
            client = KubeClient(api.transport)

            async def token(cluster: str) -> str:
                made = await tokens.of_account(
                    client, trust.NAMESPACE, trust.ACCOUNT, 600, [trust.audience(cluster)]
                )
                return made.secret.reveal()

            for_it, for_another = await token("hv"), await token("st")
        with Kube(tmp_path / "hv", controllers=False, believes=written) as target:
            pages = f"{CORE}/namespaces"
            async with reached(target.kubeconfig(token=for_it)) as flux:
                known = await eventually(lambda: flux.get(pages), 403, BELIEVED)
                binding: dict[str, Any] = dict(
                    account.manifests(want("access", "hv"), COMPONENTS, trusts=True)[-1].body
                )
                binding["apiVersion"] = "rbac.authorization.k8s.io/v1"
                bound = target.send("POST", f"{RBAC}/clusterrolebindings", binding)
                let_in = await eventually(lambda: flux.get(pages), 200)
            async with reached(target.kubeconfig(token=for_another)) as other:
                astray = await other.get(pages)

    assert (known.status, trust.USER in known.message) == (403, True)
    assert (bound[0], let_in.status, astray.status) == (201, 200, 401)
