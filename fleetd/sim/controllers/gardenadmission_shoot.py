"""
How a gardener-apiserver completes a Shoot, and what it answers to a changed one.

The texts are those of the real server where it was asked (the table of tried updates); a change
that it takes although one would not think so is taken here too: an older image on a pool that is
rolled, zones removed, a node network changed.
"""

from datetime import datetime
from typing import Any

from fleetd.sim.controllers.metal_parts import items_of, notes_of, part
from fleetd.sim.kube import refusal
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.values import Obj, at, encode, name_of

Problem = tuple[str, str, str]
OPERATION = "gardener.cloud/operation"
ROLLING, IN_PLACE, MANUAL = "AutoRollingUpdate", "AutoInPlaceUpdate", "ManualInPlaceUpdate"
WORKER_MAX = 15


def numbers(version: str) -> tuple[int, ...]:
    head = version.split("-", maxsplit=1)[0]
    return tuple(int(part) if part.isdigit() else 0 for part in head.split("."))


def workers(shoot: Obj) -> list[Obj]:
    return items_of(shoot, "spec.provider.workers")


def version_of(worker: Obj, shoot: Obj) -> str:
    own = part(worker, "kubernetes").get("version")
    return own or shoot["spec"]["kubernetes"]["version"]


def defaulted(shoot: Obj, creator: str) -> Obj:
    """What the server fills in. `shoot` belongs to us."""
    spec, metadata = shoot["spec"], shoot["metadata"]
    upkeep = spec.setdefault("maintenance", {})
    update = upkeep.setdefault("autoUpdate", {"kubernetesVersion": True})
    update.setdefault("kubernetesVersion", True)
    update.setdefault("machineImageVersion", True)
    upkeep.setdefault("timeWindow", {"begin": "220000+0000", "end": "230000+0000"})
    spec.setdefault("purpose", "evaluation")
    spec.setdefault("schedulerName", "default-scheduler")
    network = spec.setdefault("networking", {})
    network.setdefault("ipFamilies", ["IPv4"])
    if spec.get("seedName"):  # where the Shoot will be decides which networks are free
        network.setdefault("pods", "100.64.0.0/12")
        network.setdefault("services", "100.80.0.0/13")
    for worker in workers(shoot):
        strategy = worker.setdefault("updateStrategy", ROLLING)
        worker["machine"].setdefault("architecture", "amd64")
        worker.setdefault("systemComponents", {"allow": True})
        worker.setdefault("cri", {"name": "containerd"})
        if strategy == ROLLING:
            worker.setdefault("maxSurge", 1)
            worker.setdefault("maxUnavailable", 0)
        else:
            worker.setdefault("machineControllerManager", {}).setdefault(
                "disableHealthTimeout", True
            )
        if strategy == IN_PLACE:
            worker.setdefault("maxSurge", 0)
            worker.setdefault("maxUnavailable", 1)
    if creator:
        notes = metadata.setdefault("annotations", {})
        notes.setdefault("gardener.cloud/created-by", creator)
        provider = spec["provider"]["type"]
        labels = metadata.setdefault("labels", {})
        labels.setdefault(f"provider.extensions.gardener.cloud/{provider}", "true")
    return shoot


def complete(shoot: Obj, profile: Obj) -> None:
    """`1.33` becomes the newest 1.33; a missing version the newest that is supported."""
    offers: list[Obj] = items_of(profile, "spec.kubernetes.versions")
    spec = shoot["spec"]
    wanted = spec.setdefault("kubernetes", {}).get("version", "")
    if len(numbers(wanted)) < 3 or not wanted:
        fit = [
            one["version"]
            for one in offers
            if one.get("classification", "supported") == "supported"
            and (not wanted or one["version"].startswith(f"{wanted}."))
        ]
        if fit:
            spec["kubernetes"]["version"] = max(fit, key=numbers)


