"""
The way into a cluster: an administrator's kubeconfig from the garden, and a token of fleetd's own.

The first is minted when fleetd looks, handed on to who needs one (Flux, Greenhouse), and used to
make fleetd's account there, by planned steps; the second is what fleetd goes in with. A login is a
read: it changes nothing and is in no journal. Each is renewed long before it ends, at a time that
follows from the cluster's name, so that a fleet does not log in all at once; a new one is tried
first, and the old one stays in force until that has succeeded. The garden answers 422 or 500 while
a Shoot is young; that is "not yet". The one rule: what was minted is given to `Clusters` and to
nobody else.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from drivers.gardener import account, client, manifests, warnings
from drivers.gardener.client import Minted
from fleetd import secrets
from fleetd.kube import errors, facts, lifetime
from fleetd.kube.client import KubeClient
from fleetd.login import Login
from fleetd.objects import Manifest, ObjectDriver
from fleetd.secrets import Secret
from fleetd.tools import Tools
from fleetd.vocabulary import Condition, Observation, Step
from topology.documents.cluster import Role
from topology.resource import Facts, Ref, Resource

LIFE = timedelta(hours=24)
"""A garden gives no more."""
MARGIN = timedelta(hours=10)
SPREAD = timedelta(hours=4)
"""With 10 to 14 hours left it is renewed: a night without the garden is survived."""
PATIENCE = 8.0
"""Seconds for a renewal while the old one is good; a garden that hangs must not blind us."""
LOOKED = timedelta(minutes=10)
"""How long what was seen of the account is told again: nobody else should touch it, and a watch
for it on each cluster would cost more."""
TRIED = timedelta(minutes=2)
"""How long what is handed on counts as good; Flux tries in vain for as long at the most."""
PROOF = "/api/v1/namespaces/kube-system"


class AccessDriver(ObjectDriver):
    kind = "access"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._login = Login(tools)
        self._refused: set[str] = set()
        """Backends that refused what we had: the next look mints anew."""
        self._revoked: set[str] = set()
        """Backends that refuse what is handed on, though not what we have."""
        self._loans: dict[str, datetime] = {}
        """When what is handed on was tried."""
        self._untried: dict[str, Minted] = {}
        """What was minted and could not be tried yet, as the cluster was silent."""
        self._parts: dict[str, tuple[datetime, int, dict[str, Any]]] = {}
        """What was seen of the account, when, and for which generation."""
        self._viewed: set[str] = set()
        """Backends that we may only look at: others made their Shoots."""

    def check(self, want: Resource) -> Sequence[str]:
        known = [str(role) for role in Role]
        return () if want.spec.get("role") in known else ("it is not said what the cluster is for",)

    def polls(self, want: Resource) -> bool:
        del want
        return True

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        if want.absent or not self._ours(want):
            return ()
        cluster = self._cluster(want)
        trusts = cluster is not None and bool(cluster.spec.get("trust"))
        return account.manifests(want, self.tools.rules.catalogue(), trusts=trusts)

    def _ours(self, want: Resource) -> bool:
        """Whether fleetd keeps an account there; of an adopted cluster it uses what it is given."""
        found = self._cluster(want)
        return found is not None and not found.spec.get("adopted")

    def _cluster(self, want: Resource) -> Resource | None:
        name = str(want.spec["cluster"])
        return self.tools.fleet.everything().resources.get(Ref("cluster", name))

    # Looking

    async def _look(self, want: Resource) -> dict[str, Any]:
        if want.absent and not want.needs:
            # Nobody goes in any more. Until then the way is kept open: what is to go lies behind.
            self.tools.clusters.drop(want.backend)
            return {}
        cluster = self._cluster(want)
        if cluster is None:
            raise secrets.SecretError(f"no document describes cluster {want.spec['cluster']}")
        if cluster.spec.get("adopted"):
            given = await self.tools.secrets.read(cluster.spec["adopted"]["access"], cluster)
            self.tools.clusters.put(want.backend, given, expires=lifetime.ends(given))
            return await self._prove(want, None)
        try:
            await self._renew(want, cluster, viewer=await self._foreign(want, cluster))
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
        if want.backend in self._viewed:
            return await self._prove(want, None)
        return await self._entered(want)

    async def _entered(self, want: Resource) -> dict[str, Any]:
        """With an account of our own. What could not be read of it is not missing: unless the way
        in is no good any more, which is found out then, nothing is known."""
        try:
            parts = await self._account(want)
        except errors.Unauthorized:
            seen = await self._prove(want, {})
            if not seen["observed"].get("refused"):
                raise
            return seen
        return await self._prove(want, parts)

    async def _foreign(self, want: Resource, cluster: Resource) -> bool:
        """Whether others made the Shoot and nobody said that it is ours. As before, if the garden
        does not tell now."""
        garden, name = f"garden:{cluster.region}", str(cluster.spec["name"])
        space = manifests.namespace_of(str(cluster.spec["garden"]["project"]))
        if cluster.spec.get("takeOver"):
            return False
        try:
            async with asyncio.timeout(PATIENCE):
                await self._login.enter(garden)
                shoot = await self.read(want, garden, (manifests.CORE, "Shoot"), name, space)
        except (TimeoutError, errors.KubeError, secrets.SecretError):
            return want.backend in self._viewed
        return shoot is not None and not facts.made_from(shoot)

    async def _renew(self, want: Resource, cluster: Resource, *, viewer: bool) -> None:
        """Mint a kubeconfig if there is none, or it ends soon, was refused, or is another's."""
        backend = want.backend
        await self._try_loan(backend)
        refused = backend in self._refused or backend in self._revoked
        same = viewer == (backend in self._viewed)
        if same and not refused and not self._soon(self.tools.clusters.expires(backend), want):
            return
        if not same:
            self._viewed ^= {backend}
            self._untried.pop(backend, None)
            self._refused.add(backend)
        good = self._good(backend)
        try:
            async with asyncio.timeout(PATIENCE if good else None):
                minted = self._untried.get(backend) or await self._mint(cluster, viewer=viewer)
                self._untried[backend] = minted
                if await self._opens(backend, minted.secret):
                    self._lend(backend, minted)
                del self._untried[backend]
        except (TimeoutError, errors.KubeError, secrets.SecretError) as cause:
            young = isinstance(cause, errors.NotFound | client.NotYet)
            if young or not self.tools.clusters.has(backend):
                raise
            # The old one may still be good; whether it is, is looked at next.
            self._forget_untried(backend, want)

    async def _try_loan(self, backend: str) -> None:
        """Whether what is handed on still opens the cluster. fleetd itself goes in with something
        else and would not notice; silence says nothing."""
        clusters, now = self.tools.clusters, self.tools.clock.now()
        ends = clusters.expires(backend)
        if not clusters.alone(backend) or now - self._loans.get(backend, now - TRIED) < TRIED:
            return
        if backend in self._revoked or (ends is not None and ends <= now):
            return  # known to be of no use
        self._loans[backend] = now
        try:
            async with asyncio.timeout(PATIENCE):
                if not await self._opens(backend, clusters.kubeconfig(backend)):
                    self._revoked.add(backend)
        except (TimeoutError, errors.KubeError):
            return

    async def _mint(self, cluster: Resource, *, viewer: bool) -> Minted:
        garden = f"garden:{cluster.region}"
        await self._login.enter(garden)
        return await client.kubeconfig(
            self.tools.clusters.client(garden),
            manifests.namespace_of(str(cluster.spec["garden"]["project"])),
            str(cluster.spec["name"]),
            int(LIFE.total_seconds()),
            viewer=viewer,
        )

    async def _opens(self, backend: str, held: Secret) -> bool:
        """Whether the cluster lets somebody in with it."""
        try:
            async with self.tools.clusters.trial(backend, held) as there:
                await there.raw(PROOF)
        except (errors.Unauthorized, errors.Forbidden):
            return False
        return True

    def _lend(self, backend: str, minted: Minted) -> None:
        """Handed on from now on; and in use, where fleetd has nothing of its own that is good."""
        if backend in self._refused or not self._good(backend):
            self._refused.discard(backend)
            self.tools.clusters.put(backend, minted.secret, expires=minted.expires)
        self._revoked.discard(backend)
        self.tools.clusters.lend(backend, minted.secret, expires=minted.expires)

    def _forget_untried(self, backend: str, want: Resource) -> None:
        held = self._untried.get(backend)
        if held is not None and self._soon(held.expires, want):
            del self._untried[backend]

    async def _account(self, want: Resource) -> dict[str, Any]:
        """What there is of fleetd's account; and a new token of it, when one is due."""
        now = self.tools.clock.now()
        at, generation, parts = self._parts.get(want.backend, (now - LOOKED, 0, {}))
        wanted = self.manifests(want)
        whole = len(parts) == len(wanted)
        if not whole or generation != want.generation or now - at >= LOOKED:
            parts = await self._read_parts(want, wanted)
            self._parts[want.backend] = (now, want.generation, parts)
        whole = len(parts) == len(wanted) and not self._writes(want, {"parts": parts})
        clusters = self.tools.clusters
        if whole and (
            not clusters.alone(want.backend) or self._soon(clusters.ends(want.backend), want)
        ):
            await self._go_in(want)
        return parts

    async def _read_parts(self, want: Resource, wanted: Sequence[Manifest]) -> dict[str, Any]:
        there = self.tools.clusters.client(want.backend)
        parts: dict[str, Any] = {}
        for one in wanted:
            try:
                live = await there.get(await there.find(*one.gk), one.name, one.namespace)
            except errors.Forbidden:
                continue  # `_prove` tells
            if live is not None:
                parts[one.key] = await self._part(want, one, live)
        return parts

    async def _go_in(self, want: Resource) -> None:
        """With a token of our own from now on, if it is let in. What goes wrong here leaves
        everything as it was: the kubeconfig in force is good for hours."""
        clusters, seconds = self.tools.clusters, int(LIFE.total_seconds())
        lent = clusters.kubeconfig(want.backend)
        try:
            async with asyncio.timeout(PATIENCE):
                made = await account.token(clusters.client(want.backend), lent, seconds)
                if await self._opens(want.backend, made.secret):
                    clusters.put(want.backend, made.secret, expires=made.expires)
        except (TimeoutError, errors.KubeError):
            return

    def _soon(self, until: datetime | None, want: Resource) -> bool:
        left = MARGIN + spread(want.ref.name)
        return until is None or until - self.tools.clock.now() < left

    def _good(self, backend: str) -> bool:
        if not self.tools.clusters.has(backend):
            return False
        until = self.tools.clusters.ends(backend)
        return until is None or until > self.tools.clock.now()

    async def _prove(self, want: Resource, parts: dict[str, Any] | None) -> dict[str, Any]:
        """`parts` is what there is of the account; None: there is to be none."""
        there = self.tools.clusters.client(want.backend)
        observed: dict[str, Any] = {"minted": True, "expired": False, **self._told(want)}
        deaf = self.tools.clusters.deaf(want.backend)
        observed |= {"deaf": deaf} if deaf else {}
        if parts is not None:
            lent = self.tools.clusters.expires(want.backend)
            observed["own"] = self.tools.clusters.alone(want.backend)
            if lent is not None and lent <= self.tools.clock.now():
                said = "it was not renewed, so who has it is locked out; see whether the garden"
                observed["expiring"] = [f"the kubeconfig for others ended: {said} answers"]
        try:
            kind = await there.find("", "Namespace")
            live = await there.get(kind, "kube-system")
        except (errors.Unauthorized, errors.Forbidden) as cause:
            self._refused.add(want.backend)
            self._parts.pop(want.backend, None)
            return {"observed": {**observed, "refused": True, "said": str(cause)}}
        found = facts.trim(live) if live is not None else {}
        if parts is None:
            return {**found, "observed": observed}
        return {**found, "parts": parts, "observed": observed}

    def _told(self, want: Resource) -> dict[str, Any]:
        """For the ledger; of one that does not say so nobody knows how long it is good."""
        clusters = self.tools.clusters
        held = {"kubeconfig": clusters.expires(want.backend)}
        if clusters.alone(want.backend):
            held["account-token"] = clusters.ends(want.backend)
        told: dict[str, Any] = {}
        for name, until in held.items():
            if until is not None:
                told[name] = {"version": until.isoformat(), "expires": until.isoformat()}
                if self._ours(want):
                    following = until - MARGIN - spread(want.ref.name)
                    told[name]["madeAt"] = (until - LIFE).isoformat()
                    told[name]["next"] = following.isoformat(timespec="seconds")
        return {"credentials": told} if told else {}

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        return (*super().judge(want, seen), *warnings.judged(want, seen))

    # Deciding and doing

    def _writes(self, want: Resource, seen: Facts) -> Sequence[Step]:
        if "parts" not in seen:
            return ()  # the way in is not there yet, or is for looking only
        return super()._writes(want, seen)

    async def _apply(self, step: Step) -> None:
        """As an administrator: nobody may give himself more rights than he has."""
        backend = str(step.args["backend"])
        lent: Secret = self.tools.clusters.kubeconfig(backend)
        there: KubeClient
        async with self.tools.clusters.trial(backend, lent) as there:
            await self.write(there, step)
        self._parts.pop(backend, None)


def spread(name: str) -> timedelta:
    """From nothing to `SPREAD`, always the same for a name."""
    digest = hashlib.blake2b(name.encode(), digest_size=2).digest()
    return SPREAD * (int.from_bytes(digest, "big") / 0xFFFF)
