"""
A kubeconfig becomes a target: an address, a TLS context and a header.

kubernetes-asyncio reads it; this file says what fleetd does not accept. A kubeconfig comes from far
sides as well, and must not make us open a file, run a program, or trust anybody: only what stands
in it counts (`flatten` makes such a one of a local file). Keys are never written to a disk.
"""

import base64
import binascii
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import yaml

from fleetd import plainyaml, secrets
from fleetd.kube import errors
from fleetd.secrets import Secret

_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "tokenFile": "token",
}
"""Fields that name a file, and the field that holds the same inline."""
_MASKS = ("as", "as-uid", "as-groups", "as-user-extra")


class BadConfig(errors.KubeError):
    """The kubeconfig cannot be used. Says why; never what is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """Read, and found acceptable. Nothing was opened yet."""

    server: str
    """Without a slash at the end; may have a path."""
    document: Secret
    plugin: bool
    """Whether a program has to be run, or a provider asked, to log in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    server: str
    tls: ssl.SSLContext | None
    """None: plain HTTP, on loopback."""
    tls_name: str | None
    """Which name the certificate must have, if not that of the server."""
    proxy: str | None
    authorization: Secret | None


def read(kubeconfig: Secret, *, plugins: bool = False) -> Kubeconfig:
    """Raises `BadConfig` for whatever fleetd does not accept."""
    document = _document(kubeconfig)
    cluster, user = _parts(document)
    server = str(cluster.get("server") or "").rstrip("/")
    _check_address(server)
    if cluster.get("insecure-skip-tls-verify"):
        raise BadConfig(
            "the kubeconfig has insecure-skip-tls-verify: certificates are always checked; "
            "put the authority into certificate-authority-data"
        )
    _check_proxy(str(cluster.get("proxy-url") or ""))
    for field, inline in _FILES.items():
        if (cluster.get(field) and not cluster.get(inline)) or (
            user.get(field) and not user.get(inline)
        ):
            raise BadConfig(f"the kubeconfig names a file ({field}); put it inline as {inline}")
    for field in _MASKS:
        if user.get(field):
            raise BadConfig(f"the kubeconfig impersonates somebody ({field}), which is not done")
    plugin = bool(user.get("exec") or user.get("auth-provider"))
    if plugin and not plugins:
        raise BadConfig(
            "the kubeconfig logs in with exec or auth-provider, which is not allowed here; "
            "use a token or a client certificate"
        )
    return Kubeconfig(server=server, document=kubeconfig, plugin=plugin)


def flatten(kubeconfig: Secret, folder: Path) -> Secret:
    """The same with the files it names inside it. For a kubeconfig from a local file in `folder`
    only: whoever wrote it could read those files himself."""
    document = _document(kubeconfig)
    for part in _parts(document):
        for field, inline in _FILES.items():
            named = part.pop(field, None)
            if not named or part.get(inline):
                continue
            path = folder / str(named)
            content = _content(path)
            if field == "tokenFile":
                part[inline] = content.decode("utf-8", "replace").strip()
            else:
                part[inline] = base64.b64encode(content).decode()
    try:
        return Secret(yaml.safe_dump(document))
    except RecursionError:
        raise BadConfig("the kubeconfig is nested too deeply") from None


async def load(kubeconfig: Kubeconfig) -> Target:
    """May run a program or ask a provider, if `plugin`."""
    document = _document(kubeconfig.document)
    loader = _loader(document)
    said = ""
    try:
        await loader._load_authentication()  # noqa: SLF001 -- the rest of loading writes keys to disk
    except Exception as cause:  # noqa: BLE001 -- a program or a provider of somebody else
        said = type(cause).__name__
    if said:
        # Raised out here: what a plugin says may hold what it got, and must not hang on to ours.
        raise BadConfig(f"could not log in as the kubeconfig says: {said}")
    cluster, user = _parts(document)
    given: Any = getattr(loader, "token", None)
    made: Any = getattr(loader, "cert_file", None), getattr(loader, "key_file", None)
    return Target(
        server=kubeconfig.server,
        tls=_tls(cluster, user, made) if kubeconfig.server.startswith("https://") else None,
        tls_name=str(cluster["tls-server-name"]) if cluster.get("tls-server-name") else None,
        proxy=str(cluster["proxy-url"]) if cluster.get("proxy-url") else None,
        authorization=Secret(str(given)) if given else None,
    )


