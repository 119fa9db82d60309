"""
Since when and until when a kubeconfig lets in, as far as it says so itself: a certificate has an
end, and most tokens have one in the clear.

Pure. Nothing is verified here; whoever trusts it is the server. What does not say when it ends is
taken to be good until it is refused. Never tells anything but moments, and who made a token.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from cryptography import x509

from fleetd import plainyaml
from fleetd.secrets import Secret

ENDLESS = "endless"
"""For the ledger: the version of one that does not say when it ends."""


class Span(NamedTuple):
    begins: datetime | None
    ends: datetime


def span(kubeconfig: Secret) -> Span | None:
    """Of what in it ends first; None if nothing says when it does."""
    return min(_spans(kubeconfig.reveal()), key=lambda one: one.ends, default=None)


def ends(kubeconfig: Secret) -> datetime | None:
    found = span(kubeconfig)
    return found.ends if found is not None else None


def told(kubeconfig: Secret) -> dict[str, str]:
    """For the ledger: version, and when it was made and ends where it says so."""
    found = span(kubeconfig)
    if found is None:
        return {"version": ENDLESS}
    made = {"madeAt": found.begins.isoformat()} if found.begins is not None else {}
    return {"version": found.ends.isoformat(), "expires": found.ends.isoformat(), **made}


def _spans(text: str) -> Iterator[Span]:
    try:
        config: Any = plainyaml.load(text)
    except plainyaml.Error:
        return
    users: Any = cast("Mapping[str, Any]", config).get("users") if isinstance(config, dict) else ()
    for one in cast("list[Any]", users) if isinstance(users, list) else ():
        user: Any = cast("Mapping[str, Any]", one).get("user") if isinstance(one, dict) else None
        if not isinstance(user, dict):
            continue
        given = cast("Mapping[str, Any]", user)
        found = (
            _certificate(str(given.get("client-certificate-data") or "")),
            _token(str(given.get("token") or "")),
        )
        yield from (end for end in found if end is not None)


def _certificate(data: str) -> Span | None:
    try:
        read = x509.load_pem_x509_certificate(base64.b64decode(data, validate=True))
    except ValueError:
        return None
    return Span(read.not_valid_before_utc, read.not_valid_after_utc)


def issuer(token: Secret) -> str:
    """Who made it; empty if it does not say."""
    return str(_claims(token.reveal()).get("iss") or "")


def _token(text: str) -> Span | None:
    """Of a JSON web token; others do not say."""
    claims = _claims(text)
    end = _moment(claims, "exp")
    return Span(_moment(claims, "iat"), end) if end is not None else None


def _claims(text: str) -> Mapping[str, Any]:
    parts = text.split(".")
    if len(parts) != 3:
        return {}
    try:
        body = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims: Any = json.loads(body)
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", claims) if isinstance(claims, dict) else {}


def _moment(claims: Mapping[str, Any], name: str) -> datetime | None:
    value = claims.get(name)
    if not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