def problems(shoot: Obj) -> list[Problem]:
    """What is wrong with a Shoot by itself (422)."""
    spec = shoot["spec"]
    found: list[Problem] = []
    if not spec.get("credentialsBindingName") and not spec.get("secretBindingName"):
        text = "Required value: must be set when credentialsBindingName is not"
        found.append(("FieldValueRequired", "spec.secretBindingName", text))
    if spec.get("purpose") == "infrastructure" and shoot["metadata"].get("namespace") != "garden":
        text = 'Unsupported value: "infrastructure"'
        found.append(("FieldValueNotSupported", "spec.purpose", text))
    found.extend(_window(part(spec, "maintenance.timeWindow")))
    found.extend(_schedules(spec))
    pools = workers(shoot)
    active = [
        one for one in pools if one["maximum"] > 0 and one["systemComponents"].get("allow", True)
    ]
    if pools and not active:
        text = (
            "Forbidden: at least one active (workers[i].maximum > 0) worker pool with "
            "systemComponents.allow=true needed"
        )
        found.append(("FieldValueForbidden", "spec.provider.workers", text))
    for number, worker in enumerate(pools):
        found.extend(_worker(worker, f"spec.provider.workers[{number}]", shoot))
    return found


def _window(window: Obj) -> list[Problem]:
    try:
        begin, end = (_minutes(window[key]) for key in ("begin", "end"))
    except (KeyError, ValueError, IndexError):
        return []
    length = (end - begin) % 1440
    if 30 <= length <= 360:
        return []
    which = "smaller than 30m0s" if length < 30 else "greater than 6h0m0s"
    text = f"Forbidden: time window must not be {which}"
    return [("FieldValueForbidden", "spec.maintenance.timeWindow", text)]


def _schedules(spec: Obj) -> list[Problem]:
    found: list[Problem] = []
    for number, one in enumerate(items_of(spec, "hibernation.schedules")):
        for key in ("start", "end"):
            given = one.get(key)
            if given is not None and len(given.split()) != 5:
                path = f"spec.hibernation.schedules[{number}].{key}"
                text = (
                    f"Invalid value: {_shown(given)}: not a valid cron spec: Expected exactly 5 "
                    f"fields, found {len(given.split())}: {given}"
                )
                found.append(("FieldValueInvalid", path, text))
    return found


def _minutes(text: str) -> int:
    return int(text[:2]) * 60 + int(text[2:4])


def _worker(worker: Obj, path: str, shoot: Obj) -> list[Problem]:
    found: list[Problem] = []
    name, strategy = worker["name"], worker["updateStrategy"]
    if len(name) > WORKER_MAX:
        text = f"Too long: may not be more than {WORKER_MAX} bytes"
        found.append(("FieldValueTooLong", f"{path}.name", text))
    if worker["maximum"] < worker["minimum"]:
        text = "Forbidden: maximum value must not be less than minimum value"
        found.append(("FieldValueForbidden", f"{path}.maximum", text))
    sizes = [key for key in ("maxSurge", "maxUnavailable") if key in worker]
    if strategy == MANUAL:
        for key in sizes:
            text = f"should not be set when `updateStrategy` is `{MANUAL}`"
            said = f"Invalid value: {worker[key]}: {text}"
            found.append(("FieldValueInvalid", f"{path}.{key}", said))
    elif all(str(worker.get(key, 0)) in ("0", "0%") for key in ("maxSurge", "maxUnavailable")):
        text = "Invalid value: 0: may not be 0 when `maxSurge` is 0"
        found.append(("FieldValueInvalid", f"{path}.maxUnavailable", text))
    plane = shoot["spec"].get("kubernetes", {}).get("version", "")
    if plane and numbers(version_of(worker, shoot)) > numbers(plane):
        text = "worker group kubernetes version must not be higher than control plane version"
        found.append(("FieldValueForbidden", f"{path}.kubernetes.version", f"Forbidden: {text}"))
    return found


_IMMUTABLE = (
    "region",
    "provider.type",
    "networking.type",
    "networking.pods",
    "networking.services",
    "schedulerName",
    "dns.domain",
)
"""Once they are set."""


