"""Cluster: one Kubernetes cluster with one job."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from topology.documents.base import (
    Access,
    Document,
    Duration,
    KubernetesVersion,
    Labels,
    Model,
    Name,
    ObjectName,
    TypeName,
    complain,
)
from topology.documents.region import Image
from topology.documents.shoot import (
    Authentication,
    Dns,
    Hibernation,
    Purpose,
    Since,
    SysctlName,
    SysctlValue,
    UpkeepWindow,
)


class Role(StrEnum):
    MANAGEMENT = "management"
    CONTROL_PLANE = "control-plane"
    HYPERVISOR = "hypervisor"
    STORAGE = "storage"
    ARBITER = "arbiter"


class UpdateStrategy(StrEnum):
    ROLLING = "AutoRollingUpdate"
    IN_PLACE = "AutoInPlaceUpdate"
    MANUAL = "ManualInPlaceUpdate"


class Worker(Model):
    """A pool of nodes."""

    name: Name
    """At most 15 characters: Gardener's limit."""
    pool: Name | None = None
    """ServerPool that gives the machines."""
    machine_type: TypeName | None = None
    """Machine type of the CloudProfile, where the machines do not come from a ServerPool."""
    minimum: Annotated[int, Field(ge=0, le=10000)]
    """Fewest nodes. Bare metal does not scale by itself: usually the same as maximum."""
    maximum: Annotated[int, Field(ge=0, le=10000)]
    """Most nodes. The ServerPool must have as many servers for all its clusters together."""
    zones: Annotated[list[Name], Field(max_length=26)] = Field(default_factory=list)
    """Zones for these nodes; all of the region's if left out."""
    kubernetes: KubernetesVersion | None = None
    """Keeps the nodes at an older version than the control plane; at most three minors behind."""
    image: Image | None = None
    """Machine image of these nodes; the cluster's if left out."""
    update_strategy: UpdateStrategy = Field(default=UpdateStrategy.ROLLING, strict=False)
    """AutoRollingUpdate replaces nodes; the in-place ones keep the machines."""
    drain_timeout: Duration | None = None
    """After this long Gardener deletes a machine even if it is not empty. Hypervisors and storage
    get 30d unless you say otherwise, others 2h."""
    labels: Labels = Field(default_factory=dict)
    """Labels of the nodes."""
    taints: Annotated[list[str], Field(max_length=50)] = Field(default_factory=list)
    """As `key=value:Effect`."""
    sysctls: Annotated[dict[SysctlName, SysctlValue], Field(max_length=100)] = Field(
        default_factory=dict
    )
    """Settings of the nodes' kernels, e.g. net.core.somaxconn: 4096."""

    @model_validator(mode="after")
    def _machines_from_one_place(self) -> "Worker":
        if (self.pool is None) == (self.machine_type is None):
            both = self.pool is not None
            raise complain(
                "worker-machines",
                "both pool and machineType are given"
                if both
                else "it is not said where the machines come from",
                "keep one of them" if both else "add pool: <a ServerPool>, or machineType",
                field="machineType" if both else "",
            )
        return self


class Stretch(Model):
    """Ceph over two zones, with a monitor at a third place that breaks ties."""

    zones: Annotated[list[Name], Field(min_length=2, max_length=2)]
    """The two zones that hold data."""
    arbiter: Name
    """Cluster of role arbiter, outside those zones."""


class CephPool(Model):
    """An RBD pool."""

    name: Name
    """Name of the pool in Ceph, e.g. volumes."""
    size: Annotated[int, Field(ge=2, le=6)] | None = None
    """Copies; 3, or 4 in a stretched cluster, if left out."""
    device_class: Literal["hdd", "ssd", "nvme"] | None = None
    """Kind of disks it uses; all of them if left out."""


def _default_pools() -> list[CephPool]:
    return [CephPool(name="vms"), CephPool(name="volumes"), CephPool(name="images")]


class Ceph(Model):
    """Options of a storage cluster."""

    stretch: Stretch | None = None
    """Spread over two zones; one zone if left out."""
    pools: Annotated[list[CephPool], Field(min_length=1, max_length=64)] = Field(
        default_factory=_default_pools
    )
    """RBD pools. Clouds use vms, volumes and images."""


class Hypervisor(Model):
    """Options of a hypervisor cluster."""

    libvirt: Literal["image", "daemonset"] = "image"
    """Where libvirt lives: in the machine image, or in a DaemonSet (then every restart of it
    empties the host first)."""
    aggregates: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list)
    """Nova host aggregates beside the zone's own."""
    traits: Annotated[
        list[Annotated[str, Field(pattern=r"^CUSTOM_[A-Z0-9_]+$", max_length=255)]],
        Field(min_length=1, max_length=100),
    ] = Field(default_factory=lambda: ["CUSTOM_FLEETD"])
    """Placement traits: CUSTOM_ and then capital letters, digits and '_', e.g. CUSTOM_FAST. At
    least one: without any, onboarding never ends."""
    high_availability: bool = False
    """Wait for the HA service at onboarding. Only where one is installed."""


