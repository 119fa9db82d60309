"""
The catalogue: which component belongs where, what it needs, how its health is read.

Data in `topology/catalog/*.yaml`, one component a file, with the shape given here; an operator
adds a component by adding a file (`--catalogue DIR`). A component's name is the kind of the
resources compiled from it: the file `openbao.yaml` gives `openbao/mgmt` on cluster mgmt.

A component is placed once per *scope*. An instance's name follows from its scope:

    region           <region>                 metal, garden-project
    cluster          <cluster>                on each cluster whose role is in `roles`
    cloud            <cloud>                  controlplane, aggregates
    cloud-hypervisor <hypervisor cluster>     once per hypervisor cluster of a cloud
    cloud-storage    <storage cluster>.<cloud>  once per pair
    ceph-pool        <storage cluster>.<pool>   once per RBD pool
    server, serverpool, cluster-document, cloud-document, region-document, flow
                     what a document itself stands for: server/r1-s01, cluster/hv ...

Reading, merging and checking the files is `topology.catalogue_load`; judging an object by a
`Health` is `topology.health`. Here is only the shape.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from topology.documents.base import Document, Duration, Model, Name, complain
from topology.documents.cluster import Role

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
PLACEHOLDERS = ("region", "project", "cluster", "cloud", "pool", "server", "name")
"""What text may name in braces: the region, its Gardener project, the cluster an instance stands
on (for a cloud its control plane), the cloud, the RBD pool, the server, and the instance itself.
`{region.garden.cloudProfile}` is a field of the spec of the region's document; likewise
`{cluster....}` and `{cloud....}`."""
FIELD = re.compile(r"(region|cluster|cloud)(\.[a-zA-Z]+)+")


def fill(text: str, value_of: Callable[[str], str]) -> str:
    """`text` with each placeholder replaced by what `value_of` says about the words inside."""
    return PLACEHOLDER.sub(lambda found: value_of(found.group(1)), text)


class Scope(StrEnum):
    REGION = "region"
    CLUSTER = "cluster"
    CLOUD = "cloud"
    CLOUD_HYPERVISOR = "cloud-hypervisor"
    CLOUD_STORAGE = "cloud-storage"
    CEPH_POOL = "ceph-pool"
    SERVER = "server"
    SERVERPOOL = "serverpool"
    CLUSTER_DOCUMENT = "cluster-document"
    CLOUD_DOCUMENT = "cloud-document"
    REGION_DOCUMENT = "region-document"
    FLOW = "flow"


class Told(StrEnum):
    """What of the documents a component can be told."""

    CEPH = "ceph"
    """How the Ceph of the cluster is made, without its pools."""
    GIT = "git"
    """The repository of the region."""
    HOSTS = "hosts"
    """How many hosts the cluster has."""
    HYPERVISOR = "hypervisor"
    """How the hypervisors of the cluster are made."""
    RELEASE = "release"
    """The release of the cloud; in scope cloud-hypervisor that of its hypervisors."""
    SERVICES = "services"
    """The optional services of the cloud."""
    SIZE = "size"
    """The size of the cloud that is, or stands, here."""
    STORAGE = "storage"
    """The storage clusters of the cloud."""
    TRUST = "trust"
    """Whose tokens the cluster believes for Flux; empty where it is entered with a kubeconfig."""


class On(StrEnum):
    """Which instances of the other component are meant, seen from this one."""

    SAME = "same"
    """Those of the same cluster, cloud, pool or region: whatever the two have in common. Between
    two clusters of one cloud that is the cloud: from a hypervisor cluster, a component of scope
    ceph-pool or cloud-storage means that of its clouds' storage. What belongs to the region means
    all of the region; what stands on the management cluster belongs to no cloud."""
    MANAGEMENT = "management"
    """Those on the region's management cluster."""
    CONTROL_PLANE = "control-plane"
    """Those on the control plane of the same cloud (of all clouds that use this cluster)."""
    HYPERVISOR = "hypervisor"
    """Those on the hypervisor clusters of the same cloud."""
    STORAGE = "storage"
    """Those on the storage clusters of the same cloud; from an arbiter, those it breaks ties
    for."""
    ARBITER = "arbiter"
    """Those on the arbiter of this storage cluster, or of the storage of the same cloud."""
    REGION = "region"
    """All of the region."""


class Link(Model):
    """An edge to another component. An instance is never linked to itself: where `on` leads back
    to the instance it starts from, there is no edge."""

    component: Name
    on: Annotated[On, Field(strict=False)] = On.SAME
    why: str = Field(min_length=1)
    """Ends the sentence "it needs this because ..."; shown by `fleetctl why`."""
    optional: bool = False
    """True: no complaint where the other component is not placed at all."""


WHOSE = re.compile(r"^(region|cluster|cloud|storage|pool)(\.[a-zA-Z]+)+$")


