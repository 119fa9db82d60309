"""
Drives bare metal through metal-operator: a BMC and its secret per server; it looks at operators.

A server is enrolled only when its BMC answers fleetd with the password: one that never answers
blocks all others, and one that refuses slows them down. For the same reason an enrolled one that
keeps hanging or refusing is quarantined (metal-operator is told to leave it alone) and released
when it keeps answering; a single answer that was lost in a storm does neither. Nothing here
switches power, and a server that is claimed is never removed.

The operators are read from their Deployments on the metal API. Where they run elsewhere they
cannot be seen, and are reported as absent.
"""

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from drivers.ironcore import manifests
from drivers.ironcore.bmcs import Bmcs
from fleetd import desired, objects, redfish, secrets
from fleetd.kube import errors, facts, transport
from fleetd.login import Login
from fleetd.objects import Manifest, ObjectDriver
from fleetd.tools import Tools
from fleetd.vocabulary import Done, Failed, Observation, Outcome, Step, make_step
from topology.resource import Facts, Resource

SECRET = "write-bmc-secret"  # noqa: S105 - the name of a verb
QUARANTINE = "quarantine"
RELEASE = "release"
REFUSED = "refuse"
OPERATION = "metal.ironcore.dev/operation"
REASON = "fleet.c5c3.io/quarantine"
WORDS = ("ignore", "ignore-reconciliation")
"""Of an operation: what fleetd writes. Any other word is somebody else's, and his to take back."""
DEADLINE = timedelta(seconds=30)
_STATUS = ("state", "powerState", "conditions")
_SPEC = ("systemUUID", "serverClaimRef", "serverMaintenanceRef", "power", "unclaimable")


