"""
Keys and certificates for servers on loopback, made anew for every start; only we read the files.

An `Authority` signs. Nothing here is trusted by anybody who was not handed its certificate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=7)
BACK = timedelta(hours=1)
"""Valid from a while ago on, for clocks that differ."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path, name: str, *, rsa_key: bool = False) -> None:
        self._folder = folder
        self._key = _rsa_key() if rsa_key else ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name, ())
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = _write(folder / f"{name}.crt", _pem(certificate))

    def key(self) -> bytes:
        """For somebody else who signs with it, in the old form that a garden wants of RSA keys."""
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )

    def server(self, name: str, *hosts: str) -> Pair:
        """For a server on loopback, which is also known by these names."""
        names = [x509.DNSName(host) for host in ("localhost", *hosts)]
        alternatives = x509.SubjectAlternativeName(
            [*names, x509.IPAddress(IPv4Address("127.0.0.1"))]
        )
        return self._pair(name, (), alternatives, ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self, name: str, groups: Sequence[str] = ()) -> Pair:
        return self._pair(name, groups, None, ExtendedKeyUsageOID.CLIENT_AUTH)

    def both(self, name: str) -> Pair:
        """For a server that talks to itself, as the gateway of etcd does."""
        alternatives = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
        )
        usages = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
        return self._pair(name, (), alternatives, *usages)

    def _pair(
        self,
        name: str,
        groups: Sequence[str],
        alternatives: x509.SubjectAlternativeName | None,
        *usages: x509.ObjectIdentifier,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_subject(name, groups), key.public_key()).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        file = name.replace(":", "-")
        return Pair(
            _write(self._folder / f"{file}.crt", _pem(builder.sign(self._key, hashes.SHA256()))),
            _write(self._folder / f"{file}.key", _secret(key)),
        )

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACK)
            .not_valid_after(now + LIFE)
        )


def signing_key(path: Path) -> Path:
    """For tokens of service accounts."""
    return _write(path, _secret(_rsa_key()))


def _rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _subject(name: str, groups: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _secret(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
