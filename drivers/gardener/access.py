"""
The way into a cluster: a kubeconfig, minted from the garden when fleetd looks, kept in memory.

A login is a read: it changes nothing and is in no journal. It is renewed long before it ends, at
a time that follows from the cluster's name, so that a fleet does not log in all at once. It is
proven by reading `kube-system`. The garden answers 422 or 500 while a Shoot is young; that is
"not yet". The one rule: what was minted is given to `Clusters` and to nobody else.
"""

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

from drivers.gardener import client, manifests
from fleetd import secrets
from fleetd.kube import errors, facts
from fleetd.login import Login
from fleetd.objects import ObjectDriver
from fleetd.tools import Tools
from topology.resource import Ref, Resource

LIFE = timedelta(hours=24)
"""A garden gives no more."""
MARGIN = timedelta(hours=10)
SPREAD = timedelta(hours=4)
"""With 10 to 14 hours left it is renewed: a night without the garden is survived."""
PATIENCE = 8.0
"""Seconds for a renewal while the old one is good; a garden that hangs must not blind us."""


class AccessDriver(ObjectDriver):
    kind = "access"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._login = Login(tools)
        self._refused: set[str] = set()
        """Backends that refused what we had: the next look mints anew."""

    def polls(self, want: Resource) -> bool:
        del want
        return True

    async def _look(self, want: Resource) -> dict[str, Any]:
        if want.absent and not want.needs:
            # Nobody goes in any more. Until then the way is kept open: what is to go lies behind.
            self.tools.clusters.drop(want.backend)
            return {}
        name = str(want.spec["cluster"])
        cluster = self.tools.fleet.everything().resources.get(Ref("cluster", name))
        if cluster is None:
            raise secrets.SecretError(f"no document describes cluster {name}")
        if cluster.spec.get("adopted"):
            access = cluster.spec["adopted"]["access"]
            self.tools.clusters.put(want.backend, await self.tools.secrets.read(access, cluster))
            return await self._prove(want)
        try:
            await self._renew(want, cluster)
        except errors.NotFound as cause:
            if cause.reason == "NotFound":
                self.tools.clusters.drop(want.backend)
                return {}
            raise
        except client.NotYet:
            if not self._good(want.backend):
                return {"observed": {"minted": False, "expired": False}}
        if not self._good(want.backend):
            return {"observed": {"minted": True, "expired": True}}
        return await self._prove(want)

    async def _renew(self, want: Resource, cluster: Resource) -> None:
        """Mint a kubeconfig if there is none, or it ends soon, or it was refused."""
        backend = want.backend
        until = self.tools.clusters.expires(backend)
        now = self.tools.clock.now()
        soon = until is None or until - now < MARGIN + spread(want.ref.name)
        if not soon and backend not in self._refused:
            return
        garden = f"garden:{cluster.region}"
        try:
            async with asyncio.timeout(PATIENCE if self._good(backend) else None):
                await self._login.enter(garden)
                minted = await client.admin_kubeconfig(
                    self.tools.clusters.client(garden),
                    manifests.namespace_of(str(cluster.spec["garden"]["project"])),
                    str(cluster.spec["name"]),
                    int(LIFE.total_seconds()),
                )
        except (TimeoutError, errors.KubeError, secrets.SecretError) as cause:
            young = isinstance(cause, errors.NotFound | client.NotYet)
            if young or not self.tools.clusters.has(backend):
                raise
            return  # the old one may still be good; whether it is, is looked at next
        self._refused.discard(backend)
        self.tools.clusters.put(backend, minted.secret, expires=minted.expires)

    def _good(self, backend: str) -> bool:
        if not self.tools.clusters.has(backend):
            return False
        until = self.tools.clusters.expires(backend)
        return until is None or until > self.tools.clock.now()

    async def _prove(self, want: Resource) -> dict[str, Any]:
        there = self.tools.clusters.client(want.backend)
        observed: dict[str, Any] = {"minted": True, "expired": False, **self._told(want)}
        try:
            kind = await there.find("", "Namespace")
            live = await there.get(kind, "kube-system")
        except (errors.Unauthorized, errors.Forbidden):
            self._refused.add(want.backend)
            return {"observed": {**observed, "refused": True}}
        found = facts.trim(live) if live is not None else {}
        return {**found, "observed": observed}

    def _told(self, want: Resource) -> dict[str, Any]:
        """For the ledger; of one that somebody else made nobody knows how long it is good."""
        until = self.tools.clusters.expires(want.backend)
        if until is None:
            return {}
        told = {
            "version": until.isoformat(),
            "madeAt": (until - LIFE).isoformat(),
            "expires": until.isoformat(),
            "next": (until - MARGIN - spread(want.ref.name)).isoformat(timespec="seconds"),
        }
        return {"credentials": {"kubeconfig": told}}


def spread(name: str) -> timedelta:
    """From nothing to `SPREAD`, always the same for a name."""
    digest = hashlib.blake2b(name.encode(), digest_size=2).digest()
    return SPREAD * (int.from_bytes(digest, "big") / 0xFFFF)
