"""
gardener-controller-manager, as far as profiles of projects go: a NamespacedCloudProfile is put
together with its parent, a few seconds after either was written.

It adds machine images and types and overrides when versions end; limits and volumes are left out.
"""

from collections.abc import Iterable
from typing import Any

from fleetd.sim.controllers.base import Controller, Key, Obj, key_of
from fleetd.sim.controllers.gardenadmission import OWN_PROFILE, PROFILE
from fleetd.sim.controllers.metal_parts import items_of, part
from fleetd.sim.kube.cluster import Change
from fleetd.sim.kube.store import DELETED


class ProfileController(Controller):
    name = "namespaced-cloud-profiles"
    watches = (OWN_PROFILE, PROFILE)

    def keys(self, change: Change) -> Iterable[Key]:
        if change.type == DELETED:
            return
        for own in self.cluster.list(OWN_PROFILE):
            mine = change.gk == OWN_PROFILE and own["metadata"] == change.object["metadata"]
            parent = part(own, "spec.parent").get("name") == change.object["metadata"]["name"]
            if mine or (change.gk == PROFILE and parent):
                yield key_of(OWN_PROFILE, own)

    def reconcile(self, key: Key) -> float | None:
        own = self.get(key)
        if own is None:
            return None
        parent = self.cluster.get(PROFILE, str(part(own, "spec.parent").get("name")))
        if parent is None:
            return None
        made = _merged(parent["spec"], own["spec"])
        if part(own, "status.cloudProfileSpec") != made:
            self.status(
                key,
                {"cloudProfileSpec": made, "observedGeneration": own["metadata"]["generation"]},
            )
        return None


def _merged(parent: Obj, own: Obj) -> dict[str, Any]:
    made: dict[str, Any] = {**parent}
    versions = {one["version"]: one for one in items_of(own, "kubernetes.versions")}
    made["kubernetes"] = {
        "versions": [
            {**one, **versions.get(one["version"], {})}
            for one in items_of(parent, "kubernetes.versions")
        ]
    }
    for field in ("machineTypes", "machineImages"):
        names = {one["name"] for one in items_of(own, field)}
        kept = [one for one in items_of(parent, field) if one["name"] not in names]
        made[field] = [*kept, *items_of(own, field)]
    return made
