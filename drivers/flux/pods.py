"""Whose pods and Deployments are, and why they do not come up, as they tell it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from drivers.flux import manifests
from fleetd.kube import facts
from topology.resource import Facts

_STUCK = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
    }
)


def owners(pod: Facts) -> list[Facts]:
    return pod["metadata"].get("ownerReferences") or []


def stuck(pod: Facts) -> str:
    """Why it cannot start, in Kubernetes' word; empty if it can."""
    status: Mapping[str, Any] = pod.get("status") or {}
    containers: list[Facts] = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    reasons = (_waits_for(one) for one in containers)
    return next((reason for reason in reasons if reason in _STUCK), "")


def release_of(deployment: Facts) -> tuple[str, str]:
    labels = facts.part(deployment, "metadata", "labels")
    name, namespace = (labels.get(f"{manifests.HELM}/{key}") for key in ("name", "namespace"))
    return str(name), str(namespace)


def stalls(deployment: Facts) -> bool:
    """Its rollout was given up, by Kubernetes' own deadline."""
    status: Mapping[str, Any] = deployment.get("status") or {}
    conditions: Sequence[Facts] = status.get("conditions") or ()
    return any(one.get("reason") == "ProgressDeadlineExceeded" for one in conditions)


def up(workload: Facts) -> bool:
    """A Deployment or DaemonSet: whether all of its pods are the newest and ready."""
    status: Mapping[str, Any] = workload.get("status") or {}
    if status.get("observedGeneration") != workload["metadata"].get("generation"):
        return False
    if "desiredNumberScheduled" in status:
        wanted, new = status["desiredNumberScheduled"], status.get("updatedNumberScheduled", 0)
        return min(status.get("numberReady", 0), new) >= wanted
    wanted, new = workload["spec"].get("replicas", 1), status.get("updatedReplicas", 0)
    enough = min(status.get("readyReplicas", 0), new) >= wanted
    return enough and not status.get("unavailableReplicas")


def _waits_for(container: Facts) -> str:
    state: Mapping[str, Any] = container.get("state") or {}
    waiting: Mapping[str, Any] = state.get("waiting") or {}
    return str(waiting.get("reason", ""))
