"""
The access file: who may do what, as its owner writes it. TOML, read whole or not at all.

It holds no secret: a token stands there as its digest, and a client's secret in a file that it
names. One rule for all grants: of those that fit
a caller the ones with the highest role count, and their regions together are the caller's.
"""

import os
import stat
import tomllib
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from fleetd import errors
from fleetd.surface.identity import Identity, Role

LARGEST = 1024 * 1024
Word = Literal["viewer", "operator", "admin"]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Grant(_Part, frozen=True):
    role: Word
    regions: tuple[Name, ...] | None = None
    """None: all of them."""


class Token(Grant, frozen=True, kw_only=True):
    name: Name
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    expires: datetime | None = None


class GroupGrant(Grant, frozen=True):
    group: Name = ""
    user: Name = ""


class Browser(_Part, frozen=True):
    """People who log in with a browser, at the issuer."""

    client_id: Name
    url: Name
    """Where browsers find the page: scheme, host and port, as people type it."""
    client_secret_file: str = ""
    """Left out: the issuer knows a client without a secret."""
    scopes: tuple[Name, ...] = ("openid", "profile", "email")
    hours: Annotated[int, msgspec.Meta(ge=1, le=168)] = 12
    """After which somebody logs in again, whatever they do."""
    idle_minutes: Annotated[int, msgspec.Meta(ge=1, le=1440)] = 60


class Oidc(_Part, frozen=True):
    issuer: Name
    audience: Name
    groups: Name = "groups"
    """The claim with the groups."""
    name: Name = "sub"
    """The claim by which a caller is called in history."""
    authorities: str = ""
    grants: tuple[GroupGrant, ...] = ()
    browser: Browser | None = None


class Kubernetes(_Part, frozen=True):
    kubeconfig: Name
    audience: Name = "fleetd"
    grants: tuple[GroupGrant, ...] = ()


class NameGrant(Grant, frozen=True, kw_only=True):
    name: Name
    """Common name, or an alternative name: DNS, URI or e-mail."""


class Certificates(_Part, frozen=True):
    grants: tuple[NameGrant, ...] = ()


class Rules(_Part, frozen=True):
    tokens: tuple[Token, ...] = ()
    oidc: Oidc | None = None
    kubernetes: Kubernetes | None = None
    certificates: Certificates | None = None

    @property
    def any(self) -> bool:
        return bool(self.tokens or self.oidc or self.kubernetes or self.certificates)


def read(path: Path) -> Rules:
    """Blocks. Raises SettingsError with what is wrong."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(LARGEST + 1)
    except OSError as cause:
        raise errors.SettingsError(f"{path}: cannot be read: {cause.strerror}") from None
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise errors.SettingsError(f"{path}: others may write to it; chmod go-w it")
    if len(content) > LARGEST:
        raise errors.SettingsError(f"{path}: is larger than {LARGEST} bytes")
    try:
        found = msgspec.convert(tomllib.loads(content.decode()), Rules)
    except UnicodeDecodeError:
        raise errors.SettingsError(f"{path}: is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as wrong:
        raise errors.SettingsError(f"{path}: is not TOML: {wrong}") from None
    except msgspec.ValidationError as wrong:
        raise errors.SettingsError(f"{path}: {wrong}") from None
    _check(path, found)
    return found


def _check(path: Path, rules: Rules) -> None:
    if not rules.any:
        raise errors.SettingsError(
            f"{path}: lets nobody in; add [[tokens]] (`fleetctl token new`), [oidc], [kubernetes] "
            "or [certificates]"
        )
    names = [one.name for one in rules.tokens]
    for name in names:
        if names.count(name) > 1:
            raise errors.SettingsError(f"{path}: two tokens are called {name}; rename one")
    for one in rules.tokens:
        if one.expires is not None and one.expires.tzinfo is None:
            raise errors.SettingsError(f"{path}: tokens {one.name}: expires needs a zone, e.g. Z")
    for part in (rules.oidc, rules.kubernetes):
        for grant in part.grants if part is not None else ():
            if bool(grant.group) == bool(grant.user):
                raise errors.SettingsError(f"{path}: a grant names either a group or a user")


def granted(grants: Iterable[Grant], *, name: str, how: str) -> Identity | None:
    """The identity that these grants give; None if there are none."""
    found = list(grants)
    if not found:
        return None
    role = max(Role[one.role.upper()] for one in found)
    counting = [one for one in found if Role[one.role.upper()] is role]
    limited = [one.regions for one in counting if one.regions is not None]
    regions = frozenset[str]().union(*limited) if len(limited) == len(counting) else None
    return Identity(name=name, role=role, how=how, regions=regions)


def for_groups(
    grants: Iterable[GroupGrant], *, user: str, groups: Iterable[str]
) -> list[GroupGrant]:
    members = frozenset(groups) - {""}  # a grant to a user names this one
    return [one for one in grants if one.group in members or (one.user and one.user == user)]
