"""
Drives Ceph through Rook, and the monitor at a third place through the arbiter operator.

Rook's word on health is taken as it is. What it does not say is looked at here: which monitors
stand on hosts that are gone, whether the arbiter's monitor takes part (Rook lists external
monitors that do, in the ConfigMap of its endpoints), and whether somebody made the cluster a
`stretchCluster`, in which external monitors are ignored. Ceph is upgraded only in good health, and
an upgrade says that it disrupts.

The arbiter operator writes a status only when a condition changes, so after a failure that healed
its objects stay Progressing with every condition True. Then, and only then, the conditions are
taken away, and it begins anew.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from drivers.ceph import kubeconfig, manifests, reading
from drivers.ceph.reading import inside
from fleetd.desired import owner
from fleetd.kube import errors, transport
from fleetd.objects import DELETE, WRITE_DEADLINE, Manifest, ObjectDriver
from fleetd.vocabulary import Condition, Done, Observation, Outcome, Step, make_step
from topology.resource import Facts, Resource

RECHECK = "recheck"
IMAGE = "spec.cephVersion.image"
HEALTHY = "HEALTH_OK"
ENDPOINTS = "rook-ceph-mon-endpoints"
STUCK_AFTER = timedelta(minutes=3)
"""Longer than two of the operator's own checks."""
CEPH_CLUSTER = ("ceph.rook.io", "CephCluster")
POD, NODE, CONFIGMAP = ("", "Pod"), ("", "Node"), ("", "ConfigMap")
ROLE = ("rbac.authorization.k8s.io", "Role")
BINDING = ("rbac.authorization.k8s.io", "RoleBinding")


