"""
A cluster that others made: it is looked at and never changed.

Its kubeconfig is the document's. Whether it answers is asked of the API server itself; a refusal
is an answer about the kubeconfig, silence is no answer at all.
"""

from collections.abc import Sequence
from typing import Any

from fleetd.kube import errors
from fleetd.objects import ObjectDriver
from topology.resource import Resource


class AdoptedDriver(ObjectDriver):
    kind = "adopted"

    def check(self, want: Resource) -> Sequence[str]:
        return () if want.spec.get("adopted", {}).get("access") else ("it has no access",)

    def polls(self, want: Resource) -> bool:
        del want
        return True

    async def _look(self, want: Resource) -> dict[str, Any]:
        access = want.spec["adopted"]["access"]
        self.tools.clusters.put(want.backend, await self.tools.secrets.read(access, want))
        try:
            await self.tools.clusters.client(want.backend).raw("/version")
        except (errors.Unauthorized, errors.Forbidden):
            return {"observed": {"adopted": True, "answers": False}}
        return {"observed": {"adopted": True, "answers": True}}
