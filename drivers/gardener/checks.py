"""What a garden refuses of a name or a number, found in the spec before anything is planned."""

from collections.abc import Iterator

from topology.documents import base
from topology.resource import Facts, Resource

PROJECT_MAX = 10
TOGETHER_MAX = 21
WORKER_MAX = 15
STRATEGIES = ("AutoRollingUpdate", "AutoInPlaceUpdate", "ManualInPlaceUpdate")


def check(want: Resource) -> list[str]:
    match want.ref.kind:
        case "garden-project" | "credentials-binding" | "cloud-profile" | "seed":
            return list(_garden(want.spec.get("garden") or {}))
        case "cluster":
            return [*_garden(want.spec.get("garden") or {}), *_cluster(want.spec)]
        case _:
            return []


def _garden(garden: Facts) -> Iterator[str]:
    project = str(garden.get("project") or "")
    if not project:
        yield "it is not said in which project of the garden it lies"
    if len(project) > PROJECT_MAX:
        yield f"project {project} has more than {PROJECT_MAX} characters"
    if "--" in project:
        yield f"project {project} has two hyphens in a row"


def _cluster(spec: Facts) -> Iterator[str]:
    name, project = str(spec["name"]), str(spec.get("garden", {}).get("project") or "")
    if len(name) + len(project) > TOGETHER_MAX:
        yield f"{name} and project {project} have more than {TOGETHER_MAX} characters together"
    if not spec.get("kubernetes"):
        yield "it is not said which Kubernetes version it has"
    if spec.get("provider") != "ironcore":
        yield (
            f"Gardener makes no machines out of provider {spec.get('provider')}: "
            "adopt an existing cluster instead"
        )
    if not any(worker["maximum"] for worker in spec.get("workers") or ()):
        yield "it has no nodes"
    for worker in spec.get("workers") or ():
        yield from _worker(worker, spec)


def _worker(worker: Facts, spec: Facts) -> Iterator[str]:
    name = worker["name"]
    if len(name) > WORKER_MAX or "--" in name:
        yield f"worker {name} has more than {WORKER_MAX} characters or two hyphens in a row"
    if worker["minimum"] > worker["maximum"]:
        yield f"worker {name} has a minimum above its maximum"
    if not (worker.get("image") or spec.get("image")):
        yield f"it is not said which image worker {name} has"
    if not worker.get("machineType"):
        yield f"it is not said which machine type worker {name} has"
    if worker.get("updateStrategy") not in STRATEGIES:
        yield f"worker {name} has no update strategy that Gardener knows"
    if base.parse_duration(str(worker.get("drainTimeout", ""))) is None:
        yield f"worker {name} has no drain timeout"
