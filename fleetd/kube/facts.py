"""
Kubernetes objects as facts: what is kept of them, and how a live one differs from what was asked.

Pure. Facts are what the planner memoises on, so what moves without meaning is left out, and what
is secret never gets in. A difference is one-sided: a server fills in defaults and others own
fields of their own, so only what was asked for is compared.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from topology.compile import fingerprint

Object = Mapping[str, Any]

GENERATION = "fleet.c5c3.io/generation"
STEP = "fleet.c5c3.io/step"
REGION = "fleet.c5c3.io/region"
OWNER = "fleet.c5c3.io/owner"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "fleetd"

_KEPT = ("name", "namespace", "generation", "deletionTimestamp", "labels", "annotations")
_NOISE = (GENERATION, STEP, "kubectl.kubernetes.io/last-applied-configuration")
_SECRETIVE = ("data", "stringData", "binaryData")
DIFFERENCES_MAX = 8


def trim(obj: Object) -> dict[str, Any]:
    """The object without what is secret, and without what moves at every write."""
    metadata: Object = obj.get("metadata") or {}
    kept = {key: metadata[key] for key in _KEPT if metadata.get(key)}
    if "annotations" in kept:
        given: Object = kept["annotations"]
        kept["annotations"] = {key: given[key] for key in given if key not in _NOISE}
    rest = {
        key: value
        for key, value in obj.items()
        if key not in ("metadata", "apiVersion", "kind", *_SECRETIVE)
    }
    return {"metadata": kept, **rest}


def digest(body: Object) -> str:
    """Fingerprint of a manifest; written beside it, so that we know our own work again."""
    return format(fingerprint("", body), "x")


def made_from(obj: Object) -> str:
    """The digest of the manifest that fleetd applied last; empty if it never did."""
    metadata: Object = obj.get("metadata") or {}
    annotations: Object = metadata.get("annotations") or {}
    return str(annotations.get(GENERATION) or "")


def differences(wanted: Object, live: Object) -> list[str]:
    """Paths at which the live object is not as it was asked to be; at most a few."""
    found: list[str] = []
    for key, value in wanted.items():
        if key in ("apiVersion", "kind", "status"):
            continue
        if key == "metadata":
            value = {part: value[part] for part in ("labels", "annotations") if part in value}  # noqa: PLW2901
        _compare(value, live.get(key), key, found)
    return found[:DIFFERENCES_MAX]


def _compare(wanted: Any, live: Any, path: str, found: list[str]) -> None:  # noqa: ANN401
    if type(wanted) is dict or isinstance(wanted, Mapping):
        inner = cast("Mapping[str, Any]", wanted)
        known = type(live) is dict or isinstance(live, Mapping)
        there: Mapping[str, Any] = cast("Any", live) if known else {}
        if inner and not known:
            found.append(path)
            return
        for key, value in inner.items():
            other = there.get(key)
            # Nearly all of it, at each look, is a text that is as it should be.
            if type(value) is not str or value != other:
                _compare(value, other, f"{path}.{key}", found)
    elif isinstance(wanted, list):
        _compare_lists(cast("list[Any]", wanted), live, path, found)
    elif not _same(wanted, live):
        found.append(path)


def _compare_lists(wanted: Sequence[Any], live: Any, path: str, found: list[str]) -> None:  # noqa: ANN401
    """Members with a name or type are found by it, wherever they stand and whoever else added
    some; other lists belong to us whole."""
    there: list[Any] = cast("Any", live) if isinstance(live, list) else []
    if wanted and all(_name(member) for member in wanted):
        for member in wanted:
            found.extend(_nearest(member, there, path))
        return
    if len(wanted) != len(there):
        if wanted or there:
            found.append(path)
        return
    for number, (one, other) in enumerate(zip(wanted, there, strict=True)):
        _compare(one, other, f"{path}[{number}]", found)


def _nearest(wanted: Any, there: Sequence[Any], path: str) -> list[str]:  # noqa: ANN401
    """How the member of that name differs. Several may have it (a volume that is mounted twice,
    accounts of two namespaces); then the one that is most like it is meant."""
    name = _name(wanted)
    nearest: list[str] | None = None
    for member in [one for one in there if _name(one) == name] or [None]:
        found: list[str] = []
        _compare(wanted, member, f"{path}[{name}]", found)
        if nearest is None or len(found) < len(nearest):
            nearest = found
    return nearest or []


def _name(member: Any) -> str:  # noqa: ANN401
    if not (type(member) is dict or isinstance(member, Mapping)):
        return ""
    fields = cast("Mapping[str, Any]", member)
    found = fields.get("name") or fields.get("type")
    return found if isinstance(found, str) else ""


_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?")


def _same(wanted: Any, live: Any) -> bool:  # noqa: ANN401
    if wanted == live:
        return True
    if wanted in (None, "", False, 0) and live is None:
        return True  # a server leaves out what is zero
    if isinstance(wanted, str) and isinstance(live, str):
        one, other = _seconds(wanted), _seconds(live)
        return one is not None and one == other
    return False


def _seconds(text: str) -> int | None:
    """`1h` and `1h0m0s` are the same to every Go program, and some write the second for the
    first."""
    found = _DURATION.fullmatch(text)
    if not text or found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def value(found: Object | None, *names: str) -> Any:  # noqa: ANN401 -- whatever stands there
    """What is at the end of these names; None where there is nothing."""
    here: Any = found
    for name in names:
        here = cast("Object", here).get(name) if isinstance(here, Mapping) else None
    return here


def part(found: Object | None, *names: str) -> Object:
    """The mapping at the end of these names; empty where there is none."""
    here = value(found, *names)
    return cast("Object", here) if isinstance(here, Mapping) else {}


def members(found: Object | None, *names: str) -> Sequence[Object]:
    """The list of mappings at the end of these names; empty where there is none."""
    here = value(found, *names)
    return cast("Sequence[Object]", here) if isinstance(here, list) else ()


def condition(obj: Object | None, kind: str) -> Object:
    """One condition of an object; empty if it has none of this type."""
    none: Object = {}
    held = members(obj, "status", "conditions")
    return next((one for one in held if one.get("type") == kind), none)


def copy(obj: Object) -> dict[str, Any]:
    """A deep copy that may be changed."""
    return msgspec.json.decode(msgspec.json.encode(obj))
