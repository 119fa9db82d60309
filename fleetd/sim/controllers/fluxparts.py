"""
What the Flux controllers have in common: reaching another cluster with a kubeconfig Secret or with
a token of their own cluster, waiting for dependencies, being poked by an annotation.

As in real-flux, sections 3 and 4: the Secret is read anew at every reconcile and its token is
really checked by the other server, so a wrong one is found out when it is used and not before.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

import msgspec

from fleetd import plainyaml
from fleetd.sim import truth
from fleetd.sim.controllers.base import REACTION, Controller, Key, Obj, key_of
from fleetd.sim.controllers.workloads_look import condition, meant, part
from fleetd.sim.kube.access import BadToken
from fleetd.sim.kube.cluster import GK, Change, Cluster
from fleetd.sim.world import World

R = TypeVar("R")
SECRET: GK = ("", "Secret")
WAYS: dict[GK, str] = {SECRET: "secretRef", ("", "ConfigMap"): "configMapRef"}
WORKLOAD_IDENTITY = "ObjectLevelWorkloadIdentity=true"
LIFE = timedelta(hours=1)
"""Of a token that a controller makes for itself."""
REQUESTED = "reconcile.fluxcd.io/requestedAt"
WATCH = "reconcile.fluxcd.io/watch"
REQUEUE_DEPENDENCY = 30.0
"""Seconds after which something that waits for another is looked at again."""
HANDSHAKE = 10.0
"""Seconds until a server that takes connections and never answers is given up."""


CONCURRENT = 4
QUEUE = 1.0
"""Seconds after which one that waits for a worker asks again."""
_CONCURRENT = re.compile(r"--concurrent=(\d+)")


@dataclass(frozen=True)
class Unusable(Exception):
    """The other cluster was not reached. Each controller has words of its own for it."""

    why: str
    """secret, key, garbage, token, unauthorized, refused, hangs"""
    detail: str = ""


def seconds(text: Any, otherwise: float) -> float:  # noqa: ANN401 - any JSON value
    """A Go duration such as 1m30s."""
    if not isinstance(text, str) or not text:
        return otherwise
    total, number = 0.0, ""
    for letter in text:
        if letter.isdigit() or letter == ".":
            number += letter
        else:
            total += float(number or 0) * {"h": 3600.0, "m": 60.0, "s": 1.0}.get(letter, 0.0)
            number = ""
    return total or otherwise


class FluxController(Controller):
    """With what every kind of Flux does the same way."""

    finalizer = "finalizers.fluxcd.io"

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk in self.watches and meant(change):
            yield key_of(change.gk, change.object)
        if change.gk in WAYS and _watched(change.object):
            yield from self.users(WAYS[change.gk], change.object)

    def users(self, way: str, named: Obj) -> Iterable[Key]:
        """Those that name this Secret or ConfigMap for their kubeconfig."""
        metadata = named["metadata"]
        for gk in self.watches:
            for obj in self.cluster.list(gk, metadata["namespace"]):
                reference = part(part(obj["spec"], "kubeConfig"), way)
                if reference.get("name") == metadata["name"]:
                    yield key_of(gk, obj)

    def guard(self, key: Key, obj: Obj) -> None:
        """Puts the finalizer on."""
        if self.finalizer not in part(obj, "metadata").get("finalizers", ()):

            def add(new: dict[str, Any]) -> None:
                new["metadata"]["finalizers"] = [
                    *new["metadata"].get("finalizers", []),
                    self.finalizer,
                ]

            self.cluster.edit(key.gk, key.name, key.namespace, add, manager=self.name)

    def release(self, key: Key) -> None:
        self.cluster.remove_finalizer(key.gk, key.name, key.namespace, self.finalizer)

    def handled(self, obj: Obj) -> dict[str, Any]:
        """The annotation that pokes is confirmed after any outcome."""
        asked = part(obj["metadata"], "annotations").get(REQUESTED)
        return {"lastHandledReconcileAt": asked} if asked else {}

    def target(self, obj: Obj) -> Cluster:
        """The cluster that a Kustomization or HelmRelease is for. Raises Unusable."""
        if "kubeConfig" not in obj["spec"]:
            return self.cluster
        if "configMapRef" in obj["spec"]["kubeConfig"]:
            return self._with_token(obj)
        return reach(self.world, self.cluster, obj)

    def _with_token(self, obj: Obj) -> Cluster:
        """By the ConfigMap that `spec.kubeConfig` names, with a token of the account that it names,
        where the controller was told that it may."""
        deployment = self.cluster.get(("apps", "Deployment"), self.name, "flux-system")
        if WORKLOAD_IDENTITY not in str(part(deployment, "spec")):
            said = "ObjectLevelWorkloadIdentity feature gate is not enabled"
            raise Unusable("token", f"failed to get access token for cluster: {said}")
        namespace = obj["metadata"]["namespace"]
        name = str(obj["spec"]["kubeConfig"]["configMapRef"]["name"])
        data = part(self.cluster.get(("", "ConfigMap"), name, namespace), "data")
        account = self.cluster.get(
            ("", "ServiceAccount"), str(data.get("serviceAccountName")), namespace
        )
        if data.get("provider") != "generic" or account is None:
            raise Unusable("token", f"failed to get access token for cluster: {namespace}/{name}")
        who = (namespace, account["metadata"]["name"], account["metadata"]["uid"])
        token = self.cluster.tokens.issue(
            f"system:serviceaccount:{namespace}:{who[1]}",
            ("system:serviceaccounts",),
            expires=self.world.now() + LIFE,
            audiences=tuple(str(data.get("audiences") or data["address"]).split()),
            account=who,
        )
        return _enter(self.world, str(data["address"]), token)

    def workers(self) -> int:
        """How many objects it works on at once: its `--concurrent`."""
        deployment = self.cluster.get(("apps", "Deployment"), self.name, "flux-system")
        found = _CONCURRENT.search(str(part(deployment, "spec")))
        return int(found.group(1)) if found else CONCURRENT

    def set_all(self, key: Key, status: dict[str, Any]) -> None:
        self.cluster.set_status(key.gk, key.name, key.namespace, status, manager=self.name)


class Failure(Exception):
    """A reconcile that failed: reason and message of Ready, and when it is tried again."""

    def __init__(self, reason: str, message: str, again: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.again = again


class BusyController(FluxController, Generic[R]):
    """One that is at work on an object for a while, and does not hear of it until it is done."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        super().__init__(world, cluster)
        self.runs: dict[Key, R] = {}
        """What is under way; lost when the controller restarts, which then begins anew."""
        self._missed: set[Key] = set()
        """Those that something happened to meanwhile: they are looked at again."""

    def concerned(self, change: Change) -> Iterable[Key]:
        """What `keys` is for others."""
        return super().keys(change)

    def advance(self, key: Key, obj: Obj) -> float | None:
        """Begin, or go on; seconds until it wants to go on, as from `reconcile`."""
        raise NotImplementedError

    def delete(self, key: Key, obj: Obj) -> float | None:
        """Clean up after one that is being deleted, and release it."""
        raise NotImplementedError

    def suspended(self, key: Key, obj: Obj) -> None:
        """Nothing happens to one that is suspended, or nearly nothing."""

    def _look(self, key: Key) -> float | None:
        obj = self.get(key)
        going = obj is None or "deletionTimestamp" in obj["metadata"]
        if obj is None or going or obj["spec"].get("suspend"):
            self.runs.pop(key, None)
        if obj is None or going:
            return self.delete(key, obj) if obj is not None else None
        self.guard(key, obj)
        if obj["spec"].get("suspend"):
            self.suspended(key, obj)
            return None
        if key not in self.runs and len(self.runs) >= self.workers():
            return QUEUE  # every worker is at work, or hangs
        return self.advance(key, obj)

    def keys(self, change: Change) -> Iterable[Key]:
        for key in self.concerned(change):
            if key in self.runs:
                self._missed.add(key)
            else:
                yield key

    def reconcile(self, key: Key) -> float | None:
        again = self._look(key)
        if key in self._missed and key not in self.runs:
            self._missed.discard(key)
            return REACTION
        return again


