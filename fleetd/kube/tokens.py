"""
Tokens that an API server makes when it is asked: of its service accounts, and of others that have a
`token` of the same form. Asking changes nothing there, so it is a read.

Who made a token, and when it ends, stands in it for everybody to read (`lifetime`); what is secret
is the token as a whole.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fleetd.kube import errors, facts
from fleetd.kube.client import KubeClient
from fleetd.secrets import Secret


class Token(NamedTuple):
    secret: Secret
    expires: datetime
    audiences: tuple[str, ...]
    """Those that the server chose, where none were asked for."""


async def of_account(
    client: KubeClient, namespace: str, name: str, seconds: int, audiences: Sequence[str] = ()
) -> Token:
    """For a ServiceAccount. Raises NotFound if there is none."""
    kind = await client.find("", "ServiceAccount")
    asked: dict[str, Any] = {"audiences": list(audiences)} if audiences else {}
    spec = {**asked, "expirationSeconds": seconds}
    return await _ask(client, kind.path(name, namespace, "token"), "authentication.k8s.io/v1", spec)


async def of_identity(client: KubeClient, namespace: str, name: str, seconds: int) -> Token:
    """Of a garden, for a WorkloadIdentity."""
    kind = await client.find("security.gardener.cloud", "WorkloadIdentity")
    spec = {"expirationSeconds": seconds}
    return await _ask(client, kind.path(name, namespace, "token"), kind.api_version, spec)


async def _ask(client: KubeClient, path: str, version: str, spec: dict[str, Any]) -> Token:
    body = {"apiVersion": version, "kind": "TokenRequest", "spec": spec}
    answer = await client.post(path, body)
    status, given = facts.part(answer, "status"), facts.part(answer, "spec")
    if not status.get("token"):
        raise errors.Garbled(f"no token came from {path}")
    ends = datetime.fromisoformat(str(status["expirationTimestamp"]))
    return Token(Secret(str(status["token"])), ends, tuple(given.get("audiences") or ()))
