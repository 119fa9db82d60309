"""Tokens of service accounts, reviewed by a real API server."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from fleetd.daemon.access.guard import GuardedDoor
from fleetd.kube import tokens
from fleetd.kube.client import KubeClient
from fleetd.net import RealNetwork
from fleetd.settings import Address
from fleetd.surface import http
from tests.conformance.kube.api import CORE, RBAC, Api
from tests.real import lab
from tests.real.kube import Kube
from tests.real.reach import reached
from tests.real.test_login import Ahead
from tests.surface import panels

pytestmark = pytest.mark.real
KEPT = timedelta(seconds=31)
"""After which a review is asked for again."""
NOTICED = 30
"""Tries within which a server has noticed that an account is gone."""


@dataclass
class Asked:
    url: str
    clock: Ahead
    session: aiohttp.ClientSession

    async def who(self, token: str) -> tuple[int, Any]:
        self.clock.by += KEPT
        headers = {"Authorization": f"Bearer {token}"}
        async with self.session.get(f"{self.url}/api/v1/whoami", headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)


async def _account(api: Api, namespace: str, name: str) -> None:
    path = f"{CORE}/namespaces/{namespace}/serviceaccounts"
    assert (await api.post(path, {"metadata": {"name": name}})).status == 201


async def _token(api: Api, namespace: str, name: str, audience: str = "") -> str:
    audiences = [audience] if audience else []
    made = await tokens.of_account(KubeClient(api.transport), namespace, name, 600, audiences)
    return made.secret.reveal()


async def _reviewer(api: Api, namespace: str) -> str:
    """A token with the one right that fleetd needs for this."""
    await _account(api, namespace, "reviewer")
    bound = {
        "metadata": {"name": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:auth-delegator",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "reviewer", "namespace": namespace}],
    }
    assert (await api.post(f"{RBAC}/clusterrolebindings", bound)).status == 201
    return await _token(api, namespace, "reviewer")


@asynccontextmanager
async def guarded(folder: Path, document: Any, namespace: str) -> AsyncGenerator[Asked]:
    """A daemon that asks the cluster of a kubeconfig."""
    (folder / "review.kubeconfig").write_bytes(msgspec.json.encode(document))
    (folder / "review.kubeconfig").chmod(0o600)
    path, clock = folder / "access.toml", Ahead()
    path.write_text(
        '[kubernetes]\nkubeconfig = "review.kubeconfig"\naudience = "fleetd"\n'
        f'[[kubernetes.grants]]\ngroup = "system:serviceaccounts:{namespace}"\nrole = "operator"\n'
    )
    path.chmod(0o600)
    door = GuardedDoor(path, RealNetwork(), clock)
    try:
        async with (
            http.serving(panels.small(), Address("127.0.0.1", 0), door=door) as server,
            aiohttp.ClientSession() as session,
        ):
            yield Asked(server.url, clock, session)
    finally:
        await door.close()


async def test_tokens_of_service_accounts(tmp_path: Path) -> None:
    """One for us opens with the role of its namespace; one for somebody else, one of a namespace
    without a role, and one whose account was deleted do not."""
    document = lab.admin("crds")
    namespace = f"review-{uuid.uuid4().hex[:8]}"
    async with reached(document) as api:
        for name in (namespace, f"{namespace}-x"):
            assert (
                await api.post(f"{CORE}/namespaces", {"metadata": {"name": name}})
            ).status == 201
            await _account(api, name, "ci")
        good = await _token(api, namespace, "ci", "fleetd")
        sent = lab.for_token("crds", await _reviewer(api, namespace))
        async with guarded(tmp_path, sent, namespace) as here:
            status, told = await here.who(good)
            assert (status, told["role"], told["how"]) == (200, "operator", "kubernetes")
            assert told["name"] == f"system:serviceaccount:{namespace}:ci"
            for audience in ("others", ""):
                status, told = await here.who(await _token(api, namespace, "ci", audience))
                assert (status, told["detail"]) == (401, "the cluster does not know this token")
            stranger = await _token(api, f"{namespace}-x", "ci", "fleetd")
            assert (await here.who(stranger))[0] == 403
            status, told = await here.who(f"{good[:-4]}AAAA")
            assert (status, told["code"]) == (401, "unauthorized")

            await api.delete(f"{CORE}/namespaces/{namespace}/serviceaccounts/ci")
            for _ in range(NOTICED):
                status, told = await here.who(good)
                if status == 401:
                    break
                await asyncio.sleep(0.5)
            assert (status, told["detail"]) == (401, "the cluster does not know this token")


async def test_an_api_server_that_is_away(tmp_path: Path) -> None:
    """Nobody can be known then, which is said, and is no answer about the token."""
    lab.need(*lab.missing("crds"))
    with Kube(tmp_path / "cluster", controllers=False) as cluster:
        document = cluster.kubeconfig(pair=cluster.admin)
        async with reached(document) as api:
            await _account(api, "default", "ci")
            good = await _token(api, "default", "ci", "fleetd")
        async with guarded(tmp_path, document, "default") as here:
            assert (await here.who(good))[0] == 200
            await asyncio.to_thread(cluster.stop)
            status, told = await here.who(good)
            assert (status, told["code"]) == (503, "login-unavailable")
            assert told["detail"] == ("the cluster that knows tokens does not answer; try again")
