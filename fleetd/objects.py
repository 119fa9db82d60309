"""
The shared way to drive a thing that is a few Kubernetes objects: look, compare, apply, judge.

Most of what fleetd makes is a manifest on some cluster, and its health is read from one object by
the catalogue's rules. A driver says which manifests (`manifests`), and what it found out by itself
(`more`); the rest is here. A step writes one object, so that each write has an intent of its own.
Its arguments hold the whole manifest: `apply` decides nothing and looks nothing up. Hence the one
rule: a manifest holds nothing secret. What is secret is written by a verb of the driver's own.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from fleetd import desired, secrets
from fleetd.desired import Manifest, group_of, mark, marked, owner, reason
from fleetd.kube import credentials, errors, facts, fights, secretview
from fleetd.kube.cache import Cache
from fleetd.kube.client import KubeClient
from fleetd.kube.clusters import NoAccess
from fleetd.tools import Tools, unseen
from fleetd.vocabulary import (
    ABSENT,
    READY,
    Condition,
    Done,
    Failed,
    Observation,
    Outcome,
    Step,
    Truth,
    make_step,
)
from topology import health, keeping
from topology.resource import Backend, Facts, Resource

APPLY = "apply"
DELETE = "delete"
WRITE_DEADLINE = timedelta(seconds=30)
"""One write. An API server's own limit for a request is 60 s, but a good one takes milliseconds;
who hangs that long is better asked again."""
PATIENCE = 5.0
"""Seconds for what is only told and never decided from."""
ALL = "*"

_TRUTHS = {
    health.State.HEALTHY: Truth.TRUE,
    health.State.PROGRESSING: Truth.FALSE,
    health.State.FAILED: Truth.FALSE,
    health.State.UNKNOWN: Truth.UNKNOWN,
}


class ObjectDriver:
    """To be completed by a driver. Keeps nothing between calls but its tools."""

    kind = "kubernetes"

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    # What a driver says.

    def check(self, want: Resource) -> Sequence[str]:
        """What is wrong with this spec, in words."""
        del want
        return ()

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        """The objects that should be there, in the order in which they are written. Pure."""
        del want
        return ()

    async def more(self, want: Resource, seen: dict[str, Any]) -> Facts:
        """What the object alone does not tell; becomes `observed`. Only reads; raises KubeError or
        SecretError where it could not look."""
        del want, seen
        return {}

    async def prior(self, want: Resource) -> Facts:
        """Asked when neither the watched object nor a manifest is there: what the driver wrote by
        a verb of its own (a password) and that is there already. Becomes `observed`; without it
        such a step would seem never to have been done."""
        del want
        return {}

    def further(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """Steps beside the manifests, after they are all as they should be. Pure."""
        del want, seen
        return ()

    async def act(self, step: Step) -> Outcome:
        """Carry out a step that is not `apply` or `delete`."""
        return Failed("BadStep", f"{step.verb} is not known to the {self.kind} driver", retry=False)

    def polls(self, want: Resource) -> bool:
        """Whether a look asks somebody of whom no watch tells: a BMC, Nova, a seal. It is then
        looked at as often as everything else."""
        del want
        return False

    async def ended(self, want: Resource, backend: str, gk: tuple[str, str]) -> bool:
        """Whether a kind that is not served is gone for good, and its objects with it. Only who
        brings a kind, and takes it away, can know."""
        del want, backend, gk
        return False

    def wanted(self, want: Resource) -> int:
        """How many objects there should be, where all of a kind are judged."""
        del want
        return 0

    def home(self, want: Resource) -> str:
        """Backend of the cluster in whose Secrets lies what it makes; empty where it has none."""
        return want.backend if Backend.of(want.backend).kind == "cluster" else ""

    # What follows from it.

    async def observe(self, want: Resource) -> Observation:
        at = self.tools.clock.now()
        try:
            found, calm = await self._look(want), not self.polls(want)
            return Observation(ref=want.ref, at=at, facts=found, calm=calm)
        except (errors.KubeError, secrets.SecretError) as cause:
            return unseen(want, at, cause)

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None:
            return ()
        if want.absent:
            return self._removal(want, seen.facts)
        if _deleting(seen.facts):
            return ()
        steps = self._writes(want, seen.facts)
        return steps or self.further(want, seen.facts)

    async def apply(self, step: Step) -> Outcome:
        try:
            match step.verb:
                case "apply":
                    await self._apply(step)
                    return Done()
                case "delete":
                    return await self.delete(step)
                case _:
                    return await self.act(step)
        except errors.KubeError as cause:
            return outcome_of(cause)
        except secrets.SecretError as cause:
            return Failed("NoSecret", str(cause), retry=True)

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        if not seen.facts:
            return ()
        verdict = self.tools.rules.verdict(want.ref, seen, self.wanted(want))
        made = condition(want, verdict, seen)
        there = "metadata" in seen.facts or "objects" in seen.facts
        if verdict.reason == health.UNRECOGNISED and not there:
            # What precedes it is there (a password, a namespace), the thing itself is not.
            made = replace(made, truth=Truth.FALSE, reason=ABSENT, message="it is not there yet")
        return (made, *fights.judged(want, seen))

    # Helpers for drivers.

    async def read(
        self, want: Resource, backend: str, gk: tuple[str, str], name: str, namespace: str = ""
    ) -> dict[str, Any] | None:
        """One object from the cache; whatever changes in it wakes `want`. None: not there, or the
        server does not know the kind yet. Of what should go it is not believed that it is gone
        because its kind is, but where that has `ended`: raises `NotServed`. Of a Secret all but
        what is secret."""
        if gk == secretview.KIND:
            found = await self.tools.clusters.secret(backend, name, namespace)
            return found.object() if found is not None else None
        cache = await self._cache(want, backend, gk, namespace)
        return None if cache is None else cache.get(name, namespace, by=want.ref)

    async def read_all(
        self,
        want: Resource,
        backend: str,
        gk: tuple[str, str],
        namespace: str = "",
        mentioning: str = "",
    ) -> list[dict[str, Any]]:
        """All of a kind, in one namespace or in all; any change of one wakes `want`. None of them
        and `NotServed` as in `read`. `mentioning`: as of `Cache.items`."""
        cache = await self._cache(want, backend, gk, namespace)
        if cache is None:
            return []
        found = cache.each(namespace, by=want.ref, mentioning=mentioning)
        return [obj async for obj in found]

    async def _cache(
        self, want: Resource, backend: str, gk: tuple[str, str], namespace: str
    ) -> Cache | None:
        """Of all namespaces, so that there is one watch per kind; but in a garden we are one of
        many, with rights in our own namespaces only."""
        within = namespace if Backend.of(backend).kind == "garden" else ""
        try:
            return await self.tools.clusters.cache(backend, *gk, namespace=within)
        except errors.NotServed:
            if want.absent and not await self.ended(want, backend, gk):
                raise
            return None

    async def _look(self, want: Resource) -> dict[str, Any]:
        found = await self._watched(want)
        parts: dict[str, Any] = {}
        missing: list[str] = []
        for manifest in self.manifests(want):
            if manifest.shared and want.absent:
                continue
            live = await self.read(
                want, manifest.backend, manifest.gk, manifest.name, manifest.namespace
            )
            if live is not None and want.absent and desired.taken(live, owner(want)):
                continue  # of what another has by now nothing is left of this
            if live is not None:
                part = await self._part(want, manifest, live)
                # That others have made their namespace tells nothing of what is wanted.
                parts |= {manifest.key: part} if part["deleting"] or not manifest.shared else {}
            elif manifest.shared:
                missing.append(manifest.key)
        lacks = {"missing": missing} if missing else {}
        if not found and not parts:
            before = await self.prior(want)
            return {"parts": {}, "observed": dict(before), **lacks} if before or lacks else {}
        seen: dict[str, Any] = {**found, "parts": parts, **lacks}
        observed = await self.more(want, seen)
        told = await self._credentials(want)
        if told:
            # What a driver knows of one beside its Secret goes before.
            own: Mapping[str, Facts] = observed.get("credentials") or {}
            told = {name: {**told.get(name, {}), **own.get(name, {})} for name in {**told, **own}}
            observed = {**observed, "credentials": told}
        if observed:
            seen["observed"] = {**seen.get("observed", {}), **observed}
        return seen

    async def _credentials(self, want: Resource) -> dict[str, Facts]:
        """For the ledger: of the credentials that lie in Secrets of its cluster, how old they are.
        Asked for by name: a cluster's Secrets are nobody's to collect. What cannot be asked is
        left out, for it says nothing about the thing itself."""
        found: dict[str, Facts] = {}
        home = self.home(want)
        for one in self.tools.rules.component(want.ref.kind).spec.makes:
            place = keeping.secret(one, want)
            if place is None or not home:
                continue
            namespace, name = place
            try:
                async with asyncio.timeout(PATIENCE):
                    secret = await self.tools.clusters.secret(home, name, namespace)
            except (TimeoutError, errors.KubeError):
                continue
            if secret is not None:
                found[one.name] = credentials.of_secret(secret)
        return found

    async def _part(
        self, want: Resource, manifest: Manifest, live: dict[str, Any]
    ) -> dict[str, Any]:
        """What is told of one object; of one that somebody else has changed, who, and how often
        fleetd has put it right."""
        seen = desired.part(manifest, live, want)
        made, differs = seen["made"], seen["differs"]
        digest = mark(manifest.body, want)
        if manifest.shared or not made or seen["deleting"] or (made == digest and not differs):
            return seen
        if "taken" in seen:
            return seen
        # Caches are without managedFields.
        client = self.tools.clusters.client(manifest.backend)
        kind = await client.find(*manifest.gk)
        whole = await client.get(kind, manifest.name, manifest.namespace)
        by = fights.opponent(whole, differs, made, digest) if whole is not None else ""
        if by:
            seen["by"] = by
            seen["rewrites"] = fights.count(live, self.tools.clock.now())
        return seen

    async def _watched(self, want: Resource) -> dict[str, Any]:
        """The object that tells the health, or all of them; empty if there is none."""
        target: Facts | None = want.spec.get("object")
        if target is None or not target.get("kind") or not want.backend:
            return {}
        gk, name = (target.get("group", ""), target["kind"]), target.get("name", "")
        namespace = target.get("namespace") or ""
        if name != ALL:
            live = await self.read(want, want.backend, gk, name, namespace)
            gone = live is None or (want.absent and desired.taken(live, owner(want)))
            return facts.trim(live) if live is not None and not gone else {}
        mine = owner(want) if target.get("owned") else ""
        live_ones = await self.read_all(want, want.backend, gk, namespace, mine)
        if mine:
            live_ones = [
                one
                for one in live_ones
                if facts.part(one, "metadata", "labels").get(facts.OWNER) == mine
            ]
        return {"objects": [facts.trim(one) for one in live_ones]} if live_ones else {}

    def _writes(self, want: Resource, seen: Facts) -> Sequence[Step]:
        parts: Mapping[str, Any] = seen.get("parts", {})
        steps: list[Step] = []
        missing: Sequence[str] = seen.get("missing", ())
        for manifest in self.manifests(want):
            part = parts.get(manifest.key)
            digest = "" if manifest.shared else mark(manifest.body, want)
            why = reason(manifest, digest, part)
            if manifest.shared and manifest.key not in missing:
                why = ""
            if why:
                body = manifest.body if manifest.shared else marked(manifest.body, want)
                body, insists = fights.against(body, part)
                force = manifest.force or insists
                args = {"backend": manifest.backend, "manifest": body, "force": force}
                steps.append(
                    make_step(
                        want,
                        APPLY,
                        args,
                        why=why,
                        deadline=WRITE_DEADLINE,
                        disrupts=manifest.disrupts,
                        after=[steps[-1].id] if steps else (),
                    )
                )
        return steps

    def _removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """Backwards: what was written last goes first."""
        parts: Mapping[str, Any] = seen.get("parts", {})
        steps: list[Step] = []
        for manifest in reversed(self.manifests(want)):
            part = parts.get(manifest.key)
            if manifest.shared or part is None or part["deleting"] or not part["made"]:
                continue  # what fleetd did not make, it does not delete
            args = {
                "backend": manifest.backend,
                "group": manifest.group,
                "kind": manifest.kind,
                "name": manifest.name,
                "namespace": manifest.namespace,
                "uid": part.get("uid", ""),
                "owner": owner(want),
            }
            steps.append(
                make_step(
                    want,
                    DELETE,
                    args,
                    why=f"delete {manifest.key}: it was retired",
                    deadline=WRITE_DEADLINE,
                    destroys=[want.ref],
                    after=[steps[-1].id] if steps else (),
                )
            )
        return steps

    async def _apply(self, step: Step) -> None:
        await self.write(self.tools.clusters.client(step.args["backend"]), step)

    async def write(self, client: KubeClient, step: Step) -> None:
        """Apply the manifest of a step through this client."""
        body = facts.copy(step.args["manifest"])
        kind = await client.find(group_of(body), body["kind"])
        body["apiVersion"] = kind.api_version
        body["metadata"].setdefault("annotations", {})[facts.STEP] = step.id
        fights.stamp(body, self.tools.clock.now())
        await client.apply(kind, body, force=bool(step.args.get("force")))

    async def delete(self, step: Step) -> Outcome:
        """Away with it, if it is still what the step was made for: an approval may be days old. It
        is looked at again, and goes only as it was then. `owner` is whose mark it must have; one
        that others made (`eso`) has none, but must not have another's."""
        args, mine = step.args, f"{step.ref.kind}.{step.ref.name}"
        client = self.tools.clusters.client(args["backend"])
        kind = await client.find(args["group"], args["kind"])
        live: Facts | None
        if (args["group"], args["kind"]) == secretview.KIND:
            found = await self.tools.clusters.secret(
                args["backend"], args["name"], args["namespace"]
            )
            live = found.object() if found is not None else None
        else:
            live = await client.get(kind, args["name"], args["namespace"])
        if live is None:
            return Done()
        told = facts.part(live, "metadata")
        held = str(facts.part(told, "labels").get(facts.OWNER) or "")
        other = desired.taken(live, mine)
        if other or (args.get("owner") and held != args["owner"]):
            said = f"{args['kind']} {args['name']} belongs to {other or 'nobody we know'} by now"
            return Failed("OwnedByAnother", f"{said}; it is left alone", retry=True)
        # One of the same name that was made since then is not the one that was looked at.
        uid = str(args.get("uid") or told.get("uid") or "")
        version = str(told.get("resourceVersion") or "")
        await client.delete(kind, args["name"], args["namespace"], uid=uid, version=version)
        return Done()


