"""Small pure parts of External Secrets: hashes, durations, templates."""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

DATA_HASH = "reconcile.external-secrets.io/data-hash"
BACKOFF_MAX = 420.0
"""Seconds: errors are tried again after 1 s, then twice as long each time, to seven minutes."""

_TEMPLATE = re.compile(r"\{\{\s*(?:index \. \"([^\"]+)\"|\.([\w-]+))\s*(?:\|[^}]*)?\}\}")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?")


def part(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of an object; empty where there is none."""
    found: Mapping[str, Any] | None = obj.get(name)
    return found if found is not None else {}


def conditions(obj: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """By type."""
    found: list[Mapping[str, Any]] = part(obj, "status").get("conditions") or []
    return {str(one["type"]): one for one in found}


def data_hash(data: Mapping[str, str]) -> str:
    """Of a Secret's `data`: the digest of how Go prints a map of bytes."""
    parts = [
        f"{key}:[{' '.join(str(byte) for byte in base64.b64decode(data[key]))}]"
        for key in sorted(data)
    ]
    return hashlib.sha3_224(f"map[{' '.join(parts)}]".encode()).hexdigest()


def synced_version(obj: Mapping[str, Any]) -> str:
    """What proves that a poke was seen: generation, and a hash of labels and annotations."""
    metadata: Mapping[str, Any] = obj["metadata"]
    told = [part(metadata, "annotations"), part(metadata, "labels")]
    text = msgspec.json.encode(told, order="deterministic")
    return f"{metadata.get('generation', 1)}-{hashlib.sha3_224(text).hexdigest()}"


def seconds(text: object, default: float) -> float:
    found = _DURATION.fullmatch(str(text or ""))
    if not text or found is None:
        return default
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + rest


def go_duration(text: str) -> str:
    """`1h` as Go writes it back: `1h0m0s`."""
    total = int(seconds(text, 0))
    hours, rest = divmod(total, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{left}s"
    return f"{minutes}m{left}s" if minutes else f"{left}s"


def backoff(failures: int) -> float:
    return min(2.0 ** (failures - 1), BACKOFF_MAX)


def rendered(template: str, values: Mapping[str, str]) -> str:
    """`{{ .name }}` only: pipelines are passed over, which is all our templates need."""
    return _TEMPLATE.sub(lambda found: values.get(found.group(1) or found.group(2), ""), template)


def encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()
