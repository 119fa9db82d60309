"""
What kustomize-controller says and reads: messages, inventory entries, kstatus, cycles. Pure.

The messages are those of real-flux, section 3 and 4, because people and fleetd match on them.
"""

from collections.abc import Iterable
from typing import Any

from fleetd import plainyaml
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.fluxparts import Unusable
from fleetd.sim.controllers.workloads_look import members, part
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.refusal import Refused
from fleetd.sim.kube.values import gk_of


def unusable(cause: Unusable, first: str) -> str:
    """As kustomize-controller says it; each message names the first object."""
    match cause.why:
        case "secret":
            name = cause.detail.partition("/")[2]
            return (
                f"unable to read KubeConfig secret '{cause.detail}' error: "
                f'secrets "{name}" not found'
            )
        case "key":
            return (
                f"KubeConfig secret '{cause.detail}' does not contain a 'value' key with a "
                "kubeconfig"
            )
        case "garbage" | "token":
            return cause.detail
        case "unauthorized":
            return (
                f"{first} dry-run failed (Unauthorized): failed to get server groups: the server "
                "has asked for the client to provide credentials"
            )
        case "hangs":
            said = "failed to get server groups: net/http: TLS handshake timeout"
            return f"{first} dry-run failed: {said}"
        case _:
            host = cause.detail
            return (
                f'{first} dry-run failed: failed to get server groups: Get "https://{host}/api?'
                f'timeout=30s": dial tcp {host}: connect: connection refused'
            )


def refused(obj: dict[str, Any], cause: Refused) -> str:
    what = named(obj)
    if cause.status == 404 and "namespaces" in cause.message:
        return f"{what} not found: {cause.message}"
    if cause.status == 404:
        version = obj["apiVersion"]
        return f'{what} dry-run failed: no matches for kind "{obj["kind"]}" in version "{version}"'
    return f"{what} dry-run failed ({cause.reason}): {cause.message}"


def named(obj: Obj) -> str:
    metadata = obj["metadata"]
    where = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj['kind']}/{where}{metadata['name']}"


def entry(obj: dict[str, Any]) -> dict[str, str]:
    group, kind = gk_of(obj)
    metadata = obj["metadata"]
    version = str(obj["apiVersion"]).rpartition("/")[2]
    named = f"{metadata.get('namespace', '')}_{metadata['name']}_{group}_{kind}"
    return {"id": named, "v": version}


def patched(obj: dict[str, Any], patches: Iterable[Obj]) -> dict[str, Any]:
    """A copy with what patches add to metadata; other patches are not imitated."""
    made = {**obj, "metadata": dict(obj["metadata"])}
    for patch in patches:
        if part(patch, "target").get("kind") in (None, obj["kind"]):
            given: Any = plainyaml.load(patch["patch"])
            for name in ("annotations", "labels"):
                more = part(part(given, "metadata"), name)
                if more:
                    made["metadata"][name] = {**made["metadata"].get(name, {}), **more}
    return made


def revision(source: Obj | None) -> str:
    artifact = part(part(source, "status"), "artifact")
    return str(artifact.get("revision", ""))


def healthy(target: Cluster, obj: dict[str, Any]) -> bool:
    """kstatus, for the kinds that are more than data."""
    if obj["kind"] not in ("Deployment", "StatefulSet", "DaemonSet"):
        return True
    live = target.get(gk_of(obj), obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
    if live is None:
        return False
    status = part(live, "status")
    if status.get("observedGeneration") != live["metadata"].get("generation"):
        return False
    if obj["kind"] == "Deployment":
        wanted = int(live["spec"].get("replicas", 1))
        conditions = members(status, "conditions")
        done = any(one.get("reason") == "NewReplicaSetAvailable" for one in conditions)
        return done and status.get("availableReplicas", 0) >= wanted
    if obj["kind"] == "StatefulSet":
        return status.get("readyReplicas", 0) >= int(live["spec"].get("replicas", 1))
    return status.get("numberReady", 0) >= status.get("desiredNumberScheduled", 0)


def stalled(target: Cluster, obj: dict[str, Any]) -> bool:
    live = target.get(gk_of(obj), obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
    conditions = members(part(live, "status"), "conditions")
    return any(one.get("reason") == "ProgressDeadlineExceeded" for one in conditions)


def circular(found: list[dict[str, Any]]) -> bool:
    """Whether some of them wait for each other."""
    waits = {
        one["metadata"]["name"]: [other["name"] for other in members(one["spec"], "dependsOn")]
        for one in found
    }
    while waits:
        free = [name for name, others in waits.items() if not any(o in waits for o in others)]
        if not free:
            return True
        for name in free:
            del waits[name]
    return False
