"""The simulated OpenStack APIs: who gets in, what is told, and when nobody answers."""

import asyncio
import json
from typing import Any

import pytest

from fleetd.sim import loop
from fleetd.sim.services.openstack import TOKEN_LIFE
from fleetd.sim.world import HttpRequest, HttpResponse
from tests.drivers.openstack import stage
from tests.drivers.openstack.stage import Stage


def send(
    on: Stage, service: str, method: str, path: str, *, token: str = "", body: Any = None
) -> HttpResponse:
    request = HttpRequest(
        method=method,
        path=path.partition("?")[0],
        query=dict(one.split("=") for one in path.partition("?")[2].split("&") if one),
        headers={"x-auth-token": token} if token else {},
        body=json.dumps(body).encode() if body is not None else b"",
    )
    return on.world.services[f"{service}-prod"].handle(request)


def log_in(on: Stage, secret: str = "") -> HttpResponse:
    row = next(iter(on.cloud.tables["ApplicationCredential"].values()))
    given = {"id": row.id, "secret": secret or on.cloud.secrets[row.id]}
    identity = {"methods": ["application_credential"], "application_credential": given}
    return send(on, "keystone", "POST", "/v3/auth/tokens", body={"auth": {"identity": identity}})


def token(on: Stage) -> str:
    return log_in(on).headers["x-subject-token"]


def run(act: Any) -> Any:
    async def whole() -> Any:
        async with stage.stage() as on:
            await on.control_plane()
            return await act(on)

    return loop.run(whole())


def test_nobody_answers_before_the_services_are_up() -> None:
    """A load balancer with nobody behind it."""

    async def whole() -> list[int]:
        async with stage.stage() as on:
            services = ("keystone", "nova", "placement", "neutron", "cinder", "glance")
            return [send(on, name, "GET", "/").status for name in services]

    assert loop.run(whole()) == [503] * 6


def test_a_good_credential_gets_a_token_with_the_catalogue() -> None:
    """With the endpoints that were registered, and no others."""

    async def act(on: Stage) -> tuple[int, list[str]]:
        answer = log_in(on)
        catalogue = json.loads(answer.body)["token"]["catalog"]
        return answer.status, sorted(one["type"] for one in catalogue)

    wanted = ["block-storage", "compute", "identity", "image", "network", "placement"]
    assert run(act) == (201, wanted)


def test_a_wrong_secret_gets_nothing() -> None:
    """And no hint why."""

    async def act(on: Stage) -> tuple[int, bool]:
        answer = log_in(on, secret="wrong")
        return answer.status, b"token" in answer.body

    assert run(act) == (401, False)


@pytest.mark.parametrize(
    ("service", "path"),
    [
        ("keystone", "/v3/projects"),
        ("nova", "/v2.1/os-services"),
        ("placement", "/traits"),
        ("neutron", "/v2.0/agents"),
        ("cinder", "/v3/os-services"),
        ("glance", "/v2/images"),
    ],
)
def test_a_token_opens_and_ends(service: str, path: str) -> None:
    """Without one 401, with one 200, after its life 401 again."""

    async def act(on: Stage) -> list[int]:
        mine = token(on)
        first = send(on, service, "GET", path).status
        second = send(on, service, "GET", path, token=mine).status
        await asyncio.sleep(TOKEN_LIFE + 1)
        return [first, second, send(on, service, "GET", path, token=mine).status]

    assert run(act) == [401, 200, 401]


def test_a_host_is_searched_by_any_part_of_its_name() -> None:
    """Which is why names must not contain each other."""

    async def act(on: Stage) -> int:
        for name in ("cmp3", "cmp31", "other"):
            on.cloud.nova.register(name, "hv")
        path = "/v2.1/os-hypervisors?hypervisor_hostname_pattern=cmp3"
        found = json.loads(send(on, "nova", "GET", path, token=token(on)).body)
        return len(found["hypervisors"])

    assert run(act) == 2


def test_a_service_that_hosts_machines_cannot_be_deleted() -> None:
    """Nova refuses; when they are gone, hypervisor and provider go with the service."""

    async def act(on: Stage) -> tuple[int, int, int]:
        host = on.cloud.nova.register("cmp-01", "hv")
        vm = on.cloud.nova.boot("vm", "cmp-01")
        path = f"/v2.1/os-services/{host.id}"
        refused = send(on, "nova", "DELETE", path, token=token(on)).status
        on.cloud.nova.remove(vm)
        gone = send(on, "nova", "DELETE", path, token=token(on)).status
        listed = send(on, "placement", "GET", "/resource_providers", token=token(on)).body
        return refused, gone, len(json.loads(listed)["resource_providers"])

    assert run(act) == (409, 204, 0)


def test_a_trait_must_be_custom_and_is_made_once() -> None:
    """201, then 204; a standard name is refused."""

    async def act(on: Stage) -> list[int]:
        paths = ("/traits/CUSTOM_X", "/traits/CUSTOM_X", "/traits/HW_CPU")
        return [send(on, "placement", "PUT", path, token=token(on)).status for path in paths]

    assert run(act) == [201, 204, 400]


def test_a_host_that_lost_power_is_down_in_nova() -> None:
    """Whatever Kubernetes still says."""

    async def act(on: Stage) -> tuple[str, str]:
        on.host("cmp-01")
        on.hypervisors()
        await asyncio.sleep(60)

        def state() -> str:
            path = "/v2.1/os-services?binary=nova-compute"
            shown = json.loads(send(on, "nova", "GET", path, token=token(on)).body)
            return str(shown["services"][0]["state"])

        before = state()
        on.world.truth.machines["cmp-01"].on = False
        return before, state()

    assert run(act) == ("up", "down")


def test_the_same_seed_makes_the_same_cloud() -> None:
    """Ids, tokens and times, across runs."""

    async def act(on: Stage) -> str:
        await on.prerequisites()
        on.host("cmp-01")
        on.hypervisors()
        await asyncio.sleep(60)
        held = {kind: sorted(rows) for kind, rows in on.cloud.tables.items()}
        return json.dumps([held, token(on), on.world.elapsed(), list(map(str, on.world.trace))])

    assert run(act) == run(act)
