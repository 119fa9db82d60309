"""
Registers a cluster with Greenhouse: a Secret with a kubeconfig, from which Greenhouse makes its
own Cluster object and its own token.

The kubeconfig is only the way in; afterwards Greenhouse renews a token of its own, so the Secret is
written once, and again when Greenhouse cannot get in or forgets to renew. Nothing that fleetd
hands over names a file or a program.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fleetd import objects
from fleetd.kube import facts, kubeconfig
from fleetd.kube.secretview import SecretView
from fleetd.objects import DELETE, WRITE_DEADLINE, ObjectDriver
from fleetd.vocabulary import Done, Failed, Observation, Outcome, Step, make_step
from topology.resource import Facts, Resource

REGISTER = "register"
SECRET = ("", "Secret")
TYPE = "greenhouse.sap/kubeconfig"
KEY = "kubeconfig"
SOON = timedelta(hours=12)
"""A token of Greenhouse's that ends this soon was not renewed in time."""


class GreenhouseDriver(ObjectDriver):
    kind = "greenhouse"

    def check(self, want: Resource) -> Sequence[str]:
        watched: Mapping[str, Any] = want.spec.get("object", {})
        return [
            f"the catalogue does not say in which {name} the registration of {want.ref.name} lies"
            for name in ("namespace", "name")
            if not watched.get(name)
        ]

    def polls(self, want: Resource) -> bool:
        del want
        return True

    async def _look(self, want: Resource) -> dict[str, Any]:
        """The Secret counts as there too: Greenhouse takes a while to make the Cluster."""
        seen = await super()._look(want)
        name, namespace = _where(want)
        secret = await self.tools.clusters.secret(want.backend, name, namespace)
        if secret is None and not seen:
            return {}
        observed: dict[str, Any] = {
            **seen.get("observed", {}),
            "registered": secret is not None and secret.type == TYPE,
        }
        if secret is not None:
            observed |= self._held(want, secret)
        status: Mapping[str, Any] = seen.get("status", {})
        ends = str(status.get("bearerTokenExpirationTimestamp") or "")
        if ends:
            left = datetime.fromisoformat(ends) - self.tools.clock.now()
            observed["tokenEndsSoon"] = left < SOON
        return {**seen, "observed": observed}

    def _held(self, want: Resource, secret: SecretView) -> dict[str, Any]:
        """Whether ours is newer than what was handed over; the same cluster either way."""
        held = kubeconfig.read(secret.values.get(KEY))
        backend = f"cluster:{want.spec['cluster']}"
        found: dict[str, Any] = {"inline": held.inline}
        if self.tools.clusters.has(backend):
            ours = kubeconfig.read(self.tools.clusters.kubeconfig(backend))
            found["sameCluster"] = (held.server, held.authority) == (ours.server, ours.authority)
            found["newer"] = held.digest != ours.digest
            until = self.tools.clusters.expires(backend)
            if until is not None:
                version = "an older one" if found["newer"] else until.isoformat()
                found["uses"] = {"kubeconfig": version}
        return found

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None:
            return ()
        if want.absent:
            return self._retire(want, seen.facts)
        why = _reason(seen.facts)
        if not why or "deletionTimestamp" in seen.facts.get("metadata", {}):
            return ()
        name, namespace = _where(want)
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": TYPE,
            "metadata": {"name": name, "namespace": namespace},
        }
        args = {
            "backend": want.backend,
            "cluster": f"cluster:{want.spec['cluster']}",
            "manifest": objects.marked(body, want),
        }
        return (make_step(want, REGISTER, args, why=why, deadline=WRITE_DEADLINE),)

    def _retire(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """The Cluster first: with it go its plugins, for which Greenhouse needs the Secret."""
        name, namespace = _where(want)
        gone = {"name": name, "namespace": namespace, "backend": want.backend}
        if "metadata" in seen:
            if "deletionTimestamp" in seen["metadata"]:
                return ()
            what = {**gone, "group": "greenhouse.sap", "kind": "Cluster"}
        elif seen.get("observed", {}).get("registered"):
            what = {**gone, "group": "", "kind": "Secret", "owner": objects.owner(want)}
        else:
            return ()
        why = f"delete {what['kind']} {namespace}/{name}: it was retired"
        step = make_step(want, DELETE, what, why=why, deadline=WRITE_DEADLINE, destroys=[want.ref])
        return (step,)

    async def act(self, step: Step) -> Outcome:
        if step.verb != REGISTER:
            return await super().act(step)
        backend = str(step.args["cluster"])
        ours = self.tools.clusters.kubeconfig(backend)
        held = kubeconfig.read(ours)
        if not held.inline:
            said = f"the kubeconfig of {backend} names files or programs; it is not handed over"
            return Failed("NotInline", said, retry=False)
        body = facts.copy(step.args["manifest"])
        body["metadata"]["annotations"] |= {facts.STEP: step.id, kubeconfig.DIGEST: held.digest}
        body["data"] = {KEY: kubeconfig.encoded(ours)}
        client = self.tools.clusters.client(step.args["backend"])
        await client.apply(await client.find(*SECRET), body, force=True)
        return Done()

    def judge(self, want: Resource, seen: Observation) -> Sequence[Any]:
        if seen.facts and "metadata" not in seen.facts:
            return super().judge(want, _without(seen))
        return super().judge(want, seen)


def _without(seen: Observation) -> Observation:
    """Only the Secret is there yet: an empty list of Clusters, which is Absent."""
    return Observation(ref=seen.ref, at=seen.at, facts={"objects": []}, error=seen.error)


def _where(want: Resource) -> tuple[str, str]:
    watched: Mapping[str, Any] = want.spec["object"]
    return str(watched["name"]), str(watched["namespace"])


def _reason(seen: Facts) -> str:
    """Why the kubeconfig is handed over now; empty if it need not be."""
    observed: Facts = seen.get("observed", {})
    if not observed.get("registered"):
        return "hand a kubeconfig to Greenhouse"
    if not observed.get("inline", True) or not observed.get("sameCluster", True):
        return "hand a kubeconfig to Greenhouse (the one there is not ours)"
    if not observed.get("newer"):
        return ""
    status: Facts = seen.get("status", {})
    held: Facts = status.get("statusConditions") or {}
    conditions: list[Facts] = held.get("conditions") or []
    valid = next((one["status"] for one in conditions if one["type"] == "KubeConfigValid"), "")
    if valid == "False":
        return "hand a new kubeconfig to Greenhouse: it cannot get in with the one it has"
    if observed.get("tokenEndsSoon"):
        return "hand a new kubeconfig to Greenhouse: it does not renew its token"
    return ""