def _document(kubeconfig: Secret) -> dict[str, Any]:
    try:
        document: Any = plainyaml.load(kubeconfig.reveal())
    except plainyaml.Error:
        # Raised from outside of this block: the parser's exception quotes what it stumbled over.
        document = None
    if not isinstance(document, dict):
        raise BadConfig("the kubeconfig is not a document in YAML")
    return cast("dict[str, Any]", document)


def _parts(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cluster and the user of the current context."""
    said = ""
    try:
        loader = _loader(document)
        cluster, user = _plain(loader._cluster), _plain(loader._user)  # noqa: SLF001 -- no other way
    except Exception as cause:  # noqa: BLE001 -- the loader takes a well-formed one for granted
        known = type(cause).__name__ == "ConfigException"
        said = str(cause) if known else "it has not the form of one"
        cluster = user = {}
    if said:
        raise BadConfig(f"the kubeconfig is no good: {secrets.scrub(said)}")
    return cluster, user


def _loader(document: dict[str, Any]) -> Any:  # noqa: ANN401 -- hardly typed
    # Here and not above: it brings every model of Kubernetes along, most of a second and 36 MB,
    # which a process that reads no kubeconfig (a test, a simulated world) need not pay.
    from kubernetes_asyncio.config import kube_config  # noqa: PLC0415

    return kube_config.KubeConfigLoader(document, config_base_path="")


def _plain(node: Any) -> dict[str, Any]:  # noqa: ANN401 -- as the loader gives it
    """The part itself, so that `flatten` can change it."""
    value: Any = getattr(node, "value", node)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError
    return cast("dict[str, Any]", value)


def _check_address(server: str) -> None:
    try:
        parts = urlsplit(server)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if not host or parts.scheme not in ("https", "http") or port == 0:
        raise BadConfig("the kubeconfig has no server, or one that is not https://host[:port]")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadConfig("the server of the kubeconfig has more than a host and a path")
    if parts.scheme == "http" and not _is_loopback(host):
        raise BadConfig(f"{host} would be asked without TLS; that is only done on loopback")


def _check_proxy(proxy: str) -> None:
    if not proxy:
        return
    parts = urlsplit(proxy)
    if parts.scheme not in ("http", "https") or parts.username is not None:
        raise BadConfig("the proxy-url of the kubeconfig is not http[s]://host[:port]")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise BadConfig(f"the kubeconfig names {path}: {cause.strerror}") from None
    if len(content) > secrets.LARGEST:
        raise BadConfig(f"the kubeconfig names {path}, which is too large for a key")
    return content


def _tls(
    cluster: Mapping[str, Any], user: Mapping[str, Any], made: tuple[str | None, str | None]
) -> ssl.SSLContext:
    """Always checks the far side's certificate and its name."""
    authority = _inline(cluster, "certificate-authority-data")
    certificate = _inline(user, "client-certificate-data")
    key = _inline(user, "client-key-data")
    if bool(certificate) != bool(key):
        raise BadConfig("the kubeconfig has a client certificate or a key, but not both")
    wrong = ""
    try:
        context = ssl.create_default_context(cadata=authority or None)
    except (ssl.SSLError, ValueError):
        context, wrong = None, "certificate-authority-data"
    if context is not None:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            if made[0] and made[1]:
                context.load_cert_chain(made[0], made[1])
            elif certificate:
                _load_pair(context, certificate, key)
        except (ssl.SSLError, ValueError):
            wrong = "client certificate and key"
    if context is None or wrong:
        raise BadConfig(f"the {wrong} of the kubeconfig cannot be used")
    return context


def _inline(part: Mapping[str, Any], field: str) -> str:
    value = part.get(field)
    if not value:
        return ""
    try:
        text = base64.b64decode(str(value), validate=False).decode()
    except (binascii.Error, UnicodeDecodeError):
        text = ""
    if not text:
        raise BadConfig(f"{field} of the kubeconfig is not base64 of a text")
    return text


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """OpenSSL takes a pair from a file only. Here it is one in memory, without a name; elsewhere
    than on Linux one that is gone before anybody is told of it."""
    # Revealed: what is loaded here is what logs must not show.
    pair = f"{certificate.rstrip()}\n{Secret(key).reveal().rstrip()}\n".encode()
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("pair", os.MFD_CLOEXEC)
        try:
            os.write(handle, pair)
            context.load_cert_chain(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair)
        file.flush()
        context.load_cert_chain(file.name)
