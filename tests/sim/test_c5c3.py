"""The simulated c5c3-operator and service operators: order, waiting, and traps that were seen."""

import asyncio
from typing import Any

import pytest

from drivers.openstack import manifests
from fleetd.sim import loop
from fleetd.sim.controllers import c5c3, korc, osservices
from fleetd.sim.kube.refusal import Refused
from tests.drivers.openstack import stage
from tests.drivers.openstack.stage import SPACE, Stage

PLANE = c5c3.CONTROL_PLANE
KEYSTONE = ("keystone.openstack.c5c3.io", "Keystone")
HORIZON = ("horizon.openstack.c5c3.io", "Horizon")


def body(name: str = "prod") -> dict[str, Any]:
    made = dict(manifests.control_plane(stage.want("controlplane")).body)
    made["metadata"] = {"name": name, "namespace": SPACE}
    return made


def operators(on: Stage) -> None:
    on.install(on.cp, *c5c3.CHARTS.values(), *osservices.CHARTS.values(), *korc.CHARTS.values())


def release(on: Stage, wanted: str) -> None:
    def change(obj: dict[str, Any]) -> None:
        obj["spec"]["openStackRelease"] = wanted

    on.cp.edit(PLANE, "prod", SPACE, change, manager="t")


async def ready(on: Stage) -> None:
    operators(on)
    on.cp.create(body(), manager="t")
    await asyncio.sleep(900)
    assert on.condition(on.cp, PLANE, "prod", "Ready") == "True/AllReady"


def test_a_control_plane_comes_up_in_order_and_not_at_once() -> None:
    """Keystone is made after the database credentials, and minutes pass before all is ready."""

    async def run() -> tuple[str, bool, str]:
        async with stage.stage() as on:
            operators(on)
            on.cp.create(body(), manager="t")
            await asyncio.sleep(2)
            early = on.condition(on.cp, PLANE, "prod", "Ready")
            child = on.cp.get(KEYSTONE, "prod-keystone", SPACE) is not None
            await asyncio.sleep(900)
            return early, child, on.condition(on.cp, PLANE, "prod", "Ready")

    assert loop.run(run()) == ("False/NotAllReady", False, "True/AllReady")


def test_a_control_plane_without_its_database_waits_and_makes_nothing() -> None:
    """The conditions before Keystone block."""

    async def run() -> tuple[str, str, bool]:
        async with stage.stage() as on:
            operators(on)
            on.cp.delete(("k8s.mariadb.com", "MariaDB"), "openstack-db", SPACE)
            on.cp.create(body(), manager="t")
            await asyncio.sleep(900)
            return (
                on.condition(on.cp, PLANE, "prod", "InfrastructureReady"),
                on.condition(on.cp, PLANE, "prod", "KeystoneReady"),
                on.cp.get(KEYSTONE, "prod-keystone", SPACE) is not None,
            )

    assert loop.run(run()) == ("False/WaitingForMariaDB", "", False)


def test_a_second_control_plane_in_a_namespace_is_parked() -> None:
    """It says so, and makes no services."""

    async def run() -> tuple[str, bool]:
        async with stage.stage() as on:
            await ready(on)
            on.cp.create(body("other"), manager="t")
            await asyncio.sleep(60)
            child = on.cp.get(KEYSTONE, "other-keystone", SPACE)
            return on.condition(on.cp, PLANE, "other", "Ready"), child is not None

    assert loop.run(run()) == ("False/DuplicateControlPlane", False)


def test_a_downgrade_is_refused_at_admission() -> None:
    """Upgrades only go forward."""

    async def run() -> None:
        async with stage.stage() as on:
            await ready(on)
            with pytest.raises(Refused, match="downgrade"):
                release(on, "2025.1")

    loop.run(run())


