"""A cluster for tests from inside, with a clock that a test moves by hand."""

import hashlib
import heapq
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from fleetd.kube.transport import JSON, Request, Response
from fleetd.sim.faces.handler import Stream
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.definitions import Definition

Obj = dict[str, Any]
START = datetime(2030, 1, 1, tzinfo=UTC)
MAP = ("", "ConfigMap")
SHOOT = ("garden.example", "Shoot")


class Hands:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self._now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def now(self) -> datetime:
        return START + timedelta(seconds=self._now)

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (self._now + seconds, self._count, call))

    def pass_(self, seconds: float) -> None:
        """Time goes on; what is due happens."""
        end = self._now + seconds
        while self._due and self._due[0][0] <= end:
            self._now, _, call = heapq.heappop(self._due)
            call()
        self._now = end


def uid_of(text: str) -> str:
    return str(uuid.UUID(bytes=hashlib.blake2b(text.encode(), digest_size=16).digest()))


class Stage:
    def __init__(self, **options: Any) -> None:
        self.time = Hands()
        self.cluster = Cluster("stage", self.time, uid_of=uid_of, **options)
        self.headers: Mapping[str, str] = self.as_user(self.cluster.admin_token())
        self.cluster.serve(
            Definition(
                group=SHOOT[0],
                kind=SHOOT[1],
                plural="shoots",
                versions=("v1beta1", "v1alpha1"),
                lists={"spec.workers": ("name",), "status.conditions": ("type",)},
                subresources=("adminkubeconfig",),
                immutable=("spec.region",),
            )
        )

    def as_user(self, token: str) -> dict[str, str]:
        return {"authorization": f"Bearer {token}"}

    def open(
        self, method: str, path: str, body: object = None, kind: str = JSON, **query: str
    ) -> Response | Stream:
        raw = b"" if body is None else msgspec.json.encode(body)
        request = Request(method=method, path=path, query=query, body=raw, content_type=kind)
        return self.cluster.handle(request, self.headers)

    def ask(
        self, method: str, path: str, body: object = None, kind: str = JSON, **query: str
    ) -> tuple[int, Obj]:
        answer = self.open(method, path, body, kind, **query)
        assert isinstance(answer, Response)
        return answer.status, msgspec.json.decode(answer.body)

    def watch(self, path: str, **query: str) -> Stream:
        stream = self.open("GET", path, watch="1", **query)
        assert isinstance(stream, Stream)
        return stream


def config_map(name: str = "a", data: Obj | None = None, **metadata: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "data": data or {},
    }


def shoot(name: str = "a", spec: Obj | None = None, **metadata: Any) -> Obj:
    return {
        "apiVersion": f"{SHOOT[0]}/v1beta1",
        "kind": SHOOT[1],
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": spec or {"region": "here"},
    }


def lines(stream: Stream) -> list[Obj]:
    return [msgspec.json.decode(line) for line in stream.take()]
