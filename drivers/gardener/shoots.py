"""
What a change of a Shoot does, and what a garden would refuse: seen before it is asked.

Pure. Gardener replaces every node of a pool when its image, its machine type or the minor version
of Kubernetes changes; a patch version only restarts the kubelet. What it refuses it refuses in the
middle of a plan, so it is found out here. Two things that it takes and should not are told as
well: an older image on a pool that is rolled, and a CloudProfile whose type was changed in use.
So is a constraint that says beforehand that an upgrade would go wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from fleetd.kube import facts

Object = Mapping[str, Any]

ROLLING = "AutoRollingUpdate"
MANUAL = "ManualInPlaceUpdate"
CONSTRAINTS = ("MaintenancePreconditionsSatisfied", "CRDsWithProblematicConversionWebhooks")
"""Those that are about upgrades; others are about sleeping and renewing certificates."""
_LISTED = ("labels", "taints", "zones", "kubernetes")
_IMMUTABLE = (
    ("region",),
    ("provider", "type"),
    ("networking", "type"),
    ("networking", "pods"),
    ("networking", "services"),
)


def rolled(wanted: Object, live: Object) -> tuple[str, ...]:
    """Pools whose nodes go down one after the other when `live` becomes `wanted` (both `spec`).
    Those that are updated by hand wait for a person or fleetd to choose the node."""
    before = {one["name"]: one for one in _workers(live)}
    found: list[str] = []
    for worker in _workers(wanted):
        old = before.get(worker["name"])
        if old is None or worker.get("updateStrategy") == MANUAL:
            continue
        if _nature(worker, wanted) != _nature(old, live):
            found.append(str(worker["name"]))
    return tuple(found)


def shrunk(wanted: Object, live: Object) -> tuple[str, ...]:
    """Pools that lose nodes, or go altogether."""
    after = {one["name"]: one for one in _workers(wanted)}
    return tuple(
        str(old["name"])
        for old in _workers(live)
        if old["name"] not in after or after[old["name"]]["maximum"] < old["minimum"]
    )


def older_images(wanted: Object, live: Object) -> tuple[str, ...]:
    """Pools that would get an older image than they have."""
    before = {one["name"]: one for one in _workers(live)}
    return tuple(
        str(worker["name"])
        for worker in _workers(wanted)
        if _older_image(worker, before.get(worker["name"]))
    )


def refusals(wanted: Object, shoot: Object, profile: Object | None, now: datetime) -> list[str]:
    """Why the garden would not take `wanted` (a `spec`) for the Shoot as it is."""
    live: Object = shoot.get("spec") or {}
    return [
        *_immutable(wanted, live),
        *_versions(wanted, live),
        *_pools(wanted, live),
        *_pending(wanted, live, shoot.get("status") or {}),
        *_constraints(wanted, live, shoot.get("status") or {}),
        *(_missing(wanted, live, profile.get("spec") or {}, now) if profile is not None else ()),
    ]


def told(shoot: Object) -> dict[str, Any]:
    """For the ledger: since when its authority and its SSH keys are what they are."""
    status: Object = shoot.get("status") or {}
    parts = {"shoot-ca": "certificateAuthorities", "shoot-ssh-keypair": "sshKeypair"}
    found: dict[str, Any] = {}
    for name, part in parts.items():
        rotated: Object = _at(status, ("credentials", "rotation", part)) or {}
        since = rotated.get("lastCompletionTime") or shoot["metadata"]["creationTimestamp"]
        found[name] = {"madeAt": str(since)}
    return found


def minor(version: str) -> tuple[int, ...]:
    return numbers(version)[:2]


def numbers(version: str) -> tuple[int, ...]:
    """For comparing; what is no number counts as 0."""
    head = version.split("-", maxsplit=1)[0].split("+", maxsplit=1)[0]
    return tuple(int(part) if part.isdigit() else 0 for part in head.split("."))


def _workers(spec: Object) -> Sequence[Object]:
    return spec.get("provider", {}).get("workers", ())


def _version(worker: Object, spec: Object) -> str:
    own: Object = worker.get("kubernetes") or {}
    return str(own.get("version") or spec["kubernetes"]["version"])


def _image(worker: Object) -> Object:
    return worker["machine"].get("image") or {}


def _nature(worker: Object, spec: Object) -> tuple[Any, ...]:
    image = _image(worker)
    return (
        worker["machine"].get("type"),
        image.get("name"),
        image.get("version"),
        minor(_version(worker, spec)),
    )


def _older_image(worker: Object, old: Object | None) -> bool:
    if old is None or _image(worker).get("name") != _image(old).get("name"):
        return False
    return numbers(str(_image(worker).get("version", ""))) < numbers(
        str(_image(old).get("version", ""))
    )


def _at(spec: Object, path: Sequence[str]) -> Any:  # noqa: ANN401
    value: Any = spec
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value  # pyright: ignore[reportUnknownVariableType]


def _immutable(wanted: Object, live: Object) -> Iterator[str]:
    for path in _IMMUTABLE:
        new, old = _at(wanted, path), _at(live, path)
        if new and old and new != old:
            yield f"{'.'.join(path)} is {old} and cannot become {new}"
    tolerance = ("controlPlane", "highAvailability", "failureTolerance", "type")
    new, old = _at(wanted, tolerance), _at(live, tolerance)
    if old and new != old:
        yield f"the control plane tolerates the loss of a {old}, which cannot be changed"


def _versions(wanted: Object, live: Object) -> Iterator[str]:
    new, old = wanted["kubernetes"]["version"], live["kubernetes"]["version"]
    if numbers(new) < numbers(old):
        yield f"Kubernetes {old} cannot go back to {new}"
    elif minor(new)[:1] != minor(old)[:1] or minor(new)[1] > minor(old)[1] + 1:
        yield f"Kubernetes {old} cannot become {new} in one step: go minor by minor"


def _pools(wanted: Object, live: Object) -> Iterator[str]:
    before = {one["name"]: one for one in _workers(live)}
    for worker in _workers(wanted):
        name, old = worker["name"], before.get(worker["name"])
        if minor(_version(worker, wanted)) > minor(wanted["kubernetes"]["version"]):
            yield f"pool {name} cannot have a newer Kubernetes than the control plane"
        if old is None:
            continue
        was, shall = (one.get("updateStrategy") or ROLLING for one in (old, worker))
        if (was == ROLLING) != (shall == ROLLING):
            yield f"pool {name} is {was} and cannot become {shall}; make another pool"
        if numbers(_version(worker, wanted)) < numbers(_version(old, live)):
            yield f"pool {name} cannot go back to Kubernetes {_version(worker, wanted)}"
        if shall == ROLLING:
            continue
        if worker["machine"].get("type") != old["machine"].get("type"):
            yield f"pool {name} is updated in place, so its machine type cannot change"
        if _image(worker).get("name") != _image(old).get("name"):
            yield f"pool {name} is updated in place, so its image cannot become another one"
        if _older_image(worker, old):
            yield f"pool {name} is updated in place, so its image cannot go back"


def _pending(wanted: Object, live: Object, status: Object) -> Iterator[str]:
    """While an update in place is under way the pool is locked, and the version with it."""
    pending: Object = status.get("inPlaceUpdates", {}).get("pendingWorkerUpdates", {})
    locked: set[str] = {name for names in pending.values() for name in names}
    if not locked:
        return
    before = {one["name"]: one for one in _workers(live)}
    same_version = wanted["kubernetes"]["version"] == live["kubernetes"]["version"]
    for worker in _workers(wanted):
        name = worker["name"]
        old = before.get(name)
        if name not in locked or old is None:
            continue
        if not same_version or _touched(worker, old):
            yield f"pool {name} is being updated in place; nothing of it can change until then"


def _touched(worker: Object, old: Object) -> bool:
    """Whether anything of a pool changes, be it that something is taken away."""
    taken = any(len(old.get(key) or ()) > len(worker.get(key) or ()) for key in _LISTED)
    return taken or bool(facts.differences(worker, old))


def _constraints(wanted: Object, live: Object, status: Object) -> Iterator[str]:
    """A constraint blocks nothing now. What it warns of happens in an upgrade."""
    same = wanted["kubernetes"]["version"] == live["kubernetes"]["version"]
    if same and not rolled(wanted, live):
        return
    for one in status.get("constraints") or ():
        if one["type"] in CONSTRAINTS and one["status"] == "False":
            yield f"{one['type']} is False: {one.get('message') or one.get('reason')}"


def _missing(wanted: Object, live: Object, profile: Object, now: datetime) -> Iterator[str]:
    kind = wanted["provider"]["type"]
    if profile.get("type") and profile["type"] != kind:
        yield (
            f"the CloudProfile is of type {profile['type']} now, not {kind}; "
            "the garden refuses every change of a Shoot until that is put right"
        )
    version = wanted["kubernetes"]["version"]
    offered = {one["version"] for one in profile["kubernetes"]["versions"]}
    if version != live["kubernetes"]["version"] and version not in offered:
        yield f"the CloudProfile does not offer Kubernetes {version}"
    types = {one["name"]: one for one in profile.get("machineTypes") or ()}
    before = {one["name"]: one for one in _workers(live)}
    for worker in _workers(wanted):
        old = before.get(worker["name"])
        name = worker["machine"]["type"]
        if (old is None or old["machine"]["type"] != name) and (
            types.get(name, {"usable": False}).get("usable") is False
        ):
            yield f"the CloudProfile does not offer machine type {name}"
        if old is None or _image(old) != _image(worker):
            yield from image_missing(_image(worker), profile, now)
        if old is not None and worker.get("updateStrategy", ROLLING) != ROLLING:
            yield from _too_far(worker, old, profile)


def _too_far(worker: Object, old: Object, profile: Object) -> Iterator[str]:
    """An image may be too old to become the wanted one in place."""
    offered: Object = _offered(_image(worker), profile) or {}
    updates: Object = offered.get("inPlaceUpdates") or {}
    least = str(updates.get("minVersionForUpdate") or "")
    has, wants = (str(_image(one).get("version", "")) for one in (old, worker))
    if has != wants and numbers(has) < numbers(least):
        yield f"pool {worker['name']} cannot go from image {has} to {wants} in place: {least} first"


def _offered(image: Object, profile: Object) -> Object | None:
    for one in profile.get("machineImages") or ():
        for offered in one["versions"] if one["name"] == image.get("name") else ():
            if offered["version"] == image.get("version"):
                return offered
    return None


def image_missing(image: Object, profile: Object, now: datetime) -> Iterator[str]:
    """Why a pool cannot get this image, if it cannot."""
    named = f"image {image.get('name')} {image.get('version')}"
    offered = _offered(image, profile)
    if offered is None:
        yield f"the CloudProfile does not offer {named}"
    elif expired(offered, now):
        yield f"{named} is expired"


def expired(offered: Object, now: datetime) -> bool:
    until = offered.get("expirationDate")
    return bool(until) and datetime.fromisoformat(str(until)) <= now
