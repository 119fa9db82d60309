"""
What OpenBao keeps: all that its Raft log would hold, and so all that survives a restart.

Plain data, without behaviour. What a member forgets when it restarts (that it was unsealed, how
many keys it was given) is not here but in `fleetd.sim.services.openbao.members`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Body = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Version:
    """One version of a secret of a KV engine."""

    data: Body
    at: datetime
    deleted: datetime | None = None
    destroyed: bool = False


@dataclass(slots=True, kw_only=True)
class Entry:
    """One path of a KV engine: its metadata and its versions."""

    created: datetime
    updated: datetime
    current: int = 0
    versions: dict[int, Version] = field(default_factory=dict[int, Version])
    custom: dict[str, str] = field(default_factory=dict[str, str])
    max_versions: int = 0
    cas_required: bool = False


@dataclass(slots=True, kw_only=True)
class Mount:
    """A secret engine or an auth method at a path."""

    path: str
    """With a slash at the end: `kv-v2/`, `auth/kubernetes/hv/`."""
    type: str
    accessor: str
    description: str = ""
    options: dict[str, str] = field(default_factory=dict[str, str])
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    """Of a KV engine."""
    settings: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Everything else a backend stores, by its path: `config`, `role/eso-hv`."""


@dataclass(slots=True, kw_only=True)
class Token:
    id: str
    accessor: str
    policies: tuple[str, ...]
    display_name: str
    path: str
    created: datetime
    expires: datetime | None
    ttl: int
    meta: dict[str, str] = field(default_factory=dict[str, str])
    renewable: bool = True
    max_expires: datetime | None = None
    no_default: bool = False


@dataclass(slots=True, kw_only=True)
class Lease:
    id: str
    token: str
    """Whose end ends the lease."""
    expires: datetime
    user: str


@dataclass(slots=True, kw_only=True)
class Data:
    initialised: bool = False
    audit: str = ""
    """The audit file that the first leader declared."""
    shares: tuple[str, ...] = ()
    threshold: int = 0
    mounts: dict[str, Mount] = field(default_factory=dict[str, Mount])
    policies: dict[str, str] = field(default_factory=dict[str, str])
    tokens: dict[str, Token] = field(default_factory=dict[str, Token])
    leases: dict[str, Lease] = field(default_factory=dict[str, Lease])
    peers: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """Raft members by node id, with the time from which they vote."""
    cluster_id: str = ""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """How many of each thing were made, so that each gets a name of its own."""

    def number(self, of: str) -> int:
        self.numbers[of] = self.numbers.get(of, 0) + 1
        return self.numbers[of]
