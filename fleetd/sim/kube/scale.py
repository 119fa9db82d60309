"""
The scale subresource: how many there should be and are, of whichever kind.

It is a small object of its own kind (autoscaling/v1 Scale) that stands for two fields and a
selector of another; a write of it changes one field of that, by the rules of every write.
"""

from typing import TYPE_CHECKING, Any

from fleetd.sim.kube import managed, refusal, verbs
from fleetd.sim.kube.calls import Call
from fleetd.sim.kube.definitions import Definition, Scale
from fleetd.sim.kube.values import Obj, at, clone, is_map
from fleetd.sim.kube.writing import By

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

API, KIND = "autoscaling/v1", "Scale"
DEFINITION = Definition(group="autoscaling", kind=KIND, plural="scales")
_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def answer(cluster: "Cluster", call: Call) -> tuple[int, Obj]:
    paths = call.definition.scale or Scale()
    row = call.table.rows.get((call.target.namespace, call.target.name))
    if row is None:
        raise refusal.not_found(call.definition, call.target.name)
    live = shown(row.obj, paths)
    if call.verb == "get":
        return 200, live
    if call.verb not in ("update", "patch"):
        raise refusal.not_allowed()
    wanted = _wanted(call, live)
    verbs.check_version(call, row, wanted)
    new = clone(row.obj)
    _put(new, paths.spec, _count(wanted))
    by = By(
        manager=call.manager,
        user=call.user,
        version=call.target.version,
        operation=managed.UPDATE,
        subresource="scale",
        dry_run=call.dry_run,
    )
    return 200, shown(cluster.writing.update(call.table, row, new, by).obj, paths)


def shown(obj: Obj, paths: Scale) -> Obj:
    metadata = {name: obj["metadata"][name] for name in _KEPT if name in obj["metadata"]}
    wanted = at(obj, paths.spec)
    status: Obj = {"replicas": at(obj, paths.status) or 0}
    selector = at(obj, paths.selector) if paths.selector else None
    text = _selector(selector) if is_map(selector) else selector
    if text:
        status["selector"] = text
    return {
        "kind": KIND,
        "apiVersion": API,
        "metadata": metadata,
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def _wanted(call: Call, live: Obj) -> Obj:
    if call.verb == "patch":
        kind = call.request.content_type.split(";")[0].strip()
        return verbs.patched(call, kind, live, DEFINITION)
    body = call.body()
    said = (body.get("apiVersion", API), body.get("kind", KIND))
    if said != (API, KIND):
        raise refusal.bad_request(f"no kind {said[1]!r} of {said[0]!r} scales anything")
    name = at(body, "metadata.name") or call.target.name
    if name != call.target.name:
        raise refusal.bad_request(
            f"the name of the object ({name}) does not match the name on the URL "
            f"({call.target.name})"
        )
    return {**body, "metadata": body.get("metadata") or {}}


def _count(scale: Obj) -> int:
    count: Any = at(scale, "spec.replicas")
    if count is None:
        return 0
    if type(count) is not int:
        raise refusal.bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal into Go '
            "struct field ScaleSpec.spec.replicas of type int32"
        )
    if count < 0:
        problem = (
            "FieldValueInvalid",
            "spec.replicas",
            f"Invalid value: {count}: must be greater than or equal to 0",
        )
        raise refusal.invalid(DEFINITION, scale["metadata"].get("name", ""), problem)
    return count


def _put(obj: Obj, path: str, count: int) -> None:
    *steps, last = path.split(".")
    for step in steps:
        obj = obj.setdefault(step, {})
    obj[last] = count


def _selector(selector: Obj) -> str:
    """As a query writes it, in the order of the keys."""
    labels: Obj = selector.get("matchLabels") or {}
    parts = [(key, f"{key}={value}") for key, value in labels.items()]
    for one in selector.get("matchExpressions") or ():
        key, values = str(one.get("key")), ",".join(sorted(one.get("values") or ()))
        words = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append((key, words.get(str(one.get("operator")), f"!{key}")))
    return ",".join(text for _, text in sorted(parts))
