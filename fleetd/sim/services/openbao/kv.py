"""
The KV engine, version 2, as tried on OpenBao 2.4 (`real-secrets` 2 of the facts).

`max_versions` 0 means ten. A metadata write makes the path exist, without a version: that is why
the data write of a PushSecret is never a `create`.
"""

from datetime import datetime
from typing import Any

from fleetd.sim.services.openbao import answers
from fleetd.sim.services.openbao.calls import Call
from fleetd.sim.services.openbao.data import Body, Entry, Mount, Version
from fleetd.sim.world import HttpResponse

KEPT = 10
CAS_MISMATCH = "check-and-set parameter did not match the current version"
CAS_MISSING = "check-and-set parameter required for this call"


def exists(mount: Mount, path: str) -> bool:
    """What tells a create from an update, for data and metadata alike."""
    return path.partition("/")[2] in mount.entries


def taken(mount: Mount, call: Call) -> list[tuple[str, int]]:
    """Versions, by their path, that this request takes away."""
    head, _, path = call.path.partition("/")
    entry = mount.entries.get(path)
    if entry is None:
        return []
    match head:
        case "data" if call.operation == "delete":
            return [(path, entry.current)]
        case "metadata" if call.operation == "delete":
            return [(path, number) for number in entry.versions]
        case "delete" | "destroy":
            return [(path, int(number)) for number in call.body.get("versions") or ()]
        case _:
            return []


def handle(mount: Mount, call: Call) -> HttpResponse:
    head, _, path = call.path.partition("/")
    if head == "config" and not path:
        return _config(mount, call)
    if not path and call.operation != "list":
        raise answers.Refused(404)
    match head:
        case "data":
            return _data(mount, path, call)
        case "metadata":
            return _metadata(mount, path, call)
        case "delete" | "undelete" | "destroy":
            return _versions(mount, head, path, call)
        case _:
            raise answers.Refused(404)


def _config(mount: Mount, call: Call) -> HttpResponse:
    if call.operation == "read":
        found = {"max_versions": 0, "cas_required": False, "delete_version_after": "0s"}
        return answers.data({**found, **mount.config})
    mount.config.update(call.body)
    return answers.nothing()


def _data(mount: Mount, path: str, call: Call) -> HttpResponse:
    match call.operation:
        case "read":
            return _read(mount.entries.get(path), int(call.query.get("version") or 0))
        case "delete":
            entry = mount.entries.get(path)
            if entry is not None and entry.current in entry.versions:
                entry.versions[entry.current].deleted = call.now
            return answers.nothing()
        case "patch":
            entry = mount.entries.get(path)
            live = entry.versions.get(entry.current) if entry is not None else None
            if live is None or live.deleted is not None:
                raise answers.Refused(404)
            return _write(mount, path, {**live.data, **(call.body.get("data") or {})}, call)
        case _:
            if "data" not in call.body:
                raise answers.Refused(400, "no data provided")
            return _write(mount, path, call.body["data"] or {}, call)


def _read(entry: Entry | None, wanted: int) -> HttpResponse:
    if entry is None or not entry.current:
        raise answers.Refused(404)
    number = wanted or entry.current
    version = entry.versions.get(number)
    if version is None:
        raise answers.Refused(404)
    gone = version.deleted is not None or version.destroyed
    told = {"data": None if gone else version.data, "metadata": _about(number, version, entry)}
    return answers.plain(404, {"data": told}) if gone else answers.data(told)


def _write(mount: Mount, path: str, body: Any, call: Call) -> HttpResponse:  # noqa: ANN401
    entry = mount.entries.get(path)
    options: Body = call.body.get("options") or {}
    cas: int | str | None = options.get("cas")
    current = entry.current if entry is not None else 0
    if cas is None and (mount.config.get("cas_required") or (entry and entry.cas_required)):
        raise answers.Refused(400, CAS_MISSING)
    if cas is not None and int(cas) != current:
        raise answers.Refused(400, CAS_MISMATCH)
    entry = entry or _made(mount, path, call.now)
    entry.current += 1
    entry.updated = call.now
    entry.versions[entry.current] = Version(data=body, at=call.now)
    kept = entry.max_versions or int(mount.config.get("max_versions") or 0) or KEPT
    for number in [number for number in entry.versions if number <= entry.current - kept]:
        del entry.versions[number]
    return answers.data(_about(entry.current, entry.versions[entry.current], entry))


def _metadata(mount: Mount, path: str, call: Call) -> HttpResponse:
    match call.operation:
        case "list":
            return answers.keys(_children(mount, path))
        case "read":
            entry = mount.entries.get(path)
            if entry is None:
                raise answers.Refused(404)
            return answers.data(_described(entry))
        case "delete":
            mount.entries.pop(path, None)
            return answers.nothing()
        case operation:
            entry = mount.entries.get(path)
            if entry is None and operation == "patch":
                raise answers.Refused(404)
            _set(entry or _made(mount, path, call.now), call, merge=operation == "patch")
            return answers.nothing()


def _set(entry: Entry, call: Call, *, merge: bool) -> None:
    body = call.body
    if "custom_metadata" in body:
        given: dict[str, str | None] = body["custom_metadata"] or {}
        before: dict[str, str | None] = dict(entry.custom) if merge else {}
        entry.custom = {
            key: value for key, value in {**before, **given}.items() if value is not None
        }
    entry.max_versions = int(body.get("max_versions", entry.max_versions))
    entry.cas_required = bool(body.get("cas_required", entry.cas_required))


def _versions(mount: Mount, what: str, path: str, call: Call) -> HttpResponse:
    entry = mount.entries.get(path)
    if entry is None:
        raise answers.Refused(404)
    for number in call.body.get("versions") or ():
        version = entry.versions.get(int(number))
        if version is None or version.destroyed:
            continue
        match what:
            case "delete":
                version.deleted = call.now
            case "undelete":
                version.deleted = None
            case _:
                version.destroyed, version.data = True, {}
    return answers.nothing()


def _made(mount: Mount, path: str, now: datetime) -> Entry:
    entry = Entry(created=now, updated=now)
    mount.entries[path] = entry
    return entry


def _children(mount: Mount, path: str) -> list[str]:
    prefix = f"{path.rstrip('/')}/" if path else ""
    found: dict[str, None] = {}
    for name in sorted(mount.entries):
        if name.startswith(prefix):
            head, slash, _ = name[len(prefix) :].partition("/")
            found[head + slash] = None
    return list(found)


def _about(number: int, version: Version, entry: Entry) -> dict[str, Any]:
    return {
        "version": number,
        "created_time": _time(version.at),
        "deletion_time": _time(version.deleted) if version.deleted else "",
        "destroyed": version.destroyed,
        "custom_metadata": entry.custom or None,
    }


def _described(entry: Entry) -> dict[str, Any]:
    return {
        "current_version": entry.current,
        "oldest_version": min(entry.versions, default=0),
        "max_versions": entry.max_versions,
        "cas_required": entry.cas_required,
        "created_time": _time(entry.created),
        "updated_time": _time(entry.updated),
        "custom_metadata": entry.custom or None,
        "versions": {
            str(number): {
                "created_time": _time(version.at),
                "deletion_time": _time(version.deleted) if version.deleted else "",
                "destroyed": version.destroyed,
            }
            for number, version in entry.versions.items()
        },
    }


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
