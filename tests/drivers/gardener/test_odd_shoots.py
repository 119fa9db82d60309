"""Shoots and profiles that say less than they should, or what nobody says: read without a crash."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from drivers.gardener import manifests, offers, operations, shoots
from tests.drivers.gardener.region import want

NOW = datetime(2026, 3, 3, tzinfo=UTC)
HV = want("cluster", "hv")
SPEC: dict[str, Any] = json.loads(json.dumps(dict(manifests.shoot(HV).body)))["spec"]
FAILED = {"state": "Failed", "lastUpdateTime": "2026-03-01T00:00:00Z"}


def _newer() -> dict[str, Any]:
    made = copy.deepcopy(SPEC)
    made["kubernetes"]["version"] = "1.34.2"
    return made


STATUS: dict[str, Any] = {
    "nothing": None,
    "no last operation": {"lastOperation": None, "conditions": None, "constraints": None},
    "a bare constraint": {"constraints": [{}, {"type": "HibernationPossible"}]},
    "two constraints of one type": {
        "constraints": [{"type": "HibernationPossible", "status": one} for one in ("True", "True")]
    },
    "nothing is pending": {"inPlaceUpdates": None},
    "pending, and nothing in it": {"inPlaceUpdates": {"pendingWorkerUpdates": None}},
    "pending, without pools": {
        "inPlaceUpdates": {"pendingWorkerUpdates": {"manualInPlaceUpdate": None}}
    },
    "errors without codes": {"lastErrors": [{"codes": None}], "lastOperation": FAILED},
    "a time that is none": {"lastOperation": {**FAILED, "lastUpdateTime": "soon"}},
    "no rotation": {"credentials": None},
}


@pytest.mark.parametrize("which", STATUS)
def test_a_status_may_lack_anything(which: str) -> None:
    """An upgrade is judged by what is there; nothing of it is a reason to hold it back."""
    meta = {"name": "hv", "creationTimestamp": "2026-01-01T00:00:00Z"}
    shoot = {"metadata": meta, "spec": SPEC, "status": STATUS[which]}
    assert shoots.refusals(_newer(), shoot, None, NOW) == []
    assert shoots.told(shoot)["shoot-ca"] == {"madeAt": meta["creationTimestamp"]}
    operations.due(HV, shoot, NOW)


@pytest.mark.parametrize("spec", [None, {}, {"kubernetes": None}, {"provider": {"workers": None}}])
def test_a_shoot_that_does_not_say_what_it_is_is_left_alone(spec: Any) -> None:
    """Nothing can be compared with it, so nothing is sent, and that is said."""
    (said,) = shoots.refusals(SPEC, {"spec": spec, "status": {}}, None, NOW)
    assert "does not say which Kubernetes" in said


def test_a_shoot_without_pools_gets_some() -> None:
    """As one that others made: nothing of it rolls or shrinks."""
    bare = {**SPEC, "provider": {"type": SPEC["provider"]["type"], "workers": None}}
    assert shoots.rolled(SPEC, bare) == shoots.shrunk(SPEC, bare) == ()
    assert shoots.refusals(SPEC, {"spec": bare, "status": {}}, None, NOW) == []


OFFERS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "does not offer Kubernetes 1.34.2"),
    "nulls": (
        {"kubernetes": None, "machineTypes": None, "machineImages": None, "regions": None},
        "does not offer Kubernetes 1.34.2",
    ),
    "no versions": (
        {
            "kubernetes": {"versions": None},
            "machineImages": [{"name": "gardenlinux", "versions": None}, {}],
            "regions": [{"name": "eu-1", "zones": None}],
        },
        "does not offer image gardenlinux",
    ),
    "members without names": (
        {
            "kubernetes": {"versions": [{}]},
            "machineImages": [{"name": "gardenlinux", "versions": [{}]}],
            "machineTypes": [{}],
            "regions": [{}],
        },
        "does not offer machine type",
    ),
    "the region is gone": ({"regions": [{"name": "other"}]}, "has no zone a in region eu-1"),
}


@pytest.mark.parametrize("which", OFFERS)
def test_a_profile_may_lack_anything(which: str) -> None:
    """What is not offered is told, whatever else is missing."""
    offer, words = OFFERS[which]
    assert any(words in said for said in offers.lacking(_newer(), {}, offer, NOW))
    assert offers.expiring(_newer(), offer, NOW) == []


@pytest.mark.parametrize(
    "given",
    [
        {"expirationDate": "never"},
        {"lifecycle": [{}, {"classification": "expired", "startTime": "never"}]},
    ],
)
def test_a_date_that_is_none_holds_nothing_back(given: dict[str, Any]) -> None:
    """The garden takes no such profile; if one does, it decides."""
    offer = {"kubernetes": {"versions": [{"version": "1.34.2", **given}]}}
    said = list(offers.lacking(_newer(), SPEC, offer, NOW))
    assert not any("Kubernetes 1.34.2" in one for one in said)