def reach(world: World, hub: Cluster, obj: Obj) -> Cluster:
    """By the Secret that `spec.kubeConfig` names, with a token that the other server takes."""
    namespace = obj["metadata"]["namespace"]
    ref: Obj = obj["spec"]["kubeConfig"]["secretRef"]
    secret = hub.get(SECRET, ref["name"], namespace)
    if secret is None:
        raise Unusable("secret", f"{namespace}/{ref['name']}")
    data = part(secret, "data")
    given = ref.get("key")
    found = next(
        (data[k] for k in ([given] if given else ["value", "value.yaml"]) if k in data), None
    )
    if found is None:
        raise Unusable("key", f"{namespace}/{ref['name']}")
    server, token = read_kubeconfig(base64.b64decode(found))
    cluster = _enter(world, server, token)
    user = f"flux {namespace}/{ref['name']}"
    world.truth.uses(f"kubeconfig/{cluster.name}", user, truth.digest(token))
    return cluster


def _enter(world: World, server: str, token: str) -> Cluster:
    host = server.partition("://")[2] or server
    name = next((one for one in world.clusters if world.address(one) == server), None)
    if name is None or ("cluster", name, "unreachable") in world.mishaps:
        raise Unusable("refused", host)
    cluster = world.clusters[name]
    if ("cluster", name, "frozen") in world.mishaps:
        raise Unusable("hangs", host)
    try:
        cluster.tokens.user(token)
    except BadToken:
        raise Unusable("unauthorized", host) from None
    return cluster


def read_kubeconfig(text: bytes) -> tuple[str, str]:
    """Server and token. What runs a program or names a file is ignored, and ends as no token."""
    if not text.strip():
        raise Unusable(
            "garbage",
            "invalid configuration: no configuration has been provided, try setting "
            "KUBERNETES_MASTER environment variable",
        )
    try:
        config: Any = plainyaml.load(text)
        context: Any = {one["name"]: one["context"] for one in config["contexts"]}
        current = context[config["current-context"]]
        clusters: Any = {one["name"]: one["cluster"] for one in config["clusters"]}
        users: Any = {one["name"]: one["user"] for one in config["users"]}
        return (
            str(clusters[current["cluster"]]["server"]),
            str(part(users, current["user"]).get("token", "")),
        )
    except (plainyaml.Error, KeyError, TypeError, IndexError):
        raise Unusable(
            "garbage",
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go "
            "value of type struct",
        ) from None


def _watched(secret: Obj) -> bool:
    return part(secret["metadata"], "labels").get(WATCH) == "Enabled"


def ready(obj: Obj | None) -> bool:
    """Ready True of the newest generation."""
    if obj is None:
        return False
    status = part(obj, "status")
    if status.get("observedGeneration") != obj["metadata"].get("generation"):
        return False
    return condition(obj, "Ready") == "True"


def digest(value: object) -> str:
    """Of JSON, the same for equal content."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
