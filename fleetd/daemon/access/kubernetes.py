"""
Kubernetes tokens: an API server is asked whose one is (TokenReview).

An answer is kept for half a minute, a refusal for ten seconds: that is how long a token that was
revoked still opens, and how often a caller can make us ask.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from fleetd import errors, secrets
from fleetd.clock import Clock
from fleetd.daemon.access.rules import Kubernetes, for_groups, granted
from fleetd.kube.client import KubeClient
from fleetd.kube.errors import KubeError
from fleetd.net import Network
from fleetd.surface import problems
from fleetd.surface.identity import Identity, Role
from topology.documents.base import Access

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
GOOD, BAD = 30.0, 10.0
KEPT = 1000


class Reviewer:
    def __init__(self, rules: Kubernetes, folder: Path, net: Network, clock: Clock) -> None:
        """Raises SettingsError if the kubeconfig is no good. Blocks."""
        self._rules = rules
        self._clock = clock
        try:
            found = secrets.resolve(Access(file=rules.kubeconfig), folder, {})
            self._transport = net.kube(found)
        except (secrets.SecretError, KubeError) as wrong:
            raise errors.SettingsError(f"access file: kubernetes: {wrong}") from None
        self._client = KubeClient(self._transport)
        self._kept: OrderedDict[bytes, tuple[float, Identity | None]] = OrderedDict()

    async def identify(self, token: str) -> Identity:
        """Raises Refused."""
        key, now = hashlib.sha256(token.encode()).digest(), self._clock.monotonic()
        until, known = self._kept.get(key, (0.0, None))
        if now >= until:
            known = await self._ask(token)
            self._kept[key] = now + (GOOD if known is not None else BAD), known
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        if known is None:
            raise problems.Refused("unauthorized", "the cluster does not know this token")
        if not known.role:
            raise problems.Refused(
                "forbidden", f"{known.name} is in no group that may do anything here"
            )
        return known

    async def _ask(self, token: str) -> Identity | None:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._rules.audience]},
        }
        try:
            answer = await self._client.post(PATH, review)
        except KubeError:
            # Its words may hold what was sent.
            raise problems.Refused(
                "login-unavailable", "the cluster that knows tokens does not answer; try again"
            ) from None
        status = _mapping(answer.get("status"))
        audiences: object = status.get("audiences")
        if status.get("authenticated") is not True or not isinstance(audiences, list):
            return None
        if self._rules.audience not in audiences:
            return None
        user = _mapping(status.get("user"))
        name, groups = str(user.get("username", "")), cast("list[object]", user.get("groups") or [])
        fitting = for_groups(self._rules.grants, user=name, groups=map(str, groups))
        nothing = Identity(name=name, role=Role.OPEN, how="kubernetes")
        return granted(fitting, name=name, how="kubernetes") or nothing

    async def close(self) -> None:
        await self._transport.close()


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
