"""
The ControlPlane and the services the c5c3-operator makes from it.

The ControlPlane is written; Keystone, Glance, Placement, Horizon and Barbican are only looked at,
because the operator sets back what anybody else writes on them. The one rule: Ready of the
ControlPlane proves no upgrade, so each service is held to the release of the document
(`observed.release`), by its own installedRelease.
"""

import re
from collections.abc import Sequence
from typing import Any

from drivers.openstack import manifests
from fleetd.objects import Manifest, ObjectDriver
from topology.resource import Facts, Resource

_RELEASE = re.compile(r"\d{4}\.[12]")


class ControlPlaneDriver(ObjectDriver):
    kind = "controlplane"

    def check(self, want: Resource) -> Sequence[str]:
        wrong: list[str] = []
        release = str(want.spec.get("release", ""))
        if not _RELEASE.fullmatch(release):
            wrong.append(f"{release!r} is no OpenStack release; write one such as 2025.2")
        if "keystone" not in want.spec.get("services", ()):
            wrong.append("a cloud without keystone cannot be made; add it to the services")
        if want.spec.get("size") not in manifests.REPLICAS:
            wrong.append("the size of a cloud is small, medium or large")
        return wrong

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        return (manifests.control_plane(want),) if want.ref.kind == "controlplane" else ()

    async def more(self, want: Resource, seen: dict[str, Any]) -> Facts:
        if want.ref.kind == "controlplane":
            return {}
        return {"release": want.spec["release"]} if seen.get("metadata") else {}