def _whose(field: str) -> str:
    if WHOSE.match(field):
        return field
    raise complain(
        "field-of-nobody",
        f"{field[:80]!r} does not say whose field it is",
        "start with region, cluster, cloud, storage or pool, e.g. cloud.services",
    )


class When(Model):
    """Place the component only where a field of the documents has one of these values.
    Fields are seen from the instance: `region.metal.provider`, `cluster.role`, `cloud.services`
    (a list matches if any of its members does), `cluster.ceph.stretch` with `present`. The region's
    and the role's defaults are filled in. Where several are meant, one that matches is enough:
    `cloud` is any cloud that uses the cluster, `cluster` of a region any of its clusters."""

    field: Annotated[str, AfterValidator(_whose)] = Field(
        json_schema_extra={"pattern": WHOSE.pattern}
    )
    any_of: list[str | int | bool] = Field(default_factory=list)
    present: bool | None = None


class Test(Model):
    """One test of an object as JSON. All that is given must hold. `path` is dotted; in it

        conditions[Ready]   is the member of a list whose `type` (or `name`) is Ready
        services[*]         is every member: the test must hold for each, and there must be one
        lastErrors[?]       is any member: the test must hold for at least one
        history[0]          is a member by number
        details[MON_DOWN]   is a member of a mapping; for names with dots in them

    A value that is missing or null passes nothing but `present: false`. Paths below `observed`
    are not fields of the object: the driver puts there what it found out by itself, such as
    whether a monitor is in the quorum, because the object alone would be no proof."""

    path: str = Field(min_length=1)
    in_: list[str | int | bool] = Field(default_factory=list, alias="in")
    """Passes when the value is one of these."""
    not_in: list[str | int | bool] = Field(default_factory=list)
    """Passes when there is a value and it is none of these."""
    equals_path: str | None = None
    """Passes when the value equals that of another path: observedGeneration and generation."""
    differs_from: str | None = None
    """Passes when there are both this value and that of another path, and they are not equal."""
    present: bool | None = None
    """true passes when there is a value; false when it is missing, null or empty."""
    younger_than: Duration | None = None
    """Passes when the value is a time less than this long ago."""
    older_than: Duration | None = None
    """Passes when the value is a time at least this long ago."""
    within_twice: str | None = None
    """Passes when the value is a time less than twice as long ago as the duration at this path."""
    beyond_twice: str | None = None
    """Passes when the value is a time at least twice as long ago as the duration at this path:
    something that is done in that interval was missed."""
    prefix: str | None = None
    """Passes when the value is text that starts so."""
    suffix: str | None = None
    """Passes when the value is text that ends so."""

    @model_validator(mode="after")
    def _tests_something(self) -> "Test":
        if not self.model_fields_set - {"path"}:
            raise complain(
                "test-empty",
                "it does not say what the value must be",
                'add e.g. in: ["True"], or present: true',
            )
        return self


class Rule(Model):
    """Holds when all of its tests pass."""

    reason: str | None = Field(default=None, pattern=r"^[A-Z][A-Za-z0-9]*$")
    """What the state is called, e.g. Sealed; limits are given by this name. Left out it is
    Failed, Progressing or Healthy, after the list the rule stands in."""
    when: Annotated[list[Test], Field(min_length=1)]
    """All must pass."""
    says: str | None = Field(default=None, min_length=1)
    """What the state means, for an operator, e.g. "the BMC does not answer". A path in braces is
    replaced by the value found; one with `[?]` or `[*]`, which must lead into a list that a test is
    about, by the names of the members that passed it. Left out, the tests themselves are shown."""
    quote: str | None = None
    """Path of a text of the object to show with the state, e.g. the message of a condition; with
    `[?]` that of the first member that passed the test about the same list. Never one that may hold
    something secret."""


class Watched(Model):
    """The object whose state tells the component's health."""

    group: str = ""
    """API group; the version is discovered, never assumed. Empty for the core group."""
    kind: str | None = Field(default=None, min_length=1)
    """Only a component that is `like` a profile may leave it out."""
    namespace: str | None = None
    """May use placeholders; left out for what has none."""
    name: str | None = Field(default=None, min_length=1)
    """May use placeholders; `*` is all there are of this kind (in the namespace, if given)."""
    owned: bool = False
    """With `*`: only those that fleetd made for this instance, by the label
    fleet.c5c3.io/owner."""


