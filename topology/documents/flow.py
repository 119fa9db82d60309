"""CredentialFlow: a secret, from where it is made to everybody who uses it."""

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from topology.documents.base import (
    ONE_OF_THEM,
    Document,
    Duration,
    Model,
    Name,
    ObjectName,
    SecretKey,
    complain,
    not_one,
)
from topology.documents.maintenance import Moment

KUBECONFIG_VALIDITY_MIN = timedelta(minutes=10)
KUBECONFIG_VALIDITY_MAX = timedelta(hours=24)
"""Gardener signs admin kubeconfigs for no shorter and no longer than this."""


class Generate(Model):
    """A random value, made by fleetd and known to nobody else."""

    length: Annotated[int, Field(ge=16, le=4096)] = 32
    """Number of characters; 32 of letters and digits are 190 bits."""
    alphabet: Literal["letters-and-digits", "hex", "base64"] = "letters-and-digits"
    """Which characters: letters-and-digits, hex, or base64 (for keys of that many bytes)."""


class Kubeconfig(Model):
    """An admin kubeconfig, minted by Gardener for a limited time."""

    cluster: Name
    """Cluster it opens."""
    validity: Duration = timedelta(hours=24)
    """How long each one is valid: 10m to 24h, Gardener's limits."""

    @model_validator(mode="after")
    def _within_limits(self) -> "Kubeconfig":
        if self.validity < KUBECONFIG_VALIDITY_MIN:
            raise complain(
                "kubeconfig-too-short",
                "Gardener mints no kubeconfig for less than 10m",
                "write 10m or more, e.g. 24h",
                field="validity",
            )
        if self.validity > KUBECONFIG_VALIDITY_MAX:
            raise complain(
                "kubeconfig-too-long",
                "Gardener mints no kubeconfig for more than 24h",
                "write 24h or less; fleetd mints the next one in time",
                field="validity",
            )
        return self


class CephKey(Model):
    """The key of a Ceph client, made by Rook."""

    cluster: Name
    """Cluster of role storage."""
    client: Name
    """Name of the CephClient, e.g. nova."""


class FromSecret(Model):
    """A Secret that somebody else makes and renews."""

    cluster: Name
    """Cluster that holds the Secret."""
    namespace: Name
    """Namespace of the Secret."""
    name: ObjectName
    """Name of the Secret."""
    key: SecretKey
    """Which key of the Secret, e.g. password."""


class FromOpenBao(Model):
    """A value that somebody else writes into OpenBao."""

    path: str = Field(min_length=1, max_length=512)
    """Path below the region's KV mount, e.g. ci/registry."""


SOURCES = ("generate", "kubeconfig", "cephClient", "secret", "openbao")


class Source(Model):
    """Where the value comes from: exactly one of them."""

    model_config = ONE_OF_THEM

    generate: Generate | None = None
    """fleetd makes a random value."""
    kubeconfig: Kubeconfig | None = None
    """Gardener mints an admin kubeconfig of a cluster."""
    ceph_client: CephKey | None = None
    """Rook makes the key of a Ceph client."""
    secret: FromSecret | None = None
    """Somebody else keeps a Secret in a cluster."""
    openbao: FromOpenBao | None = None
    """Somebody else writes it into OpenBao."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Source":
        if said := not_one(self, "generate", "kubeconfig", "ceph_client", "secret", "openbao"):
            raise complain(
                "source-not-one",
                f"{said} given, but a source is exactly one of {', '.join(SOURCES)}",
                "keep one of them, e.g. {generate: {length: 32}}",
            )
        return self


class Proof(Model):
    """What must be seen before the old value is revoked."""

    kind: Literal["Deployment", "StatefulSet", "DaemonSet"]
    """Kind of what uses the Secret: its pods must all have started after the new value came."""
    name: ObjectName
    """Its name, in the target's namespace."""


class Target(Model):
    """A Secret that gets the value."""

    cluster: Name
    """Cluster the Secret is in."""
    namespace: Name
    """Namespace of the Secret."""
    secret: ObjectName
    """Name of the Secret."""
    key: SecretKey = "value"
    """Which key of the Secret; Flux reads kubeconfigs from `value`."""
    reload: Proof | None = None
    """What must be seen using the new value. If left out, the Secret itself is enough: right only
    for users that read it on every use."""


class Rotation(Model):
    """When a new value is made, and how long the old one stays good beside it."""

    every: Duration
    """Age at which a value is replaced, e.g. 90d."""
    overlap: Duration
    """Shortest time both are good, e.g. 7d; less than `every`. The old one goes later if somebody
    still uses it."""
    since: Moment | None = None
    """A value made before this moment is replaced once the moment has come, whatever its age: how
    a rotation is asked for, e.g. 2026-03-01T21:00Z after a leak."""

    @model_validator(mode="after")
    def _overlap_fits(self) -> "Rotation":
        if self.overlap >= self.every:
            raise complain(
                "overlap-too-long",
                "the overlap is not shorter than the time between two rotations",
                "lower it, or raise every",
                field="overlap",
            )
        return self


_PATH = re.compile(r"[a-zA-Z0-9_.-]+(/[a-zA-Z0-9_.-]+)*")


def _path(value: str) -> str:
    if len(value) > 512 or not _PATH.fullmatch(value):
        raise complain(
            "flow-path-invalid",
            f"{value[:80]!r} is not a path below the KV mount",
            "use letters, digits, '-', '_' and '.', with one '/' between the parts, e.g. "
            "ceph/client-nova",
        )
    return value


FlowPath = Annotated[
    str,
    AfterValidator(_path),
    WithJsonSchema({"type": "string", "pattern": f"^{_PATH.pattern}$", "maxLength": 512}),
]


class FlowSpec(Model):
    region: Name
    """Region whose OpenBao carries the value."""
    source: Source
    """Where the value comes from: exactly one of generate, kubeconfig, cephClient, secret,
    openbao."""
    path: FlowPath
    """Where it lies in OpenBao, below the region's KV mount, e.g. ceph/client-nova."""
    targets: Annotated[list[Target], Field(min_length=1, max_length=1000)]
    """The Secrets that get it."""
    rotation: Rotation | None = None
    """When it is replaced. Left out for what must never change, and for what others renew."""

    @model_validator(mode="after")
    def _rotation_fits_source(self) -> "FlowSpec":
        minted = self.source.kubeconfig
        if minted and self.rotation and self.rotation.every >= minted.validity:
            raise complain(
                "rotation-too-late",
                "the kubeconfig is no longer valid when the next one is minted",
                "rotate well before its validity ends, e.g. every: 12h",
                field="rotation.every",
            )
        if self.rotation and (self.source.secret or self.source.openbao):
            raise complain(
                "rotation-not-ours",
                "somebody else makes this value, so fleetd cannot rotate it",
                "remove rotation; fleetd carries each new value on as it appears",
                field="rotation",
            )
        return self


class CredentialFlow(Document):
    """A credential of your own: where it comes from, where it goes, when it is replaced. The
    catalogue brings the standard ones."""

    kind: Literal["CredentialFlow"]
    """Always `CredentialFlow`."""
    spec: FlowSpec
    """Source, path in OpenBao, targets and rotation."""
