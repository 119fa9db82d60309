"""
What all documents share: names, versions, durations, and how something secret is named.

Every model here refuses unknown fields and is frozen. A field's description is written for the
person who fills it in; it ends up in the JSON schema, the CRD and the reference page.
"""

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

API_VERSION = "fleet.c5c3.io/v1alpha1"


class Model(BaseModel):
    """Base of everything in a document. Field names are camelCase outside, snake_case inside."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=False,
        extra="forbid",
        frozen=True,
        strict=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )


def complain(code: str, message: str, hint: str = "", *, field: str = "") -> PydanticCustomError:
    """An error for a validator to raise. `field` (dotted, below the model) moves the complaint
    from the model to the field that should change."""
    context = {"text": message, "hint": hint, "field": field}
    return PydanticCustomError(code, "{text}", context)  # pyright: ignore[reportArgumentType]


NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
NAME_HINT = "use lower-case letters, digits and '-', starting and ending with a letter or digit"


def _name(value: str) -> str:
    if len(value) > 63:
        raise complain(
            "name-too-long", f"{len(value)} characters are more than 63", "shorten the name"
        )
    if not NAME.fullmatch(value):
        raise complain("name-invalid", f"{quote(value)} is not a name", NAME_HINT)
    return value


def quote(value: str, most: int = 80) -> str:
    """A text for a sentence: cut, with signs of other scripts spelled out, because a Cyrillic a
    looks like any other, and without what may be the password or the token of an address."""
    before, at, rest = value.rpartition("@")
    told = f"...@{rest}" if at and ":" in before else value
    if "://" in value:
        for sign in "?#":
            path, found, _ = told.partition(sign)
            told = f"{path}{sign}..." if found else told
    return ascii(told if len(told) <= most else told[: most - 3] + "...")


Name = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$", "maxLength": 63}),
]

OBJECT = re.compile(rf"{NAME.pattern}(\.{NAME.pattern})*")
TYPE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")


def _object(value: str) -> str:
    if len(value) > 253 or not OBJECT.fullmatch(value):
        raise complain(
            "name-invalid",
            f"{quote(value)} is not the name of an object in Kubernetes",
            "use lower-case letters, digits, '-' and '.', starting and ending with a letter or "
            "digit",
        )
    return value


def _type(value: str) -> str:
    if len(value) > 63 or not TYPE.fullmatch(value):
        raise complain(
            "name-invalid",
            f"{quote(value)} cannot be a name in a CloudProfile",
            "use at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter "
            "or digit",
        )
    return value


ObjectName = Annotated[
    str,
    AfterValidator(_object),
    WithJsonSchema({"type": "string", "pattern": f"^{OBJECT.pattern}$", "maxLength": 253}),
]
"""Of something that others may have made: a Secret, a CloudProfile. Dots are common there."""
TypeName = Annotated[
    str,
    AfterValidator(_type),
    WithJsonSchema({"type": "string", "pattern": f"^{TYPE.pattern}$", "maxLength": 63}),
]
"""Of a machine type or image: whatever the CloudProfile calls it, e.g. metal.hv; it also becomes
the value of a label."""

# `[0-9]`, not `\d`: that one also takes the digits of other scripts.
_SEMVER = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")


def _kubernetes(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise complain(
            "version-not-text",
            f"{value} is a number in YAML, not a version",
            f'put it in quotes and name the patch, e.g. "{value}.4"'
            if isinstance(value, float)
            else 'write all three parts in quotes, e.g. "1.33.4"',
        )
    if isinstance(value, str) and not _SEMVER.fullmatch(value):
        bare = value.removeprefix("v")
        raise complain(
            "version-invalid",
            f"{quote(value)} is not a Kubernetes version",
            f'write it without the v: "{bare}"'
            if _SEMVER.fullmatch(bare)
            else 'write all three parts in quotes, e.g. "1.33.4"',
        )
    return value


KubernetesVersion = Annotated[
    str,
    BeforeValidator(_kubernetes),
    WithJsonSchema({"type": "string", "pattern": f"^{_SEMVER.pattern}$"}),
]

_RELEASE = re.compile(r"20[0-9]{2}\.[12]")


def _release(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise complain(
            "version-not-text",
            f"{value} is a number in YAML, not a release",
            f'put it in quotes: "{value}"'
            if _RELEASE.fullmatch(str(value))
            else 'write year and half in quotes, e.g. "2025.2"',
        )
    if isinstance(value, str) and not _RELEASE.fullmatch(value):
        raise complain(
            "release-invalid",
            f"{quote(value)} is not an OpenStack release",
            'write year and half, e.g. "2025.2"',
        )
    return value


Release = Annotated[
    str,
    BeforeValidator(_release),
    WithJsonSchema({"type": "string", "pattern": f"^{_RELEASE.pattern}$"}),
]

_DURATION = re.compile(r"(?=[0-9])(([0-9]{1,6})d)?(([0-9]{1,6})h)?(([0-9]{1,6})m)?(([0-9]{1,6})s)?")


def parse_duration(value: str) -> timedelta | None:
    """`90d`, `1h30m`, `45s`; None if it is none."""
    found = _DURATION.fullmatch(value)
    if not found:
        return None
    days, hours, minutes, seconds = (int(found.group(n) or 0) for n in (2, 4, 6, 8))
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def show_duration(value: timedelta) -> str:
    """The inverse of `parse_duration`, in the fewest parts."""
    seconds = int(value.total_seconds())
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


DURATION_PATTERN = r"^([0-9]{1,6}d)?([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"
"""For schemas. It lets nothing and zero pass, which a pattern cannot refuse without look-ahead;
Kubernetes has none. Loading refuses them."""


def _duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    found = parse_duration(value) if isinstance(value, str) else None
    if found is None or found <= timedelta(0):
        shown = quote(value) if isinstance(value, str) else "this"
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown = f"{value} without a unit"
        raise complain(
            "duration-invalid",
            f"{shown} is not a duration",
            "write e.g. 45s, 30m, 2h, 1h30m or 90d",
        )
    return found


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(show_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN}),
]


SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]+")


def _secret_key(value: str) -> str:
    if len(value) > 253 or not SECRET_KEY.fullmatch(value):
        raise complain(
            "secret-key-invalid",
            f"{quote(value)} cannot be a key of a Secret",
            "use letters, digits, '-', '_' and '.', e.g. password",
        )
    return value


SecretKey = Annotated[
    str,
    AfterValidator(_secret_key),
    WithJsonSchema(
        {"type": "string", "pattern": f"^{SECRET_KEY.pattern}$", "minLength": 1, "maxLength": 253}
    ),
]


class OpenBaoAccess(Model):
    path: str = Field(min_length=1, max_length=512)
    """Path below the KV mount, e.g. `bmc/compute`."""
    key: Annotated[str, Field(min_length=1)] | None = None
    """Which key of that secret; leave it out where several are read (user name and password)."""


class SecretAccess(Model):
    cluster: Name
    """Name of the Cluster that holds the Secret."""
    namespace: Name
    """Namespace of the Secret."""
    name: ObjectName
    """Name of the Secret."""
    key: SecretKey = "value"
    """Which key of the Secret holds the value."""


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = re.compile(r"(?!~(/|$))[^\x00-\x1f\x7f]*[^/\x00-\x1f\x7f]")
NEVER_WRITTEN = "a secret is named here, never written"


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise complain(
            "access-env-invalid",
            "this is not the name of an environment variable",
            f"write the name alone, without '$' or '=', e.g. BMC_PASSWORD; {NEVER_WRITTEN}",
        )
    return value


def _file(value: str) -> str:
    """Whatever it is, it is not shown: somebody may have written the secret itself."""
    if "://" in value or not _FILE.fullmatch(value):
        raise complain(
            "access-file-invalid",
            "this is not the path of a file",
            f"write a path without '~', e.g. bmc.yaml or /etc/fleetd/bmc.yaml; {NEVER_WRITTEN}",
        )
    return value


Variable = Annotated[
    str,
    AfterValidator(_variable),
    WithJsonSchema({"type": "string", "pattern": f"^{_VARIABLE.pattern}$"}),
]
FilePath = Annotated[str, AfterValidator(_file), WithJsonSchema({"type": "string", "minLength": 1})]

ONE_OF_THEM = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})
"""For models of which exactly one field is given: the schemas say so too."""


def not_one(model: Model, *names: str) -> str:
    """The beginning of a complaint, `nothing is` or `file and env are`, unless exactly one of the
    fields is given. One that is written without a value is given, as in the schema."""
    fields = type(model).model_fields
    written = [fields[name].alias or name for name in names if name in model.model_fields_set]
    if len(written) > 1:
        return " and ".join(written) + " are"
    return "" if any(getattr(model, name) is not None for name in names) else "nothing is"


class Access(Model):
    """Where something secret is found. It is always named, never written: exactly one of them."""

    model_config = ONE_OF_THEM

    file: FilePath | None = None
    """A file; a relative path is relative to the document. It may lie among the documents: a file
    that is named here is not read as one."""
    env: Variable | None = None
    """An environment variable of the daemon."""
    openbao: OpenBaoAccess | None = None
    """A path in the region's OpenBao."""
    secret: SecretAccess | None = None
    """A Secret in one of the clusters."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Access":
        if said := not_one(self, "file", "env", "openbao", "secret"):
            raise complain(
                "access-not-one",
                f"{said} given, but access is exactly one of file, env, openbao, secret",
                "keep one of them, e.g. {openbao: {path: bmc/compute}}",
            )
        return self


Labels = Annotated[dict[str, str], Field(max_length=100)]


class Metadata(Model):
    name: Name
    """Unique per kind in the whole fleet."""
    labels: Labels = Field(default_factory=dict)
    """For your own use; carried to what fleetd creates."""
    annotations: Labels = Field(default_factory=dict)
    """For your own use; fleetd does not read them."""


class Document(Model):
    """Head of every document. Subclasses fix `kind` and add `spec`."""

    api_version: Literal["fleet.c5c3.io/v1alpha1"]
    """Always `fleet.c5c3.io/v1alpha1`."""
    kind: Any
    """What the document describes."""
    metadata: Metadata
    """Name, labels and annotations."""
