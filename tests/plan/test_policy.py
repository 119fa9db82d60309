"""The policy that Region documents and people give."""

from datetime import timedelta

import pytest

from fleetd.errors import FleetError
from fleetd.plan.nominal import NominalDriver
from fleetd.plan.policy import Pause, Policy
from fleetd.vocabulary import Observation
from tests.plan import fleets
from tests.plan.fleets import NOW, ref, thing
from topology.documents.region import Region

DOCUMENT = {
    "apiVersion": "fleet.c5c3.io/v1alpha1",
    "kind": "Region",
    "metadata": {"name": "eu-1"},
    "spec": {
        "zones": ["a"],
        "garden": {"access": {"file": "g"}, "project": "cobalt", "cloudProfile": "metal"},
        "metal": {"provider": "ironcore", "access": {"file": "m"}},
        "git": {"url": "https://git.example/x.git"},
        "windows": [{"days": ["Tue"], "from": "22:00", "to": "04:00", "zone": "Europe/Berlin"}],
        "freezes": [{"from": "2026-12-20", "to": "2027-01-06", "reason": "year's end"}],
        "budgets": {"rack": 2, "zone": "5%"},
    },
}


def test_a_region_document_becomes_a_policy() -> None:
    """Windows, freezes and budgets are taken over; other documents are passed over."""
    policy = Policy.of([Region.model_validate(DOCUMENT), object()], mass_max=0.2)

    found = policy.region("eu-1")
    assert list(policy.regions) == ["eu-1"]
    assert (found.windows[0].start, found.windows[0].end) == (
        timedelta(hours=22),
        timedelta(hours=28),
    )
    assert [freeze.reason for freeze in found.freezes] == ["year's end"]
    levels = ("rack", "zone", "pool", "role", "cluster")
    assert [found.budgets.of_level(level) for level in levels] == [2, "5%", "10%", 1, None]
    assert policy.mass_max == 0.2


def test_an_unknown_region_has_the_defaults() -> None:
    """Always open, with the budgets of an empty document."""
    found = Policy().region("eu-9")

    assert (found.windows, found.freezes, found.budgets.rack) == ((), (), 1)


def test_the_narrowest_pause_is_told() -> None:
    """Of several pauses the one closest to the thing says who and why."""
    scopes = ["all", "region:eu-1", "kind:server", "server/a"]
    pauses = [Pause(scope=scope, who=scope, why="", since=NOW) for scope in scopes]

    for number in range(len(scopes), 0, -1):
        found = Policy.of([], pauses=pauses[:number]).pause(ref("server/a"), "eu-1")
        assert found is not None
        assert found.scope == scopes[number - 1]


async def test_the_nominal_driver_never_touches_the_world() -> None:
    """It proposes and judges, and refuses to look or act."""
    driver = NominalDriver(kind="gardener", deeds={"cluster": "create the shoot"})
    want = thing("cluster/hv")
    absent = Observation(ref=want.ref, at=NOW, facts={})

    assert [(step.verb, step.why) for step in driver.propose(want, absent)] == [
        ("ensure", "create the shoot")
    ]
    assert driver.check(want) == ()
    with pytest.raises(FleetError, match="cluster/hv cannot be looked at offline"):
        await driver.observe(want)
    with pytest.raises(FleetError, match="create cluster/hv cannot be done offline"):
        await driver.apply(fleets.step(want, "create"))
