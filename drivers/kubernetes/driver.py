"""
The generic driver: writes the objects of a component to its cluster and judges by the catalogue.

The backing services of OpenStack have their manifests in `manifests`. Any other component brings
its own: `install: {by: apply}` and `parameters.manifest`, one object or a list of them, with the
catalogue's placeholders filled in. So a component of an operator needs no Python.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from drivers.kubernetes import manifests
from fleetd.objects import Manifest, ObjectDriver
from topology.resource import Facts, Resource


class KubernetesDriver(ObjectDriver):
    kind = "kubernetes"

    def check(self, want: Resource) -> Sequence[str]:
        if want.ref.kind in manifests.KINDS:
            install: Mapping[str, Any] = want.spec.get("install", {})
            found = [
                f"the catalogue gives {want.ref.kind} no install.{name}"
                for name in ("namespace", "name")
                if not install.get(name)
            ]
            if want.spec.get("size", "medium") not in manifests.SIZES:
                sizes = ", ".join(manifests.SIZES)
                found.append(f"there is no size {want.spec['size']}; known: {sizes}")
            return found
        given = own(want)
        if not given:
            return [
                f"{want.ref.kind} brings no objects: give it parameters.manifest in the catalogue"
            ]
        return [complaint for one in given for complaint in _complaints(want, one)]

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        if want.ref.kind in manifests.KINDS:
            bodies = manifests.KINDS[want.ref.kind](want)
        else:
            bodies = own(want)
        return [
            Manifest(
                backend=want.backend,
                body=body,
                why=f"write {body['kind']} {body['metadata']['name']} of {want.ref.kind}",
            )
            for body in bodies
        ]

    def wanted(self, want: Resource) -> int:
        """All objects of the watched kind that we write; the others are somebody else's."""
        watched: Mapping[str, Any] = want.spec.get("object", {})
        return sum(one.kind == watched.get("kind") for one in self.manifests(want))


def own(want: Resource) -> list[dict[str, Any]]:
    """The objects that the catalogue's entry brings itself."""
    given: Any = want.spec.get("parameters", {}).get("manifest")
    members: list[Any] = cast("list[Any]", given) if isinstance(given, list) else [given]
    return [cast("dict[str, Any]", one) for one in members if isinstance(one, dict) and one]


def _complaints(want: Resource, body: Facts) -> list[str]:
    found = [
        f"the manifest of {want.ref.kind} has no {name}"
        for name in ("apiVersion", "kind", "metadata")
        if not body.get(name)
    ]
    if not found and not body["metadata"].get("name"):
        found.append(f"the {body['kind']} of {want.ref.kind} has no metadata.name")
    if body.get("kind") == "Secret":
        found.append(f"{want.ref.kind} brings a Secret: nothing secret may be in the catalogue")
    return found
