"""
Drives a garden: the project, the credentials for the metal API, the Shoots; it looks at the
CloudProfile and the Seeds, which others keep.

A Shoot is written whole, with server-side apply and only where it differs: a write that changes
nothing but the order of keys would start a reconcile. Upgrades are changes of the manifest. What
they roll goes down one node of a pool at a time; the step names the cluster and as many servers of
the pool as go at once, so that budgets and windows hold. What the garden would refuse is held with
the reason instead of being sent.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from drivers.gardener import (
    checks,
    credentials,
    identity,
    manifests,
    offers,
    operations,
    profiles,
    shoots,
    taking,
    warnings,
)
from fleetd import objects, secrets
from fleetd.kube import errors, facts, lifetime, transport
from fleetd.login import Login
from fleetd.objects import DELETE, Manifest, ObjectDriver
from fleetd.tools import Tools
from fleetd.vocabulary import Condition, Done, Failed, Observation, Outcome, Step, make_step
from topology.resource import Facts, Ref, Resource

CONFIRM = "confirm-deletion"
REFUSED = "refuse"
CONFIRMATION = "confirmation.gardener.cloud/deletion"
OPERATION = "gardener.cloud/operation"
OPERATED = "fleet.c5c3.io/operated"
"""Annotation: the step that last asked the garden to do something."""
DEADLINE = timedelta(seconds=30)
UNCLEANED = "its servers are free again with all that is on their disks, which nobody wipes"
"""The metal operator cleans nothing, and its next claim may bind in the same second."""
_CONFIRMED = {"cluster": "Shoot", "garden-project": "Project"}
"""What a garden deletes only after a confirmation."""


class GardenerDriver(ObjectDriver):
    kind = "gardener"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._login = Login(tools)

    def check(self, want: Resource) -> Sequence[str]:
        return checks.check(want)

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        match want.ref.kind:
            case "garden-project":
                return manifests.project(want)
            case "credentials-binding" if identity.wanted(want):
                rights, who = manifests.metal_rights(want), manifests.identity(want)
                return (*rights, who, manifests.binding(want))
            case "credentials-binding":
                return (*manifests.metal_account(want), manifests.binding(want))
            case "cluster":
                return (*manifests.authentication(want), manifests.shoot(want))
            case _:
                return ()

    # Looking

    def polls(self, want: Resource) -> bool:
        return want.ref.kind == "credentials-binding"

    async def observe(self, want: Resource) -> Observation:
        seen = await super().observe(want)
        if seen.facts is None:
            await self._login.try_again(want.backend)
        return seen

    async def _look(self, want: Resource) -> dict[str, Any]:
        await self._login.enter(want.backend)
        match want.ref.kind:
            case "credentials-binding":
                await self._login.enter(f"metal:{want.region}")
            case "cloud-profile" | "seed" if want.absent:
                return {}  # others keep them: they stay
            case "cloud-profile":
                return await profiles.profile(self, want)
            case "seed":
                return await profiles.seeds(self, want)
            case _:
                pass
        return await super()._look(want)

    async def more(self, want: Resource, seen: dict[str, Any]) -> Facts:
        match want.ref.kind:
            case "garden-project":
                return self._kubeconfigs(want)
            case "credentials-binding" if identity.wanted(want):
                return await identity.look(self, want)
            case "credentials-binding":
                found = await credentials.look(self.tools, want)
                found["renew"] = credentials.due(found, self.tools.clock.now())
                return found
            case "cluster" if seen.get("spec"):
                return {**await self._offers(want, seen), **await self._claims(want)}
            case _:
                return {}

    def _kubeconfigs(self, want: Resource) -> dict[str, Any]:
        """Those that the Region names, for the ledger; and which of them end soon."""
        told: dict[str, Any] = {}
        ending: list[str] = []
        for part in ("garden", "metal"):
            backend = f"{part}:{want.region}"
            if not self.tools.clusters.has(backend):
                continue
            told[f"{part}-kubeconfig"] = lifetime.told(self.tools.clusters.kubeconfig(backend))
            until, now = self.tools.clusters.ends(backend), self.tools.clock.now()
            ending += warnings.ending(f"the kubeconfig of the {part} API", until, now)
        return {"credentials": told, **({"expiring": ending} if ending else {})}

    async def prior(self, want: Resource) -> Facts:
        """Why the garden would not make this Shoot at all."""
        if want.ref.kind != "cluster" or want.absent:
            return {}
        offer = await profiles.offer(self, want)
        wanted = manifests.shoot(want).body["spec"]
        now = self.tools.clock.now()
        found = list(offers.lacking(wanted, {}, offer, now)) if offer is not None else []
        return {"refused": found} if found else {}

    async def _offers(self, want: Resource, seen: Facts) -> dict[str, Any]:
        """What the garden would refuse, what it will take away, what is to be asked of it, and
        what would change in a Shoot that others made."""
        shoot = manifests.shoot(want)
        offer, now = await profiles.offer(self, want), self.tools.clock.now()
        target: Facts = want.spec["object"]
        gk, space = (target["group"], target["kind"]), str(target["namespace"])
        live = await self.read(want, want.backend, gk, str(target["name"]), space)
        found: dict[str, Any] = {"asked": operations.due(want, seen, now)}
        found["refused"] = shoots.refusals(shoot.body["spec"], seen, offer, now)
        if offer is not None:
            found["expiring"] = offers.expiring(shoot.body["spec"], offer, now)
        if live is not None:
            found["credentials"] = shoots.told(live)
        if taking.foreign(seen["parts"].get(shoot.key)) and not want.spec.get("takeOver"):
            said = taking.report(shoot.body, seen)
            summary = "; ".join(said)
            found |= {"foreign": True, "changes": said, "changed": len(said), "summary": summary}
        return {name: value for name, value in found.items() if value}

    async def _claims(self, want: Resource) -> dict[str, Any]:
        """The ServerClaims of this cluster: which servers it has, and how many claims wait longer
        than a machine may take. A metal API that does not tell leaves both unknown, which is no
        reason not to know the Shoot, but one to roll nothing: `serversUnknown` says why."""
        backend = f"metal:{want.region}"
        space = manifests.namespace_of(str(want.spec["garden"]["project"]))
        try:
            await self._login.enter(backend)
            cache = await self.tools.clusters.cache(backend, *manifests.CLAIM)
        except (errors.KubeError, secrets.SecretError) as cause:
            return {"serversUnknown": f"nothing is rolled, its servers are not known: {cause}"}
        claims = [one async for one in cache.each(space, by=want.ref)]
        heads = manifests.claims_of(want.spec)
        now = self.tools.clock.now()
        waiting = 0
        short: set[str] = set()
        servers: dict[str, list[str]] = {}
        for claim in claims:
            name = str(claim["metadata"]["name"])
            head = next((one for one in heads if name.startswith(one)), None)
            if head is None:
                continue
            worker: Facts = want.spec["workers"][heads.index(head)]
            if claim.get("status", {}).get("phase") == "Bound":
                pool = str(worker["name"])
                server = str(claim["spec"]["serverRef"]["name"])
                servers.setdefault(pool, []).append(server.removesuffix("-system-0"))
            else:
                short.add(str(worker.get("pool") or worker["machineType"]))
                waiting += _older(claim, now)
        found = {"short": ", ".join(sorted(short))} if short else {}
        return {
            **found,
            "claimsUnbound": waiting,
            "servers": {pool: sorted(servers[pool]) for pool in sorted(servers)},
        }

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        return (*super().judge(want, seen), *warnings.judged(want, seen))

    # Deciding

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts and _anothers(want, seen.facts):
            return ()
        return super().propose(want, seen)

    def _writes(self, want: Resource, seen: Facts) -> Sequence[Step]:
        steps = super()._writes(want, seen)
        match want.ref.kind:
            case "credentials-binding" if identity.wanted(want):
                return identity.steps(want, seen, self._unless_bound(want, seen, steps))
            case "credentials-binding":
                return self._with_token(want, seen, self._unless_bound(want, seen, steps))
            case "cluster":
                return self._of_cluster(want, seen, steps)
            case _:
                return steps

    def _unless_bound(self, want: Resource, seen: Facts, steps: Sequence[Step]) -> list[Step]:
        """What a binding names cannot be changed; another kind of credentials needs another."""
        bound: Facts = seen.get("credentialsRef") or {}
        kind = manifests.binding(want).body["credentialsRef"]["kind"]
        if not steps or not bound or bound.get("kind") == kind:
            return list(steps)
        said = (
            f"CredentialsBinding {want.spec['garden']['credentialsBinding']} names a "
            f"{bound.get('kind')}, which cannot be changed: give garden.credentialsBinding another "
            "name, and the Shoots follow"
        )
        step = make_step(want, REFUSED, {"why": [said]}, why=said, deadline=DEADLINE)
        return [step]

    def _with_token(self, want: Resource, seen: Facts, steps: Sequence[Step]) -> list[Step]:
        """The token comes after the account it belongs to, and before the binding: a garden takes
        no binding to a Secret that is not there."""
        bound: Facts = seen.get("parts", {}).get(manifests.binding(want).key) or {}
        if bound and not bound["made"]:
            return []  # others made it: it is theirs to keep
        if any(step.verb == REFUSED for step in steps):
            return list(steps)
        first = [step for step in steps if step.args["backend"] != want.backend]
        last = [step for step in steps if step.args["backend"] == want.backend]
        observed: Facts = seen.get("observed", {})
        state = observed.get("secret", "missing")
        ours = bool(observed.get("ours", True))
        if state == "missing" or (ours and (state == "refused" or observed.get("renew"))):
            why = {
                "missing": "write the token for the metal API into the garden",
                "refused": "write a new token: the metal API refuses the one in the garden",
            }.get(state, "renew the token for the metal API")
            given = credentials.args(want, str(observed.get("expires", "")))
            after = [first[-1].id] if first else ()
            first.append(
                make_step(want, credentials.MINT, given, why=why, deadline=DEADLINE, after=after)
            )
        if first and last:
            last[0] = replace(last[0], after=frozenset({first[-1].id}))
        return [*first, *last]

    def _of_cluster(self, want: Resource, seen: Facts, steps: Sequence[Step]) -> list[Step]:
        """What a changed Shoot takes down, or why the garden would not have it."""
        observed: Facts = seen.get("observed") or {}
        if observed.get("foreign") or not steps:
            return []  # others made it, and nobody said that it is ours
        refused: Sequence[str] = observed.get("refused") or ()
        if refused:
            why = f"the garden would refuse this: {'; '.join(refused)}"
            step = make_step(want, REFUSED, {"why": list(refused)}, why=why, deadline=DEADLINE)
            return [step]
        *first, last = steps
        if last.args["manifest"]["kind"] != "Shoot":
            return list(steps)
        part: Facts | None = seen["parts"].get(manifests.shoot(want).key) if seen else None
        if taking.foreign(part):
            last = self._take_over(want, last)
        reached = self._with_reach(want, seen, last)
        return [*first, reached] if reached is not None else first

    def _take_over(self, want: Resource, step: Step) -> Step:
        why = f"take over shoot {want.spec['name']}, which others made"
        args = {**step.args, "force": True}
        return make_step(want, step.verb, args, why=why, deadline=DEADLINE, after=step.after)

    def _with_reach(self, want: Resource, seen: Facts, step: Step) -> Step | None:
        live: Facts = seen.get("spec") or {}
        observed: Facts = seen.get("observed") or {}
        wanted = step.args["manifest"]["spec"]
        rolled = shoots.rolled(wanted, live) if live else ()
        shrunk = shoots.shrunk(wanted, live) if live else ()
        fallen = (*rolled, *(pool for pool in shrunk if pool not in rolled))
        if not fallen:
            return step
        if "servers" not in observed:
            # Without them no budget and no consent would see what goes down.
            return None
        servers: Facts = observed["servers"]
        down = {want.ref} | {
            Ref("server", name) for pool in fallen for name in servers.get(pool, ())[:1]
        }
        words: list[str] = []
        if rolled:
            words.append(f"replaces the nodes of {', '.join(rolled)} one after the other")
        if shrunk:
            words.append(f"gives back servers of {', '.join(shrunk)}: {UNCLEANED}")
        older = [pool for pool in shoots.older_images(wanted, live) if pool in rolled]
        if older:
            words.append(f"goes back to an older image on {', '.join(older)}")
        return replace(step, disrupts=frozenset(down), why=f"{step.why}; {'; '.join(words)}")

    def further(self, want: Resource, seen: Facts) -> Sequence[Step]:
        observed: Facts = seen.get("observed") or {}
        if want.ref.kind != "cluster" or observed.get("foreign"):
            return ()
        return tuple(operations.steps(want, seen))

    def _removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        steps = list(super()._removal(want, seen))
        kind = _CONFIRMED.get(want.ref.kind)
        if want.ref.kind == "credentials-binding" and identity.wanted(want):
            return identity.removal(want, seen, steps)
        if want.ref.kind == "credentials-binding":
            return self._without_token(want, seen, steps)
        target = next((one for one in steps if one.args["kind"] == kind), None)
        if kind is None or target is None:
            return steps
        notes: Facts = seen.get("metadata", {}).get("annotations", {})
        if notes.get(CONFIRMATION) == "true":
            return steps
        why = f"confirm that {kind} {target.args['name']} may be deleted: it was retired"
        confirm = make_step(
            want,
            CONFIRM,
            target.args,
            why=f"{why}; {UNCLEANED}" if kind == "Shoot" else why,
            deadline=DEADLINE,
            destroys=[want.ref],
        )
        first = replace(target, after=frozenset({confirm.id}))
        return [confirm, *(first if one is target else one for one in steps)]

    def _without_token(self, want: Resource, seen: Facts, steps: list[Step]) -> list[Step]:
        observed: Facts = seen.get("observed") or {}
        if observed.get("secret") in (None, "missing") or not observed.get("ours"):
            return steps
        given = credentials.args(want, "")
        named = {
            "backend": want.backend,
            "group": "",
            "kind": "Secret",
            "name": given["secret"],
            "namespace": given["namespace"],
        }
        token = make_step(
            want,
            DELETE,
            named,
            why="delete the token for the metal API: it was retired",
            deadline=DEADLINE,
            destroys=[want.ref],
            after=[steps[-1].id] if steps else (),
        )
        return [*steps, token]

    # Doing

    async def apply(self, step: Step) -> Outcome:
        backend = step.args.get("backend")
        try:
            if backend:
                await self._login.enter(str(backend))
            if "metal" in step.args:
                await self._login.enter(str(step.args["metal"]))
        except errors.KubeError as cause:
            return objects.outcome_of(cause)
        except secrets.SecretError as cause:
            return Failed("NoSecret", str(cause), retry=True)
        return await super().apply(step)

    async def act(self, step: Step) -> Outcome:
        match step.verb:
            case credentials.MINT:
                return await credentials.write(self.tools, step)
            case "confirm-deletion":
                return await self._confirm(step)
            case operations.OPERATE:
                return await self._operate(step)
            case "refuse":
                return Failed("RefusedByGarden", "; ".join(step.args["why"]), retry=False)
            case _:
                return await super().act(step)

    async def _confirm(self, step: Step) -> Outcome:
        given = step.args
        client = self.tools.clusters.client(given["backend"])
        kind = await client.find(given["group"], given["kind"])
        change = {"metadata": {"annotations": {CONFIRMATION: "true", facts.STEP: step.id}}}
        await client.patch(kind, given["name"], change, given["namespace"], how=transport.MERGE)
        return Done()

    async def _operate(self, step: Step) -> Outcome:
        """The garden takes the annotation off again, so our own mark tells that it was set."""
        given = step.args
        client = self.tools.clusters.client(given["backend"])
        kind = await client.find(manifests.CORE, "Shoot")
        live = await client.get(kind, given["name"], given["namespace"])
        if live is None:
            return Failed("NotFound", f"there is no Shoot {given['name']}", retry=True)
        if live["metadata"].get("annotations", {}).get(OPERATED) == step.id:
            return Done()
        change = {"metadata": {"annotations": {OPERATION: given["operation"], OPERATED: step.id}}}
        await client.patch(kind, given["name"], change, given["namespace"], how=transport.MERGE)
        return Done()


def _older(claim: Facts, now: datetime) -> bool:
    made = datetime.fromisoformat(str(claim["metadata"]["creationTimestamp"]))
    return now - made > manifests.UNBOUND


def _anothers(want: Resource, seen: Facts) -> bool:
    """Whether it is that of another region which shares the garden and its project. Two owners
    would write their marks over each other for ever."""
    labels: Facts = seen.get("metadata", {}).get("labels", {})
    mine = objects.owner(want)
    return str(labels.get(facts.OWNER, mine)) != mine
