"""What is written on Hypervisors fits the real CRD; and what the simulator makes does."""

import asyncio
from typing import Any

from fleetd.sim import loop
from fleetd.sim.controllers import eviction, hypervisor
from tests.contract import crds
from tests.drivers.openstack import stage
from tests.sim import test_hypervisor as play


def test_the_simulated_hypervisor_and_eviction_fit_the_real_crds() -> None:
    """Spec and status, in the middle of an eviction."""

    async def run() -> list[Any]:
        async with stage.stage() as on:
            await play.onboarded(on, "cmp-01", "cmp-02")
            on.cloud.nova.boot("vm", "cmp-01")
            play.spec(on, "cmp-01", maintenance="manual", maintenanceReason="test")
            await asyncio.sleep(15)
            return [
                on.hv.get(hypervisor.HYPERVISOR, "cmp-01"),
                on.hv.get(eviction.EVICTION, "cmp-01"),
            ]

    for live in loop.run(run()):
        assert crds.problems(live, "kvm.cloud.sap", live["kind"]) == []
