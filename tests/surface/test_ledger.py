"""The ledger of credentials: what needs attention first, who uses which version, nothing else."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleetd.surface import answers, ledger
from fleetd.vocabulary import Observation
from tests.surface import panels
from topology import catalogue_load
from topology.resource import Ref, Resource

CATALOGUE, _ = catalogue_load.load(())
NOW = panels.NOW


def day(count: float) -> str:
    """So many days from now."""
    return (NOW + timedelta(days=count)).isoformat()


def flow(name: str = "exporter") -> Resource:
    targets = [{"cluster": "cp", "namespace": "billing", "secret": "exporter"}]
    spec: dict[str, Any] = {
        "path": f"billing/{name}",
        "source": {"generate": {}},
        "targets": targets,
    }
    rule = {"rotation": {"every": "90d", "overlap": "7d"}}
    return replace(panels.resource("credentialflow", name), spec={**spec, **rule})


def book(*resources: Resource, **told: Mapping[str, Any]) -> list[answers.Credential]:
    """The ledger of these things, of which drivers told this (`kind__name`)."""
    seen: dict[Ref, Observation] = {}
    for one in resources:
        facts = told.get(f"{one.ref.kind}__{one.ref.name}".replace("-", "_"))
        if facts is not None:
            seen[one.ref] = Observation(ref=one.ref, at=NOW, facts={"observed": facts})
    return ledger.entries(panels.topology(*resources), CATALOGUE.get, seen.get, now=NOW)


def of_flow(**told: Any) -> answers.Credential:
    (item,) = book(flow(), credentialflow__exporter={"credentials": {"exporter": told}})
    return item


def test_a_flow_of_the_documents_is_in_it() -> None:
    """What, where, version, age, next rotation, who was seen with what."""
    item = of_flow(version=2, madeAt=day(-3), next=day(87), seen={"cp/billing/exporter": 2})
    assert item["where"] == ["openbao:billing/exporter"]
    assert (item["version"], item["ageSeconds"], item["state"]) == (2, 3 * 86400, "Good")
    assert str(item["nextRotation"]).startswith(f"{NOW + timedelta(days=87):%Y-%m-%d}")
    (use,) = item["usedBy"]
    assert (use["who"], use["version"]) == ("cp/billing/exporter", 2)
    assert item["stillOld"] == []


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({}, "NotSeen"),
        ({"version": 1, "madeAt": day(-1)}, "Good"),
        ({"version": 1, "madeAt": day(-91)}, "Overdue"),
        ({"version": 1, "madeAt": day(-1), "next": day(-0.1)}, "Overdue"),
        ({"version": 1, "madeAt": day(-20), "expires": day(-1)}, "Expired"),
        ({"version": 1, "madeAt": day(-20), "expires": day(1)}, "Expiring"),
        ({"version": 2, "madeAt": day(-1), "stillOld": ["cp/billing/exporter"]}, "Spreading"),
        ({"version": 2, "madeAt": day(-1), "older": [1]}, "OldKept"),
    ],
)
def test_states(told: dict[str, Any], state: str) -> None:
    """One word for what is to be done about it."""
    assert of_flow(**told)["state"] == state


def test_what_needs_attention_comes_first() -> None:
    """Whatever the names are; what nobody has seen comes last."""
    told = {
        "a": {"version": 1, "madeAt": day(-1)},
        "c": {"version": 1, "madeAt": day(-1), "stillOld": ["x"]},
        "d": {"version": 1, "madeAt": day(-99)},
    }
    named = {f"credentialflow__{name}": {"credentials": {name: one}} for name, one in told.items()}
    found = book(*(flow(name) for name in "abcd"), **named)
    assert [one["name"] for one in found] == ["d", "c", "a", "b"]


def test_a_user_tells_for_itself_what_it_holds() -> None:
    """A user with another version than the maker's is on an old one; and each uses the kubeconfig
    of its own cluster, though all stand on that of the management cluster."""
    mgmt, cp = (panels.resource("access", name) for name in ("mgmt", "cp"))
    user = panels.resource("flux-target", "cp", mgmt.ref, cp.ref)
    mgmt, cp = (replace(one, spec={"cluster": one.ref.name}) for one in (mgmt, cp))
    user = replace(user, spec={"cluster": "cp"})
    minted = {"version": day(1), "madeAt": day(0), "expires": day(1), "next": day(0.5)}
    found = book(
        *(mgmt, cp, user),
        access__mgmt={"credentials": {"kubeconfig": minted}},
        access__cp={"credentials": {"kubeconfig": minted}},
        flux_target__cp={"uses": {"kubeconfig": day(0.7)}},
    )
    old = {
        one["madeBy"]: (one["users"], one["stillOld"])
        for one in found
        if one["name"] == "kubeconfig"
    }
    assert old == {"access/cp": (1, ["flux-target/cp"]), "access/mgmt": (0, [])}


@pytest.mark.parametrize("junk", [None, 7, "text", [], {"version": {"a": 1}, "madeAt": 5}])
def test_what_makes_no_sense_is_left_out(junk: Any) -> None:
    """A driver that tells nonsense makes nothing of it come out, and breaks nothing."""
    (item,) = book(flow(), credentialflow__exporter={"credentials": {"exporter": junk}})
    assert (item["version"], item["state"]) == (None, "NotSeen")
