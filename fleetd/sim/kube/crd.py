"""
CustomResourceDefinitions: an object that makes the server serve another kind.

A moment after it is created its names are accepted and it is Established, and only then is its
kind served. Deleting it deletes its objects first and ends their watches; it goes when none is
left, so a finalizer on one of them holds the definition too.
"""

from typing import TYPE_CHECKING, Any

from fleetd.sim.kube import refusal
from fleetd.sim.kube.definitions import Column, Definition, Scale, Shape, shape_of_schema
from fleetd.sim.kube.store import DELETED, Change
from fleetd.sim.kube.values import GK, Obj, at, stamp

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

CRD: GK = ("apiextensions.k8s.io", "CustomResourceDefinition")
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
ESTABLISHED_AFTER = 0.2
CLEANS_AFTER = 0.2
_MANAGER = "kube-apiserver"
_SCALED = ("specReplicas", "statusReplicas", "labelSelector")


def install(cluster: "Cluster") -> None:
    """Makes a cluster act on the definitions it is given."""
    _Controller(cluster)


class _Controller:
    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        cluster.admit(CRD, _defaults)
        cluster.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        if change.gk != CRD:
            self._instance_gone(change)
            return
        obj = change.object
        name = obj["metadata"]["name"]
        if change.type == DELETED:
            self._cluster.unserve(obj["spec"]["group"], obj["spec"]["names"]["kind"])
        elif "deletionTimestamp" in obj["metadata"]:
            if change.old is None or "deletionTimestamp" not in change.old["metadata"]:
                self._cluster.time.after(CLEANS_AFTER, lambda: self._clean(name))
        elif change.old is None or change.old["spec"] != obj["spec"]:
            self._cluster.time.after(ESTABLISHED_AFTER, lambda: self._establish(name))

    def _establish(self, name: str) -> None:
        obj = self._cluster.get(CRD, name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        self._cluster.serve(definition_of(obj))
        now = stamp(self._cluster.time.now())

        def change(new: Obj) -> None:
            status = new.setdefault("status", {})
            status["acceptedNames"] = new["spec"]["names"]
            status["storedVersions"] = [
                version["name"] for version in new["spec"]["versions"] if version.get("storage")
            ]
            if not status.get("conditions"):
                status["conditions"] = [
                    _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                    _condition("Established", "InitialNamesAccepted", _ESTABLISHED_MESSAGE, now),
                ]
            new["status"] = status

        self._cluster.edit(CRD, name, "", change, manager=_MANAGER, status=True)

    def _clean(self, name: str) -> None:
        obj = self._cluster.get(CRD, name)
        if obj is None:
            return
        gk = (obj["spec"]["group"], obj["spec"]["names"]["kind"])
        for instance in self._cluster.list(gk):
            metadata = instance["metadata"]
            if "deletionTimestamp" not in metadata:
                self._cluster.delete(gk, metadata["name"], metadata.get("namespace", ""))
        self._finish(name, gk)

    def _instance_gone(self, change: Change) -> None:
        if change.type != DELETED:
            return
        for obj in self._cluster.list(CRD):
            names = obj["spec"]["names"]
            if (obj["spec"]["group"], names["kind"]) == change.gk:
                if "deletionTimestamp" in obj["metadata"]:
                    self._finish(obj["metadata"]["name"], change.gk)
                return

    def _finish(self, name: str, gk: GK) -> None:
        if not self._cluster.list(gk):
            self._cluster.remove_finalizer(CRD, name, "", CLEANUP)


_SELF = Definition(group=CRD[0], kind=CRD[1], plural="customresourcedefinitions", namespaced=False)
_ESTABLISHED_MESSAGE = "the initial names have been accepted"


def _condition(kind: str, reason: str, message: str, now: str) -> Obj:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }


def _defaults(operation: str, new: Obj | None, _old: Obj | None, _user: object) -> Obj | None:
    if new is None or operation not in ("CREATE", "UPDATE"):
        return None
    names = dict(new["spec"]["names"])
    wanted = f"{names['plural']}.{new['spec']['group']}"
    if new["metadata"]["name"] != wanted:
        name = new["metadata"]["name"]
        raise refusal.invalid(
            _SELF,
            name,
            (
                "FieldValueInvalid",
                "metadata.name",
                f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group',
            ),
        )
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", names["kind"] + "List")
    metadata = dict(new["metadata"])
    if operation == "CREATE":
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), CLEANUP]
    spec = {"conversion": {"strategy": "None"}, **new["spec"], "names": names}
    return {**new, "metadata": metadata, "spec": spec}


def _scale(given: Obj | None) -> Scale | None:
    if given is None:
        return None
    paths = (given.get(f"{one}Path") or "" for one in _SCALED)
    return Scale(*(path.lstrip(".") for path in paths))


def definition_of(obj: Obj) -> Definition:
    """The kind that a CustomResourceDefinition describes."""
    spec = obj["spec"]
    names = spec["names"]
    served = [version for version in spec["versions"] if version.get("served", True)]
    served.sort(key=lambda version: not version.get("storage"))
    kept: dict[str, Any] = served[0] if served else spec["versions"][0]
    given: Obj = kept.get("schema") or {}
    schema: Obj = given.get("openAPIV3Schema") or {}
    shape = shape_of_schema(schema) if schema else Shape()
    return Definition(
        group=spec["group"],
        kind=names["kind"],
        plural=names["plural"],
        versions=tuple(version["name"] for version in served),
        namespaced=spec["scope"] == "Namespaced",
        status="status" in (kept.get("subresources") or {}),
        generation=True,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=tuple(
            Column(
                column["name"],
                column["jsonPath"].lstrip("."),
                column.get("type", "string"),
                column.get("priority", 0),
            )
            for column in kept.get("additionalPrinterColumns") or ()
        ),
        selectable=tuple(
            field["jsonPath"].lstrip(".") for field in kept.get("selectableFields") or ()
        ),
        schema=schema or None,
        scale=_scale(at(kept, "subresources.scale")),
        shape_of=shape,
    )