def changes(new: Obj, old: Obj) -> list[Problem]:
    """What is wrong with the change (422)."""
    found = [
        ("FieldValueInvalid", f"spec.{path}", f"Invalid value: {_shown(value)}: field is immutable")
        for path in _IMMUTABLE
        if (before := at(old["spec"], path)) and (value := at(new["spec"], path)) != before
    ]
    exposure = at(new["spec"], "exposureClassName")
    if exposure != at(old["spec"], "exposureClassName"):
        text = f"Invalid value: {_shown(exposure)}: field is immutable"
        found.append(("FieldValueInvalid", "spec.exposureClassName", text))
    tolerance = "controlPlane.highAvailability.failureTolerance.type"
    before = at(old["spec"], tolerance)
    if before and before != at(new["spec"], tolerance):
        text = f"Invalid value: {_shown(at(new['spec'], tolerance) or '')}: field is immutable"
        found.append(("FieldValueInvalid", f"spec.{tolerance}", text))
    plane = new["spec"]["kubernetes"]["version"]
    found.extend(_version(plane, old["spec"]["kubernetes"]["version"], "spec.kubernetes.version"))
    if workers(old) and not workers(new):
        text = "Forbidden: cannot switch from a Shoot with workers to a workerless Shoot"
        found.append(("FieldValueForbidden", "spec.provider.workers", text))
    before_of = {one["name"]: one for one in workers(old)}
    for number, worker in enumerate(workers(new)):
        was = before_of.get(worker["name"])
        if was is not None:
            path = f"spec.provider.workers[{number}]"
            found.extend(_version(version_of(worker, new), version_of(was, old), path))
            found.extend(_strategy(worker, was, path))
    found.extend(_pending(new, old))
    return found


def _shown(value: Any) -> str:  # noqa: ANN401
    return encode(value).decode()


def _version(new: str, old: str, path: str) -> list[Problem]:
    before, after = numbers(old), numbers(new)
    if after < before:
        text = "Forbidden: kubernetes version downgrade is not supported"
        return [("FieldValueForbidden", path, text)]
    if after[:1] != before[:1] or after[1] > before[1] + 1:
        text = "Forbidden: kubernetes version upgrade cannot skip a minor version"
        return [("FieldValueForbidden", path, text)]
    return []


def _strategy(worker: Obj, was: Obj, path: str) -> list[Problem]:
    found: list[Problem] = []
    before, after = was["updateStrategy"], worker["updateStrategy"]
    places = f"{IN_PLACE}/{MANUAL}"
    if (before == ROLLING) != (after == ROLLING):
        ends = (ROLLING, places) if before == ROLLING else (places, ROLLING)
        text = f"update strategy cannot be changed from {ends[0]} to {ends[1]}"
        found.append(
            (
                "FieldValueInvalid",
                f"{path}.updateStrategy",
                f"Invalid value: {_shown(after)}: {text}",
            )
        )
    if after == ROLLING:
        return found
    if worker["machine"]["type"] != was["machine"]["type"]:
        text = f"machine type cannot be changed if update strategy is {places}"
        value = _shown(worker["machine"]["type"])
        found.append(
            ("FieldValueInvalid", f"{path}.machine.type", f"Invalid value: {value}: {text}")
        )
    image, older = part(worker, "machine.image"), part(was, "machine.image")
    if numbers(image.get("version", "")) < numbers(older.get("version", "")):
        text = (
            "machine image version downgrade is not supported when the update strategy is "
            f"{IN_PLACE} or {MANUAL}"
        )
        value = _shown(image.get("version"))
        found.append(
            (
                "FieldValueInvalid",
                f"{path}.machine.image.version",
                f"Invalid value: {value}: {text}",
            )
        )
    return found


def pending(shoot: Obj) -> set[str]:
    """Pools with an update in place under way."""
    updates = part(shoot, "status.inPlaceUpdates.pendingWorkerUpdates")
    return {name for names in updates.values() for name in names or ()}


def _pending(new: Obj, old: Obj) -> list[Problem]:
    locked = pending(old)
    notes = notes_of(new)
    if not locked or notes.get(OPERATION) == "force-in-place-update":
        return []
    moved = new["spec"]["kubernetes"] != old["spec"]["kubernetes"]
    before = {one["name"]: one for one in workers(old)}
    for number, worker in enumerate(workers(new)):
        name = worker["name"]
        if name in locked and name in before and (moved or worker != before[name]):
            text = (
                f'Forbidden: the worker pool "{name}" is currently undergoing an in-place update. '
                "No changes are allowed to the worker pool, the Shoot Kubernetes version, or the "
                "Shoot kubelet configuration. You can force an update with annotating the Shoot "
                f"with '{OPERATION}=force-in-place-update'"
            )
            return [("FieldValueForbidden", f"spec.provider.workers[{number}]", text)]
    return []


def awake(definition: Definition, new: Obj, old: Obj) -> None:
    """What is not to go to sleep (403)."""
    path = "hibernation.enabled"
    if not at(new["spec"], path) or at(old["spec"], path):
        return
    for one in items_of(old, "status.constraints"):
        if one["type"] == "HibernationPossible" and one["status"] == "False":
            why = f"'HibernationPossible' constraint is 'False': {one.get('message')}"
            raise refusal.forbidden(definition, name_of(new), why)


