"""
flux-operator: one FluxInstance becomes the Flux controllers.

Imitates cobaltcore 6.1. The operator itself is a Deployment that fleetd applies together with its
definitions; it runs when that Deployment does. About a minute after a FluxInstance is there, its
kinds are served and its controllers are Deployments of their own, so that a cluster without nodes
has no Flux either. With the annotation `reconcile: disabled` it looks away.
"""

from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers import fluxsources, helm, kustomize
from fleetd.sim.controllers.base import Controller, Key, Obj, key_of
from fleetd.sim.controllers.fluxparts import WORKLOAD_IDENTITY
from fleetd.sim.controllers.workloads import DEPLOYMENT
from fleetd.sim.controllers.workloads_look import meant, members, part
from fleetd.sim.kube.cluster import GK, Change
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.sites import git

GROUP = "fluxcd.controlplane.io"
INSTANCE: GK = (GROUP, "FluxInstance")
DEFINITIONS = (
    Definition(group=GROUP, kind="FluxInstance", plural="fluxinstances"),
    Definition(group=GROUP, kind="FluxReport", plural="fluxreports"),
)
SWITCH = f"{GROUP}/reconcile"
EVERY = 3600.0
REVISION = "v2.7.5@sha256:5d5a2f0e4d0e4a5c9a512f1cb3f6a001"
COMPONENTS: dict[str, tuple[Definition, ...]] = {
    "source-controller": fluxsources.DEFINITIONS,
    "kustomize-controller": kustomize.DEFINITIONS,
    "helm-controller": helm.DEFINITIONS,
    "notification-controller": (),
}
_CONCURRENT = {"small": 5, "medium": 10, "large": 20}


class FluxOperator(Controller):
    name = "flux-operator"
    watches = (INSTANCE,)

    def __init__(self, world: Any, cluster: Any) -> None:  # noqa: ANN401 - as the base has them
        super().__init__(world, cluster)
        self._installing: set[Key] = set()

    def keys(self, change: Change) -> Any:  # noqa: ANN401 - keys, as the base says
        if change.gk == INSTANCE and meant(change):
            yield key_of(INSTANCE, change.object)
        if change.gk == DEPLOYMENT and change.object["metadata"]["name"] in COMPONENTS:
            yield from (key_of(INSTANCE, one) for one in self.cluster.list(INSTANCE))

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None
        annotations = part(obj["metadata"], "annotations")
        if annotations.get(SWITCH) == "disabled":
            return None
        generation = obj["metadata"]["generation"]
        if key.name != "flux":
            self._say(key, "False", "BuildFailed", "only one instance, named flux, is allowed")
            return None
        status = part(obj, "status")
        settled = status.get("lastAppliedRevision") and _observed(status) == generation
        if settled and self._running(obj):
            return EVERY
        if key not in self._installing:
            self._installing.add(key)
            said = "Reconciliation in progress"
            self._say(key, "Unknown", "Progressing", said, lastAttemptedRevision=REVISION)
            return self.span(25.0, 60.0, key, "pull")
        self._install(obj)
        if not self._running(obj):
            return self.span(3.0, 8.0, key, "wait")
        self._installing.discard(key)
        said = "Reconciliation finished in 38s"
        self._say(
            key,
            "True",
            "ReconciliationSucceeded",
            said,
            lastAttemptedRevision=REVISION,
            lastAppliedRevision=REVISION,
            lastArtifactRevision=REVISION.partition("@")[2],
            components=[
                {"name": one, "repository": f"{_registry(obj)}/{one}", "tag": "v1.7.0"}
                for one in _components(obj)
            ],
        )
        return EVERY

    def _install(self, obj: Obj) -> None:
        size = str(part(obj["spec"], "cluster").get("size", ""))
        more = [f"--concurrent={_CONCURRENT[size]}"] if size in _CONCURRENT else []
        if part(obj["spec"], "cluster").get("objectLevelWorkloadIdentity"):
            more.append(f"--feature-gates={WORKLOAD_IDENTITY}")
        for name in _components(obj):
            for definition in COMPONENTS[name]:
                if self.cluster.store.tables.get(definition.gk) is None:
                    self.cluster.serve(definition)
            body = git.deployment(name, obj["metadata"]["namespace"], f"{_registry(obj)}/{name}:v1")
            body["spec"]["replicas"] = 1
            body["spec"]["template"]["spec"]["containers"][0]["args"] = more
            self.cluster.apply(body, manager=self.name)

    def _running(self, obj: Obj) -> bool:
        for name in _components(obj):
            live = self.cluster.get(DEPLOYMENT, name, obj["metadata"]["namespace"])
            if live is None or part(live, "status").get("readyReplicas", 0) < 1:
                return False
        return True

    def _say(self, key: Key, status: str, reason: str, message: str, **more: Any) -> None:  # noqa: ANN401
        generation = part(self.get(key), "metadata")["generation"]
        made = self.condition("Ready", status, reason, message, generation=generation)
        self.status(key, {"conditions": [made], **more})


def _components(obj: Obj) -> list[str]:
    given: list[str] = obj["spec"].get("components") or list(COMPONENTS)
    return [one for one in given if one in COMPONENTS]


def _registry(obj: Obj) -> str:
    return str(obj["spec"]["distribution"]["registry"])


def _observed(status: Obj) -> int | None:
    found = members(status, "conditions")
    ready = next((one for one in found if one["type"] == "Ready"), None)
    done = ready is not None and ready["status"] == "True"
    return ready.get("observedGeneration") if ready is not None and done else None


CHARTS = {
    "flux-operator": Chart(controllers=(FluxOperator,), deployments=("flux-operator",)),
    "source-controller": Chart(
        controllers=(fluxsources.SourceController,),
        deployments=("source-controller",),
        seconds=(5.0, 15.0),
    ),
    "kustomize-controller": Chart(
        controllers=(kustomize.KustomizeController,),
        deployments=("kustomize-controller",),
        seconds=(5.0, 15.0),
    ),
    "helm-controller": Chart(
        controllers=(helm.HelmController,),
        deployments=("helm-controller",),
        seconds=(5.0, 15.0),
    ),
    "notification-controller": Chart(deployments=("notification-controller",), seconds=(5.0, 15.0)),
}
