"""
Strangers at fleetd's objects: one who changes them, and one who deletes and makes them again.

Both go by the seed, through the cluster's own rules, under a name that is not fleetd's. Nothing
here breaks what cannot be mended: an object that others hang on, or that holds machines or data,
is let be.
"""

from fleetd.kube import facts
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.values import GK, Obj, clone
from fleetd.sim.world import World

STRANGER = "somebody"
EVERY = 90.0
"""Seconds between two changes of one who insists."""
_FIELDS = ("interval", "refreshInterval")
_OTHER = "47m"
_HARMLESS = frozenset(
    (
        *("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
        *("HelmRepository", "GitRepository", "HelmRelease", "Kustomization"),
        *("ClusterSecretStore", "ExternalSecret", "PushSecret", "Service", "CredentialsBinding"),
    )
)
"""Kinds whose end takes nothing with it."""
_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "finalizers")


def ours(cluster: Cluster) -> list[tuple[GK, Obj]]:
    """Objects that fleetd applied and that nobody is deleting."""
    return [
        (gk, obj)
        for gk in cluster.kinds()
        for obj in cluster.list(gk, labels={facts.MANAGED_BY: facts.MANAGER})
        if facts.made_from(obj) and "deletionTimestamp" not in obj["metadata"]
    ]


def pick(world: World, cluster: Cluster, *, recreated: bool) -> tuple[GK, Obj] | None:
    """One of them that this can be done to; None: there is none yet."""
    fit = [
        (gk, obj)
        for gk, obj in ours(cluster)
        if gk[1] in _HARMLESS
        and (not recreated or not cluster.store.dependents.get(obj["metadata"]["uid"]))
    ]
    if not fit:
        return None
    purpose = "recreated" if recreated else "meddled"
    stream = world.stream(cluster.name, purpose, str(int(world.elapsed())))
    return fit[stream.randrange(len(fit))]


def change(cluster: Cluster, gk: GK, name: str, namespace: str) -> None:
    """A field that fleetd set, or its mark where there is none that is safe to change."""

    def turn(live: Obj) -> None:
        field = next((one for one in _FIELDS if one in live.get("spec", {})), None)
        if field is not None:
            live["spec"][field] = _OTHER
        else:
            live["metadata"]["annotations"][facts.GENERATION] = STRANGER

    cluster.edit(gk, name, namespace, turn, manager=STRANGER)


def recreate(cluster: Cluster, gk: GK, obj: Obj) -> None:
    """The same name and the same words, and another object."""
    metadata = obj["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace", "")
    made = clone(obj)
    made.pop("status", None)
    for key in _SERVERS:
        made["metadata"].pop(key, None)

    def release(live: Obj) -> None:
        live["metadata"].pop("finalizers", None)

    cluster.edit(gk, name, namespace, release, manager=STRANGER)
    cluster.delete(gk, name, namespace)
    cluster.create(made, manager=STRANGER)
