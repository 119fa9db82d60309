"""The kinds of the external arbiter operator as a cluster serves them, with their defaults."""

from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import GK
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.kube.values import Obj, at, clone

GROUP = "ceph.cobaltcore.sap.com"
REMOTE: GK = (GROUP, "RemoteCluster")
ARBITER: GK = (GROUP, "RemoteArbiter")
UNNAMED = "matches RemoteCluster name"
"""The CRD's default for the name of the Secret: a sentence, and no name of anything."""

DEFINITIONS = (
    Definition(
        group=GROUP,
        kind="RemoteCluster",
        plural="remoteclusters",
        versions=("v1alpha1",),
        lists={"status.conditions": ("type",)},
        columns=(Column("State", "status.state"), Column("Message", "status.message")),
    ),
    Definition(
        group=GROUP,
        kind="RemoteArbiter",
        plural="remotearbiters",
        versions=("v1alpha1",),
        lists={"status.conditions": ("type",)},
        columns=(Column("Mon ID", "status.monId"), Column("State", "status.state")),
    ),
)


def admit(operation: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
    """Defaults, as the schema has them, and the one rule of a RemoteArbiter."""
    del old, user
    if operation not in ("CREATE", "UPDATE") or new is None:
        return None
    made: Obj = clone(new)
    spec: Obj = made.setdefault("spec", {})
    if new["kind"] == "RemoteArbiter":
        given: Obj = at(new, "spec.remoteCluster") or {}
        if len([name for name in ("name", "spec") if name in given]) != 1:
            said = (
                f'RemoteArbiter.{GROUP} "{new["metadata"].get("name", "")}" is invalid: '
                "spec.remoteCluster: exactly one of the fields in [name spec] must be set"
            )
            raise refusal.Refused(422, "Invalid", said)
        spec.setdefault("monIdPrefix", "ext-")
        spec.setdefault("checkInterval", "1m")
        return made
    spec.setdefault("namespace", "default")
    spec.setdefault("checkInterval", "1m")
    spec.setdefault("timeout", "10s")
    reference: Obj = spec.setdefault("accesskeyRef", {})
    reference.setdefault("key", "kubeconfig.yaml")
    reference.setdefault("name", UNNAMED)
    return made
