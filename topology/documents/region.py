"""Region: the place. Zones, the garden, the metal provider, OpenBao, Git, when work may happen."""

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from topology.documents.base import (
    Access,
    Document,
    KubernetesVersion,
    Model,
    Name,
    ObjectName,
    TypeName,
    complain,
)


class Day(StrEnum):
    MON = "Mon"
    TUE = "Tue"
    WED = "Wed"
    THU = "Thu"
    FRI = "Fri"
    SAT = "Sat"
    SUN = "Sun"


_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]|24:00")


def _time(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    text = str(value)
    if _TIME.fullmatch(text):
        return text
    padded = f"0{text}" if len(text) < 5 else text
    guess = padded if _TIME.fullmatch(padded) else "22:00"
    raise complain(
        "time-invalid",
        f"{text[:40]!a} is not a time of day",
        f'write hours and minutes in quotes, e.g. "{guess}"',
    )


TimeOfDay = Annotated[
    str,
    BeforeValidator(_time),
    WithJsonSchema({"type": "string", "pattern": f"^({_TIME.pattern})$"}),
]


class Window(Model):
    """When disruptive work may start. `to` before `from` means the next day."""

    days: Annotated[
        list[Annotated[Day, Field(strict=False)]], Field(min_length=1, max_length=7)
    ] = Field(default_factory=lambda: list(Day))
    """Days on which the window opens."""
    from_: TimeOfDay = Field(alias="from")
    """Opening time, `HH:MM`, in `zone`."""
    to: TimeOfDay
    """Closing time, `HH:MM`; `24:00` is the end of the day."""
    zone: str = "UTC"
    """IANA time zone, e.g. Europe/Berlin. Daylight saving is honoured."""


def _moment(value: object) -> object:
    """A number is a day that somebody cut short; what the text says is looked at later."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise complain("moment-invalid", f"{value} is not a day", "write e.g. 2026-12-20")
    return value


class Freeze(Model):
    """A time in which nothing disruptive starts, whatever the windows say."""

    from_: Annotated[str, BeforeValidator(_moment)] = Field(alias="from")
    """First moment of the freeze: `2026-12-20` or `2026-12-20T18:00`, in `zone`."""
    to: Annotated[str, BeforeValidator(_moment)]
    """End of the freeze. A bare day is included whole."""
    zone: str = "UTC"
    """IANA time zone of `from` and `to`, e.g. Europe/Berlin."""
    reason: str = Field(min_length=1)
    """Shown to everybody who asks why nothing happens."""


class WorkloadIdentity(Model):
    """Whom Gardener is at the metal API, by tokens of the garden."""

    audiences: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(min_length=1, max_length=10),
    ]
    """For whom the tokens are made; the metal API must accept one of them."""
    prefix: str = Field(default="", max_length=100)
    """What the metal API puts before the names of the garden's users."""


class Garden(Model):
    """The Gardener that makes the clusters."""

    access: Access
    """Kubeconfig of the virtual garden."""
    project: Name
    """Gardener project; at most 10 characters, and at most 21 together with a cluster's name."""
    cloud_profile: ObjectName
    """CloudProfile with this site's machine types and images."""
    own_profile: bool = False
    """Whether that is a NamespacedCloudProfile of the project."""
    region: Name | None = None
    """The garden's own name for this region; the Region's name if left out."""
    credentials_binding: ObjectName = "metal"
    """CredentialsBinding for the metal API, made by fleetd if missing."""
    workload_identity: WorkloadIdentity | None = None
    """Lets Gardener log in at the metal API with tokens of its own instead of one that fleetd
    writes into a Secret. The metal API must believe the garden's issuer."""


class Provider(StrEnum):
    IRONCORE = "ironcore"
    IRONIC = "ironic"


class Metal(Model):
    """Who owns the bare metal."""

    provider: Provider = Field(strict=False)
    """ironcore (metal-operator) or ironic."""
    access: Access
    """ironcore: kubeconfig of the metal API. ironic: a clouds.yaml or a token."""
    url: str | None = None
    """Address of the Ironic API; only with provider ironic."""

    @model_validator(mode="after")
    def _url_fits_provider(self) -> "Metal":
        if self.provider is Provider.IRONIC and not self.url:
            raise complain(
                "metal-url-missing",
                "provider ironic needs the address of its API",
                "add url, e.g. url: https://ironic.eu-1.example:6385",
            )
        if self.provider is Provider.IRONCORE and self.url:
            raise complain(
                "metal-url-unused",
                "provider ironcore has no url; its address comes from the kubeconfig",
                "remove url",
                field="url",
            )
        return self


def _not_true(value: object) -> object:
    """For Python, true is 1."""
    if isinstance(value, bool):
        raise complain("number-invalid", "this is not a number", "use one of 1, 3, 5, 7")
    return value


class Secrets(Model):
    """The region's OpenBao."""

    engine: Literal["openbao"] = "openbao"
    """Always `openbao`."""
    address: str = "managed"
    """`managed`: fleetd runs it on the management cluster. Otherwise the https address of yours."""
    access: Access | None = None
    """How fleetd logs in; only for an OpenBao of yours."""
    replicas: Annotated[Literal[1, 3, 5, 7], BeforeValidator(_not_true)] = 3
    """Raft members of a managed OpenBao. Odd, so that a majority exists."""
    mount: str = Field(default="kv-v2", min_length=1)
    """KV v2 mount below which all paths of this region lie."""

    @model_validator(mode="after")
    def _access_fits_address(self) -> "Secrets":
        if self.address == "managed":
            if self.access is not None:
                raise complain(
                    "secrets-access-unused",
                    "a managed OpenBao needs no access; fleetd initialises it itself",
                    "remove access, or give the address of your own OpenBao",
                    field="access",
                )
            return self
        if not self.address.startswith("https://"):
            raise complain(
                "secrets-address-invalid",
                "the address is neither 'managed' nor an https address",
                "write managed, or e.g. https://bao.eu-1.example:8200",
                field="address",
            )
        if self.access is None:
            raise complain(
                "secrets-access-missing",
                "an OpenBao of yours needs access",
                "name a token, e.g. access: {file: bao.token}",
            )
        return self


class Git(Model):
    """The repository from which Flux takes what runs on the clusters."""

    url: str = Field(pattern=r"^(https|ssh)://.+")
    """Address, e.g. https://git.example/c5c3/eu-1.git or ssh://git@git.example/c5c3/eu-1.git."""
    branch: str = Field(default="main", min_length=1)
    """Branch that Flux follows."""
    access: Access | None = None
    """Token or key; leave it out for a public repository."""
    path: str = "clusters"
    """Folder with one sub-folder per cluster."""


class Trust(Model):
    """Has the other clusters believe the tokens of the management cluster. Flux then goes in with
    those, and no kubeconfig is handed to it."""

    issuer: str = Field(pattern=r"^https://[^\s?#]+$", max_length=500)
    """An https address: the `iss` of the management cluster's service account tokens. Its keys must
    be published there, where the API servers of the other clusters can read them."""
    authority: str | None = Field(default=None, pattern=r"^-----BEGIN CERTIFICATE-----\s")
    """Certificate (PEM) of the authority that the issuer's own certificate is from; left out, one
    that everybody knows."""


def share(value: object) -> object:
    """A number, or text that is a number or a share of 1% to 100%."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    text = str(value)
    number = text.removesuffix("%")
    if number.isascii() and number.isdigit() and len(number) <= 6:
        if not text.endswith("%"):
            return int(number)
        if 0 < int(number) <= 100:
            return text
    raise complain(
        "share-invalid", f"{text[:40]!r} is not a share", "write a number like 2, or e.g. 10%"
    )


Share = Annotated[
    int | str,
    Field(union_mode="left_to_right"),
    BeforeValidator(share),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 999_999},
                {"type": "string", "pattern": "^([0-9]{1,6}|0*([1-9][0-9]?|100)%)$"},
            ]
        }
    ),
]


class Budgets(Model):
    """How much of a failure domain may be down at once, counting what is down already.
    A number, or a share such as `10%` (rounded down, at least 1)."""

    rack: Share = 1
    """Servers per rack."""
    zone: Share = "10%"
    """Servers per zone."""
    pool: Share = "10%"
    """Servers per ServerPool."""
    clusters: Share = 1
    """Clusters of one role in the region."""


class Image(Model):
    """A machine image of the CloudProfile."""

    name: TypeName
    """Machine image of the CloudProfile, e.g. gardenlinux."""
    version: str = Field(min_length=1, max_length=40)
    """Exact version, in quotes, e.g. "1877.4.0"."""


class Defaults(Model):
    """What the region's clusters use when they do not say."""

    kubernetes: KubernetesVersion | None = None
    """Kubernetes version, in quotes, e.g. "1.33.4"."""
    image: Image | None = None
    """Machine image."""


class RegionSpec(Model):
    zones: Annotated[list[Name], Field(min_length=1, max_length=26)]
    """Failure domains with their own power and network, e.g. [a, b]."""
    garden: Garden
    """The Gardener that makes the clusters."""
    metal: Metal
    """Who owns the bare metal: ironcore or ironic."""
    secrets: Secrets = Secrets()
    """The region's OpenBao; one that fleetd runs, if left out."""
    git: Git
    """The repository from which Flux takes what runs on the clusters."""
    charts: str | None = Field(default=None, pattern=r"^(oci|https)://.+")
    """A Helm repository that has all charts, e.g. a mirror oci://registry.example/charts. Left out,
    each chart comes from where its makers publish it."""
    trust: Trust | None = None
    """Tokens instead of kubeconfigs for Flux; left out, it gets a kubeconfig for each cluster,
    which fleetd renews. A cluster that you adopted is reached with the kubeconfig of its document
    either way, and Greenhouse and the arbiter's operator get kubeconfigs either way."""
    windows: Annotated[list[Window], Field(max_length=50)] = Field(default_factory=list)
    """When disruptive work may start. Without any, at all times."""
    freezes: Annotated[list[Freeze], Field(max_length=100)] = Field(default_factory=list)
    """Times in which nothing disruptive starts."""
    budgets: Budgets = Budgets()
    """How much may be down at once."""
    defaults: Defaults = Defaults()
    """What the region's clusters use when they do not say."""


class Region(Document):
    """A place with servers, a garden and a set of clusters that together make clouds."""

    kind: Literal["Region"]
    """Always `Region`."""
    spec: RegionSpec
    """What the region consists of and when work may happen in it."""
