"""Rook's kinds as a cluster serves them, and what their validation refuses; data and pure rules."""

from typing import Any

from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import GK
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.kube.values import Obj, at

GROUP = "ceph.rook.io"
API = f"{GROUP}/v1"
CLUSTER: GK = (GROUP, "CephCluster")
POOL: GK = (GROUP, "CephBlockPool")
CLIENT: GK = (GROUP, "CephClient")
DEPENDENTS = ("CephBlockPool", "CephClient", "CephFilesystem", "CephObjectStore")
"""A CephCluster is not deleted while one of these is in its namespace."""

_PHASE = (Column("Phase", "status.phase"),)
DEFINITIONS = (
    Definition(
        group=GROUP,
        kind="CephCluster",
        plural="cephclusters",
        short_names=("ceph",),
        immutable=("spec.dataDirHostPath",),
        columns=(
            Column("MonCount", "spec.mon.count"),
            Column("Phase", "status.phase"),
            Column("Message", "status.message"),
            Column("Health", "status.ceph.health"),
        ),
    ),
    Definition(
        group=GROUP,
        kind="CephBlockPool",
        plural="cephblockpools",
        short_names=("cephbp",),
        columns=_PHASE,
    ),
    Definition(
        group=GROUP,
        kind="CephClient",
        plural="cephclients",
        short_names=("cephcl",),
        immutable=("spec.secretName",),
        columns=_PHASE,
    ),
    Definition(group=GROUP, kind="CephFilesystem", plural="cephfilesystems", columns=_PHASE),
    Definition(group=GROUP, kind="CephObjectStore", plural="cephobjectstores", columns=_PHASE),
)


def admit(operation: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
    """The rules of the CRDs that a schema alone does not tell."""
    del user
    if operation not in ("CREATE", "UPDATE") or new is None:
        return None
    if new["kind"] == "CephCluster":
        _mons(new)
    for path in _GENERATIONS.get(new["kind"], ()):
        _rising(new, old, path)
    return None


_GENERATIONS = {
    "CephClient": ("spec.security.cephx.keyGeneration",),
    "CephCluster": ("spec.security.cephx.daemon.keyGeneration",),
}


def _mons(obj: Obj) -> None:
    count = at(obj, "spec.mon.count") or 0
    zones: list[Any] = at(obj, "spec.mon.zones") or []
    stretch: list[Any] | None = at(obj, "spec.mon.stretchCluster.zones")
    if len(zones) > count:
        raise _invalid(obj, "spec.mon", "zones must be less than or equal to count")
    if stretch is not None and len(stretch) != 3:
        raise _invalid(obj, "spec.mon", "stretchCluster zones must be equal to 3")


def _rising(new: Obj, old: Obj | None, path: str) -> None:
    before = at(old, path) if old is not None else None
    now = at(new, path)
    if before is None:
        return
    if now is None:
        raise _invalid(new, path, "keyGeneration cannot be removed once set")
    if now < before:
        raise _invalid(new, path, "keyGeneration cannot be decreased")


def _invalid(obj: Obj, path: str, why: str) -> refusal.Refused:
    name = obj["metadata"].get("name", "")
    plural = f"{obj['kind']}.{GROUP}"
    said = f'{plural} "{name}" is invalid: {path}: Invalid value: {why}'
    return refusal.Refused(422, "Invalid", said)