def offered(definition: Definition, new: Obj, old: Obj | None, profile: Obj, now: datetime) -> None:
    """What the CloudProfile does not have (403)."""
    name, spec, offer = name_of(new), new["spec"], profile["spec"]
    if offer.get("type") != spec["provider"]["type"]:
        why = "provider type in shoot must equal provider type of referenced CloudProfile"
        raise refusal.forbidden(definition, name, why)
    version = spec["kubernetes"]["version"]
    if old is None or old["spec"]["kubernetes"]["version"] != version:
        _kubernetes(definition, name, version, offer, now if old is None else None)
    before = {one["name"]: one for one in workers(old)} if old is not None else {}
    regions = {one["name"]: one for one in offer["regions"]}
    zones: set[str] = {one["name"] for one in items_of(regions.get(spec["region"]), "zones")}
    for number, worker in enumerate(workers(new)):
        was = before.get(worker["name"])
        path = f"spec.provider.workers[{number}]"
        why = _machine(worker, was, offer, now)
        if why:
            raise refusal.forbidden(definition, name, f"{path}.machine{why}")
        known = set(items_of(was, "zones"))
        for which, zone in enumerate(items_of(worker, "zones")):
            if zone not in zones and zone not in known:
                listed = ", ".join(f'"{one}"' for one in sorted(zones))
                why = f'Unsupported value: "{zone}": supported values: {listed}'
                raise refusal.forbidden(definition, name, f"{path}.zones[{which}]: {why}")


def _kubernetes(
    definition: Definition, name: str, version: str, offer: Obj, now: datetime | None
) -> None:
    if not version or not version[0].isdigit():
        why = (
            f"spec.kubernetes.version: Invalid value: {_shown(version)}: must be a semantic version"
        )
        raise refusal.forbidden(definition, name, why)
    good = [one for one in offer["kubernetes"]["versions"] if now is None or not expired(one, now)]
    if version not in {one["version"] for one in good}:
        listed = ", ".join(
            f'"{one["version"]}"'
            if one.get("classification") != "preview"
            else f'"{one["version"]} (preview)"'
            for one in good
        )
        why = (
            f"spec.kubernetes.version: Unsupported value: {_shown(version)}: "
            f"supported values: {listed}"
        )
        raise refusal.forbidden(definition, name, why)


def expired(offer: Obj, now: datetime) -> bool:
    until = offer.get("expirationDate")
    return bool(until) and datetime.fromisoformat(until) <= now


def _machine(worker: Obj, was: Obj | None, offer: Obj, now: datetime) -> str:
    """What is not to be had, as it stands behind the path of the machine; empty if all is."""
    kind = worker["machine"]["type"]
    types = {one["name"]: one for one in offer["machineTypes"]}
    if was is None or was["machine"]["type"] != kind:
        if kind not in types:
            listed = ", ".join(f'"{one}"' for one in sorted(types))
            return f".type: Unsupported value: {_shown(kind)}: supported values: {listed}"
        if types[kind].get("usable") is False:
            return f'.type: Invalid value: {_shown(kind)}: machine type "{kind}" is unusable'
    image = part(worker, "machine.image")
    if was is not None and part(was, "machine.image") == image:
        return ""
    images = {one["name"]: one for one in offer["machineImages"]}
    if image.get("name") not in images:
        return f".image: Invalid value: {_shown(image.get('name'))}: image is not supported"
    versions = [one for one in images[image["name"]]["versions"] if not expired(one, now)]
    found = next((one for one in versions if one["version"] == image.get("version")), None)
    named = [f"{image['name']}:{one['version']}" for one in versions]
    if found is None:
        listed = ", ".join(f'"{one}"' for one in named)
        version = _shown(image.get("version"))
        return f".image.version: Unsupported value: {version}: supported values: {listed}"
    least = part(found, "inPlaceUpdates").get("minVersionForUpdate", "")
    current = part(was, "machine.image").get("version", "")
    in_place = worker.get("updateStrategy") in (IN_PLACE, MANUAL)
    if was is not None and in_place and numbers(current) < numbers(least):
        return (
            f".image: Invalid value: machine image version '{image['name']}:{image['version']}' "
            "cannot be in-place updated from the current version, supported machine image "
            f"versions are: [{' '.join(named)}]"
        )
    return ""
