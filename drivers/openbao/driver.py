"""
The openbao driver: one part per kind, and what all of them share.

What OpenBao says is not watched, so these things are looked at again and again; what lies in
Kubernetes is read from the caches. No fact, step or message holds a secret value: where a value
must be made or carried, the step says how, and `act` does it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from drivers.openbao import (
    auth,
    client,
    database,
    engines,
    flows,
    members,
    policies,
    secretpaths,
)
from drivers.openbao.access import Access
from drivers.openbao.parts import Part
from fleetd import objects
from fleetd.objects import Manifest
from fleetd.tools import Tools
from fleetd.vocabulary import Failed, Observation, Outcome, Step
from topology.resource import Facts, Ref, Resource

_PARTS: Mapping[str, type[Part]] = {
    "openbao": members.Members,
    "openbao-engines": engines.Engines,
    "openbao-policies": policies.Policies,
    "openbao-auth": auth.Auth,
    "openbao-secrets": secretpaths.SecretPaths,
    "openbao-database": database.Database,
    "credentialflow": flows.Flows,
}


class OpenBaoDriver(objects.ObjectDriver):
    kind = "openbao"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        access = Access(tools)
        self._parts = {kind: make(tools, access) for kind, make in _PARTS.items()}
        tools.secrets.provide("openbao", access.secret)

    def check(self, want: Resource) -> Sequence[str]:
        part = self._parts.get(want.ref.kind)
        return part.check(want) if part else [f"{want.ref.kind} is nothing that OpenBao has"]

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        return self._parts[want.ref.kind].manifests(want)

    def polls(self, want: Resource) -> bool:
        # Whether it is sealed, and who uses which version, changes by itself; how it is set up, by
        # nobody but us.
        return want.ref.kind in ("openbao", "credentialflow")

    def home(self, want: Resource) -> str:
        """Only OpenBao itself has Secrets; everything else of it is inside of it."""
        return f"cluster:{want.spec['cluster']}" if want.ref.kind == "openbao" else ""

    async def observe(self, want: Resource) -> Observation:
        try:
            return await super().observe(want)
        except client.BaoError as cause:
            now = self.tools.clock.now()
            return Observation(
                ref=want.ref, at=now, facts=None, error=str(cause), blind=cause.blind
            )

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None:
            return ()
        part = self._parts[want.ref.kind]
        if want.absent:
            return [*part.removal(want, seen.facts), *super().propose(want, seen)]
        return super().propose(want, seen)

    def further(self, want: Resource, seen: Facts) -> Sequence[Step]:
        return self._parts[want.ref.kind].propose(want, seen)

    async def apply(self, step: Step) -> Outcome:
        try:
            return await super().apply(step)
        except client.BaoError as cause:
            again = cause.passing or isinstance(cause, client.Missing | client.Denied)
            return Failed(type(cause).__name__, str(cause), retry=again)

    async def act(self, step: Step) -> Outcome:
        want = self._want(step.ref)
        if want is None:
            return Failed("NotWanted", f"{step.ref} is in no document any more", retry=False)
        return await self._parts[step.ref.kind].act(want, step)

    async def _look(self, want: Resource) -> dict[str, Any]:
        seen = await super()._look(want)
        found = await self._parts[want.ref.kind].look(want, seen)
        for name in ("observed", "missing"):
            if found and name in seen:
                found.setdefault(name, seen[name])
        return found

    def _want(self, ref: Ref) -> Resource | None:
        return self.tools.fleet.everything().resources.get(ref)
