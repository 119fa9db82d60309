"""The Flux driver keeps the contract of drivers, for each kind of thing that it drives."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fleetd.sim import loop
from tests.conformance.driver import suite
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import want
from topology.resource import Resource

SPOILT: dict[str, Any] = {"parameters": {}, "install": {"by": "flux-helm"}, "git": {}}


def _bad(one: Resource) -> Resource:
    return replace(one, spec={**one.spec, **SPOILT})


async def _check(one: Resource, before: Sequence[Resource], cut: str) -> list[str]:
    async with stages.opened() as stage:
        await stage.follow(*before)
        return await suite.check(stages.bench(stage, one, _bad(one), cut=cut))


FLUX = [want("flux", "mgmt")]
HV = [*FLUX, want("flux-source", "mgmt"), want("flux-target", "hv")]
CP = [*FLUX, want("flux-target", "cp")]


@pytest.mark.parametrize(
    ("one", "before", "cut"),
    [
        (want("flux", "mgmt"), [], "mgmt"),
        (want("flux-target", "hv"), FLUX, "mgmt"),
        (want("flux-source", "mgmt"), FLUX, "mgmt"),
        (want("flux-sync", "hv"), HV, "mgmt"),
        (want("cert-manager", "hv"), HV, "mgmt"),
        (want("cert-manager", "mgmt"), FLUX, "mgmt"),
        (want("nova-compute", "hv"), [*HV, want("ovn-controller", "hv")], "hv"),
        (want("k-orc", "cp"), CP, "mgmt"),
    ],
    ids=lambda value: str(value.ref) if isinstance(value, Resource) else "",
)
def test_the_flux_driver_keeps_the_contract(
    one: Resource, before: Sequence[Resource], cut: str
) -> None:
    """On a simulated world, from nothing to Ready and to a far side that is gone."""
    assert loop.run(_check(one, before, cut)) == []
