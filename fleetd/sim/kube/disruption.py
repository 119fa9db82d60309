"""
PodDisruptionBudgets and evictions: who may be sent away, and how many at once.

A budget's status follows its pods, as the controller manager keeps it; a budget whose status
another controller wrote (Rook's, that of a hypervisor) is that controller's to keep. An eviction is
a deletion that asks the budget first and counts against it.
"""

from typing import TYPE_CHECKING

from fleetd.sim.kube import refusal, selectors, verbs
from fleetd.sim.kube.access import User
from fleetd.sim.kube.calls import Call
from fleetd.sim.kube.managed import UPDATE
from fleetd.sim.kube.store import DELETED, Change
from fleetd.sim.kube.values import GK, Obj, at, is_map, name_of, namespace_of, stamp
from fleetd.sim.kube.writing import By

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

POD: GK = ("", "Pod")
BUDGET: GK = ("policy", "PodDisruptionBudget")
MANAGER = "kube-controller-manager"
_MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget."
_SCALED = frozenset(("Deployment", "ReplicaSet", "StatefulSet"))
_OVER = ("Succeeded", "Failed", "Pending")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_EVICTIONS = ("policy/v1", "policy/v1beta1")


def install(cluster: "Cluster") -> None:
    def changed(change: Change) -> None:
        if change.gk == BUDGET and change.type != DELETED:
            _look(cluster, change.object)
        elif change.gk == POD and cluster.store.tables[BUDGET].rows:
            for budget in cluster.list(BUDGET, namespace_of(change.object)):
                _look(cluster, budget)

    def evicted(pod: Obj, call: Call, user: User) -> tuple[int, Obj]:
        return _evict(cluster, pod, call, user)

    cluster.subscribe(changed)
    cluster.subresource(POD, "eviction", evicted)


def _others(budget: Obj) -> bool:
    """Whether another controller keeps its status."""
    status: Obj = budget.get("status") or {}
    return "disruptionsAllowed" in status and "observedGeneration" not in status


def _look(cluster: "Cluster", budget: Obj) -> None:
    name, space = name_of(budget), namespace_of(budget)
    live = cluster.get(BUDGET, name, space)
    if live is None or _others(live):
        return
    pods = [pod for pod in cluster.list(POD, space) if _guards(live, pod)]
    healthy = sum(_ready(pod) and not _going(pod) for pod in pods)
    wanted, expected = _wanted(cluster, live, pods)
    allowed = max(healthy - wanted, 0) if expected else 0
    counts = dict(zip(_COUNTS, (allowed, healthy, wanted, expected), strict=True))
    status: Obj = live.get("status") or {}
    generation = live["metadata"].get("generation", 1)
    same = all(status.get(key) == value for key, value in counts.items())
    if same and status.get("observedGeneration") == generation:
        return
    condition: Obj = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": stamp(cluster.time.now()),
    }
    for one in status.get("conditions") or ():
        if one.get("type") == condition["type"] and one.get("status") == condition["status"]:
            condition["lastTransitionTime"] = one.get("lastTransitionTime")
    made = {**counts, "observedGeneration": generation, "conditions": [condition]}
    cluster.set_status(BUDGET, name, space, made, manager=MANAGER)


def _guards(budget: Obj, pod: Obj) -> bool:
    selector = at(budget, "spec.selector")
    return is_map(selector) and selectors.of_object(selector)(pod)


def _ready(pod: Obj) -> bool:
    conditions = at(pod, "status.conditions") or ()
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return ready and at(pod, "status.phase") == "Running"


def _going(pod: Obj) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _wanted(cluster: "Cluster", budget: Obj, pods: list[Obj]) -> tuple[int, int]:
    """How many must be healthy, and how many there should be."""
    spec: Obj = budget["spec"]
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is None and isinstance(least, int):
        return least, len(pods)
    expected = _scale(cluster, pods)
    if most is not None:
        return max(expected - _part(most, expected), 0), expected
    return _part(least if least is not None else 0, expected), expected


def _part(value: int | str, whole: int) -> int:
    """A number, or a share of the whole, rounded up."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    return -(-int(digits) * whole // 100) if digits.isdecimal() else 0


def _scale(cluster: "Cluster", pods: list[Obj]) -> int:
    """How many pods their owners want. A pod without an owner counts for nothing."""
    owners: dict[str, int] = {}
    for pod in pods:
        found = _owner(cluster, pod)
        while found is not None and (above := _owner(cluster, found)) is not None:
            found = above
        if found is not None and found["kind"] in _SCALED:
            owners[found["metadata"]["uid"]] = at(found, "spec.replicas") or 0
    return sum(owners.values())


def _owner(cluster: "Cluster", obj: Obj) -> Obj | None:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            gk = str(owner["apiVersion"]).rpartition("/")[0], str(owner["kind"])
            return cluster.get(gk, owner["name"], namespace_of(obj))
    return None


def _evict(cluster: "Cluster", pod: Obj, call: Call, user: User) -> tuple[int, Obj]:
    if call.verb != "create":
        raise refusal.not_allowed()
    body = call.body()
    if body.get("kind", "Eviction") != "Eviction" or (
        body.get("apiVersion", _EVICTIONS[0]) not in _EVICTIONS
    ):
        raise refusal.bad_request(
            f"no kind {body.get('kind')!r} is registered for version {body.get('apiVersion')!r}"
        )
    name = name_of(pod)
    if at(body, "metadata.name") not in (None, "", name):
        raise refusal.bad_request("name in URL does not match name in Eviction object")
    options = body.get("deleteOptions")
    asked = verbs.asked(options if is_map(options) else {}, call.request.query)
    dry = call.dry_run or asked.dry_run
    budget = _budget_of(cluster, pod)
    if budget is not None and not _free(pod, budget):
        _count(cluster, budget, name, dry=dry)
    by = By(manager=call.manager, user=user, dry_run=dry)
    table = cluster.table(POD)
    cluster.lifecycle.delete(table, table.rows[namespace_of(pod), name], asked, by)
    return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def _budget_of(cluster: "Cluster", pod: Obj) -> Obj | None:
    if at(pod, "status.phase") in _OVER or _going(pod):
        return None
    found = [one for one in cluster.list(BUDGET, namespace_of(pod)) if _guards(one, pod)]
    if len(found) > 1:
        raise refusal.plain(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    return found[0] if found else None


def _free(pod: Obj, budget: Obj) -> bool:
    """A pod that is not ready hurts no budget that is met without it."""
    if _ready(pod):
        return False
    if at(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    wanted = at(budget, "status.desiredHealthy") or 0
    return (at(budget, "status.currentHealthy") or 0) >= wanted > 0


def _count(cluster: "Cluster", budget: Obj, pod: str, *, dry: bool) -> None:
    name, space = name_of(budget), namespace_of(budget)
    status: Obj = budget.get("status") or {}
    if not status.get("disruptionsAllowed"):
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        why = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        cause = {"reason": "DisruptionBudget", "message": why}
        raise refusal.Refused(
            429, "TooManyRequests", _MESSAGE, details={"causes": [cause]}, headers={}
        )
    if dry:
        return
    before: Obj = status.get("disruptedPods") or {}
    disrupted: Obj = {**before, pod: stamp(cluster.time.now())}
    left = status["disruptionsAllowed"] - 1
    made: Obj = {**status, "disruptionsAllowed": left, "disruptedPods": disrupted}
    cluster.set_status(BUDGET, name, space, made, manager=f"{MANAGER}-{UPDATE}".lower())
