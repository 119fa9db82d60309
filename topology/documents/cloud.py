"""Cloud: an OpenStack cloud on top of clusters."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from topology.documents.base import Document, Model, Name, Release


class Service(StrEnum):
    KEYSTONE = "keystone"
    GLANCE = "glance"
    PLACEMENT = "placement"
    NOVA = "nova"
    NEUTRON = "neutron"
    CINDER = "cinder"
    HORIZON = "horizon"
    BARBICAN = "barbican"


def _default_services() -> list[Service]:
    return [
        Service.KEYSTONE,
        Service.GLANCE,
        Service.PLACEMENT,
        Service.NOVA,
        Service.NEUTRON,
        Service.CINDER,
        Service.HORIZON,
    ]


class CloudSpec(Model):
    region: Name
    """Region it is in."""
    release: Release
    """OpenStack release, in quotes, e.g. "2025.2". Raised one release at a time."""
    hypervisor_release: Release | None = None
    """Release of nova-compute on the hypervisors while an upgrade is under way: at most one
    release behind, or two between the .1 releases; never ahead."""
    control_plane: Name
    """Cluster of role control-plane."""
    hypervisors: Annotated[list[Name], Field(max_length=1000)]
    """Clusters of role hypervisor; each belongs to one cloud only."""
    storage: Annotated[list[Name], Field(max_length=1000)] = Field(default_factory=list)
    """Clusters of role storage; may be shared between clouds."""
    services: Annotated[
        list[Annotated[Service, Field(strict=False)]], Field(min_length=1, max_length=50)
    ] = Field(default_factory=_default_services)
    """OpenStack services that run. Nova needs keystone, glance, placement and neutron."""
    size: Literal["small", "medium", "large"] = "medium"
    """Replicas and storage of the control plane's databases and queues."""


class Cloud(Document):
    """An OpenStack cloud: one control plane, its hypervisors and its storage."""

    kind: Literal["Cloud"]
    """Always `Cloud`."""
    spec: CloudSpec
    """Which clusters make the cloud, and what runs on them."""
