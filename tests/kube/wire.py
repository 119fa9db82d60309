"""Small servers on loopback, certificates made on the spot, and kubeconfigs that lead there."""

import asyncio
import base64
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fleetd.secrets import Secret

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TOKEN = "token-of-the-test-0123456789"
DAY = timedelta(days=1)
NOON = datetime.now(UTC)


@dataclass(frozen=True)
class Pair:
    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates that are good for a day."""

    def __init__(self, name: str = "authority of the test") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._begin(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.pem = made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _begin(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOON - DAY)
            .not_valid_after(NOON + DAY)
        )

    def sign(self, name: str) -> Pair:
        """For a host name or an address, or for a user."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternative: x509.GeneralName = x509.DNSName(name)
        with contextlib.suppress(ValueError):
            alternative = x509.IPAddress(ipaddress.ip_address(name))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._begin(subject, key).add_extension(
            x509.SubjectAlternativeName([alternative]), critical=False
        )
        return Pair(
            made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )


def server_tls(pair: Pair, folder: Path, clients: bytes = b"") -> ssl.SSLContext:
    """`clients`: the authority that a client's certificate must come from."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    file = folder / "server.pem"
    file.write_bytes(pair.certificate + pair.key)
    context.load_cert_chain(file)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.decode())
    return context


@contextlib.asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """The address of a server that answers everything with `handler`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def saying(*pieces: bytes, hold: bool = False) -> AsyncGenerator[str]:
    """The address of a server that answers everything with the same bytes, and hangs up, or, if
    `hold`, does not."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if hold:
                await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.sleep(0)


@contextlib.contextmanager
def nobody() -> Generator[str]:
    """An address at which nobody listens, and nobody else will: the port is held."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def kubeconfig(
    server: str, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
) -> Secret:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": TOKEN} if user is None else user}],
    }
    return Secret(yaml.safe_dump(document))
