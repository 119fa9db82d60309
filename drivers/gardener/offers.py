"""
What a garden offers for Shoots: the versions, images, machine types and zones of a CloudProfile.

Pure. What is missing or has expired is refused here with the reason, before anything is sent; what
expires soon is told long before, because Gardener itself moves a cluster off an expired version, in
a night of its own choice. Two things that a garden takes and should not are refused as well: an
upgrade to a version that has expired, and a machine type in a zone that does not have it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from drivers.gardener import ranges
from fleetd.kube import facts

Object = Mapping[str, Any]

ROLLING = "AutoRollingUpdate"
EXPIRED = "expired"
SOON = timedelta(days=60)
_NEVER = datetime.max.replace(tzinfo=UTC)


def workers(spec: Object) -> Sequence[Object]:
    found: Sequence[Object] = facts.value(spec, "provider", "workers") or ()
    return found


def image(worker: Object) -> Object:
    return worker["machine"].get("image") or {}


def minor(version: str) -> tuple[int, ...]:
    return numbers(version)[:2]


def numbers(version: str) -> tuple[int, ...]:
    """For comparing; what is no number counts as 0."""
    head = version.split("-", maxsplit=1)[0].split("+", maxsplit=1)[0]
    return tuple(int(part) if part.isdigit() else 0 for part in head.split("."))


def lacking(wanted: Object, live: Object, offer: Object, now: datetime) -> Iterator[str]:
    """What the profile does not have for this `spec`. `live` is that of the Shoot, empty where
    there is none: what a cluster has already it keeps."""
    kind = wanted["provider"]["type"]
    if offer.get("type") and offer["type"] != kind:
        yield (
            f"the CloudProfile is of type {offer['type']} now, not {kind}; "
            "the garden refuses every change of a Shoot until that is put right"
        )
    yield from _kubernetes(wanted, live, offer, now)
    most = facts.part(offer, "limits").get("maxNodesTotal")
    count = sum(int(worker.get("maximum", 0)) for worker in workers(wanted))
    if most and count > int(most):
        yield f"{count} nodes are more than the {most} that the CloudProfile allows"
    before = {one["name"]: one for one in workers(live)}
    for worker in workers(wanted):
        old = before.get(worker["name"])
        yield from _machine(worker, old, offer, now)
        yield from _kubelet((worker, wanted), (old, live), offer)
        yield from _zones(worker, old, str(wanted["region"]), offer)


def _kubernetes(wanted: Object, live: Object, offer: Object, now: datetime) -> Iterator[str]:
    version = wanted["kubernetes"]["version"]
    if version == facts.value(live, "kubernetes", "version"):
        return
    offered = _kubernetes_of(version, offer)
    if offered is None:
        yield f"the CloudProfile does not offer Kubernetes {version}"
    elif expired(offered, now):
        yield f"Kubernetes {version} {_ends(offered, now)}"
    elif early := begins(offered, now):
        yield f"Kubernetes {version} is not offered before {early}"


def _kubernetes_of(version: str, offer: Object) -> Object | None:
    versions = facts.members(offer, "kubernetes", "versions")
    return next((one for one in versions if one.get("version") == version), None)


def _machine(worker: Object, old: Object | None, offer: Object, now: datetime) -> Iterator[str]:
    types = {one.get("name"): one for one in offer.get("machineTypes") or ()}
    name = worker["machine"]["type"]
    if (old is None or old["machine"]["type"] != name) and (
        types.get(name, {"usable": False}).get("usable") is False
    ):
        yield f"the CloudProfile does not offer machine type {name}"
    if old is not None and image(old) == image(worker):
        return
    yield from image_missing(image(worker), offer, now)
    if worker.get("updateStrategy", ROLLING) != ROLLING:
        yield from _in_place(worker, old, offer)


def kubelet(worker: Object, spec: Object) -> str:
    """The version that the nodes of a pool run."""
    own = facts.part(worker, "kubernetes").get("version")
    return str(own or spec["kubernetes"]["version"])


def _kubelet(
    new: tuple[Object, Object], before: tuple[Object | None, Object], offer: Object
) -> Iterator[str]:
    """A pool and its Shoot, as they shall be and as they are. An image says which kubelets it
    carries; a pool that has both already keeps them."""
    (worker, wanted), (old, live) = new, before
    version = kubelet(worker, wanted)
    if old is not None and (image(old), kubelet(old, live)) == (image(worker), version):
        return
    range_ = str((image_of(image(worker), offer) or {}).get("kubeletVersionConstraint") or "")
    if range_ and ranges.holds(range_, version) is False:
        yield (
            f"image {image(worker).get('name')} {image(worker).get('version')} carries Kubernetes "
            f"{range_}, and pool {worker['name']} is to have {version}: give it another image"
        )


def _in_place(worker: Object, old: Object | None, offer: Object) -> Iterator[str]:
    """Not every image can be updated on the machine, and not from every version."""
    offered = image_of(image(worker), offer)
    if offered is None:
        return
    updates: Object = offered.get("inPlaceUpdates") or {}
    wants = str(image(worker).get("version", ""))
    if not updates.get("supported"):
        yield (
            f"image {image(worker).get('name')} {wants} is not made for updates in place, which "
            f"pool {worker['name']} asks for"
        )
    least = str(updates.get("minVersionForUpdate") or "")
    has = str(image(old).get("version", "")) if old is not None else ""
    if old is not None and numbers(has) < numbers(least):
        yield f"pool {worker['name']} cannot go from image {has} to {wants} in place: {least} first"


def _zones(worker: Object, old: Object | None, region: str, offer: Object) -> Iterator[str]:
    regions = {one.get("name"): one for one in offer.get("regions") or ()}
    zones = {one.get("name"): one for one in facts.members(regions.get(region), "zones")}
    had: Sequence[str] = old.get("zones") or () if old is not None else ()
    for zone in worker.get("zones") or ():
        if zone in had or not regions:
            continue
        if zone not in zones:
            yield f"the CloudProfile has no zone {zone} in region {region}"
        elif worker["machine"]["type"] in (zones[zone].get("unavailableMachineTypes") or ()):
            yield f"machine type {worker['machine']['type']} is not to be had in zone {zone}"


def image_of(given: Object, offer: Object) -> Object | None:
    for one in offer.get("machineImages") or ():
        same = one.get("name") == given.get("name")
        for offered in one.get("versions") or () if same else ():
            if offered.get("version") == given.get("version"):
                return offered
    return None


def image_missing(given: Object, offer: Object, now: datetime) -> Iterator[str]:
    """Why a pool cannot get this image, if it cannot."""
    named = f"image {given.get('name')} {given.get('version')}"
    offered = image_of(given, offer)
    if offered is None:
        yield f"the CloudProfile does not offer {named}"
    elif expired(offered, now):
        yield f"{named} is expired"
    elif early := begins(offered, now):
        yield f"{named} is not offered before {early}"


def expiring(wanted: Object, offer: Object, now: datetime) -> list[str]:
    """What the Shoot is to have and the garden will soon take away, or has by now."""
    versions = {str(wanted["kubernetes"]["version"])} | {
        str(worker["kubernetes"]["version"])
        for worker in workers(wanted)
        if facts.part(worker, "kubernetes").get("version")
    }
    found = [(f"Kubernetes {one}", _kubernetes_of(one, offer)) for one in sorted(versions)]
    images = {
        (str(image(worker).get("name")), str(image(worker).get("version")))
        for worker in workers(wanted)
    }
    for name, version in sorted(images):
        offered = image_of({"name": name, "version": version}, offer)
        found.append((f"image {name} {version}", offered))
    return [
        f"{named} {_ends(offered, now)}; Gardener replaces it by itself in a maintenance window "
        "after that"
        for named, offered in found
        if offered is not None and near(offered, now)
    ]


def _ends(offered: Object, now: datetime) -> str:
    when = _end(offered)
    if not when:
        return "is expired"
    return f"expired at {when}" if expired(offered, now) else f"expires at {when}"


def near(offered: Object, now: datetime) -> bool:
    until = _end(offered)
    return expired(offered, now) or (bool(until) and _moment(until) - now < SOON)


def expired(offered: Object, now: datetime) -> bool:
    until = _end(offered)
    return _stage(offered, now) == EXPIRED or (bool(until) and _moment(until) <= now)


def begins(offered: Object, now: datetime) -> str:
    """When it will be offered, if that is not yet: the first of its stages is to come."""
    starts = [str(one.get("startTime") or "") for one in facts.members(offered, "lifecycle")]
    early = starts and all(start and _moment(start) > now for start in starts)
    return min(starts, key=_moment) if early else ""


def _stage(offered: Object, now: datetime) -> str:
    """`preview`, `supported`, `deprecated` or `expired`: said as such, or by the last stage of its
    life that has begun. One without a time has begun."""
    stages = [
        str(one.get("classification") or "")
        for one in facts.members(offered, "lifecycle")
        if not one.get("startTime") or _moment(str(one["startTime"])) <= now
    ]
    return stages[-1] if stages else str(offered.get("classification") or "")


def _end(offered: Object) -> str:
    """When it expires, in either of the ways to say so; empty if it does not say."""
    for one in facts.members(offered, "lifecycle"):
        if one.get("classification") == EXPIRED:
            return str(one.get("startTime") or "")
    return str(offered.get("expirationDate") or "")


def _moment(text: str) -> datetime:
    """One that cannot be read is far off: the garden, which does not take it either, decides."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return _NEVER
