"""
The few requests to a garden and a metal API that are no object's life: kubeconfigs, and whether a
token is good.

Only the wire: what to do with an answer is the drivers' business.
"""

import base64
import binascii
from datetime import datetime
from typing import Any, NamedTuple

from fleetd.kube import errors
from fleetd.kube.client import KubeClient
from fleetd.secrets import Secret

_LOGIN = "authentication.gardener.cloud/v1alpha1"


class Minted(NamedTuple):
    secret: Secret
    expires: datetime


class NotYet(errors.KubeError):
    """The Shoot is too young: no address, or no certificate authority."""


async def kubeconfig(
    client: KubeClient, namespace: str, shoot: str, seconds: int, *, viewer: bool = False
) -> Minted:
    """Of an administrator, or of somebody who may read all but Secrets. Raises NotYet while the
    Shoot is young, NotFound if there is none."""
    kind = await client.find("core.gardener.cloud", "Shoot")
    who = "Viewer" if viewer else "Admin"
    body = {
        "apiVersion": _LOGIN,
        "kind": f"{who}KubeconfigRequest",
        "spec": {"expirationSeconds": seconds},
    }
    path = kind.path(shoot, namespace, f"{who.lower()}kubeconfig")
    try:
        answer = await client.post(path, body)
    except (errors.Invalid, errors.ServerFault) as cause:
        if _young(cause):
            raise NotYet(str(cause), status=cause.status, reason=cause.reason) from None
        raise
    status: dict[str, Any] = answer.get("status") or {}
    try:
        text = base64.b64decode(str(status["kubeconfig"]), validate=True).decode()
    except (KeyError, binascii.Error, UnicodeDecodeError):
        text = ""
    if not text:
        raise errors.Unreachable("the garden answered without a kubeconfig")
    return Minted(Secret(text), datetime.fromisoformat(str(status["expirationTimestamp"])))


def _young(cause: errors.KubeError) -> bool:
    """The garden has no code of its own for this. 422 is also the answer to a bad request, and
    500 that to anything; only the words tell."""
    if cause.status == 422:
        return "no suitable advertised address" in str(cause)
    return cause.status == 500 and "could not get" in str(cause)


async def accepted(client: KubeClient, token: Secret) -> bool:
    """Whether the API server takes this token for anybody."""
    return bool(await reviewed(client, token))


async def reviewed(client: KubeClient, token: Secret) -> str:
    """For whom the API server takes this token; empty: for nobody."""
    spec = {"token": token.reveal()}
    answer = await client.post(
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec},
    )
    status: dict[str, Any] = answer.get("status") or {}
    user: dict[str, Any] = status.get("user") or {}
    return str(user.get("username") or "") if status.get("authenticated") else ""
