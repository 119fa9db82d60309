"""The controlplane driver: what it writes, and that a stale Ready does not deceive it."""

import asyncio
from dataclasses import replace

import pytest

from drivers.openstack.controlplane import ControlPlaneDriver
from fleetd.sim import loop
from fleetd.sim.controllers import c5c3, korc, osservices
from fleetd.vocabulary import Truth
from tests.conformance.driver import suite
from tests.drivers.openstack import stage
from tests.drivers.openstack.stage import SPACE, Stage
from topology.resource import Resource

KEYSTONE = ("keystone.openstack.c5c3.io", "Keystone")


def operators(on: Stage) -> None:
    on.install(on.cp, *c5c3.CHARTS.values(), *osservices.CHARTS.values(), *korc.CHARTS.values())


def released(want: Resource, release: str) -> Resource:
    return replace(want, spec={**want.spec, "release": release}, generation=want.generation + 1)


def test_the_controlplane_driver_keeps_the_contract_of_drivers() -> None:
    """From nothing to a Ready control plane, each step twice, and unknown when cut off."""

    async def run() -> list[str]:
        async with stage.stage() as on:
            operators(on)
            want = stage.want("controlplane")
            return await suite.check(
                suite.Bench(
                    driver=ControlPlaneDriver(on.tools),
                    want=want,
                    bad=replace(want, spec={**want.spec, "release": "newest"}),
                    settle=lambda: asyncio.sleep(120),
                    cut=lambda: on.cut("cp"),
                    writes=lambda: sum(on.cp.writes.values()),
                    state=lambda: on.spec_of_everything(on.cp),
                )
            )

    assert loop.run(run()) == []


@pytest.mark.parametrize("kind", ["keystone", "glance", "placement", "horizon"])
def test_a_service_is_read_and_never_written(kind: str) -> None:
    """The operator makes it; the driver proposes nothing before, during or after."""

    async def run() -> tuple[int, Truth]:
        async with stage.stage() as on:
            operators(on)
            driver = ControlPlaneDriver(on.tools)
            proposed = 0
            await on.road(driver, stage.want("controlplane"), rounds=3)
            want = stage.want(kind)
            for _ in range(100):
                proposed += len(driver.propose(want, await driver.observe(want)))
                await asyncio.sleep(5)
            judged = driver.judge(want, await driver.observe(want))
            return proposed, judged[0].truth

    assert loop.run(run()) == (0, Truth.TRUE)


def test_right_after_a_raised_release_nothing_is_taken_for_upgraded() -> None:
    """The ControlPlane says AllReady with the new release everywhere; Keystone is Upgrading."""

    async def run() -> tuple[str, str, str]:
        async with stage.stage() as on:
            await on.control_plane()
            driver = ControlPlaneDriver(on.tools)
            plane, keystone = stage.want("controlplane"), stage.want("keystone")
            plane, keystone = released(plane, "2026.1"), released(keystone, "2026.1")
            seen = await driver.observe(plane)
            await on.carry_out(driver, driver.propose(plane, seen))
            await asyncio.sleep(1)
            lie = driver.judge(plane, await driver.observe(plane))[0].reason
            truth = driver.judge(keystone, await driver.observe(keystone))[0].reason
            await asyncio.sleep(600)
            end = driver.judge(keystone, await driver.observe(keystone))[0].reason
            return lie, truth, end

    lie, truth, end = loop.run(run())

    assert lie == "Healthy"  # which is why the services have entries of their own
    assert truth in ("Outdated", "Upgrading")
    assert end == "Healthy"


def test_a_retired_control_plane_is_deleted_only_if_fleetd_made_it() -> None:
    """With `destroys`, so that it needs approval."""

    async def run() -> tuple[int, list[bool], bool]:
        async with stage.stage() as on:
            operators(on)
            driver = ControlPlaneDriver(on.tools)
            gone = replace(stage.want("controlplane"), absent=True)
            none = driver.propose(gone, await driver.observe(gone))
            await on.road(driver, stage.want("controlplane"))
            steps = driver.propose(gone, await driver.observe(gone))
            await on.carry_out(driver, steps)
            await asyncio.sleep(120)
            left = on.cp.get(KEYSTONE, "prod-keystone", SPACE) is not None
            return len(none), [bool(step.destroys) for step in steps], left

    assert loop.run(run()) == (0, [True], False)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"release": "2025.3"}, "no OpenStack release"),
        ({"services": ["nova"]}, "without keystone"),
        ({"size": "huge"}, "small, medium or large"),
    ],
)
def test_a_spec_that_cannot_be_made_is_refused(spec: dict[str, object], words: str) -> None:
    """Before anything is written."""

    async def run() -> list[str]:
        async with stage.stage() as on:
            want = stage.want("controlplane")
            bad = replace(want, spec={**want.spec, **spec})
            return list(ControlPlaneDriver(on.tools).check(bad))

    assert words in " ".join(loop.run(run()))