def test_right_after_a_raised_release_the_control_plane_is_ready_of_before() -> None:
    """Ready, generation and services[].release all lie for a moment; installedRelease does not."""

    async def run() -> tuple[str, bool, str, str, str]:
        async with stage.stage() as on:
            await ready(on)
            release(on, "2026.1")
            await asyncio.sleep(1)
            plane = on.cp.get(PLANE, "prod", SPACE) or {}
            keystone = on.cp.get(KEYSTONE, "prod-keystone", SPACE) or {}
            current = plane["status"]["observedGeneration"] == plane["metadata"]["generation"]
            lies = plane["status"]["services"][0]["release"]
            truth = keystone["status"]["installedRelease"]
            reason = on.condition(on.cp, PLANE, "prod", "Ready")
            await asyncio.sleep(600)
            keystone = on.cp.get(KEYSTONE, "prod-keystone", SPACE) or {}
            return reason, current, lies, truth, keystone["status"]["installedRelease"]

    assert loop.run(run()) == ("True/AllReady", True, "2026.1", "2025.2", "2026.1")


def test_keystone_is_upgraded_in_phases() -> None:
    """Each phase is seen, in order, and none is left at the end."""

    async def run() -> tuple[list[str], str]:
        async with stage.stage() as on:
            await ready(on)
            release(on, "2026.1")
            seen: list[str] = []
            for _ in range(600):
                await asyncio.sleep(1)
                status = (on.cp.get(KEYSTONE, "prod-keystone", SPACE) or {})["status"]
                phase = status.get("upgradePhase", "")
                if not seen or seen[-1] != phase:
                    seen.append(phase)
            return seen, on.condition(on.cp, KEYSTONE, "prod-keystone", "Ready")

    phases, end = loop.run(run())

    assert phases == ["", *osservices.PHASES, ""]
    assert end == "True/AllReady"


def test_a_skipped_release_is_refused_by_the_service() -> None:
    """The ControlPlane takes it; Keystone does not."""

    async def run() -> str:
        async with stage.stage() as on:
            await ready(on)
            release(on, "2026.2")
            await asyncio.sleep(300)
            return on.condition(on.cp, KEYSTONE, "prod-keystone", "Ready")

    assert loop.run(run()) == "False/UpgradePathInvalid"


def test_a_service_taken_out_of_the_spec_stays_until_its_deletion_is_allowed() -> None:
    """The annotation is what deletes it."""

    async def run() -> tuple[bool, bool]:
        async with stage.stage() as on:
            await ready(on)

            def drop(obj: dict[str, Any]) -> None:
                del obj["spec"]["services"]["horizon"]

            def allow(obj: dict[str, Any]) -> None:
                allowed = {"c5c3.io/allow-horizon-deletion": "true"}
                obj["metadata"].setdefault("annotations", {}).update(allowed)

            on.cp.edit(PLANE, "prod", SPACE, drop, manager="t")
            await asyncio.sleep(120)
            kept = on.cp.get(HORIZON, "prod-horizon", SPACE) is not None
            on.cp.edit(PLANE, "prod", SPACE, allow, manager="t")
            await asyncio.sleep(120)
            return kept, on.cp.get(HORIZON, "prod-horizon", SPACE) is not None

    assert loop.run(run()) == (True, False)


def test_what_is_written_on_a_child_by_hand_is_set_back() -> None:
    """Children are projected."""

    async def run() -> str:
        async with stage.stage() as on:
            await ready(on)

            def change(obj: dict[str, Any]) -> None:
                obj["spec"]["image"]["tag"] = "2099.1"

            on.cp.edit(KEYSTONE, "prod-keystone", SPACE, change, manager="kubectl-edit")
            await asyncio.sleep(60)
            return (on.cp.get(KEYSTONE, "prod-keystone", SPACE) or {})["spec"]["image"]["tag"]

    assert loop.run(run()) == "2025.2"


def test_a_lost_database_takes_the_services_down() -> None:
    """Keystone does not answer without its database, and comes back with it."""

    async def run() -> tuple[bool, bool, bool]:
        async with stage.stage() as on:
            await ready(on)
            up = on.cloud.up("keystone")
            on.cp.set_status(
                ("k8s.mariadb.com", "MariaDB"),
                "openstack-db",
                SPACE,
                {"conditions": [{"type": "Ready", "status": "False", "reason": "x"}]},
                manager="t",
            )
            await asyncio.sleep(60)
            down = on.cloud.up("keystone")
            on.healthy(on.cp, "MariaDB", "openstack-db", SPACE, "Ready")
            await asyncio.sleep(120)
            return up, down, on.cloud.up("keystone")

    assert loop.run(run()) == (True, False, True)
