"""What a Cluster says of its Shoot beside nodes and versions: sleep, upkeep, domains, issuers."""

from collections.abc import Iterator

from topology.checks import windows
from topology.checks.index import Finding, Index, Path
from topology.documents.cluster import Cluster
from topology.documents.shoot import UpkeepWindow

DAY = 24 * 60
SHORTEST, LONGEST = 30, 6 * 60
"""Minutes of a maintenance window that Gardener takes."""


def upkeep(fleet: Index) -> Iterator[Finding]:
    """Windows of a length that Gardener takes."""
    for cluster in fleet.every(Cluster):
        window = cluster.spec.maintenance_window
        if window is None or SHORTEST <= length(window) <= LONGEST:
            continue
        yield fleet.complain(
            cluster,
            ("spec", "maintenanceWindow", "to"),
            code="upkeep-window-length",
            message=f"the window is {length(window)} minutes long, and Gardener takes {SHORTEST} "
            f"to {LONGEST}",
            hint="move one of its ends; both are in UTC",
        )


def length(window: UpkeepWindow) -> int:
    """In minutes; `to` before `from` is on the next day."""
    return (_minutes(window.to) - _minutes(window.from_)) % DAY


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def sleep(fleet: Index) -> Iterator[Finding]:
    """Only what nobody relies on sleeps, and each schedule says when."""
    for cluster in fleet.every(Cluster):
        hibernation = cluster.spec.hibernation
        if hibernation is None:
            continue
        if cluster.spec.purpose == "production" and (hibernation.enabled or hibernation.schedules):
            yield fleet.complain(
                cluster,
                ("spec", "hibernation"),
                code="hibernation-of-production",
                message="sleep shuts all nodes of the cluster down, with all that runs on them",
                hint="remove it, or say purpose: testing if nobody relies on the cluster",
            )
        for number, one in enumerate(hibernation.schedules):
            at: Path = ("spec", "hibernation", "schedules", number)
            if one.start is None and one.end is None:
                yield fleet.complain(
                    cluster,
                    at,
                    code="sleep-without-time",
                    message="it says neither when the cluster goes to sleep nor when it wakes",
                    hint='add start: "0 20 * * 1-5" or end: "0 7 * * 1-5"',
                )
            yield from windows.zone(fleet, cluster, (*at, "zone"), one.zone)


def domains(fleet: Index) -> Iterator[Finding]:
    """No two clusters have one domain."""
    taken: dict[str, Cluster] = {}
    for cluster in fleet.every(Cluster):
        dns = cluster.spec.dns
        if dns is None:
            continue
        first = taken.setdefault(dns.domain, cluster)
        if first is not cluster:
            place = fleet.place(first, ("spec", "dns", "domain"))
            yield fleet.complain(
                cluster,
                ("spec", "dns", "domain"),
                code="domain-taken",
                message=f"Cluster {first.metadata.name!r} ({place}) has the domain "
                f"{dns.domain!r} already",
                hint="give each cluster its own",
            )


def issuers(fleet: Index) -> Iterator[Finding]:
    """An API server takes each issuer once, and tells their users apart by what stands before
    their names."""
    for cluster in fleet.every(Cluster):
        if cluster.spec.authentication is None:
            continue
        urls: dict[str, int] = {}
        region = fleet.regions.get(cluster.spec.region)
        trust = region.spec.trust if region is not None else None
        for number, one in enumerate(cluster.spec.authentication.issuers):
            at: Path = ("spec", "authentication", "issuers", number)
            if trust is not None and one.url == trust.issuer:
                yield fleet.complain(
                    cluster,
                    (*at, "url"),
                    code="issuer-of-trust",
                    message="the Region's trust names this issuer, and an API server takes each "
                    "once",
                    hint="remove it here; Flux is let in by the Region's trust",
                )
            first = urls.setdefault(one.url, number)
            if first != number:
                yield fleet.complain(
                    cluster,
                    (*at, "url"),
                    code="issuer-twice",
                    message=f"issuers[{first}] has this address too",
                    hint="put all audiences into one of them",
                )
            if one.prefix.startswith("system:"):
                yield fleet.complain(
                    cluster,
                    (*at, "prefix"),
                    code="issuer-prefix-reserved",
                    message=f"{one.prefix!r} makes its users look like parts of Kubernetes",
                    hint='choose another, e.g. "sso:"',
                )
