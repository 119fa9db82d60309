"""Incidents and capacity as JSON: the fields that pages and scripts rely on."""

from dataclasses import replace

from fleetd.plan.capacity import Capacity, Count, Place
from fleetd.plan.incidents import Cause, Incident, Report, Severity
from fleetd.surface import reach, trouble
from tests.surface import panels
from tests.surface.panels import NOW
from topology.resource import Ref

ONE = Incident(
    id="0a1b",
    region="eu-1",
    severity=Severity.CRITICAL,
    cause=Cause(ref=Ref("rack", "a3"), reason="PowerOff", message="dark", since=NOW),
    affected=(Ref("server", "b"), Ref("cloud", "prod")),
    total=7,
    more=False,
    advice="",
)


def test_an_incident_names_its_cause_and_what_it_affects() -> None:
    """In the order nearest first, with the total where the list is cut."""
    found = trouble.incidents(Report(items=(ONE,), left=2), "later")
    since = "2026-03-01T12:00:00.000Z"

    assert found == {
        "items": [
            {
                "id": "0a1b",
                "region": "eu-1",
                "severity": "critical",
                "since": since,
                "cause": {
                    "ref": "rack/a3",
                    "reason": "PowerOff",
                    "message": "dark",
                    "since": since,
                },
                "affected": ["server/b", "cloud/prod"],
                "affectedTotal": 7,
                "affectedMore": False,
                "advice": None,
            }
        ],
        "left": 2,
        "now": "later",
    }
    assert trouble.incidents(Report(items=(ONE,)), None, "eu-2")["items"] == []


def test_capacity_is_told_by_place_and_by_cluster() -> None:
    """What is not there any more is left out, and so are other regions."""
    given = Capacity()
    here = {
        Place("eu-1", "p", "big", ""): Count(total=5, free=2, used=2),
        Place("eu-1", "q", "big", "a"): Count(),
    }
    there = {Place("eu-2", "p", "big", "a"): Count(total=1)}
    given.regions = {"eu-1": here, "eu-2": there}
    given.clusters.update({("eu-1", "hv"): 1, ("eu-1", ""): 1, ("eu-1", "cp"): 0, ("eu-2", "x"): 4})
    place = {"region": "eu-1", "pool": "p", "class": "big", "zone": None}

    assert trouble.capacity(given, "eu-1") == {
        "items": [{**place, "total": 5, "free": 2, "used": 2, "unavailable": 1}],
        "clusters": [
            {"region": "eu-1", "cluster": None, "used": 1},
            {"region": "eu-1", "cluster": "hv", "used": 1},
        ],
    }


def test_who_is_limited_to_regions_sees_only_theirs() -> None:
    """Incidents, what they affect, and servers of other regions are not there."""
    elsewhere = replace(ONE, id="2c3d", region="eu-2")
    panel = panels.small()
    panel.failures = Report(
        items=(replace(ONE, affected=(panels.CLUSTER, *ONE.affected)), elsewhere)
    )
    panel.want = panels.topology(
        panels.resource("cluster", "hv"),
        panels.resource("server", "mine"),
        replace(panels.resource("server", "theirs"), region="eu-2"),
    )
    narrow = reach.Views(panel).of(frozenset({"eu-1"}))

    (found,) = narrow.incidents().items
    assert (found.id, found.affected, found.total) == ("0a1b", (panels.CLUSTER,), 5)
    assert [place.region for place in narrow.capacity().places] == ["eu-1"]