class CephDriver(ObjectDriver):
    kind = "ceph"

    # What should be there.

    def check(self, want: Resource) -> Sequence[str]:
        match want.ref.kind:
            case "cephcluster":
                stretch = inside(want.spec, "ceph", "stretch")
                if stretch and len(dict.fromkeys(stretch.get("zones", ()))) != 2:
                    return ("a stretched cluster has data in two zones, not more and not fewer",)
            case "cephpool":
                return _pool_problems(want)
            case "cephclient":
                return _client_problems(want)
            case "remote-cluster" | "remote-arbiter":
                if not inside(want.spec, "ceph", "stretch").get("arbiter"):
                    return ("no arbiter cluster is named; write ceph.stretch.arbiter",)
            case _:
                namespace = inside(want.spec, "install").get("namespace")
                if namespace != manifests.ARBITER_NAMESPACE:
                    return (f"the arbiter's namespace is {manifests.ARBITER_NAMESPACE}",)
        return ()

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        match want.ref.kind:
            case "cephcluster":
                return (manifests.ceph_cluster(want),)
            case "cephpool":
                return (manifests.pool(want),)
            case "cephclient":
                return manifests.clients(want)
            case "arbiter":
                return manifests.arbiter_site(want)
            case "remote-cluster":
                return (manifests.remote_cluster(want),)
            case "remote-arbiter":
                return (manifests.remote_arbiter(want),)
            case _:
                return ()

    def wanted(self, want: Resource) -> int:
        return len(manifests.USERS) if want.ref.kind == "cephclient" else 0

    # Looking.

    async def _look(self, want: Resource) -> dict[str, Any]:
        seen = await super()._look(want)
        if seen or want.ref.kind != "remote-cluster":
            return seen
        held = await kubeconfig.look(self.tools, want)
        # Nothing is there but the kubeconfig: what comes before it, or what it left behind.
        kept = held["kubeconfig"] != kubeconfig.MISSING
        return {"parts": {}, "observed": held} if kept else {}

    async def more(self, want: Resource, seen: dict[str, Any]) -> Facts:
        match want.ref.kind:
            case "cephcluster":
                return await self._mons(want)
            case "cephpool" if not want.absent:
                return await self._silence(want)
            case "cephclient":
                return {"credentials": reading.generations(seen.get("objects") or ())}
            case "arbiter":
                return {"rightsMissing": await self._rights_missing(want)}
            case "remote-cluster":
                found = await kubeconfig.look(self.tools, want)
                return {**found, "stuck": self._stuck(seen)}
            case "remote-arbiter":
                return {**await self._quorum(want, seen), "stuck": self._stuck(seen)}
            case _:
                return {}

    async def _mons(self, want: Resource) -> Facts:
        """How many monitors there are, and which are on hosts that are not Ready. Ceph itself is
        silent once most of them are."""
        count = 0
        down: list[str] = []
        for pod in await self._in_namespace(want, POD):
            labels = inside(pod, "metadata", "labels")
            node = str(inside(pod, "spec").get("nodeName") or "")
            if labels.get("app") == "rook-ceph-mon" and node:
                count += 1
                live = await self.read(want, want.backend, NODE, node)
                if live is None or not reading.ready(live):
                    down.append(f"{labels.get('mon', pod['metadata']['name'])} on {node}")
        return {"mons": count, "monsDown": sorted(down)}

    async def _silence(self, want: Resource) -> Facts:
        """Rook leaves a pool Ready while Ceph does not answer, and then nobody can use it."""
        cluster = await self.read(
            want, want.backend, CEPH_CLUSTER, manifests.CLUSTER, manifests.NAMESPACE
        )
        silent = reading.silent(inside(cluster, "status", "ceph"))
        return {"ceph": "silent"} if silent else {}

    async def _rights_missing(self, want: Resource) -> int:
        """How many of the rights that the arbiter operator checks the account does not have."""
        space = manifests.ARBITER_NAMESPACE
        role = await self.read(want, want.backend, ROLE, manifests.ACCOUNT, space)
        bound = await self.read(want, want.backend, BINDING, manifests.ACCOUNT, space)
        account = await self.read(
            want, want.backend, ("", "ServiceAccount"), manifests.ACCOUNT, space
        )
        everything = manifests.rights()
        if (
            role is None
            or bound is None
            or account is None
            or not reading.binds(bound, manifests.ACCOUNT)
        ):
            return len(everything)
        return sum(1 for right in everything if not reading.granted(role, *right))

    async def _quorum(self, want: Resource, seen: Facts) -> Facts:
        cluster = await self.read(
            want, want.backend, CEPH_CLUSTER, manifests.CLUSTER, manifests.NAMESPACE
        )
        stretch = inside(cluster, "spec", "mon", "stretchCluster")
        found: dict[str, Any] = {"stretchMode": bool(stretch)}
        for one in await self._in_namespace(want, CONFIGMAP):
            if one["metadata"]["name"] == ENDPOINTS:
                mons = str(inside(one, "data").get("externalMons") or "").split(",")
                found["inQuorum"] = inside(seen, "status").get("monId") in mons
        return found

    async def _in_namespace(self, want: Resource, gk: tuple[str, str]) -> list[dict[str, Any]]:
        """Of Rook's namespace alone: a cluster has many Pods and ConfigMaps."""
        try:
            cache = await self.tools.clusters.cache(want.backend, *gk, manifests.NAMESPACE)
        except errors.NotServed:
            if want.absent:
                raise
            return []
        return [one async for one in cache.each(by=want.ref)]

    def _stuck(self, seen: Facts) -> bool:
        """Every condition is True and the state is not Ready, for longer than it can need."""
        status = inside(seen, "status")
        held = reading.members(status, "conditions")
        if status.get("state") != "Progressing" or not held:
            return False
        if any(one["status"] != "True" for one in held):
            return False
        last = datetime.fromisoformat(reading.last_change(status))
        return self.tools.clock.now() - last > STUCK_AFTER

    # Deciding.

    def _writes(self, want: Resource, seen: Facts) -> Sequence[Step]:
        steps = list(super()._writes(want, seen))
        if want.ref.kind == "cephcluster":
            return self._upgrade(want, seen, steps)
        if want.ref.kind == "remote-cluster":
            return self._with_kubeconfig(want, seen, steps)
        return steps

    def _upgrade(self, want: Resource, seen: Facts, steps: list[Step]) -> Sequence[Step]:
        """Another version restarts every daemon; not while data is at risk."""
        part = inside(seen, "parts", manifests.ceph_cluster(want).key)
        if IMAGE not in part.get("differs", ()):
            return steps
        if inside(seen, "status", "ceph").get("health") != HEALTHY:
            return ()
        image = manifests.image_of(want)
        why = f"bring Ceph of {want.spec['cluster']} to {image}: Rook restarts every daemon"
        return [replace(step, why=why, disrupts=frozenset({want.ref})) for step in steps]

    def _with_kubeconfig(self, want: Resource, seen: Facts, steps: list[Step]) -> list[Step]:
        """The Secret first: a RemoteCluster without one is in error at once."""
        observed = inside(seen, "observed")
        state = str(observed.get("kubeconfig") or kubeconfig.MISSING)
        if state == kubeconfig.CURRENT:
            return steps
        args = kubeconfig.args(want, state, str(observed.get("expires") or ""))
        words = {
            kubeconfig.MISSING: "",
            kubeconfig.DUE: ": half of its time is over",
            kubeconfig.MOVED: ": the cluster is reached elsewhere now",
        }
        name = manifests.arbiter_of(want)
        why = f"write the kubeconfig for arbiter cluster {name}{words[state]}"
        first = make_step(want, kubeconfig.WRITE, args, why=why, deadline=WRITE_DEADLINE)
        if steps:
            steps[0] = replace(steps[0], after=frozenset({first.id}))
        return [first, *steps]

    def further(self, want: Resource, seen: Facts) -> Sequence[Step]:
        observed = inside(seen, "observed")
        if not observed.get("stuck"):
            return ()
        manifest = self.manifests(want)[0]
        args = {
            "backend": manifest.backend,
            "group": manifest.group,
            "kind": manifest.kind,
            "name": manifest.name,
            "namespace": manifest.namespace,
            "since": reading.last_change(inside(seen, "status")),
        }
        why = f"have {manifest.key} checked anew: all its conditions are True, but not its state"
        return (make_step(want, RECHECK, args, why=why, deadline=WRITE_DEADLINE),)

    def _removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        steps = list(super()._removal(want, seen))
        if want.ref.kind == "cephcluster":
            told = "; the disks keep what is on them"
            return [replace(step, why=step.why + told) for step in steps]
        observed = inside(seen, "observed")
        held = observed.get("kubeconfig", kubeconfig.MISSING)
        if want.ref.kind != "remote-cluster" or held == kubeconfig.MISSING:
            return steps
        args = {
            "backend": want.backend,
            "group": "",
            "kind": "Secret",
            "name": manifests.secret_of(want),
            "namespace": manifests.NAMESPACE,
            "owner": owner(want),
        }
        why = "delete the kubeconfig of the arbiter cluster: it was retired"
        last = make_step(
            want,
            DELETE,
            args,
            why=why,
            deadline=WRITE_DEADLINE,
            destroys=[want.ref],
            after=[steps[-1].id] if steps else (),
        )
        return [*steps, last]

    # Doing.

    async def act(self, step: Step) -> Outcome:
        match step.verb:
            case kubeconfig.WRITE:
                return await kubeconfig.write(self.tools, step)
            case "recheck":
                return await self._recheck(step)
            case _:
                return await super().act(step)

    async def _recheck(self, step: Step) -> Outcome:
        given = step.args
        client = self.tools.clusters.client(given["backend"])
        kind = await client.find(given["group"], given["kind"])
        live = await client.get(kind, given["name"], given["namespace"])
        if reading.last_change(inside(live, "status")) != given["since"]:
            return Done()  # it was checked since, or this was done before
        await client.patch(
            kind,
            given["name"],
            {"status": {"conditions": None}},
            given["namespace"],
            transport.MERGE,
            subresource="status",
        )
        return Done()

    # Judging.

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        """The catalogue's word, and for people what Ceph says of itself."""
        judged = super().judge(want, seen)
        if want.ref.kind != "cephcluster" or not seen.facts:
            return judged
        told = _details(seen.facts)
        if not told:
            return judged
        return [replace(one, message=f"{one.message}: {told}") for one in judged]