class Networking(Model):
    """The cluster's networks. The defaults of the garden fit unless addresses overlap."""

    type: Literal["calico", "cilium"] = "calico"
    """Network plugin that Gardener installs: calico or cilium."""
    pods: str | None = None
    """Pod network (CIDR); cannot be changed later."""
    services: str | None = None
    """Service network (CIDR); cannot be changed later."""
    nodes: str | None = None
    """Node network (CIDR); cannot be changed later."""


class Adopted(Model):
    """A cluster that exists already and that fleetd does not create, upgrade or delete."""

    access: Access
    """Its kubeconfig."""
    manage: bool = False
    """Whether fleetd may install things on it. Without it the cluster is only looked at, and
    `fleetctl describe cluster <name>` says what is there and what is missing."""


class ClusterSpec(Model):
    region: Name
    """Region it is in."""
    role: Role = Field(strict=False)
    """What the cluster is for: management, control-plane, hypervisor, storage or arbiter."""
    kubernetes: KubernetesVersion | None = None
    """In quotes, e.g. "1.33.4". The region's default if left out."""
    image: Image | None = None
    """Machine image; the region's default if left out."""
    workers: Annotated[list[Worker], Field(max_length=50)] = Field(default_factory=list)
    """Pools of nodes; at least one, unless the cluster is adopted."""
    zones: Annotated[list[Name], Field(max_length=26)] = Field(default_factory=list)
    """Zones of an adopted cluster, where there are no workers to tell."""
    failure_tolerance: Literal["node", "zone"] | None = None
    """High availability of the control plane. Can be set once and never changed."""
    networking: Networking = Networking()
    """Networks of the cluster."""
    ceph: Ceph | None = None
    """Only for role storage."""
    hypervisor: Hypervisor | None = None
    """Only for role hypervisor."""
    adopted: Adopted | None = None
    """Instead of kubernetes, image and workers: use this existing cluster."""
    purpose: Purpose = "production"
    """Tells Gardener how much it matters: evaluation, testing, development or production."""
    dns: Dns | None = None
    """A domain of its own; the garden's default if left out."""
    exposure_class: ObjectName | None = None
    """Exposure class of the garden, which says how its API is reached; cannot be changed later."""
    maintenance_window: UpkeepWindow | None = None
    """When Gardener renews what needs no change of yours, such as its own components; 22:00 to
    23:00 UTC if left out. Versions it never changes by itself."""
    hibernation: Hibernation | None = None
    """Sleep, for clusters that are not for production."""
    authentication: Authentication | None = None
    """Whom its API server believes beside Gardener."""
    rotation: Since | None = None
    """Renews the cluster's authorities and keys, in steps: both the old and the new are good,
    nodes are replaced pool by pool, then the old ones end, which you approve: the authority after a
    day, the key that signs tokens after a month, when nobody has one of before any more."""
    reconcile: Since | None = None
    """Has Gardener go over the cluster once more, or try again what it gave up."""
    take_over: bool = False
    """Lets fleetd change a Shoot of this name that others made. Without it such a Shoot is only
    looked at, and `fleetctl describe cluster <name>` says what would change."""

    @model_validator(mode="after")
    def _options_fit_role(self) -> "ClusterSpec":
        if self.ceph is not None and self.role is not Role.STORAGE:
            raise complain(
                "option-of-other-role",
                f"a {self.role} cluster has no Ceph",
                "remove it, or make the role storage",
                field="ceph",
            )
        if self.hypervisor is not None and self.role is not Role.HYPERVISOR:
            raise complain(
                "option-of-other-role",
                f"a {self.role} cluster runs no virtual machines",
                "remove it, or make the role hypervisor",
                field="hypervisor",
            )
        if self.adopted is not None and self.workers:
            raise complain(
                "adopted-with-workers",
                "an adopted cluster keeps the nodes it has",
                "remove workers, or adopted to let fleetd make the cluster",
                field="workers",
            )
        if self.adopted is None and not self.workers:
            raise complain(
                "workers-missing",
                "the cluster has no nodes",
                "add workers: [{name, pool, minimum, maximum}], or adopted with an access",
            )
        return self


class Cluster(Document):
    """A Kubernetes cluster with one job."""

    kind: Literal["Cluster"]
    """Always `Cluster`."""
    spec: ClusterSpec
    """What the cluster is for and what it is made of."""
