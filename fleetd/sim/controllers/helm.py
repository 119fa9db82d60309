"""
helm-controller: installs charts on this cluster or on another one.

Imitates real-flux, sections 3 to 5: it makes a HelmChart and first shows SourceNotReady, keeps its
release in a Secret on the target, takes a release apart between failed installs, stalls with
RetriesExceeded, and then leaves Ready Unknown beside Stalled for good. What a chart brings is
`fleetd.sim.charts`; one that nobody knows is a plain Deployment.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fleetd.sim import charts
from fleetd.sim.chart import Chart
from fleetd.sim.controllers import fluxparts
from fleetd.sim.controllers import helm_words as words
from fleetd.sim.controllers.base import Key, Obj, key_of, merge_conditions, stamp
from fleetd.sim.controllers.fluxparts import BusyController, Failure, Unusable
from fleetd.sim.controllers.fluxsources import CHART
from fleetd.sim.controllers.fluxsources import GROUP as SOURCES
from fleetd.sim.controllers.workloads_look import condition, members, part
from fleetd.sim.kube.cluster import GK, Change, Cluster
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.refusal import Refused

GROUP = words.GROUP
RELEASE: GK = (GROUP, "HelmRelease")
DEFINITIONS = (
    Definition(
        group=GROUP,
        kind="HelmRelease",
        plural="helmreleases",
        versions=("v2",),
        short_names=("hr",),
    ),
)
POLL = 2.0
FORCE = "reconcile.fluxcd.io/forceAt"
RESET = "reconcile.fluxcd.io/resetAt"


@dataclass
class _Run:
    """A reconcile under way; lost when the controller restarts."""

    began: float
    action: str = ""
    target: Cluster | None = None
    objects: list[tuple[GK, str, str]] = field(default_factory=list[tuple[GK, str, str]])


class HelmController(BusyController[_Run]):
    name = "helm-controller"
    watches = (RELEASE,)

    def concerned(self, change: Change) -> Iterable[Key]:
        yield from super().concerned(change)
        if change.gk == CHART and change.object.get("status") != part(change.old, "status"):
            labels = part(change.object["metadata"], "labels")
            if f"{GROUP}/name" in labels:
                yield Key(RELEASE, labels[f"{GROUP}/namespace"], labels[f"{GROUP}/name"])
        if change.gk == RELEASE and fluxparts.ready(change.object):
            # The real one asks again after 30 s; its own event queue is often faster.
            before = change.old
            yield from self._dependants(change.object) if not fluxparts.ready(before) else ()

    def _dependants(self, obj: Obj) -> Iterable[Key]:
        for one in self.cluster.list(RELEASE, obj["metadata"]["namespace"]):
            names = [other["name"] for other in members(one["spec"], "dependsOn")]
            if obj["metadata"]["name"] in names:
                yield key_of(RELEASE, one)

    def advance(self, key: Key, obj: Obj) -> float | None:
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = _Run(began=self.world.elapsed())
        try:
            again = self._work(key, obj, run)
        except Failure as why:
            self.runs.pop(key, None)
            return self._failed(key, obj, why, run)
        if again is None:
            self.runs.pop(key, None)
            return fluxparts.seconds(obj["spec"].get("interval"), 600.0)
        if again < 0:
            self.runs.pop(key, None)
            return None
        return again

    def _work(self, key: Key, obj: Obj, run: _Run) -> float | None:
        """Seconds until it goes on, None when done, less than zero when it gave up."""
        if not run.action:
            self._dependencies(obj)
            version = self._chart(key, obj)
            run.action = self._action(obj, version)
            if run.action == "stalled":
                self._say(key, obj, [self._unknown("Fulfilling prerequisites")], {})
                return -1.0
            said = "Fulfilling prerequisites" if not run.action else words.running(run.action, obj)
            more = {**self._anew(obj, version), "lastAttemptedRevision": version}
            self._say(key, obj, [self._unknown(said)], more, ends=("Stalled",))
            if not run.action:
                run.action = "none"
            return self.span(0.3, 0.8, key, "start")
        if run.target is None:
            target = self._target(obj, run)
            if target is None:
                return fluxparts.HANDSHAKE
            run.target = target
            if run.action == "none":
                self._done(key, obj, run)
                return None
            run.objects = self._install(obj, run, target)
        if all(words.up(run.target, one) for one in run.objects):
            self._done(key, obj, run)
            return None
        limit = fluxparts.seconds(obj["spec"].get("timeout"), 300.0)
        if self.world.elapsed() - run.began >= limit:
            raise Failure(
                words.failure(run.action), f"{words.release(obj, run.action)}: {words.DEADLINE}"
            )
        return POLL

    # Before anything is installed.

    def _dependencies(self, obj: Obj) -> None:
        for one in members(obj["spec"], "dependsOn"):
            namespace = one.get("namespace") or obj["metadata"]["namespace"]
            where = f"{namespace}/{one['name']}"
            other = self.cluster.get(RELEASE, one["name"], namespace)
            if other is None:
                missing = f'helmreleases.{GROUP} "{one["name"]}" not found'
                said = f"unable to get '{where}' dependency: {missing}"
                raise Failure("DependencyNotReady", said, fluxparts.REQUEUE_DEPENDENCY)
            if not fluxparts.ready(other):
                said = f"dependency '{where}' is not ready"
                raise Failure("DependencyNotReady", said, fluxparts.REQUEUE_DEPENDENCY)

    def _chart(self, key: Key, obj: Obj) -> str:
        """The version of the chart that was fetched."""
        wanted: Obj = obj["spec"]["chart"]["spec"]
        source: Obj = wanted["sourceRef"]
        namespace = source.get("namespace") or key.namespace
        name = f"{key.namespace}-{key.name}"
        body = {
            "apiVersion": f"{SOURCES}/v1",
            "kind": "HelmChart",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {f"{GROUP}/name": key.name, f"{GROUP}/namespace": key.namespace},
            },
            "spec": {
                "chart": wanted["chart"],
                "version": wanted.get("version", "*"),
                "interval": wanted.get("interval") or obj["spec"]["interval"],
                "sourceRef": {"kind": source["kind"], "name": source["name"]},
            },
        }
        chart = self.cluster.apply(body, manager=self.name)
        status = part(chart, "status")
        current = status.get("observedGeneration") == chart["metadata"]["generation"]
        if current and condition(chart, "Ready") == "True":
            return str(status["artifact"]["revision"])
        said = "latest generation of object has not been reconciled"
        conditions = members(status, "conditions")
        ready = next((one for one in conditions if one["type"] == "Ready"), None)
        if ready is not None and ready["status"] == "False":
            said = str(ready["message"])
        raise Failure(
            "SourceNotReady",
            f"HelmChart '{namespace}/{name}' is not ready: {said}",
            fluxparts.REQUEUE_DEPENDENCY,
        )

    def _action(self, obj: Obj, version: str) -> str:
        """install, upgrade, nothing, or `stalled`: given up until something changes."""
        status = part(obj, "status")
        asked = _asked(obj, FORCE) or self._anew(obj, version)
        if condition(obj, "Stalled") == "True" and not asked:
            return "stalled"
        history = members(status, "history")
        newest = history[0] if history else None
        if newest is None or (
            newest["status"] in ("failed", "uninstalled") and newest["version"] == 1
        ):
            return "install"
        same = newest["chartVersion"] == version and newest["configDigest"] == words.config(obj)
        return "" if newest["status"] == "deployed" and same else "upgrade"

    def _anew(self, obj: Obj, version: str) -> dict[str, Any]:
        """The failures are counted from none for another spec or chart, or when asked to."""
        status = part(obj, "status")
        tried = (status.get("lastAttemptedGeneration"), status.get("lastAttemptedRevision"))
        same = tried == (obj["metadata"]["generation"], version)
        counts = ("failures", "installFailures", "upgradeFailures")
        return {} if same and not _asked(obj, RESET) else dict.fromkeys(counts, 0)

    def _target(self, obj: Obj, run: _Run) -> Cluster | None:
        """None: it hangs."""
        try:
            return self.target(obj)
        except Unusable as cause:
            if cause.why == "hangs" and self.world.elapsed() - run.began < fluxparts.HANDSHAKE:
                return None
            raise Failure(*words.unusable(cause)) from None

    # Installing.

    def _install(self, obj: Obj, run: _Run, target: Cluster) -> list[tuple[GK, str, str]]:
        spec = obj["spec"]
        name = str(spec["chart"]["spec"]["chart"])
        space = str(spec.get("targetNamespace") or obj["metadata"]["namespace"])
        storage = str(spec.get("storageNamespace") or obj["metadata"]["namespace"])
        chart = charts.find(name) or Chart(deployments=(name,))
        for definition in chart.definitions:
            target.serve(definition)
        if part(spec, "install").get("createNamespace"):
            target.apply(words.namespace(space), manager=self.name, force=False)
        for needed in (storage, space):
            if target.get(("", "Namespace"), needed) is None:
                missing = f'create: failed to create: namespaces "{needed}" not found'
                raise Failure(
                    words.failure(run.action), f"{words.release(obj, run.action)}: {missing}"
                )
        made = [(gk, space, one) for gk, one in words.workloads(chart)]
        for gk, _, one in made:
            try:
                target.apply(words.workload(gk, one, space, name, obj), manager="helm")
            except Refused as cause:
                said = f"{words.release(obj, run.action)}: {cause.message}"
                raise Failure(words.failure(run.action), said) from None
        if not made:
            self._start(chart, target)
        return made

    def _start(self, chart: Chart, target: Cluster) -> None:
        """A chart without pods of its own has nothing to wait for: what it brings runs at once."""
        for make in chart.controllers:
            if (target.name, make.name) not in self.world.controllers:
                make(self.world, target).start()

    def _uninstall(self, obj: Obj, target: Cluster) -> None:
        spec = obj["spec"]
        name = str(spec["chart"]["spec"]["chart"])
        space = str(spec.get("targetNamespace") or obj["metadata"]["namespace"])
        chart = charts.find(name) or Chart(deployments=(name,))
        for gk, one in words.workloads(chart):
            target.delete(gk, one, space)
        if not chart.deployments and not chart.daemonsets:
            for make in chart.controllers:
                running = self.world.controllers.get((target.name, make.name))
                if running is not None:
                    running.stop()

    def delete(self, key: Key, obj: Obj) -> float | None:
        history = members(part(obj, "status"), "history")
        if history and not obj["spec"].get("suspend"):
            try:
                target = self.target(obj)
            except Unusable as cause:
                self.event(obj, "UninstallFailed", words.unusable(cause)[1], warning=True)
                return self.span(60.0, 300.0, key, "uninstall")
            self._uninstall(obj, target)
        self.cluster.delete(CHART, f"{key.namespace}-{key.name}", key.namespace)
        self.release(key)
        return None

    # What is said of it.

    def _unknown(self, said: str) -> dict[str, Any]:
        return self.condition("Ready", "Unknown", "Progressing", said)

    def _done(self, key: Key, obj: Obj, run: _Run) -> None:
        generation = obj["metadata"]["generation"]
        status: Obj = part(self.get(key), "status")
        history: list[dict[str, Any]] = [dict(one) for one in members(status, "history")]
        action = run.action
        if action != "none":
            if history and history[0]["status"] == "deployed":
                history[0]["status"] = "superseded"
            history = [self._snapshot(obj, status, history, "deployed"), *history][:5]
        elif words.last(status):
            action = words.last(status)
        reason = "InstallSucceeded" if action in ("install", "none") else "UpgradeSucceeded"
        said = words.succeeded(obj, action, history)
        conditions = [
            self.condition("Ready", "True", reason, said, generation=generation),
            self.condition("Released", "True", reason, said, generation=generation),
        ]
        more = {
            "history": history,
            "observedGeneration": generation,
            "lastAttemptedGeneration": generation,
            "lastAttemptedReleaseAction": action if action != "none" else "install",
            "failures": 0,
            "installFailures": 0,
            "upgradeFailures": 0,
        }
        self._say(key, obj, conditions, more, ends=("Stalled", "Reconciling", "Remediated"))

    def _failed(self, key: Key, obj: Obj, why: Failure, run: _Run) -> float | None:
        generation = obj["metadata"]["generation"]
        conditions = [
            self.condition("Ready", "False", why.reason, why.message, generation=generation),
            self.condition(
                "Reconciling", "True", "ProgressingWithRetry", why.message, generation=generation
            ),
        ]
        if run.action not in ("install", "upgrade") or not why.reason.endswith("Failed"):
            self._say(key, obj, conditions, {})
            return why.again if why.again is not None else self.span(20.0, 60.0, key, "retry")
        return self._remediate(key, obj, why, run, conditions)

    def _remediate(
        self, key: Key, obj: Obj, why: Failure, run: _Run, conditions: list[dict[str, Any]]
    ) -> float | None:
        status: Obj = part(self.get(key), "status")
        tries = int(status.get("failures", 0)) + 1
        remedy = part(part(obj["spec"], run.action), "remediation")
        retries = int(remedy.get("retries", 0))
        history: list[dict[str, Any]] = [dict(one) for one in members(status, "history")]
        if not history or history[0]["status"] == "deployed" or run.action == "install":
            history = [self._snapshot(obj, status, history[:0], "failed"), *history][:5]
        more: dict[str, Any] = {
            "history": history,
            "failures": tries,
            f"{run.action}Failures": tries,
            "lastAttemptedGeneration": obj["metadata"]["generation"],
            "lastAttemptedReleaseAction": run.action,
        }
        released = self.condition("Released", "False", why.reason, why.message)
        self.event(obj, why.reason, why.message, warning=True)
        if tries > retries:
            said = f"Failed to {run.action} after {tries} attempt(s)"
            stalled = self.condition("Stalled", "True", "RetriesExceeded", said)
            more["observedGeneration"] = obj["metadata"]["generation"]
            kept = [conditions[0], released, stalled]
            self._say(key, obj, kept, more, ends=("Reconciling",))
            return None
        if run.action == "install" and run.target is not None:
            self._uninstall(obj, run.target)
            history[0]["status"] = "uninstalled"
            reason, said = "UninstallSucceeded", f"{words.release(obj, 'uninstall')} succeeded"
        else:
            reason, said = "RollbackSucceeded", f"{words.release(obj, 'rollback')} succeeded"
        conditions[0] = self.condition("Ready", "False", reason, said)
        done = self.condition("Remediated", "True", reason, said)
        self._say(key, obj, [*conditions, released, done], more)
        return 10.0  # a worker is held this long after each remediation

    def _snapshot(
        self, obj: Obj, status: Obj, history: list[dict[str, Any]], state: str
    ) -> dict[str, Any]:
        spec = obj["spec"]
        space = spec.get("targetNamespace") or obj["metadata"]["namespace"]
        digest = words.config(obj)
        return {
            "name": words.release_name(obj),
            "namespace": space,
            "version": (int(history[0]["version"]) if history else 0) + 1,
            "status": state,
            "chartName": spec["chart"]["spec"]["chart"],
            "chartVersion": status.get("lastAttemptedRevision", ""),
            "configDigest": digest,
            "digest": f"sha256:{fluxparts.digest([digest, state])}",
            "firstDeployed": stamp(self.world),
            "lastDeployed": stamp(self.world),
        }

    def _say(
        self,
        key: Key,
        obj: Obj,
        conditions: list[dict[str, Any]],
        more: dict[str, Any],
        ends: tuple[str, ...] = (),
    ) -> None:
        old: dict[str, Any] = dict(part(self.get(key), "status"))
        before = [one for one in members(old, "conditions") if one["type"] not in ends]
        handled = self.handled(obj) if conditions[0]["status"] != "Unknown" else {}
        made = {**old, **more, **handled}
        self.set_all(key, {**made, "conditions": merge_conditions(before, conditions)})


def _asked(obj: Obj, annotation: str) -> bool:
    """Whether this is asked for with a token that no reconcile has met before."""
    annotations = part(obj["metadata"], "annotations")
    asked = annotations.get(fluxparts.REQUESTED)
    new = asked is not None and asked != part(obj, "status").get("lastHandledReconcileAt")
    return new and asked == annotations.get(annotation)
