"""Until when a kubeconfig lets in, read from the kubeconfig itself."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from fleetd.kube import lifetime
from fleetd.secrets import Secret

BORN = datetime(2026, 3, 1, tzinfo=UTC)
ENDS = BORN + timedelta(days=30)


def _config(**user: str) -> Secret:
    return Secret(json.dumps({"users": [{"name": "me", "user": user}]}))


def _token(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def _certificate() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(BORN)
        .not_valid_after(ENDS)
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()


def test_a_certificate_says_when_it_ends() -> None:
    """And since when it is good, which the ledger shows as its age."""
    told = lifetime.told(_config(**{"client-certificate-data": _certificate()}))

    assert told["expires"] == ENDS.isoformat()
    assert told["madeAt"] == BORN.isoformat()


def test_a_token_says_when_it_ends() -> None:
    """Claims are in the clear; nobody verifies them here."""
    given = _token(iat=int(BORN.timestamp()), exp=int(ENDS.timestamp()))

    assert lifetime.span(_config(token=given)) == (BORN, ENDS)


def test_of_several_the_first_to_end_counts() -> None:
    """A certificate beside a token that ends earlier does not help for longer."""
    given = _token(exp=int((ENDS - timedelta(days=9)).timestamp()))
    config = _config(**{"token": given, "client-certificate-data": _certificate()})

    assert lifetime.ends(config) == ENDS - timedelta(days=9)


@pytest.mark.parametrize(
    "secret",
    [
        Secret("not: [a kubeconfig"),
        Secret("[]"),
        Secret('{"users": [1, {"user": 2}]}'),
        _config(token="opaque"),
        _config(token="a.b.c"),
        _config(token=_token(exp="tomorrow")),
        _config(token=_token(exp=1e300)),
        _config(**{"client-certificate-data": "bm90IG9uZQ=="}),
    ],
)
def test_what_does_not_say_is_endless(secret: Secret) -> None:
    """Garbage included: it is refused soon enough, by the server."""
    assert lifetime.told(secret) == {"version": lifetime.ENDLESS}
