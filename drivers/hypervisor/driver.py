"""
Hosts of a hypervisor cluster: labelled so that they are onboarded, judged by two witnesses, and
taken out in the right order.

The operator onboards and empties hosts; fleetd tells it which, and mends what it leaves undone:
highAvailability where there is no HA service, `termination` for a Node that is to go, a nudge where
it does not try again. The one rule: what is not known counts as full. A host is taken for empty
only when Nova says so; the operator's own number stays 0 for ever.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from drivers.hypervisor import leaving, look, marks
from fleetd import secrets
from fleetd.clouds import client
from fleetd.kube import errors, facts
from fleetd.objects import ObjectDriver
from fleetd.tools import unseen
from fleetd.vocabulary import (
    Condition,
    Done,
    Failed,
    Observation,
    Outcome,
    Step,
    Truth,
    make_step,
)
from topology.resource import Facts, Ref, Resource

GROUP = "kvm.cloud.sap"
DEADLINE = timedelta(seconds=30)


class HypervisorDriver(ObjectDriver):
    kind = "hypervisor"

    def check(self, want: Resource) -> Sequence[str]:
        traits = facts.part(want.spec, "hypervisor").get("traits") or ()
        if not traits:
            return (
                "without a custom trait onboarding never ends; give at least one CUSTOM_ trait",
            )
        return [
            f"{trait} is no custom trait; its name begins with CUSTOM_"
            for trait in traits
            if not str(trait).startswith("CUSTOM_")
        ]

    def wanted(self, want: Resource) -> int:
        return int(want.spec.get("hosts") or 0)

    # Looking.

    async def observe(self, want: Resource) -> Observation:
        at = self.tools.clock.now()
        try:
            return Observation(ref=want.ref, at=at, facts=await self._facts(want))
        except (errors.KubeError, secrets.SecretError) as cause:
            return unseen(want, at, cause)

    async def _facts(self, want: Resource) -> Facts:
        nodes = await self.read_all(want, want.backend, ("", "Node"))
        found = await self.read_all(want, want.backend, (GROUP, "Hypervisor"))
        evictions = await self.read_all(want, want.backend, (GROUP, "Eviction"))
        by_name = {str(one["metadata"]["name"]): one for one in evictions}
        shown = {str(one["metadata"]["name"]): look.node(one) for one in nodes}
        going = [
            name
            for one in found
            if (name := str(one["metadata"]["name"])) in by_name
            or facts.part(one, "spec").get("maintenance")
            or facts.part(shown, name).get("terminating")
            or want.absent
        ]
        nova = await self._ask(want, going) if found or nodes else look.Nova(asked=False)
        hosts = [
            look.hypervisor(one, by_name.get(str(one["metadata"]["name"])), nova) for one in found
        ]
        # A host whose Node is gone may still run machines: its Hypervisor says whether it left.
        if not (nodes or found) or (want.absent and leaving.all_gone(want, hosts)):
            return {}
        others = sorted(nova.services) if nova.asked else []
        return {
            "objects": hosts,
            "nodes": shown,
            "nova": {
                "asked": nova.asked,
                "said": nova.said,
                "hosts": others,
                "working": [host for host in others if nova.working(host)],
            },
            "clashes": marks.clashes(sorted(shown), others),
            "tests": self._tests(want),
        }

    async def _ask(self, want: Resource, going: Sequence[str]) -> look.Nova:
        cloud = str(want.spec["cloud"])
        plane = self.tools.fleet.everything().resources.get(Ref("controlplane", cloud))
        if plane is None:
            return look.Nova(asked=False, said=f"there is no controlplane/{cloud}")
        namespace = str(plane.spec["install"]["namespace"])
        try:
            who = await client.login(self.tools, plane.backend, namespace, cloud)
            return await client.ask(self.tools, who, lambda on: look.ask(on, going))
        except (
            errors.KubeError,
            client.CannotLook,
            client.Denied,
            client.Refused,
            client.NotThere,
        ) as cause:
            return look.Nova(asked=False, said=str(cause))

    async def _occupied(self, step: Step) -> Failed | None:
        """Whether anything runs on a host that is about to go: the step was made for an empty one,
        and may have waited long for its approval. What is not known counts as full."""
        host = str(step.args["host"])
        want = self.tools.fleet.everything().resources.get(step.ref)
        if want is None:
            return Failed("NoDocument", f"nothing describes {step.ref} any more", retry=False)
        nova = await self._ask(want, [host])
        if not nova.asked:
            return Failed("NovaNotAsked", f"Nova could not be asked: {nova.said}", retry=True)
        if nova.servers[host]:
            said = f"{nova.servers[host]} machines run on {host} by now; it stays until they left"
            return Failed("MachinesRun", said, retry=True)
        return None

    def _tests(self, want: Resource) -> bool:
        """Whether the cloud has what the test of a new host needs: it boots from a volume."""
        test = self.tools.fleet.everything().resources.get(
            Ref("smoke-test", str(want.spec["cloud"]))
        )
        return test is None or any(need.kind == "cinder" for need in test.needs)

    # Judging.

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        """The catalogue's rules first; what only Nova knows can spoil a good verdict, never mend
        a bad one."""
        judged = super().judge(want, seen)
        if not seen.facts or not judged or judged[0].truth is not Truth.TRUE:
            return judged
        found = _spoiled(seen.facts)
        if found is None:
            return judged
        truth, reason, message = found
        return (replace(judged[0], truth=truth, reason=reason, message=message),)

    # Deciding.

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if not seen.facts:
            return ()
        if want.absent:
            return leaving.removal(want, seen.facts)
        return [
            *self._label(want, seen.facts),
            *self._availability(want, seen.facts),
            *leaving.follow(want, seen.facts),
        ]

    def _label(self, want: Resource, seen: Facts) -> list[Step]:
        labels, annotations = marks.wanted(want.spec["hypervisor"], tests=bool(seen["tests"]))
        steps: list[Step] = []
        for name, node in seen["nodes"].items():
            known = marks.VIRT_DRIVER in node["labels"]
            if node["terminating"] or (name in seen["clashes"] and not known):
                continue
            if node["labels"] == labels and node["annotations"] == annotations:
                continue
            args = {
                "backend": want.backend,
                "node": name,
                "uid": node["uid"],
                "labels": labels,
                "annotations": annotations,
            }
            why = f"label Node {name} so that it is onboarded as a hypervisor"
            if known:
                why = f"set aggregates and traits of hypervisor {name}"
            steps.append(make_step(want, "label-node", args, why=why, deadline=DEADLINE))
        return steps

    def _availability(self, want: Resource, seen: Facts) -> list[Step]:
        """The operator asks for an HA service by default, and waits for one that is not there."""
        wanted = bool(want.spec["hypervisor"].get("highAvailability"))
        return [
            leaving.set_spec(
                want,
                host,
                {"highAvailability": wanted},
                f"{'wait' if wanted else 'do not wait'} for an HA service on "
                f"{host['metadata']['name']}",
            )
            for host in seen["objects"]
            if bool(host["spec"].get("highAvailability")) is not wanted
            and host["spec"].get("maintenance") != "termination"
        ]

    # Doing.

    async def act(self, step: Step) -> Outcome:
        args = step.args
        if step.verb == leaving.REFUSE:
            return Failed("MachinesRun", str(args["why"]), retry=False)
        client = self.tools.clusters.client(args["backend"])
        match step.verb:
            case "label-node":
                kind = await client.find("", "Node")
                metadata = {
                    "uid": args["uid"],
                    "labels": dict(args["labels"]),
                    "annotations": dict(args["annotations"]),
                }
                # A patch, not an apply: that would make a Node that has gone in the meantime.
                await client.patch(kind, args["node"], {"metadata": metadata})
            case "set-hypervisor":
                kind = await client.find(GROUP, "Hypervisor")
                change: dict[str, Any] = {"metadata": {"uid": args["uid"]}}
                if args.get("spec"):
                    change["spec"] = dict(args["spec"])
                if args.get("annotations"):
                    change["metadata"]["annotations"] = dict(args["annotations"])
                await client.patch(kind, args["host"], change)
            case "node-terminating" | "ha-off":
                if step.verb == "node-terminating" and (kept := await self._occupied(step)):
                    return kept
                node = step.verb == "node-terminating"
                kind = await client.find("" if node else GROUP, "Node" if node else "Hypervisor")
                body = {
                    "metadata": {"name": args["host"], "uid": args["uid"]},
                    "status": {"conditions": [dict(args["condition"])]},
                }
                await client.apply(kind, body, force=True, subresource="status")
            case _:
                return await super().act(step)
        return Done()


def _spoiled(seen: Facts) -> tuple[Truth, str, str] | None:
    """What the conditions do not tell. None: Nova agrees with them."""
    if not seen["nova"]["asked"]:
        return Truth.UNKNOWN, "NovaNotAsked", f"Nova could not be asked: {seen['nova']['said']}"
    by_hand: list[str] = []
    down: list[str] = []
    for host in seen["objects"]:
        nova: Facts = host["observed"]["nova"]
        name = str(host["metadata"]["name"])
        if nova.get("status") == "disabled":
            by_hand.append(f"{name} ({nova.get('why') or 'no reason given'})")
        elif nova.get("state") != "up":
            down.append(f"{name} ({nova.get('state', 'not registered')})")
    if by_hand:
        return Truth.FALSE, "DisabledInNova", f"disabled by hand in Nova: {_few(by_hand)}"
    if down:
        return Truth.FALSE, "ComputeDown", f"nova-compute does not answer: {_few(down)}"
    if seen["clashes"]:
        told = [f"{name}: {why}" for name, why in seen["clashes"].items()]
        return Truth.FALSE, "NamesContained", _few(told)
    return None


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
