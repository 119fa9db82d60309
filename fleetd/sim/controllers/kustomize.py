"""
kustomize-controller: applies a folder of a Git repository to this cluster or to another one.

Imitates real-flux, sections 2 to 5, oddities included: Ready turns Unknown at every reconcile,
observedGeneration moves only on success, Reconciling stays True while it fails, a suspended object
keeps its Ready and is deleted without pruning, a deletion with a bad kubeconfig hangs with Ready
still True, an empty folder is Ready and prunes everything, and a cycle of dependsOn stops new
revisions for every Kustomization of that source.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fleetd.sim.controllers import fluxparts
from fleetd.sim.controllers import kustomize_words as words
from fleetd.sim.controllers.base import Key, Obj, key_of, merge_conditions, stamp
from fleetd.sim.controllers.fluxparts import BusyController, Failure, Unusable
from fleetd.sim.controllers.fluxsources import GIT
from fleetd.sim.controllers.workloads_look import condition, members, part
from fleetd.sim.kube.cluster import GK, Change, Cluster
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.refusal import Refused
from fleetd.sim.kube.store import DELETED
from fleetd.sim.sites import git

GROUP = "kustomize.toolkit.fluxcd.io"
KUSTOMIZATION: GK = (GROUP, "Kustomization")
DEFINITIONS = (
    Definition(group=GROUP, kind="Kustomization", plural="kustomizations", short_names=("ks",)),
)
PRUNE = f"{GROUP}/prune"
POLL = 5.0
"""Seconds between two looks at the health of what was applied."""
SHORTEST = 30.0
"""Seconds: a shorter timeout counts as this."""
IN_PROGRESS = "Reconciliation in progress"


@dataclass
class _Run:
    """A reconcile under way; lost when the controller restarts, which then begins anew."""

    began: float
    revision: str = ""
    applied: list[tuple[Cluster, dict[str, Any]]] | None = None


class KustomizeController(BusyController[_Run]):
    name = "kustomize-controller"
    watches = (KUSTOMIZATION,)

    def concerned(self, change: Change) -> Iterable[Key]:
        yield from super().concerned(change)
        if change.gk != GIT or change.type == DELETED:
            return
        new = words.revision(change.object)
        if new and new != words.revision(change.old):
            yield from self._followers(change.object)

    def _followers(self, source: Obj) -> Iterable[Key]:
        """Whom a new revision wakes: nobody at all while two of them wait for each other."""
        name = source["metadata"]["name"]
        mine = [
            one
            for one in self.cluster.list(KUSTOMIZATION, source["metadata"]["namespace"])
            if one["spec"]["sourceRef"]["name"] == name
        ]
        if words.circular(mine):
            self.world.tell(
                "logs",
                f"{self.cluster.name}/{self.name}",
                "failed to sort dependencies for revision change: circular dependency detected",
            )
            return
        for one in mine:
            yield key_of(KUSTOMIZATION, one)

    # One look.

    def advance(self, key: Key, obj: Obj) -> float | None:
        run = self.runs.get(key)
        if run is None:
            self.runs[key] = _Run(began=self.world.elapsed())
            self._progress(key, obj)
            return self.span(0.15, 0.6, key, "apply")
        try:
            again = self._work(key, obj, run)
        except Failure as why:
            self.runs.pop(key, None)
            return self._failed(key, obj, why, run)
        if again is not None:
            return again
        self.runs.pop(key, None)
        return self._succeeded(key, obj, run)

    def _work(self, key: Key, obj: Obj, run: _Run) -> float | None:
        """Seconds to wait for health, or None: all is well. Raises Failure."""
        if run.applied is None:
            self._dependencies(obj)
            run.revision, content = self._source(obj)
            if run.revision != part(obj, "status").get("lastAttemptedRevision"):
                self.status(key, {"lastAttemptedRevision": run.revision})
            target = self._target(obj, content, run)
            if target is None:
                return fluxparts.HANDSHAKE * 2
            run.applied = self._apply(key, obj, target, content)
        if not obj["spec"].get("wait"):
            return None
        bad = [one for one in run.applied if not words.healthy(one[0], one[1])]
        if not bad:
            return None
        return self._unhealthy(obj, run, bad)

    def _unhealthy(self, obj: Obj, run: _Run, bad: list[tuple[Cluster, dict[str, Any]]]) -> float:
        waited = self.world.elapsed() - run.began
        every = fluxparts.seconds(obj["spec"].get("interval"), 600.0)
        limit = max(fluxparts.seconds(obj["spec"].get("timeout"), every - 30.0), SHORTEST)
        stuck = [one for target, one in bad if words.stalled(target, one)]
        if stuck:
            named = ", ".join(f"{words.named(one)} status: 'Failed'" for one in stuck)
            raise Failure(
                "HealthCheckFailed",
                f"health check failed after {waited:.0f}s: failed early due to stalled resources: "
                f"[{named}]",
            )
        if waited >= limit:
            named = ", ".join(f"{words.named(one)} status: 'InProgress'" for _, one in bad)
            raise Failure(
                "HealthCheckFailed",
                f"health check failed after {waited:.6f}s: timeout waiting for: [{named}]",
            )
        return POLL

    def _dependencies(self, obj: Obj) -> None:
        spec = obj["spec"]
        for one in members(spec, "dependsOn"):
            namespace = one.get("namespace") or obj["metadata"]["namespace"]
            where = f"{namespace}/{one['name']}"
            other = self.cluster.get(KUSTOMIZATION, one["name"], namespace)
            if other is None:
                missing = f'kustomizations.{GROUP} "{one["name"]}" not found'
                said = f"dependency '{where}' not found: {missing}"
                raise Failure("DependencyNotReady", said, fluxparts.REQUEUE_DEPENDENCY)
            said = f"dependency '{where}' is not ready"
            if not fluxparts.ready(other):
                raise Failure("DependencyNotReady", said, fluxparts.REQUEUE_DEPENDENCY)
            same = other["spec"]["sourceRef"] == spec["sourceRef"]
            source = self._source_of(obj)
            applied = part(other, "status").get("lastAppliedRevision")
            if same and source is not None and applied != words.revision(source):
                said = f"dependency '{where}' revision is not up to date"
                raise Failure("DependencyNotReady", said, fluxparts.REQUEUE_DEPENDENCY)

    def _source_of(self, obj: Obj) -> Obj | None:
        ref: Obj = obj["spec"]["sourceRef"]
        return self.cluster.get(
            ("source.toolkit.fluxcd.io", ref["kind"]),
            ref["name"],
            ref.get("namespace") or obj["metadata"]["namespace"],
        )

    def _source(self, obj: Obj) -> tuple[str, tuple[dict[str, Any], ...]]:
        ref: Obj = obj["spec"]["sourceRef"]
        source = self._source_of(obj)
        if source is None:
            kind = f"{ref['kind']}.source.toolkit.fluxcd.io"
            raise Failure("ArtifactFailed", f'{kind} "{ref["name"]}" not found')
        revision = words.revision(source)
        requeue = fluxparts.REQUEUE_DEPENDENCY
        if not revision:
            said = f"Source artifact not found, retrying in {requeue:.0f}s"
            raise Failure("ArtifactFailed", said, requeue)
        site = git.find(self.world, str(source["spec"]["url"]))
        commit = site.at(revision) if site is not None else None
        if commit is None:
            said = f"Source is not ready, artifact not found, retrying in {requeue:.0f}s"
            raise Failure("ArtifactFailed", said, requeue)
        path = str(obj["spec"].get("path", "")).strip("./")
        if path not in commit.paths:
            said = f"kustomization path not found: stat {path}: no such file or directory"
            raise Failure("ArtifactFailed", said)
        return revision, commit.paths[path]

    def _target(self, obj: Obj, content: tuple[dict[str, Any], ...], run: _Run) -> Cluster | None:
        """None: it hangs; the worker waits."""
        first = words.named(content[0]) if content else "objects"
        try:
            return self.target(obj)
        except Unusable as cause:
            if cause.why == "hangs" and self.world.elapsed() - run.began < 2 * fluxparts.HANDSHAKE:
                return None
            raise Failure("ReconciliationFailed", words.unusable(cause, first)) from None

    def _apply(
        self, key: Key, obj: Obj, target: Cluster, content: tuple[dict[str, Any], ...]
    ) -> list[tuple[Cluster, dict[str, Any]]]:
        labels = {f"{GROUP}/name": key.name, f"{GROUP}/namespace": key.namespace}
        made = [words.patched(one, members(obj["spec"], "patches")) for one in content]
        old = members(part(part(obj, "status"), "inventory"), "entries")
        for one in made:
            metadata = one["metadata"]
            metadata["labels"] = {**metadata.get("labels", {}), **labels}
            try:
                target.apply(one, manager=self.name, force=True)
            except Refused as cause:
                raise Failure("ReconciliationFailed", words.refused(one, cause)) from None
        entries = [words.entry(one) for one in made]
        if obj["spec"].get("prune"):
            kept = {entry["id"] for entry in entries}
            for entry in reversed(old):
                if entry["id"] not in kept:
                    self._prune(target, entry, labels)
        self.status(key, {"inventory": {"entries": entries} if entries else {}})
        return [(target, one) for one in made]

    def _prune(self, target: Cluster, entry: Obj, labels: dict[str, str]) -> None:
        """Only what still says that it is ours, and does not say that it must stay."""
        namespace, name, group, kind = str(entry["id"]).split("_")
        live = target.get((group, kind), name, namespace)
        if live is None:
            return
        metadata = live["metadata"]
        stays = {**part(metadata, "labels"), **part(metadata, "annotations")}
        if stays.get(PRUNE) == "disabled":
            return
        if all(part(metadata, "labels").get(k) == v for k, v in labels.items()):
            self.world.tell("prunes", target.name, f"{kind} {namespace}/{name}")
            target.delete((group, kind), name, namespace)

    # Endings.

    def _progress(self, key: Key, obj: Obj) -> None:
        generation = obj["metadata"]["generation"]
        old = part(obj, "status")
        if "observedGeneration" not in old:
            self.status(key, {"observedGeneration": -1})
        self.status(
            key,
            {
                "conditions": [
                    self.condition(
                        "Reconciling", "True", "Progressing", IN_PROGRESS, generation=generation
                    ),
                    self.condition(
                        "Ready", "Unknown", "Progressing", IN_PROGRESS, generation=generation
                    ),
                ]
            },
        )

    def _succeeded(self, key: Key, obj: Obj, run: _Run) -> float:
        generation = obj["metadata"]["generation"]
        said = f"Applied revision: {run.revision}"
        reason = "ReconciliationSucceeded"
        conditions = [self.condition("Ready", "True", reason, said, generation=generation)]
        if obj["spec"].get("wait"):
            waited = self.world.elapsed() - run.began
            passed = f"Health check passed in {waited:.0f}s"
            conditions.append(
                self.condition("Healthy", "True", "Succeeded", passed, generation=generation)
            )
        self._end(
            key,
            obj,
            conditions,
            {
                "observedGeneration": generation,
                "lastAppliedRevision": run.revision,
                "lastAttemptedRevision": run.revision,
                "history": self._history(obj, run, reason),
            },
        )
        return fluxparts.seconds(obj["spec"].get("interval"), 600.0)

    def _failed(self, key: Key, obj: Obj, why: Failure, run: _Run) -> float:
        generation = obj["metadata"]["generation"]
        conditions = [
            self.condition(
                "Reconciling", "True", "ProgressingWithRetry", why.message, generation=generation
            ),
            self.condition("Ready", "False", why.reason, why.message, generation=generation),
        ]
        status: dict[str, Any] = {}
        if why.reason == "HealthCheckFailed":
            conditions.append(
                self.condition("Healthy", "False", why.reason, why.message, generation=generation)
            )
        if run.applied is not None or why.reason == "ReconciliationFailed":
            status["history"] = self._history(obj, run, why.reason)
        self._end(key, obj, conditions, status)
        if why.reason != "DependencyNotReady":
            self.event(obj, why.reason, why.message, warning=True)
        every = fluxparts.seconds(obj["spec"].get("interval"), 600.0)
        retry = fluxparts.seconds(obj["spec"].get("retryInterval"), every)
        return why.again if why.again is not None else retry

    def _end(
        self, key: Key, obj: Obj, conditions: list[dict[str, Any]], status: dict[str, Any]
    ) -> None:
        old: dict[str, Any] = dict(part(self.get(key), "status"))
        kept = {"Healthy"} | {one["type"] for one in conditions}
        before = [one for one in members(old, "conditions") if one["type"] in kept]
        made = {**old, **status, **self.handled(obj)}
        self.set_all(key, {**made, "conditions": merge_conditions(before, conditions)})

    def _history(self, obj: Obj, run: _Run, reason: str) -> list[dict[str, Any]]:
        """Newest first; the same outcome of the same revision is counted, not added."""
        now = stamp(self.world)
        old = members(part(obj, "status"), "history")
        same = {"lastReconciledStatus": reason, "metadata": {"revision": run.revision}}
        found = next((one for one in old if all(one.get(k) == v for k, v in same.items())), None)
        rest = [dict(one) for one in old if one is not found]
        newest = {
            "digest": f"sha256:{fluxparts.digest(same)}",
            "firstReconciled": found["firstReconciled"] if found is not None else now,
            "lastReconciled": now,
            "lastReconciledDuration": f"{self.world.elapsed() - run.began:.3f}s",
            "totalReconciliations": (found["totalReconciliations"] if found is not None else 0) + 1,
            **same,
        }
        return [newest, *rest][:5]

    def suspended(self, key: Key, obj: Obj) -> None:
        """Nothing happens, but one that was Ready claims to have seen the newest spec."""
        update = self.handled(obj)
        if condition(obj, "Ready") == "True":
            update["observedGeneration"] = obj["metadata"]["generation"]
        if update:
            self.status(key, update)

    def delete(self, key: Key, obj: Obj) -> float | None:
        spec, status = obj["spec"], part(obj, "status")
        entries = members(part(status, "inventory"), "entries")
        orphan = spec.get("deletionPolicy") == "Orphan" or not spec.get("prune")
        if not spec.get("suspend") and entries and not orphan:
            try:
                target = self.target(obj)
            except Unusable as cause:
                said = f"pruning for deleted resource failed: {words.unusable(cause, 'objects')}"
                self.event(obj, "PruneFailed", said, warning=True)
                return self.span(60.0, 300.0, key, "prune")
            labels = {f"{GROUP}/name": key.name, f"{GROUP}/namespace": key.namespace}
            for entry in reversed(entries):
                self._prune(target, entry, labels)
        self.release(key)
        return None