def condition(want: Resource, verdict: health.Verdict, seen: Observation) -> Condition:
    return Condition(
        type=READY,
        truth=_TRUTHS[verdict.state],
        reason=verdict.reason,
        message=verdict.message,
        generation=want.generation,
        since=seen.at,
        reason_since=seen.at,
    )


def outcome_of(cause: errors.KubeError) -> Failed:
    """Whether it is worth trying again: what passes by itself, a lost race, a kind that the server
    does not serve yet, and a way in that fleetd gets anew by itself. What was refused on its
    merits needs a person."""
    again = cause.passing or isinstance(
        cause, errors.Conflict | errors.NotFound | errors.OtherVersion | errors.Gone
    )
    again = again or isinstance(cause, errors.Unauthorized | NoAccess)
    return Failed(type(cause).__name__, str(cause), retry=again)


def _deleting(seen: Facts) -> bool:
    """Whether any of it is on its way out: what is written into a namespace that goes is refused,
    and what comes after the manifests would come while one of them is missing."""
    if seen.get("metadata", {}).get("deletionTimestamp"):
        return True
    parts: Mapping[str, Any] = seen.get("parts", {})
    # Beside parts there may be numbers that a driver sums up.
    found = [cast("Facts", part) for part in parts.values() if isinstance(part, Mapping)]
    return any(part.get("deleting") for part in found)
