"""
A region folded to what a person draws: clusters, pools and clouds, each with what it consists of.

A thing belongs to the document it was compiled from, so a picture has as many boxes as a region
has documents, whatever it holds. An arrow between two boxes stands for all needs between their
parts. How documents hang together is worked out once per topology (`kept`); only counting is done
again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fleetd.surface import answers, shapes
from fleetd.surface.panel import Panel
from topology.resource import Ref, Resource, Topology


class Box(NamedTuple):
    """A document and its parts."""

    ref: Ref
    parts: tuple[Ref, ...]
    zones: tuple[str, ...]


class Arrow(NamedTuple):
    source: Ref
    target: Ref
    direct: bool
    """The document itself needs the other; otherwise only parts of it do."""


class Sketch(NamedTuple):
    """What does not change while the documents stay."""

    digest: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def draw(
    panel: Panel, region: str, drawn: Sketch, said: Mapping[Ref, answers.Said]
) -> answers.Picture:
    """The region as it is now."""
    topology = panel.topology()
    return {
        "region": region,
        "digest": topology.digest,
        "now": shapes.moment(panel.now()),
        "boxes": [_box(panel, topology.resources[one.ref], one, said) for one in drawn.boxes],
        "arrows": [
            {"source": str(one.source), "target": str(one.target), "direct": one.direct}
            for one in drawn.arrows
        ],
    }


def _box(
    panel: Panel, document: Resource, box: Box, said: Mapping[Ref, answers.Said]
) -> answers.Box:
    counts = Counter(shapes.doing(panel.ready(ref), said.get(ref)) for ref in box.parts)
    spec, planned, judged = document.spec, said.get(box.ref), panel.ready(box.ref)
    return {
        "id": str(box.ref),
        "kind": box.ref.kind,
        "name": box.ref.name,
        "role": spec.get("role"),
        "version": spec.get("kubernetes") or spec.get("release") or spec.get("class"),
        "zones": list(box.zones),
        "ready": shapes.ready(judged),
        "state": shapes.doing(judged, planned),
        "plan": planned,
        "total": len(box.parts),
        "states": {name: counts[name] for name in sorted(counts)},
    }


def sketch(topology: Topology, region: str) -> Sketch:
    resources = topology.resources
    parts: dict[Ref, list[Ref]] = {}
    arrows: dict[tuple[Ref, Ref], bool] = {}
    for ref in topology.regions.get(region, ()):
        owner = _owner(topology, ref)
        parts.setdefault(owner, []).append(ref)
        for need in resources[ref].needs:
            other = _owner(topology, need)
            if other != owner and other in resources and resources[other].region == region:
                direct = ref == owner and need == other
                arrows[owner, other] = arrows.get((owner, other), False) or direct
    boxes = [
        Box(ref, tuple(found), _zones(resources[ref], (resources[part] for part in found)))
        for ref, found in sorted(parts.items())
    ]
    drawn = [Arrow(*ends, direct) for ends, direct in sorted(arrows.items())]
    return Sketch(topology.digest, tuple(boxes), tuple(drawn))


def _owner(topology: Topology, ref: Ref) -> Ref:
    resource = topology.resources.get(ref)
    owner = resource.owner if resource is not None else None
    return owner if owner is not None and owner in topology.resources else ref


def _zones(document: Resource, parts: Iterable[Resource]) -> tuple[str, ...]:
    """Where its workers are, or its servers; nothing of what is everywhere."""
    spec = document.spec
    if document.ref.kind == "cluster":
        workers: Iterable[Mapping[str, Any]] = spec.get("workers") or ()
        said: Iterable[str] = spec.get("zones") or (
            zone for worker in workers for zone in worker.get("zones") or ()
        )
        return tuple(sorted(set(said)))
    levels = (domain.partition(":") for part in parts for domain in part.domains)
    return tuple(sorted({name.rpartition("/")[2] for level, _, name in levels if level == "zone"}))