class IroncoreDriver(ObjectDriver):
    kind = "ironcore"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._bmcs = Bmcs(tools)
        self._login = Login(tools)

    def check(self, want: Resource) -> Sequence[str]:
        if want.ref.kind != "server":
            return ()
        ip = str(want.spec.get("bmc") or "")
        if not manifests.readable(ip):
            return (f"the BMC's address {ip!r} is not an IP address",)
        return ()

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        if want.ref.kind != "server" or self.check(want):
            return ()
        return (manifests.bmc(want),)

    # Looking

    def polls(self, want: Resource) -> bool:
        return want.ref.kind == "server"

    async def observe(self, want: Resource) -> Observation:
        seen = await super().observe(want)
        if seen.facts is None and want.ref.kind == "metal-operator":
            # One of the region is enough: a hundred thousand servers fail with it.
            await self._login.try_again(want.backend)
        return seen

    async def _look(self, want: Resource) -> dict[str, Any]:
        await self._login.enter(want.backend)
        if want.ref.kind == "server":
            return await self._server(want)
        if want.absent:
            return {}  # the operators were there before us, and stay
        return await super()._look(want)

    async def more(self, want: Resource, seen: dict[str, Any]) -> Facts:
        del seen
        if want.ref.kind != "metal-operator":
            return {}
        try:
            index = await self._bmcs.index(want.backend)
        except errors.NotFound:
            return {}
        found: dict[str, Any] = {"unreadableBmcs": len(index.unreadable)}
        if index.unreadable:
            found["unreadable"] = list(index.unreadable)
        return found

    async def _server(self, want: Resource) -> dict[str, Any]:
        manifest = manifests.bmc(want)
        bmc = await self.read(want, want.backend, manifests.BMC, want.ref.name)
        server = await self.read(want, want.backend, manifests.SERVER, manifests.server_name(want))
        if want.absent and bmc is None and server is None:
            left = await self._secret_left(want)
            return {"observed": {"secret": "left"}} if left else {}
        told = _told(bmc) if bmc is not None else {}
        known = await self._bmcs.known(want, closely="quarantined" in told)
        expected = want.spec.get("uuid") or facts.value(server, "spec", "systemUUID")
        observed: dict[str, Any] = {**known.answer.told(expected), "secret": known.secret}
        observed["steady"] = known.steady
        if known.answer.hangs:
            observed["hangs"] = True
        other = await self._bmcs.same_machine(want, known.answer, enrolled=bmc is not None)
        if other:
            observed["sameMachineAs"] = other
        if bmc is None and server is None:
            doubtful = observed.keys() & {"sameMachineAs", "systems", "otherMachine"}
            wrong = doubtful or known.answer.state != redfish.ANSWERS
            begun = known.secret != "missing"  # noqa: S105 - the state of a Secret
            return {"observed": observed} if wrong or begun else {}
        seen = _kept(server) if server is not None else {}
        parts: dict[str, Any] = {}
        if bmc is not None:
            parts[manifest.key] = desired.part(manifest, bmc, want)
            observed |= told
        return {**seen, "parts": parts, "observed": observed}

    async def _secret_left(self, want: Resource) -> bool:
        """Whether the password that fleetd wrote outlived its BMC. Not from a cache: what is
        secret is not kept."""
        there = self.tools.clusters.client(want.backend)
        live = await there.get(await there.find(manifests.GROUP, "BMCSecret"), want.ref.name)
        labels: Facts = (live or {}).get("metadata", {}).get("labels") or {}
        return labels.get(facts.OWNER) == objects.owner(want)

    # Deciding

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if want.ref.kind != "server" or seen.facts is None or want.absent:
            return super().propose(want, seen)
        observed: Facts = seen.facts.get("observed", {})
        if "systems" in observed and not seen.facts.get("parts"):
            why = (
                f"{observed['systems']} machines are behind the BMC {want.spec['bmc']}; "
                "metal-operator mixes them up, so it is not enrolled"
            )
            return [make_step(want, REFUSED, {"why": why}, why=why, deadline=DEADLINE)]
        if observed.get("sameMachineAs") or observed.get("otherMachine"):
            return ()
        if seen.facts and observed.get("bmc") != redfish.ANSWERS:
            return self._quarantined(want, observed, seen.facts)
        return super().propose(want, seen)

    def _quarantined(self, want: Resource, observed: Facts, seen: Facts) -> Sequence[Step]:
        """Of one that is enrolled and would hold up the others."""
        harmful = observed.get("hangs") or observed.get("bmc") == redfish.REFUSED
        if not harmful or not observed["steady"] or not seen.get("parts"):
            return ()
        if observed.get("quarantined"):
            return ()
        said = str(observed.get("said") or "it does not answer")
        args = {**_named(want), "why": said}
        why = f"keep metal-operator from waiting for BMC {want.ref.name}: {said}"
        return [make_step(want, QUARANTINE, args, why=why, deadline=DEADLINE, writes=2)]

    def _writes(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """The secret first: a BMC without one fails and is tried again ever more rarely."""
        steps = list(super()._writes(want, seen))
        if want.ref.kind != "server":
            return steps
        observed: Facts = seen.get("observed", {})
        state = observed.get("secret", "missing")
        if state != "current":
            args = {"backend": want.backend, "name": want.ref.name}
            why = (
                f"write the BMC password of {want.ref.name}"
                if state == "missing"
                else f"write the BMC password of {want.ref.name}: the metal API has another one"
            )
            secret = make_step(want, SECRET, args, why=why, deadline=DEADLINE)
            if steps:
                steps[0] = replace(steps[0], after=frozenset({secret.id}))
            steps.insert(0, secret)
        answers = observed.get("bmc") == redfish.ANSWERS and observed.get("steady")
        if observed.get("quarantined") and answers:
            args = _named(want)
            why = f"let metal-operator look after BMC {want.ref.name} again: it answers"
            after = [steps[-1].id] if steps else ()
            steps.append(
                make_step(want, RELEASE, args, why=why, deadline=DEADLINE, after=after, writes=2)
            )
        return steps

    def _removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        if want.ref.kind != "server":
            return ()
        if holder := _held(seen):
            why = (
                f"{want.ref.name} is {holder}; removing it would boot its machine anew. "
                "Take it out of its cluster first"
            )
            return [make_step(want, REFUSED, {"why": why}, why=why, deadline=DEADLINE)]
        steps = list(super()._removal(want, seen))
        held = seen.get("observed", {}).get("secret", "missing")
        if (steps or not seen.get("parts")) and held != "missing":
            named = {
                "backend": want.backend,
                "group": manifests.GROUP,
                "kind": "BMCSecret",
                "name": want.ref.name,
                "namespace": "",
                "owner": objects.owner(want),
            }
            steps.append(
                make_step(
                    want,
                    objects.DELETE,
                    named,
                    why=f"delete the BMC password of {want.ref.name}: it was retired",
                    deadline=DEADLINE,
                    destroys=[want.ref],
                    after=[steps[-1].id] if steps else (),
                )
            )
        return steps

    # Doing

    async def apply(self, step: Step) -> Outcome:
        backend = step.args.get("backend")
        try:
            if backend:
                await self._login.enter(str(backend))
        except errors.KubeError as cause:
            return objects.outcome_of(cause)
        except secrets.SecretError as cause:
            return Failed("NoSecret", str(cause), retry=True)
        self._bmcs.forget(step.ref.name)
        return await super().apply(step)

    async def delete(self, step: Step) -> Outcome:
        """With a BMC goes its Server; whoever claimed that since the look would lose a machine."""
        if step.args["kind"] == "BMC":
            metal = self.tools.clusters.client(step.args["backend"])
            kind = await metal.find(*manifests.SERVER)
            holder = _held(await metal.get(kind, manifests.name_of_server(step.ref.name)))
            if holder:
                said = f"{step.ref.name} is {holder} now; it is left as it is"
                return Failed("Claimed", said, retry=True)
        return await super().delete(step)

    async def act(self, step: Step) -> Outcome:
        match step.verb:
            case "write-bmc-secret":
                return await self._write_secret(step)
            case "quarantine":
                return await self._annotate(step, await self._word(step), step.args["why"])
            case "release":
                return await self._annotate(step, None, None)
            case "refuse":
                return Failed("Refused", str(step.args["why"]), retry=False)
            case _:
                return await super().act(step)

    async def _write_secret(self, step: Step) -> Outcome:
        want = self.tools.fleet.everything().resources.get(step.ref)
        if want is None:
            return Failed("NoDocument", f"no document names {step.ref} any more", retry=False)
        login = await self._bmcs.login(want)
        metal = self.tools.clusters.client(step.args["backend"])
        kind = await metal.find(manifests.GROUP, "BMCSecret")
        data = {"username": login.user, "password": login.password.reveal()}
        await metal.apply(
            kind,
            {
                "metadata": {
                    "name": step.args["name"],
                    "labels": {
                        facts.MANAGED_BY: facts.MANAGER,
                        facts.REGION: want.region,
                        facts.OWNER: objects.owner(want),
                    },
                    "annotations": {facts.STEP: step.id},
                },
                "data": {
                    key: base64.b64encode(value.encode()).decode() for key, value in data.items()
                },
            },
            # The pool's access says what the password is; whoever wrote another one was wrong.
            force=True,
        )
        return Done()

    async def _word(self, step: Step) -> str:
        """The older generation, which has ServerMaintenance among its kinds, spells it out."""
        metal = self.tools.clusters.client(step.args["backend"])
        try:
            await metal.find(manifests.GROUP, "ServerMaintenance")
        except errors.NotFound:
            return WORDS[0]
        return WORDS[1]

    async def _annotate(self, step: Step, operation: str | None, why: str | None) -> Outcome:
        """The Server as well: it is asked about by workers of its own. The BMC last, for that is
        where one sees that it was done."""
        metal = self.tools.clusters.client(step.args["backend"])
        for kind_name, name in (("Server", step.args["server"]), ("BMC", step.args["name"])):
            kind = await metal.find(manifests.GROUP, kind_name)
            live = await metal.get(kind, name)
            if live is None:
                continue
            notes = {REASON: why, facts.STEP: step.id}
            said = facts.part(live, "metadata", "annotations").get(OPERATION)
            if operation or said in WORDS:
                notes[OPERATION] = operation
            change = {"metadata": {"annotations": notes}}
            await metal.patch(kind, name, change, how=transport.MERGE)
        return Done()


def _held(server: Facts | None) -> str:
    """Who uses the machine, in words; empty if nobody does."""
    claim = facts.part(server, "spec", "serverClaimRef")
    if claim:
        return f"claimed by {claim.get('namespace')}/{claim.get('name')}"
    state = str(facts.part(server, "status").get("state") or "")
    return state if state in ("Reserved", "Maintenance") else ""


def _named(want: Resource) -> dict[str, Any]:
    server = manifests.server_name(want)
    return {"backend": want.backend, "name": want.ref.name, "server": server}


def _kept(server: Facts) -> dict[str, Any]:
    """Of a Server only what is judged or decided on: inventories are large."""
    trimmed = facts.trim(server)
    spec: Facts = trimmed.get("spec") or {}
    status: Facts = trimmed.get("status") or {}
    return {
        "metadata": {
            key: trimmed["metadata"][key]
            for key in ("name", "deletionTimestamp")
            if key in trimmed["metadata"]
        },
        "spec": {key: spec[key] for key in _SPEC if spec.get(key)},
        "status": {key: status[key] for key in _STATUS if status.get(key)},
    }


def _told(bmc: Facts) -> dict[str, Any]:
    """What the BMC object says of itself."""
    found: dict[str, Any] = {}
    status: Facts = bmc.get("status") or {}
    if status.get("state"):
        found["bmcState"] = str(status["state"])
    conditions: list[Facts] = status.get("conditions") or []
    for one in conditions:
        if one.get("type") == "Ready":
            found["bmcReady"] = one.get("status") == "True"
            if one.get("status") != "True":
                found["bmcSays"] = str(one.get("message") or "")[:200]
    notes: Facts = bmc["metadata"].get("annotations") or {}
    if notes.get(REASON):
        found["quarantined"] = True
    return found
