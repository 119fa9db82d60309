"""
Kubeconfigs that are handed to others: what may be in them, and whether one is still good.

Pure. A controller that is given a kubeconfig with a file name in it reads that file of its own
disk and sends it to the server named beside it; so only what is written out may be handed over.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from fleetd import plainyaml
from fleetd.secrets import Secret

DIGEST = "fleet.c5c3.io/kubeconfig"
"""Annotation: digest of what fleetd wrote, so that another hand is noticed."""
EXPIRES = "fleet.c5c3.io/expires"
"""Annotation: when what fleetd wrote ceases to be good."""
SOON = timedelta(hours=12)
"""With less than this left it is replaced, if there is a better one. Fleetd renews its own with 10
to 14 hours left, so each is handed over once."""
BETTER = timedelta(hours=1)
"""So much longer must another one last to be worth a write."""

_CLUSTER = {"server", "certificate-authority-data", "tls-server-name"}
_USER = {"token", "client-certificate-data", "client-key-data"}


@dataclass(frozen=True, slots=True)
class Held:
    """What the Secret on the other side holds, without the secret."""

    inline: bool
    server: str
    authority: str
    digest: str


def read(secret: Secret | None) -> Held:
    """What is not there or cannot be read is not inline."""
    text = secret.reveal() if secret is not None else ""
    try:
        config: Any = plainyaml.load(text)
    except plainyaml.Error:
        config = None
    clusters, users = _inner(config, "clusters", "cluster"), _inner(config, "users", "user")
    inline = (
        len(clusters) > 0
        and len(users) > 0
        and all(one.keys() <= _CLUSTER and "server" in one for one in clusters)
        and all(one.keys() <= _USER and one for one in users)
    )
    first: Mapping[str, Any] = clusters[0] if clusters else {}
    return Held(
        inline=inline,
        server=str(first.get("server", "")),
        authority=str(first.get("certificate-authority-data", "")),
        digest=digest(text),
    )


def _inner(config: object, part: str, name: str) -> list[dict[str, Any]]:
    """The clusters or users of a kubeconfig; empty if one of them is not what it should be."""
    if not isinstance(config, dict):
        return []
    members = cast("dict[str, Any]", config).get(part)
    if not isinstance(members, list):
        return []
    found: list[dict[str, Any]] = []
    for one in cast("list[Any]", members):
        inner = cast("dict[str, Any]", one).get(name) if isinstance(one, dict) else None
        if not isinstance(inner, dict):
            return []
        found.append(cast("dict[str, Any]", inner))
    return found


def digest(text: str) -> str:
    """Of something with a key in it: nobody gets back from it to the key."""
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def encoded(value: Secret) -> str:
    return base64.b64encode(value.reveal().encode()).decode()


def current(
    annotations: Mapping[str, str], held: Held, ours: Held, until: datetime | None, now: datetime
) -> bool:
    """Whether what the other side holds need not be replaced by ours, which lasts `until`."""
    if annotations.get(DIGEST) != held.digest:
        return False
    if (held.server, held.authority) != (ours.server, ours.authority):
        return False
    ends = _moment(annotations.get(EXPIRES, ""))
    if ends is None:
        # It does not say when it ends, so only the same one is known to be good.
        return held.digest == ours.digest
    return ends - now > SOON or (until is not None and until - ends < BETTER)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
