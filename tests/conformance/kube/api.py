"""
A client for judging API servers: it sends what it is told and hides nothing of the answer.

It knows the transport and nothing of what is behind it. Every test gets a namespace of its own,
and names that follow from it, so that the same claims can be put to a real server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from fleetd.kube.transport import APPLY, JSON, MERGE, Request, Transport

Obj = dict[str, Any]

CORE = "/api/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
POLL = 0.01


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def json(self) -> Obj:
        return msgspec.json.decode(self.body)

    @property
    def reason(self) -> str:
        return self.json.get("reason", "")

    @property
    def message(self) -> str:
        return self.json.get("message", "")

    @property
    def meta(self) -> Obj:
        return self.json["metadata"]

    @property
    def version(self) -> str:
        return self.meta["resourceVersion"]


class Api:
    def __init__(
        self, transport: Transport, namespace: str, login: Callable[[str], Transport]
    ) -> None:
        self.transport = transport
        self.namespace = namespace
        self.login = login
        """A transport to the same server for the holder of a token."""

    def as_user(self, token: str) -> "Api":
        return Api(self.login(token), self.namespace, self.login)

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        kind: str = JSON,
        accept: str = JSON,
        **query: str,
    ) -> Answer:
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        request = Request(
            method=method,
            path=path,
            query=query,
            body=raw if body is not None else b"",
            content_type=kind,
            accept=accept,
        )
        response = await self.transport.send(request)
        return Answer(response.status, response.body, response.headers)

    async def get(self, path: str, **query: str) -> Answer:
        return await self.send("GET", path, **query)

    async def post(self, path: str, body: object, **query: str) -> Answer:
        return await self.send("POST", path, body, **query)

    async def put(self, path: str, body: object, **query: str) -> Answer:
        return await self.send("PUT", path, body, **query)

    async def merge(self, path: str, body: object, **query: str) -> Answer:
        return await self.send("PATCH", path, body, kind=MERGE, **query)

    async def apply(self, path: str, body: object, manager: str, **query: str) -> Answer:
        return await self.send("PATCH", path, body, kind=APPLY, fieldManager=manager, **query)

    async def delete(self, path: str, body: object = None, **query: str) -> Answer:
        return await self.send("DELETE", path, body, **query)

    # Places in the test's own namespace

    def maps(self, name: str = "", namespace: str = "") -> str:
        return self.place("configmaps", name, namespace)

    def place(self, plural: str, name: str = "", namespace: str = "", base: str = CORE) -> str:
        path = f"{base}/namespaces/{namespace or self.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    async def config(self, name: str, data: Obj | None = None, **metadata: Any) -> Answer:
        """Creates a ConfigMap."""
        return await self.post(self.maps(), config_map(name, data, **metadata))

    def watch(self, path: str, **query: str) -> "Watching":
        return Watching(self.transport, path, query)


def config_map(name: str, data: Obj | None = None, **metadata: Any) -> Obj:
    made: Obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
    }
    if data is not None:
        made["data"] = data
    return made


class Watching:
    """An open watch. `async with` closes it, whatever happens."""

    def __init__(self, transport: Transport, path: str, query: Mapping[str, str]) -> None:
        request = Request(
            method="GET",
            path=path,
            query={"watch": "1", "timeoutSeconds": "600", **query},
        )
        self._lines: AsyncIterator[list[bytes]] = transport.lines(request)
        self._here: list[bytes] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_ignored: object) -> None:
        await self._lines.aclose()  # type: ignore[attr-defined]

    async def next(self, within: float = 5.0) -> Obj:
        """The next event."""
        async with asyncio.timeout(within):
            if not self._here:
                self._here = await anext(self._lines)
            return msgspec.json.decode(self._here.pop(0))

    async def take(self, count: int) -> list[Obj]:
        return [await self.next() for _ in range(count)]

    async def rest(self, within: float = 15.0) -> list[Obj]:
        """Everything until the server ends it."""
        async with asyncio.timeout(within):
            lines = self._here + [line async for some in self._lines for line in some]
            return [msgspec.json.decode(line) for line in lines]


def said(events: list[Obj]) -> list[tuple[str, str]]:
    """Type and name of each event."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def eventually(
    look: Callable[[], Awaitable[Answer]], status: int, within: float = 20.0
) -> Answer:
    """Looks until the answer has this status; the last answer if it never does."""
    return await until(look, lambda answer: answer.status == status, within)


async def until(
    look: Callable[[], Awaitable[Answer]], good: Callable[[Answer], bool], within: float = 20.0
) -> Answer:
    answer = await look()
    try:
        async with asyncio.timeout(within):
            while not good(answer):
                await asyncio.sleep(POLL)
                answer = await look()
    except TimeoutError:
        pass
    return answer


# A kind of our own


@dataclass(frozen=True, slots=True)
class Kind:
    """A custom resource that a test may do with as it likes."""

    group: str
    plural: str
    kind: str

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def base(self) -> str:
        return f"/apis/{self.group}/v1"

    def place(self, api: Api, name: str = "", sub: str = "") -> str:
        path = api.place(self.plural, name, base=self.base)
        return f"{path}/{sub}" if sub else path

    def make(self, name: str, spec: Obj | None = None, **metadata: Any) -> Obj:
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": self.kind,
            "metadata": {"name": name, **metadata},
            "spec": spec if spec is not None else {"size": 1},
        }

    def definition(self) -> Obj:
        schema = _schema()
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                    "shortNames": [self.plural[:3]],
                },
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                        "subresources": {"status": {}},
                        "additionalPrinterColumns": [
                            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
                        ],
                    }
                ],
            },
        }


def _schema() -> Obj:
    """One of every kind of list, and a part where everything is allowed."""
    free: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    named: Obj = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
    }
    condition: Obj = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
    }
    spec: Obj = {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "colour": {"type": "string"},
            "free": free,
            "pools": {
                "type": "array",
                "items": named,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
            },
            "steps": {"type": "array", "items": {"type": "string"}},
        },
    }
    status: Obj = {
        "type": "object",
        "properties": {
            "phase": {"type": "string"},
            "conditions": {
                "type": "array",
                "items": condition,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }
    return {"type": "object", "properties": {"spec": spec, "status": status}}


def established(answer: Answer) -> bool:
    status: Obj = answer.json.get("status") or {}
    conditions: list[Obj] = status.get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


async def serve(api: Api, kind: Kind) -> None:
    """Has the kind served, and waits until it is."""
    await api.post(CRDS, kind.definition())
    await until(lambda: api.get(f"{CRDS}/{kind.name}"), established)
    await eventually(lambda: api.get(kind.place(api)), 200)