def _details(seen: Facts) -> str:
    found = inside(seen, "status", "ceph", "details")
    parts: list[str] = []
    down: Sequence[str] = inside(seen, "observed").get("monsDown", ())
    if down:
        count = inside(seen, "observed")["mons"]
        parts.append(f"{len(down)} of {count} mons down ({', '.join(down)})")
    parts += [str(one.get("message", "")) for name, one in found.items() if name != "error"]
    if reading.silent(inside(seen, "status", "ceph")):
        parts.append("Ceph does not answer")
    return "; ".join(part for part in parts if part)


def _pool_problems(want: Resource) -> Sequence[str]:
    size = int(want.spec["pool"].get("size") or 0)
    if size < 2:
        return (f"pool {want.spec['pool']['name']} has {size} copies; one lost disk loses data",)
    if manifests.stretched(want) and size % 2:
        return (f"{size} copies do not divide between two zones; write an even size",)
    return ()


def _client_problems(want: Resource) -> Sequence[str]:
    there = manifests.pools_of(want)
    return [
        f"storage cluster {want.spec['cluster']} has no pool that {user} of cloud "
        f"{want.spec['cloud']} uses: {', '.join(uses)}"
        for user, uses in manifests.USERS.items()
        if not any(name in there for name in uses)
    ]
