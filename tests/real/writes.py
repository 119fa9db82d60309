"""
All that fleetd writes to Kubernetes while a region comes up, recorded in the simulated world.

The drivers are the real ones and so are the requests: another server can be asked what it thinks of
them. It judges nothing itself.
"""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from fleetd.kube.transport import APPLY, JSON, Request, Response
from fleetd.sim import loop
from fleetd.sim.faces.weather import Fate
from fleetd.sim.kube.values import Obj
from fleetd.sim.ledger import changes
from tests.twin.stage import Power, PoweredClimate, Region

_SERVERS_OWN = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


@dataclass(frozen=True)
class Write:
    backend: str
    request: Request
    result: dict[str, Any]
    """The object as the simulator had it afterwards."""

    @property
    def where(self) -> str:
        return f"{self.backend}: {self.request.path}"

    @property
    def alone(self) -> bool:
        """Whether it needs nothing to be there: it applies or creates."""
        return self.request.content_type == APPLY or self.request.method == "POST"

    @property
    def namespace(self) -> str:
        """In which it is; empty if in none."""
        parts = self.request.path.split("/")
        at = parts.index("namespaces") if "namespaces" in parts else len(parts)
        return parts[at + 1] if len(parts) > at + 2 else ""

    def tried(self) -> Request:
        """The same, but nothing is kept, and a field that the server does not know is an error.
        Neither who owns what is the question here, nor which object of that name it is."""
        forced = {"force": "true"} if self.request.content_type == APPLY else {}
        query = {**self.request.query, **forced, "dryRun": "All", "fieldValidation": "Strict"}
        body = json.loads(self.request.body)
        if not self.alone:
            body = cleaned(body)
        return replace(self.request, query=query, body=json.dumps(body).encode())

    def beforehand(self) -> Request:
        """Creates the object that this changes."""
        made = cleaned(self.result)
        path = self.request.path.rpartition("/")[0]
        return Request(method="POST", path=path, body=json.dumps(made).encode(), content_type=JSON)


def cleaned(obj: Obj) -> dict[str, Any]:
    """Without what only a server writes."""
    metadata: Obj = obj.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in _SERVERS_OWN}
    return {**obj, "metadata": kept}


@dataclass(frozen=True)
class Story:
    writes: list[Write]
    profiles: list[dict[str, Any]]
    """The CloudProfiles that stood in the gardens before fleetd came."""


class _Recorder(PoweredClimate):
    def __init__(self, region: Region) -> None:
        super().__init__(region.world, region.ledger, Power())
        self.writes: list[Write] = []

    def after(self, backend: str, request: Request, response: Response) -> Fate:
        if changes(request.method, request.path) and response.status < 300 and request.body:
            self.writes.append(Write(backend, request, json.loads(response.body)))
        return super().after(backend, request, response)


@lru_cache
def story(example: str) -> Story:
    """A bring-up from nothing to Ready; deterministic, some seconds."""

    async def told() -> Story:
        region = Region.of(example)
        recorder = region.climate = _Recorder(region)
        profiles = [
            cleaned(obj)
            for name, cluster in sorted(region.world.clusters.items())
            if name.startswith("garden-")
            for obj in cluster.list(("core.gardener.cloud", "CloudProfile"))
        ]
        assert await region.live(Power(), until=lambda twin: twin.quiet())
        return Story(recorder.writes, profiles)

    return loop.run(told())
