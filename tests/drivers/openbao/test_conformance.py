"""The openbao driver keeps the contract of drivers, for every kind that it looks after."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fleetd.sim import loop
from tests.conformance.driver import suite
from tests.drivers.openbao import stage
from tests.drivers.openbao.stage import Stage
from topology.resource import Resource

KINDS = (
    ("openbao", "mgmt"),
    ("openbao-engines", "mgmt"),
    ("openbao-policies", "mgmt"),
    ("openbao-auth", "hv"),
    ("openbao-auth", "cp"),
    ("openbao-secrets", "cp"),
    ("openbao-database", "prod"),
)


def _bad(one: Resource) -> Resource:
    return replace(one, spec={"cluster": "mgmt", "role": "management"})


def mariadb(there: Stage, cluster: str) -> None:
    """Ready, as its operator leaves it."""
    there_cluster = there.world.clusters[cluster]
    space = f"openstack-{cluster}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
    there_cluster.apply(body, manager="test")
    database = {
        "apiVersion": "k8s.mariadb.com/v1alpha1",
        "kind": "MariaDB",
        "metadata": {"name": "openstack-db", "namespace": space},
        "spec": {},
    }
    there_cluster.apply(database, manager="test")
    said: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}
    there_cluster.set_status(stage.MARIADB, "openstack-db", space, said, manager="test")


async def _prepared(there: Stage, kind: str) -> None:
    """Everything that the kind needs, and not the kind itself."""
    if kind == "openbao":
        return
    await there.follow(there.want("openbao"))
    if kind == "openbao-engines":
        return
    await there.follow(there.want("openbao-engines"))
    if kind == "openbao-policies":
        return
    await there.follow(there.want("openbao-policies"))
    if kind == "openbao-database":
        await there.follow(there.want("openbao-secrets", "cp"))
        mariadb(there, "cp")


async def _check(kind: str, name: str) -> list[str]:
    async with stage.opened() as there:
        await _prepared(there, kind)

        async def settle() -> None:
            await asyncio.sleep(60)

        one = there.want(kind, name)
        return await suite.check(
            suite.Bench(
                driver=there.driver(one),
                want=one,
                bad=_bad(one),
                settle=settle,
                cut=there.cut,
                writes=there.writes,
                state=there.state,
            )
        )


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_the_contract_is_kept(kind: str, name: str) -> None:
    """From nothing to Ready, each step twice, and unknown when out of reach."""
    assert loop.run(_check(kind, name)) == []


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_what_is_ready_is_not_written_again(kind: str, name: str) -> None:
    """Three looks, also by a new daemon: no step and no write."""

    async def story() -> tuple[int, int]:
        async with stage.opened() as there:
            await _prepared(there, kind)
            one = there.want(kind, name)
            await there.follow(one)
            before = there.writes()
            steps = 0
            for _ in range(3):
                there.restart()
                steps += len(await there.proposed(one))
                await asyncio.sleep(600)
            return steps, there.writes() - before

    assert loop.run(story()) == (0, 0)
