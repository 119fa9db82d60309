"""
How incidents and capacity look as JSON. Types and the functions that make them; no I/O.

Field names stay, as in `answers`. What an incident is, is decided in `fleetd.plan.incidents`.
"""

from typing import TypedDict

from fleetd.plan.capacity import Capacity
from fleetd.plan.incidents import Incident, Report
from fleetd.surface import shapes
from fleetd.surface.answers import Moment, RefText


class CauseShape(TypedDict):
    """Where it began: a thing of the documents, or what several share, e.g. rack/a3."""

    ref: RefText
    reason: str
    message: str
    since: Moment | None


class IncidentShape(TypedDict):
    """A failure, once, at its cause."""

    id: str
    region: str
    severity: str
    since: Moment | None
    cause: CauseShape
    affected: list[RefText]
    affectedTotal: int
    affectedMore: bool
    advice: str | None


class Incidents(TypedDict):
    """The worst first. `left`: what is in trouble and too much to be told one by one."""

    items: list[IncidentShape]
    left: int
    now: Moment | None


Servers = TypedDict(
    "Servers",
    {
        "region": str,
        "pool": str,
        "class": str,
        "zone": str | None,
        "total": int,
        "free": int,
        "used": int,
        "unavailable": int,
    },
)
"""Servers of one pool, class and zone. Unavailable: neither used nor to be had now."""


class Used(TypedDict):
    """Servers that a cluster has; without a name those of whom nobody knows it."""

    region: str
    cluster: str | None
    used: int


class CapacityShape(TypedDict):
    items: list[Servers]
    clusters: list[Used]


def incident(one: Incident) -> IncidentShape:
    cause = one.cause
    since = shapes.moment(cause.since)
    return {
        "id": one.id,
        "region": one.region,
        "severity": one.severity.value,
        "since": since,
        "cause": {
            "ref": str(cause.ref),
            "reason": cause.reason,
            "message": cause.message,
            "since": since,
        },
        "affected": [str(ref) for ref in one.affected],
        "affectedTotal": one.total,
        "affectedMore": one.more,
        "advice": one.advice or None,
    }


def incidents(report: Report, now: Moment | None, region: str | None = None) -> Incidents:
    items = [incident(one) for one in report.items if region in {None, one.region}]
    return {"items": items, "left": report.left, "now": now}


def capacity(given: Capacity, region: str | None = None) -> CapacityShape:
    return {
        "items": [
            {
                "region": place.region,
                "pool": place.pool,
                "class": place.machine,
                "zone": place.zone or None,
                "total": count.total,
                "free": count.free,
                "used": count.used,
                "unavailable": count.unavailable,
            }
            for place, count in sorted(given.places.items())
            if count.total and region in {None, place.region}
        ],
        "clusters": [
            {"region": home, "cluster": cluster or None, "used": used}
            for (home, cluster), used in sorted(given.clusters.items())
            if used and region in {None, home}
        ],
    }
