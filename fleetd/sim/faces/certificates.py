"""
An authority that nobody but this process trusts, and a certificate for loopback.

Made anew for every start and kept in memory; the key touches the disk only for as long as the TLS
library takes to read it. kubectl needs it: over plain HTTP it sends no token.
"""

import ssl
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE = timedelta(days=365)
_BACK = timedelta(days=1)
"""Valid from yesterday on, for clocks that differ."""


@dataclass(frozen=True, slots=True)
class Loopback:
    tls: ssl.SSLContext
    """For the server."""
    authority: bytes
    """PEM: what clients have to trust."""


def loopback(now: datetime) -> Loopback:
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("fleetd simulator")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.IPAddress(IPv4Address("127.0.0.1")), x509.DNSName("localhost")]
    certificate = (
        _builder(_name("localhost"), authority_name, key.public_key(), now)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        chain, secret = Path(folder, "chain.pem"), Path(folder, "key.pem")
        chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        secret.touch(mode=0o600)
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context.load_cert_chain(chain, secret)
    return Loopback(context, authority.public_bytes(serialization.Encoding.PEM))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACK)
        .not_valid_after(now + _LIFE)
    )
