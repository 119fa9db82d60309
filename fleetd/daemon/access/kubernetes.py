"""
Kubernetes tokens: an API server is asked whose one is (TokenReview).

An answer is kept for half a minute, a refusal for ten seconds: that is how long a token that was
revoked still opens. One rule: strangers cannot make us ask at will. A token that was good within
the hour is asked about again whenever it must be; any other takes its turn, within what one address
and all of them together may ask.
"""

import asyncio
import hashlib
import math
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

from fleetd import errors, secrets
from fleetd.clock import Clock
from fleetd.daemon.access.rules import Kubernetes, for_groups, granted
from fleetd.kube.client import KubeClient
from fleetd.kube.errors import KubeError
from fleetd.net import Network
from fleetd.surface import problems
from fleetd.surface.door import Buckets, Rate
from fleetd.surface.identity import Identity, Role
from topology.documents.base import Access

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
GOOD, BAD = 30.0, 10.0
KEPT = 1000
"""Refusals; of tokens that were good as many."""
TRUSTED = 3600.0
"""Seconds for which a token that was good is not a stranger's."""
OF_ADDRESS, OF_ALL = Rate(2.0, 20), Rate(20.0, 100)
"""Tokens that were never seen."""


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
        self._good: OrderedDict[bytes, tuple[float, Identity]] = OrderedDict()
        self._bad: OrderedDict[bytes, float] = OrderedDict()
        self._asking: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        self._of_address, self._of_all = Buckets(OF_ADDRESS, clock), Buckets(OF_ALL, clock)

    async def identify(self, token: str, address: str) -> Identity:
        """Raises Refused."""
        key = hashlib.sha256(token.encode()).digest()
        asking = self._asking.setdefault(key, asyncio.Lock())
        async with asking:  # many requests with one token are one question
            known = self._kept(key) or await self._asked(key, token, address)
        if not known.role:
            raise problems.Refused(
                "forbidden", f"{known.name} is in no group that may do anything here"
            )
        return known

    def _kept(self, key: bytes) -> Identity | None:
        now = self._clock.monotonic()
        if now < self._bad.get(key, 0.0):
            raise _unknown()
        since, known = self._good.get(key, (float("-inf"), None))
        return known if now < since + GOOD else None

    async def _asked(self, key: bytes, token: str, address: str) -> Identity:
        now = self._clock.monotonic()
        since, _ = self._good.get(key, (float("-inf"), None))
        if now >= since + TRUSTED:
            wait = self._of_address.take(address) or self._of_all.take("")
            if wait:
                after = str(math.ceil(wait))
                detail = f"too many tokens are asked about; try again in {after} s"
                raise problems.Refused("too-many-requests", detail, headers={"Retry-After": after})
        known = await self._ask(token)
        self._good.pop(key, None)
        if known is None:
            self._bad[key] = now + BAD
            _cut(self._bad)
            raise _unknown()
        self._good[key] = now, known
        _cut(self._good)
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


def _unknown() -> problems.Refused:
    return problems.Refused("unauthorized", "the cluster does not know this token")


def _cut(kept: OrderedDict[bytes, Any]) -> None:
    while len(kept) > KEPT:
        kept.popitem(last=False)
