"""
What keeps Flux from doing harm on fleetd's word: an emptied folder, a suspended object that is
deleted, a cluster that hangs.

Pure. An empty folder is Ready for Flux and prunes everything that was there before. So Flux may
delete what leaves a folder only after this very folder was applied and was not empty, and no
longer when more than half of what was there is gone. A cluster that takes connections and never
answers costs Flux a worker for 20 s at every attempt, and the others wait; so what is for it is
suspended while neither Flux nor fleetd gets an answer, and an annotation says why.
"""

from collections.abc import Mapping
from typing import Any

from fleetd.kube import facts
from topology.resource import Facts

COUNT = "fleet.c5c3.io/inventory"
"""Annotation of a Kustomization: how many objects there were when Flux was allowed to delete."""


PAUSED = "fleet.c5c3.io/suspended"
"""Annotation: fleetd suspended it, and why. What a person suspended has none and is left alone."""
_HANGS = ("TLS handshake timeout", "i/o timeout", "Client.Timeout exceeded")


def hangs(seen: Facts) -> bool:
    """Whether Flux's last attempt waited for an answer of the cluster in vain."""
    conditions: list[Facts] = seen.get("status", {}).get("conditions") or []
    ready = next((one for one in conditions if one["type"] == "Ready"), None)
    if ready is None or ready["status"] != "False":
        return False
    return any(words in str(ready.get("message", "")) for words in _HANGS)


def paused(seen: Facts) -> bool:
    """Whether it was fleetd that suspended it."""
    annotations: Mapping[str, str] = seen.get("metadata", {}).get("annotations", {})
    return PAUSED in annotations


def inventory(seen: Facts) -> int:
    status: Mapping[str, Any] = seen.get("status", {})
    held: Mapping[str, Any] = status.get("inventory") or {}
    return len(held.get("entries") or ())


def proven(body: Facts, seen: Facts) -> bool:
    """Whether the folder that `body` names was applied as it is now, and held something."""
    spec: Mapping[str, Any] = seen.get("spec", {})
    status: Mapping[str, Any] = seen.get("status", {})
    wanted: Mapping[str, Any] = body["spec"]
    same = all(spec.get(key) == wanted.get(key) for key in ("path", "sourceRef", "kubeConfig"))
    generation = seen.get("metadata", {}).get("generation")
    done = status.get("observedGeneration") == generation and not spec.get("suspend")
    return same and done and inventory(seen) > 0


def shrunk(seen: Facts) -> bool:
    """Whether more than half of what a folder held is gone from it."""
    annotations: Mapping[str, str] = seen.get("metadata", {}).get("annotations", {})
    before = annotations.get(COUNT, "")
    return before.isdecimal() and inventory(seen) * 2 < int(before)


def guarded(body: Facts, seen: Facts) -> dict[str, Any]:
    """The Kustomization as it should be now: with `prune` only where that is safe."""
    made = facts.copy(body)
    allowed = bool(seen.get("spec", {}).get("prune"))
    annotations: Mapping[str, str] = seen.get("metadata", {}).get("annotations", {})
    unchanged = seen.get("spec", {}).get("path") == body["spec"]["path"]
    if shrunk(seen) or not (proven(body, seen) or (allowed and unchanged)):
        made["spec"]["prune"] = False
    if made["spec"]["prune"]:
        count = annotations.get(COUNT) or str(inventory(seen))
        made["metadata"]["annotations"] = {COUNT: count}
    elif shrunk(seen):
        made["metadata"]["annotations"] = {COUNT: annotations[COUNT]}
    return made


def suspended(seen: Facts) -> bool:
    return bool(seen.get("spec", {}).get("suspend"))
