"""
Drives Flux on the management cluster: the operator and its instance, the sources, the folders of
the clusters, and the release of every component that comes as a chart.

Health is read from Flux's own objects by the catalogue's rules, or, for what runs on every host,
from the DaemonSet on the target; Flux's Ready is no monitor. What Flux needs to log in somewhere
(kubeconfigs, the password for Git) is written by verbs of their own at the moment it is read.
`guards` says what Flux must be kept from.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from drivers.flux import (
    checks,
    credentials,
    guards,
    installation,
    manifests,
    pods,
    retries,
    targets,
    trusted,
)
from fleetd import objects
from fleetd.kube import errors, facts, fights
from fleetd.objects import APPLY, WRITE_DEADLINE, Manifest, ObjectDriver
from fleetd.vocabulary import Condition, Done, Observation, Outcome, Step, make_step
from topology import health
from topology.resource import Facts, Ref, Resource

LOG_IN = "log-in"
RESUME = "resume"
SUSPEND = "suspend"
DEPLOYMENT = ("apps", "Deployment")
DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")


class FluxDriver(ObjectDriver):
    kind = "flux"

    # What should be there.

    def check(self, want: Resource) -> Sequence[str]:
        problems = checks.check(want)
        if want.ref.kind == "flux" and not problems and self._trusting(want.region):
            old = trusted.too_old(str(want.spec["parameters"]["version"]))
            return [old] if old else []
        return problems

    def _issuer(self, want: Resource) -> str:
        """Whose tokens Flux enters the cluster with; empty: it has a kubeconfig."""
        cluster = self.tools.fleet.everything().resources.get(
            Ref("cluster", str(want.spec.get("cluster")))
        )
        given: Facts = (cluster.spec.get("trust") if cluster is not None else None) or {}
        return str(given.get("issuer") or "")

    def _trusting(self, region: str) -> bool:
        """Whether any cluster of the region is entered with tokens."""
        return any(
            one.ref.kind == "cluster" and one.region == region and "trust" in one.spec
            for one in self.tools.fleet.everything().resources.values()
        )

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        by = want.spec["install"]["by"]
        hub, trusts = self._hub(want), bool(self._issuer(want))
        match want.ref.kind:
            case "flux":
                return self._installation(want)
            case "flux-target":
                return ()
            case "flux-source":
                return (manifests.region_source(want),)
            case "flux-sync":
                return (manifests.kustomization(want, hub, want.region, trusts=trusts),)
            case _ if by == "flux-kustomization":
                source = manifests.other_source(want, hub)
                return (source, manifests.kustomization(want, hub, source.name, trusts=trusts))
            case _:
                source = installation.repository_name(str(want.spec["install"]["repository"]))
                needed = self._releases(want)
                return (manifests.helm_release(want, hub, needed, source, trusts=trusts),)

    def _hub(self, want: Resource) -> str:
        return manifests.management(want, self.tools.fleet.everything().resources.values())

    def _installation(self, want: Resource) -> list[Manifest]:
        everything = self.tools.fleet.everything().resources.values()
        trusts = self._trusting(want.region)
        bodies = [
            *installation.operator(want),
            *([installation.account()] if trusts else ()),
            installation.instance(want, trusts=trusts),
            *installation.repositories(want.region, everything),
        ]
        return [
            Manifest(
                backend=want.backend,
                body=body,
                why=f"install Flux: {body['kind']} {body['metadata']['name']}",
            )
            for body in bodies
        ]

    def _releases(self, want: Resource) -> list[Ref]:
        """Of what it needs, that which is a HelmRelease too. The topology has no cycles, so these
        have none; Flux would stop without a word."""
        found: list[Ref] = []
        for ref in want.needs:
            spec = self.tools.rules.component(ref.kind).spec
            if spec.driver == self.kind and spec.install.by == "flux-helm":
                found.append(ref)
        return found

    # Looking.

    def polls(self, want: Resource) -> bool:
        return want.ref.kind in ("flux-target", "flux-source")

    async def ended(self, want: Resource, backend: str, gk: tuple[str, str]) -> bool:
        """Flux's kinds go with it, and a definition goes after the last of its objects. Whoever is
        started between two deletions finds no kind to ask for."""
        if want.ref.kind != "flux" or gk == DEFINITION:
            return False
        return not any(
            (one["spec"]["group"], one["spec"]["names"]["kind"]) == gk
            for one in await self.read_all(want, backend, DEFINITION)
        )

    async def more(self, want: Resource, seen: dict[str, Any]) -> Facts:
        match want.ref.kind:
            case "flux":
                return {"operator": await self._operator_up(want)}
            case "flux-target":
                return await targets.look(self, want, self._issuer(want))
            case "flux-source":
                return {"password": await credentials.state(self, want)}
            case _ if want.spec["install"]["by"] == "flux-kustomization":
                found = {**await self._revision(want), "shrunk": guards.shrunk(seen)}
                return {**found, **await self._silence(want, seen)}
            case _ if want.spec["object"]["kind"] == "DaemonSet":
                return await self._pods(want, seen)
            case _:
                return {**await self._silence(want, seen), **await self._stalled(want, seen)}

    async def prior(self, want: Resource) -> Facts:
        if want.ref.kind == "flux-target" and self._issuer(want):
            return await targets.look(self, want, self._issuer(want))
        if want.ref.kind != "flux-source":
            return {}
        state = await credentials.state(self, want)
        return {"password": state} if state != "missing" else {}

    async def _silence(self, want: Resource, seen: Facts) -> dict[str, Any]:
        """Whether fleetd itself gets an answer of a cluster that hangs for Flux, or did."""
        if not (guards.hangs(seen) or guards.paused(seen)):
            return {}
        try:
            await self.tools.clusters.cache(f"cluster:{want.spec['cluster']}", "", "Namespace")
        except errors.KubeError as cause:
            return {"answers": not cause.passing}
        return {"answers": True}

    async def _stalled(self, want: Resource, release: Facts) -> dict[str, Any]:
        """What the release brought and does not come up. Flux stops looking once it is installed:
        an image that cannot be pulled any more shows nowhere else. A cluster that cannot be asked
        proves nothing here."""
        backend = f"cluster:{want.spec['cluster']}"
        named = (self.manifests(want)[0].name, manifests.NAMESPACE)
        mine: list[dict[str, Any]] | None = None
        try:
            found = await self.read_all(
                want, backend, DEPLOYMENT, want.spec["install"]["namespace"], named[0]
            )
            mine = [one for one in found if pods.release_of(one) == named]
        except errors.KubeError:
            pass
        stuck = sorted(one["metadata"]["name"] for one in mine or () if pods.stalls(one))
        told = retries.state(release, mine, self.tools.clock.now())
        return {
            **({"stalled": ", ".join(stuck)} if stuck else {}),
            **({"retries": told} if told else {}),
        }

    async def _operator_up(self, want: Resource) -> bool:
        live = await self.read(
            want, want.backend, DEPLOYMENT, installation.OPERATOR, manifests.NAMESPACE
        )
        status: Mapping[str, Any] = (live or {}).get("status") or {}
        return int(status.get("readyReplicas") or 0) > 0

    async def _watched(self, want: Resource) -> dict[str, Any]:
        if want.ref.kind == "flux-target" and self._issuer(want):
            live = await trusted.read(self, want)
            return facts.trim(live) if live is not None else {}
        return await super()._watched(want)

    async def _revision(self, want: Resource) -> dict[str, Any]:
        """Of the source, which is what should be applied. Left out while there is none."""
        manifest = self.manifests(want)[-1]
        name = str(manifest.body["spec"]["sourceRef"]["name"])
        gk = (manifests.SOURCE, "GitRepository")
        source = await self.read(want, manifest.backend, gk, name, manifests.NAMESPACE)
        status: Mapping[str, Any] = (source or {}).get("status") or {}
        artifact: Mapping[str, Any] = status.get("artifact") or {}
        return {"sourceRevision": artifact["revision"]} if artifact.get("revision") else {}

    async def _pods(self, want: Resource, seen: Facts) -> Facts:
        """Pods that cannot start, and what Flux says of the release."""
        watched: Mapping[str, Any] = want.spec["object"]
        cache = await self.tools.clusters.cache(
            want.backend, "", "Pod", namespace=watched["namespace"]
        )
        failing = [
            said
            for pod in cache.items(by=want.ref, mentioning=watched["name"])
            if any(one["name"] == watched["name"] for one in pods.owners(pod))
            and (said := pods.stuck(pod))
        ]
        manifest = self.manifests(want)[0]
        gk = (manifests.HELM, "HelmRelease")
        live = await self.read(want, manifest.backend, gk, manifest.name, manifest.namespace)
        found: dict[str, Any] = {"podsFailing": len(failing)}
        if failing:
            found["podsSay"] = min(failing)
        if live is not None:
            found["release"] = _said(live)
            found["suspended"] = bool(live["spec"].get("suspend"))
            brought = [seen] if "metadata" in seen else []
            if told := retries.state(live, brought, self.tools.clock.now()):
                found["retries"] = told
        return found

    # Deciding.

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None:
            return ()
        if want.absent:
            return self._retire(want, seen.facts)
        match want.ref.kind:
            case "flux":
                return self._install_steps(super().propose(want, seen), seen.facts)
            case "flux-target":
                return targets.proposed(want, seen.facts, self._issuer(want))
            case "flux-source":
                return self._source_steps(want, seen)
            case _:
                return self._released_steps(want, seen, seen.facts)

    def _released_steps(self, want: Resource, seen: Observation, found: Facts) -> Sequence[Step]:
        answers = found.get("observed", {}).get("answers")
        if guards.paused(found):
            return self._resume(want, "the cluster answers again") if answers else ()
        if guards.hangs(found) and answers is False and not guards.suspended(found):
            why = "the cluster does not answer, and each attempt holds up the others"
            return self._switch(want, SUSPEND, f"suspend {{}}: {why}")
        if want.spec["install"]["by"] == "flux-kustomization":
            return self._folder_steps(want, seen)
        return super().propose(want, seen)

    def further(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """A release that Flux has given up, though nothing holds it up any more."""
        observed: Facts = seen.get("observed", {})
        if guards.suspended(seen) or observed.get("suspended"):
            return ()
        told: Facts = observed.get("retries", {})
        return retries.steps(want, self.manifests(want)[-1], told) if told else ()

    def _install_steps(self, steps: Sequence[Step], seen: Facts) -> list[Step]:
        """The instance when its operator runs, the repositories when their kind is served."""
        up = bool(seen.get("observed", {}).get("operator"))
        conditions: list[Facts] = seen.get("status", {}).get("conditions") or []
        served = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        later = {"FluxInstance": up, "HelmRepository": served}
        return [step for step in steps if later.get(step.args["manifest"]["kind"], True)]

    def _source_steps(self, want: Resource, seen: Observation) -> list[Step]:
        """The password before the source: one that fails waits up to 15 minutes to try again."""
        found: Facts = seen.facts or {}
        steps: list[Step] = []
        state = found.get("observed", {}).get("password", "missing")
        if want.spec["git"].get("access") and state in ("missing", "other"):
            name = manifests.credentials_name(want.region)
            args = {
                "backend": want.backend,
                "access": dict(want.spec["git"]["access"]),
                "source": str(want.spec["object"]["name"]),
                "manifest": objects.marked(manifests.secret(name, watched=True), want),
            }
            why = f"give Flux the password for {want.spec['git']['url']}"
            steps.append(make_step(want, LOG_IN, args, why=why, deadline=WRITE_DEADLINE, writes=2))
        return [*steps, *super().propose(want, seen)]

    def _folder_steps(self, want: Resource, seen: Observation) -> Sequence[Step]:
        """As `ObjectDriver` does it, but what is written depends on what was applied before."""
        found: Facts = seen.facts or {}
        if found.get("metadata", {}).get("deletionTimestamp"):
            return ()
        parts: Mapping[str, Any] = found.get("parts", {})
        steps: list[Step] = []
        for manifest in self.manifests(want):
            body, live = manifest.body, parts.get(manifest.key)
            if manifest.kind == "Kustomization":
                body = guards.guarded(manifest.body, found)
                differs = facts.differences(body, found)
            else:
                differs = list(live["differs"]) if live is not None else []
            marked = objects.marked(body, want)
            if live is not None and live["made"] == facts.made_from(marked) and not differs:
                continue
            if live is not None and fights.given_up(live):
                continue
            marked, insists = fights.against(marked, live)
            args = {"backend": manifest.backend, "manifest": marked, "force": insists}
            steps.append(
                make_step(
                    want,
                    APPLY,
                    args,
                    why=_why(manifest, body, found, differs),
                    deadline=WRITE_DEADLINE,
                    after=[steps[-1].id] if steps else (),
                )
            )
        return steps

    # Going.

    def _retire(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """A suspended Kustomization or release would leave everything behind: it is resumed first.
        The kubeconfig goes last, because Flux cleans up with it."""
        observed: Facts = seen.get("observed", {})
        if guards.suspended(seen) or observed.get("suspended"):
            return self._resume(want, "deleted while suspended, it would leave all behind")
        if want.ref.kind == "flux-target":
            return targets.retired(want, seen, self._issuer(want))
        if want.ref.kind == "flux-source" and seen:
            # The password first: without the source nobody would know of it.
            steps = self._removal(want, seen)
            if observed.get("password") in (None, "missing", "none"):
                return steps
            password = targets.delete(want, manifests.credentials_name(want.region))
            return [password, *steps]
        steps = self._removal(want, seen)
        if want.ref.kind != "flux":
            return steps
        # The operator takes its instance apart; it must not go before that is done.
        first = ("HelmRepository", "FluxInstance")
        early = [step for step in steps if step.args["kind"] in first]
        return early or ([] if "metadata" in seen else steps)

    def _resume(self, want: Resource, because: str) -> Sequence[Step]:
        return self._switch(want, RESUME, f"resume {{}}: {because}")

    def _switch(self, want: Resource, verb: str, why: str) -> Sequence[Step]:
        """Of the object that Flux works from, which is the last that fleetd writes."""
        manifest = self.manifests(want)[-1]
        args = {
            "backend": manifest.backend,
            "group": manifest.group,
            "kind": manifest.kind,
            "name": manifest.name,
            "namespace": manifest.namespace,
        }
        return (make_step(want, verb, args, why=why.format(manifest.key), deadline=WRITE_DEADLINE),)

    # Doing.

    async def act(self, step: Step) -> Outcome:
        match step.verb:
            case targets.HAND_OVER:
                return await targets.hand_over(self, step)
            case "log-in":
                return await credentials.write(self, step)
            case "suspend":
                return await self._act_switch(step, on=True)
            case "resume":
                return await self._act_switch(step, on=False)
            case retries.RESET:
                return await retries.reset(self, step)
            case _:
                return await super().act(step)

    async def _act_switch(self, step: Step, *, on: bool) -> Outcome:
        client = self.tools.clusters.client(step.args["backend"])
        kind = await client.find(step.args["group"], step.args["kind"])
        mark = {guards.PAUSED: "unreachable" if on else None}
        change = {"metadata": {"annotations": mark}, "spec": {"suspend": on}}
        await client.patch(kind, step.args["name"], change, step.args["namespace"])
        return Done()

    # Judging.

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        """Where the object that tells is not there, but what brings it is, it is still absent."""
        if seen.facts and "metadata" not in seen.facts:
            said = str(seen.facts.get("observed", {}).get("release", ""))
            verdict = health.Verdict(
                state=health.State.PROGRESSING,
                reason=health.ABSENT,
                message=said or "it is being installed",
            )
            return (objects.condition(want, verdict, seen),)
        return super().judge(want, seen)


def _said(release: Facts) -> str:
    """What Flux says of a release, in one line; Stalled comes before Ready."""
    status: Mapping[str, Any] = release.get("status") or {}
    conditions: Mapping[str, Facts] = {one["type"]: one for one in status.get("conditions") or ()}
    for kind, bad in (("Stalled", "True"), ("Ready", "False"), ("Ready", "Unknown")):
        one = conditions.get(kind)
        if one is not None and one["status"] == bad:
            return f"{release['metadata']['name']}: {one['reason']}: {one['message']}"
    return ""


def _why(manifest: Manifest, body: Facts, seen: Facts, differs: Sequence[str]) -> str:
    live: Mapping[str, Any] = seen.get("spec", {})
    if manifest.kind != "Kustomization" or not live:
        return manifest.why
    if live.get("prune") and not body["spec"]["prune"]:
        left = guards.inventory(seen)
        if guards.shrunk(seen):
            return f"stop Flux from deleting: only {left} objects are left in the folder"
        return "stop Flux from deleting until the other folder has proven not to be empty"
    if body["spec"]["prune"] and not live.get("prune"):
        return f"let Flux delete what leaves the folder: it holds {guards.inventory(seen)} objects"
    return f"{manifest.why} (changed: {', '.join(differs) or 'by fleetd'})"
