"""What a Cluster may say of its Shoot beside nodes and versions; all of it has a good default."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from topology.documents.base import Model, complain
from topology.documents.maintenance import Moment
from topology.documents.region import TimeOfDay

Purpose = Literal["evaluation", "testing", "development", "production"]

_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SYSCTL = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?([./][a-z0-9]([a-z0-9_-]*[a-z0-9])?)+")
_CRON = re.compile(
    r"[0-9*,/-]+( [0-9*,/-]+){2} ([0-9*,/-]|[A-Za-z]{3})+ ([0-9*,/-]|[A-Za-z]{3})+", re.ASCII
)


def _domain(value: str) -> str:
    if len(value) > 253 or not _DOMAIN.fullmatch(value):
        raise complain(
            "domain-invalid",
            f"{value[:80]!r} is not a domain",
            "write it in small letters, e.g. hv.eu-1.example",
        )
    return value


def _cron(value: str) -> str:
    if not _CRON.fullmatch(value):
        raise complain(
            "cron-invalid",
            f"{value[:80]!r} is not a time in the form of cron",
            'write minute, hour, day, month and weekday, e.g. "0 20 * * 1-5"',
        )
    return value


def _sysctl(value: str) -> str:
    if len(value) > 253 or not _SYSCTL.fullmatch(value):
        raise complain(
            "sysctl-invalid",
            f"{value[:80]!r} is not the name of a kernel setting",
            "write it with dots, e.g. net.core.somaxconn",
        )
    return value


def _text(value: object) -> object:
    """In YAML a setting is mostly a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Domain = Annotated[
    str,
    AfterValidator(_domain),
    WithJsonSchema({"type": "string", "pattern": f"^{_DOMAIN.pattern}$", "maxLength": 253}),
]
Cron = Annotated[
    str, AfterValidator(_cron), WithJsonSchema({"type": "string", "pattern": r"^\S+( \S+){4}$"})
]
SysctlName = Annotated[str, AfterValidator(_sysctl)]
SysctlValue = Annotated[
    str,
    Field(min_length=1, max_length=253),
    BeforeValidator(_text),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}),
]


class UpkeepWindow(Model):
    """When Gardener renews parts of a cluster that is up to date: at most once a day."""

    from_: TimeOfDay = Field(alias="from")
    """Opening time in UTC, `HH:MM`."""
    to: TimeOfDay
    """Closing time in UTC; 30 minutes to 6 hours after `from`."""


class Sleep(Model):
    """When a cluster goes to sleep, and when it wakes."""

    start: Cron | None = None
    """When it goes to sleep, as cron has it, e.g. "0 20 * * 1-5"."""
    end: Cron | None = None
    """When it wakes, e.g. "0 7 * * 1-5"."""
    zone: str = "UTC"
    """IANA time zone of both, e.g. Europe/Berlin."""


class Hibernation(Model):
    """Shuts all nodes down for a while. Only for clusters whose purpose is not production."""

    enabled: bool = False
    """Whether it sleeps now."""
    schedules: Annotated[list[Sleep], Field(max_length=20)] = Field(default_factory=list)
    """When it goes to sleep and wakes by itself."""


class Dns(Model):
    """Names of the cluster. The garden's default domain if left out."""

    domain: Domain
    """The cluster's own domain, e.g. hv.eu-1.example; cannot be changed later."""


class Issuer(Model):
    """Who is believed about its users: an issuer of OpenID tokens."""

    url: str = Field(pattern=r"^https://[^\s?#]+$", max_length=500)
    """Its address, e.g. https://sso.example/realms/ops; must be the `iss` of its tokens."""
    audiences: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(min_length=1, max_length=10),
    ]
    """For whom its tokens are made; one of these must be in a token."""
    user_claim: str = Field(default="sub", min_length=1, max_length=100)
    """Which claim names the user."""
    groups_claim: str | None = Field(default=None, min_length=1, max_length=100)
    """Which claim names the user's groups; none if left out."""
    prefix: str = Field(min_length=1, max_length=100)
    """Stands before each name of a user or group, so that nobody can be called like somebody of
    the cluster's own, e.g. "sso:"."""


class Authentication(Model):
    """Whom the cluster believes beside Gardener (structured authentication)."""

    issuers: Annotated[list[Issuer], Field(min_length=1, max_length=10)]
    """Issuers of OpenID tokens. What their users may do is said by roles on the cluster."""


class Since(Model):
    """Asks for something once: whatever was done before this moment is done again."""

    since: Moment
    """A moment, e.g. 2026-03-01T21:00Z; nothing happens before it has come."""