class Health(Model):
    """How health is read. The first rule that holds decides, in the order failed, progressing,
    healthy; none is Unknown with the reason Unrecognised. Four states come by themselves: Absent
    (looked, and there is none), Incomplete (of several, some are not there), Deleting (it has a
    deletionTimestamp, and no failed rule holds) and NotObserved (could not look)."""

    like: Name | None = None
    """A HealthProfile with rules that many components share. What is given beside it comes before
    the profile's."""
    source: Literal["kubernetes", "metal", "openbao", "openstack", "aggregate"] = "kubernetes"
    """Which far side tells: objects of a cluster, the metal provider of the region (a Server of
    metal-operator or a node of Ironic), an API, or the members it sums up."""
    object: Watched | None = None
    """For source kubernetes, and for metal where the provider is ironcore."""
    failed: list[Rule] = Field(default_factory=list)
    progressing: list[Rule] = Field(default_factory=list)
    healthy: list[Rule] = Field(default_factory=list)
    """At least one, here or in the profile."""


class StateLimit(Model):
    """How long a state may last, and what a person should do when it lasts longer."""

    state: str = Field(pattern=r"^[A-Z][A-Za-z0-9]*$|^\*$")
    """A reason such as Progressing or Absent; `*` for every state without its own limit."""
    within: Duration
    action: str = Field(min_length=1)
    """What to look at or do, in words and commands. The same for every instance, which is named
    beside it: no placeholders; write `<cluster>` for what the reader must put in."""


class Made(Model):
    """A credential this component makes."""

    name: Name
    """Unique in the catalogue; one is made for each instance of the component."""
    path: str | None = Field(default=None, min_length=1)
    """Where it lies in OpenBao, below the mount. May use placeholders."""
    secret: str | None = Field(default=None, pattern=r"^[^/]+/[^/]+$")
    """`namespace/name` of the Secret it lies in, where that is the source. May use
    placeholders."""
    document: str | None = Field(default=None, min_length=1)
    """Where else, in words: what documents name, or what fleetd keeps in its memory."""
    rotate: Duration | None = None
    """How often; left out for what must never change."""
    how: str = Field(min_length=1)
    """Who rotates it and by which act."""


class Used(Model):
    """A credential this component uses."""

    name: Name
    """Name under which some component makes it."""
    proof: str = Field(min_length=1)
    """How it is seen that the new one is in use."""


class Install(Model):
    """How it gets onto its cluster."""

    by: Literal["flux-helm", "flux-kustomization", "apply", "gardener", "metal", "none"] = "none"
    namespace: str | None = Field(default=None, min_length=1)
    """May use placeholders."""
    name: str | None = Field(default=None, min_length=1)
    """May use placeholders."""
    chart: str | None = Field(default=None, min_length=1)
    """Only with flux-helm: name of the chart, if it is not `name`."""
    version: str | None = Field(default=None, min_length=1)
    """Only with flux-helm: version or range of versions of the chart, e.g. ">=1.16.0 <2.0.0";
    the newest if left out."""
    repository: str | None = Field(default=None, pattern=r"^(oci|https)://.+")
    """Only with flux-helm: where the chart comes from, unless the Region says where all do."""


class ComponentSpec(Model):
    title: str = Field(min_length=1)
    description: str = Field(min_length=1)
    scope: Scope = Field(strict=False)
    roles: list[Annotated[Role, Field(strict=False)]] = Field(default_factory=list)
    """Roles of the clusters it is placed on; only for scope cluster."""
    when: list[When] = Field(default_factory=list)
    """All must hold."""
    driver: str = Field(pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?|\{region\.metal\.provider\})$")
    """Name of the driver, or `{region.metal.provider}` where the region's document decides."""
    backend: Literal["garden", "metal", "cluster", "management", "openbao", "openstack", "none"]
    """Which far side is asked about it."""
    told: list[Annotated[Told, Field(strict=False)]] = Field(default_factory=list)
    """What of the documents its driver is told, beside where it stands and how the far side is
    reached. A change of it is a change of this component, and of no other."""
    create: str = Field(min_length=1)
    """What is done first, as a plan shows it: "create the shoot"."""
    install: Install = Install()
    needs: list[Link] = Field(default_factory=list)
    feeds: list[Link] = Field(default_factory=list)
    outlives: list[str] = Field(default_factory=list)
    """Components of the same cluster that go first when it is retired, though they do not need it:
    it watches over them."""
    health: Health
    limits: list[StateLimit] = Field(default_factory=list)
    """One for `*` at least, here or in the profile. Those given here come before the profile's."""
    makes: list[Made] = Field(default_factory=list)
    uses: list[Used] = Field(default_factory=list)
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Taken into the spec of each instance as it is; text may use the placeholders."""


class ProfileSpec(Model):
    description: str = Field(min_length=1)
    health: Health
    limits: list[StateLimit] = Field(default_factory=list)


class HealthProfile(Document):
    """Rules and limits that many components share: `health: {like: helm-release, ...}`."""

    kind: Literal["HealthProfile"]
    spec: ProfileSpec


class Component(Document):
    """One part of a CobaltCore cloud."""

    kind: Literal["Component"]
    spec: ComponentSpec
