"""
What a change of a Shoot does, and what a garden would refuse: seen before it is asked.

Pure. Gardener replaces every node of a pool when its image, its machine type or the minor version
of Kubernetes changes; a patch version only restarts the kubelet. What it refuses it refuses in the
middle of a plan, so it is found out here. What it takes and should not is told as well: an older
image on a pool that is rolled. So is a constraint that says beforehand that an upgrade would go
wrong.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from drivers.gardener import offers
from fleetd.kube import facts

Object = Mapping[str, Any]

MANUAL = "ManualInPlaceUpdate"
CONSTRAINTS = ("MaintenancePreconditionsSatisfied", "CRDsWithProblematicConversionWebhooks")
"""Those that are about upgrades; others are about sleeping and renewing certificates."""
MIGRATION = ("Migrate", "Restore", "LiveMigrate")
_LISTED = ("labels", "taints", "zones", "kubernetes")
_IMMUTABLE = (
    ("region",),
    ("provider", "type"),
    ("networking", "type"),
    ("networking", "pods"),
    ("networking", "services"),
    ("exposureClassName",),
    ("dns", "domain"),
)
_NEVER_ADDED = (("exposureClassName",),)


def rolled(wanted: Object, live: Object) -> tuple[str, ...]:
    """Pools whose nodes go down one after the other when `live` becomes `wanted` (both `spec`).
    Those that are updated by hand wait for a person or fleetd to choose the node."""
    before = {one["name"]: one for one in offers.workers(live)}
    found: list[str] = []
    for worker in offers.workers(wanted):
        old = before.get(worker["name"])
        if old is None or worker.get("updateStrategy") == MANUAL:
            continue
        if _nature(worker, wanted) != _nature(old, live):
            found.append(str(worker["name"]))
    return tuple(found)


def shrunk(wanted: Object, live: Object) -> tuple[str, ...]:
    """Pools that lose nodes, or go altogether."""
    after = {one["name"]: one for one in offers.workers(wanted)}
    return tuple(
        str(old["name"])
        for old in offers.workers(live)
        if old["name"] not in after or after[old["name"]]["maximum"] < old["minimum"]
    )


def older_images(wanted: Object, live: Object) -> tuple[str, ...]:
    """Pools that would get an older image than they have."""
    before = {one["name"]: one for one in offers.workers(live)}
    return tuple(
        str(worker["name"])
        for worker in offers.workers(wanted)
        if _older_image(worker, before.get(worker["name"]))
    )


def refusals(wanted: Object, shoot: Object, offer: Object | None, now: datetime) -> list[str]:
    """Why the garden would not take `wanted` (a `spec`) for the Shoot as it is. `offer` is the
    `spec` of its profile."""
    live: Object = shoot.get("spec") or {}
    if not facts.value(live, "kubernetes", "version"):
        return ["the garden does not say which Kubernetes the cluster has; see its Shoot"]
    status: Object = shoot.get("status") or {}
    return [
        *_migrating(status),
        *_immutable(wanted, live),
        *_versions(wanted, live),
        *_pools(wanted, live),
        *_pending(wanted, live, status),
        *_constraints(wanted, live, status),
        *(offers.lacking(wanted, live, offer, now) if offer is not None else ()),
    ]


def _migrating(status: Object) -> Iterator[str]:
    """fleetd never moves a control plane to another seed: that is for who runs the garden, and
    nothing else may happen to the Shoot meanwhile."""
    last: Object = status.get("lastOperation") or {}
    if last.get("type") in MIGRATION and last.get("state") != "Succeeded":
        yield "its control plane is being moved to another seed; wait until that is over"


def told(shoot: Object) -> dict[str, Any]:
    """For the ledger: since when its authority and its keys are what they are."""
    status: Object = shoot.get("status") or {}
    parts = {
        "shoot-ca": "certificateAuthorities",
        "shoot-token-key": "serviceAccountKey",
        "shoot-etcd-key": "etcdEncryptionKey",
        "shoot-ssh-keypair": "sshKeypair",
    }
    found: dict[str, Any] = {}
    for name, part in parts.items():
        rotated: Object = facts.part(status, "credentials", "rotation", part)
        since = rotated.get("lastCompletionTime") or shoot["metadata"]["creationTimestamp"]
        found[name] = {"madeAt": str(since)}
    return found


def _version(worker: Object, spec: Object) -> str:
    own: Object = worker.get("kubernetes") or {}
    return str(own.get("version") or spec["kubernetes"]["version"])


def _nature(worker: Object, spec: Object) -> tuple[Any, ...]:
    system = offers.image(worker)
    return (
        worker["machine"].get("type"),
        system.get("name"),
        system.get("version"),
        offers.minor(_version(worker, spec)),
    )


def _older_image(worker: Object, old: Object | None) -> bool:
    if old is None or offers.image(worker).get("name") != offers.image(old).get("name"):
        return False
    return offers.numbers(str(offers.image(worker).get("version", ""))) < offers.numbers(
        str(offers.image(old).get("version", ""))
    )


def _immutable(wanted: Object, live: Object) -> Iterator[str]:
    for path in _IMMUTABLE:
        new, old = facts.value(wanted, *path), facts.value(live, *path)
        if path in _NEVER_ADDED and new and not old:
            yield f"{'.'.join(path)} can only be given when a cluster is made"
        if new and old and new != old:
            yield f"{'.'.join(path)} is {old} and cannot become {new}"
    tolerance = ("controlPlane", "highAvailability", "failureTolerance", "type")
    new, old = facts.value(wanted, *tolerance), facts.value(live, *tolerance)
    if old and new != old:
        yield f"the control plane tolerates the loss of a {old}, which cannot be changed"


def _versions(wanted: Object, live: Object) -> Iterator[str]:
    new, old = wanted["kubernetes"]["version"], live["kubernetes"]["version"]
    if offers.numbers(new) < offers.numbers(old):
        yield f"Kubernetes {old} cannot go back to {new}"
    elif (
        offers.minor(new)[:1] != offers.minor(old)[:1]
        or offers.minor(new)[1] > offers.minor(old)[1] + 1
    ):
        yield f"Kubernetes {old} cannot become {new} in one step: go minor by minor"


def _pools(wanted: Object, live: Object) -> Iterator[str]:
    before = {one["name"]: one for one in offers.workers(live)}
    for worker in offers.workers(wanted):
        name, old = worker["name"], before.get(worker["name"])
        if offers.minor(_version(worker, wanted)) > offers.minor(wanted["kubernetes"]["version"]):
            yield f"pool {name} cannot have a newer Kubernetes than the control plane"
        if old is None:
            continue
        was, shall = (one.get("updateStrategy") or offers.ROLLING for one in (old, worker))
        if (was == offers.ROLLING) != (shall == offers.ROLLING):
            yield f"pool {name} is {was} and cannot become {shall}; make another pool"
        if offers.numbers(_version(worker, wanted)) < offers.numbers(_version(old, live)):
            yield f"pool {name} cannot go back to Kubernetes {_version(worker, wanted)}"
        if shall == offers.ROLLING:
            continue
        if worker["machine"].get("type") != old["machine"].get("type"):
            yield f"pool {name} is updated in place, so its machine type cannot change"
        if offers.image(worker).get("name") != offers.image(old).get("name"):
            yield f"pool {name} is updated in place, so its image cannot become another one"
        if _older_image(worker, old):
            yield f"pool {name} is updated in place, so its image cannot go back"


def _pending(wanted: Object, live: Object, status: Object) -> Iterator[str]:
    """While an update in place is under way the pool is locked, and the version with it."""
    pending = facts.part(status, "inPlaceUpdates", "pendingWorkerUpdates")
    locked: set[str] = {name for names in pending.values() for name in names or ()}
    if not locked:
        return
    before = {one["name"]: one for one in offers.workers(live)}
    same_version = wanted["kubernetes"]["version"] == live["kubernetes"]["version"]
    for worker in offers.workers(wanted):
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


def _false(one: Object, *kinds: str) -> bool:
    return one.get("type") in kinds and one.get("status") == "False"


def _constraints(wanted: Object, live: Object, status: Object) -> Iterator[str]:
    """A constraint blocks nothing now. What it warns of happens in an upgrade, or in sleep."""
    asleep = ("hibernation", "enabled")
    sleeps = facts.value(wanted, *asleep) and not facts.value(live, *asleep)
    for one in (status.get("constraints") or ()) if sleeps else ():
        if _false(one, "HibernationPossible"):
            yield f"it would not wake again: {one.get('message') or one.get('reason')}"
    same = wanted["kubernetes"]["version"] == live["kubernetes"]["version"]
    if same and not rolled(wanted, live):
        return
    for one in status.get("constraints") or ():
        if _false(one, *CONSTRAINTS):
            yield f"{one['type']} is False: {one.get('message') or one.get('reason')}"
