"""Rollout: a staged change of versions, wave by wave."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from topology.documents.base import (
    ONE_OF_THEM,
    Document,
    Duration,
    KubernetesVersion,
    Model,
    Name,
    Release,
    complain,
    not_one,
)
from topology.documents.region import Image, Share


class KubernetesChange(Model):
    """Another Kubernetes version."""

    version: KubernetesVersion
    """Version to go to, in quotes, e.g. "1.33.4". One minor at a time."""


class ReleaseChange(Model):
    """Another OpenStack release of a cloud."""

    cloud: Name
    """Cloud to change."""
    to: Release
    """Release to go to, in quotes, e.g. "2025.2". One release at a time."""


class Change(Model):
    """What changes: exactly one of them."""

    model_config = ONE_OF_THEM

    kubernetes: KubernetesChange | None = None
    """Kubernetes version of the clusters in the waves."""
    image: Image | None = None
    """Machine image of the clusters in the waves."""
    release: ReleaseChange | None = None
    """OpenStack release of a cloud; the waves name its hypervisor clusters."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Change":
        if said := not_one(self, "kubernetes", "image", "release"):
            raise complain(
                "change-not-one",
                f"{said} given, but a rollout changes exactly one of kubernetes, image, release",
                'keep one of them, e.g. {kubernetes: {version: "1.33.4"}}; make a Rollout of each',
            )
        return self


class Wave(Model):
    """Clusters that change before the next wave begins."""

    name: Name
    """Name of the wave, e.g. canary."""
    clusters: Annotated[list[Name], Field(min_length=1, max_length=1000)]
    """Clusters of this wave."""
    at_once: Annotated[int, Field(ge=1, le=100)] = 1
    """How many of them may be changing at the same time."""
    soak: Duration | None = None
    """How long all must stay healthy before the next wave, e.g. 2h; not at all if left out."""


class GateKind(StrEnum):
    APPROVAL = "approval"
    HEALTHY = "healthy"
    NO_ALERTS = "no-alerts"
    BACKUP = "backup"


class Gate(Model):
    """What must hold before a wave may begin."""

    kind: GateKind = Field(strict=False)
    """approval (a person says yes), healthy (everything in the region is Ready), no-alerts (no
    critical alert fires) or backup (etcd and databases were saved in the last day)."""
    before: Name | None = None
    """Name of the wave it stands before; before every wave if left out."""


class Breach(StrEnum):
    PAUSE = "pause"
    ROLL_BACK = "rollBack"


class RolloutSpec(Model):
    region: Name | None = None
    """Region it stays in; left out, its clusters may be in several."""
    what: Change
    """What changes: exactly one of kubernetes, image, release."""
    waves: Annotated[list[Wave], Field(min_length=1, max_length=100)]
    """The waves, in order."""
    failure_budget: Share = 0
    """How many clusters may fail before `onBreach` happens: a number, or a share such as 5%."""
    gates: Annotated[list[Gate], Field(max_length=100)] = Field(default_factory=list)
    """What must hold before a wave begins."""
    on_breach: Breach = Field(default=Breach.PAUSE, strict=False)
    """pause: stop and ask. rollBack: also go back where that is possible (an image; never a
    Kubernetes version or a release)."""


class Rollout(Document):
    """A staged change: what, in which waves, how much may fail, what then."""

    kind: Literal["Rollout"]
    """Always `Rollout`."""
    spec: RolloutSpec
    """The change, its waves and its limits."""
