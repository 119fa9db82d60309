"""
What helm-controller says and makes: messages, the objects of a release, when they are up. Pure.

The messages are those of real-flux, sections 3 to 5.
"""

from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers import fluxparts
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.fluxparts import Unusable
from fleetd.sim.controllers.workloads import DAEMONSET, DEPLOYMENT, PROGRAM
from fleetd.sim.controllers.workloads_look import part
from fleetd.sim.kube.cluster import GK, Cluster

GROUP = "helm.toolkit.fluxcd.io"
DEADLINE = "context deadline exceeded"


def workloads(chart: Chart) -> list[tuple[GK, str]]:
    return [
        *((DEPLOYMENT, name) for name in chart.deployments),
        *((DAEMONSET, name) for name in chart.daemonsets),
    ]


def unusable(cause: Unusable) -> tuple[str, str]:
    """Reason and message as helm-controller gives them."""
    last = "Could not determine release state: failed to retrieve last release from storage"
    match cause.why:
        case "secret":
            name = cause.detail.partition("/")[2]
            said = f"could not get KubeConfig secret '{cause.detail}': secrets \"{name}\" not found"
            return "RESTClientError", said
        case "key":
            missing = "does not contain a 'value' or 'value.yaml' key with data"
            return "RESTClientError", f"KubeConfig secret '{cause.detail}' {missing}"
        case "garbage":
            return "RESTClientError", f"failed to load KubeConfig from secret: {cause.detail}"
        case "token":
            return "RESTClientError", cause.detail
        case "unauthorized":
            return (
                "StateError",
                f"{last}: query: failed to query with labels: Unauthorized",
            )
        case "hangs":
            return "StateError", f"{last}: net/http: TLS handshake timeout"
        case _:
            return "StateError", f"{last}: dial tcp {cause.detail}: connect: connection refused"


def running(action: str, obj: Obj) -> str:
    limit = obj["spec"].get("timeout", "5m0s")
    return f"Running '{action}' action with timeout of {limit}"


def failure(action: str) -> str:
    return "InstallFailed" if action == "install" else "UpgradeFailed"


def release_name(obj: Obj) -> str:
    space = obj["spec"].get("targetNamespace")
    given = obj["spec"].get("releaseName")
    name = obj["metadata"]["name"]
    return str(given or (f"{space}-{name}" if space else name))


def release(obj: Obj, action: str) -> str:
    space = obj["spec"].get("targetNamespace") or obj["metadata"]["namespace"]
    chart = obj["spec"]["chart"]["spec"]["chart"]
    return f"Helm {action} failed for release {space}/{release_name(obj)} with chart {chart}"


def succeeded(obj: Obj, action: str, history: list[dict[str, Any]]) -> str:
    space = obj["spec"].get("targetNamespace") or obj["metadata"]["namespace"]
    newest = history[0] if history else {"version": 1, "chartName": "", "chartVersion": ""}
    verb = "install" if action == "none" else action
    release = f"{space}/{release_name(obj)}.v{newest['version']}"
    chart = f"{newest['chartName']}@{newest['chartVersion']}"
    return f"Helm {verb} succeeded for release {release} with chart {chart}"


def last(status: Obj) -> str:
    return str(status.get("lastAttemptedReleaseAction", ""))


def config(obj: Obj) -> str:
    return f"sha256:{fluxparts.digest(part(obj['spec'], 'values'))}"


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def workload(gk: GK, name: str, space: str, chart: str, obj: Obj) -> dict[str, Any]:
    labels = {
        PROGRAM: chart,
        "app.kubernetes.io/instance": release_name(obj),
        f"{GROUP}/name": obj["metadata"]["name"],
        f"{GROUP}/namespace": obj["metadata"]["namespace"],
    }
    values = part(obj["spec"], "values")
    tag = str(part(values, "image").get("tag", "")) or "1.0"
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": gk[1],
        "metadata": {"name": name, "namespace": space, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {**labels, "app": name}},
                "spec": {"containers": [{"name": name, "image": f"registry.example/{name}:{tag}"}]},
            },
        },
    }
    if gk == DEPLOYMENT:
        body["spec"]["replicas"] = 1
    return body


def up(target: Cluster, one: tuple[GK, str, str]) -> bool:
    """As Helm waits for it. A DaemonSet without hosts has nothing to wait for."""
    gk, namespace, name = one
    live = target.get(gk, name, namespace)
    if live is None:
        return False
    status = part(live, "status")
    if status.get("observedGeneration") != live["metadata"].get("generation"):
        return False
    if gk == DAEMONSET:
        return status.get("numberReady", 0) >= status.get("desiredNumberScheduled", 0)
    started = status.get("readyReplicas", 0) >= 1 and status.get("updatedReplicas", 0) >= 1
    return started and not status.get("unavailableReplicas")
