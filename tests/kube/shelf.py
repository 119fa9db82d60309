"""
A small API server in memory that does what a test tells it: one kind, objects, a history, watches.

It is a transport, so everything above the wire is real. It is no judge of what API servers do;
that is the simulated server's business.
"""

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec

from fleetd.kube import errors
from fleetd.kube.kinds import Kind
from fleetd.kube.transport import APPLY, Request, Response

GROUP = "toy.example"
BOX = Kind(GROUP, "v1", "Box", "boxes", namespaced=True)

Object = dict[str, Any]


def status(code: int, reason: str = "", message: str = "") -> Object:
    said = {"message": message or reason, "reason": reason, "code": code}
    return {"apiVersion": "v1", "kind": "Status", "status": "Failure", **said}


class Shelf:
    def __init__(self) -> None:
        self.api = "v1"
        self.version = 100
        self.oldest = 0
        """History before this version is forgotten."""
        self.objects: dict[tuple[str, str], Object] = {}
        self.history: list[tuple[int, Object]] = []
        self.uids = 0
        self.watches: list[asyncio.Queue[bytes | Exception | None]] = []
        self.served: Counter[str] = Counter()
        self.trouble: list[Exception] = []
        """Raised by the next requests and watches, one each."""
        self.frozen: tuple[int, list[Object]] | None = None
        """If set, lists are answered from here: a server that lags."""
        self.hangs = False
        self.mute = False
        """Watches open and then nothing is heard."""
        self.unserved = False
        self.closed = False
        self.writes: list[Request] = []
        self.shortens = True
        """Lists names alone for who asks for them."""
        self.swallows = 0
        """Objects that are missing in front of the next whole page."""
        self.refuses_exact = False
        """Gives no page of a moment that is over."""
        self.pages: list[str] = []
        """In which form they were given."""
        self.after_list: list[Object] = []
        """Written right after the next list was taken, before its answer arrives."""

    # What a test does to it.

    def put(self, name: str, namespace: str = "ns", **spec: Any) -> Object:
        """Create it or change it, as somebody else would."""
        old = self.objects.get((namespace, name))
        self.version += 1
        uid = old["metadata"]["uid"] if old else self._uid()
        meta = {"name": name, "namespace": namespace, "uid": uid}
        meta |= {"resourceVersion": str(self.version), "managedFields": [{"manager": "x"}]}
        obj = {"apiVersion": f"{GROUP}/{self.api}", "kind": "Box", "metadata": meta, "spec": spec}
        self.objects[namespace, name] = obj
        self._tell("MODIFIED" if old else "ADDED", obj)
        return obj

    def delete(self, name: str, namespace: str = "ns") -> Object:
        self.version += 1
        gone = self.objects.pop((namespace, name))
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        self._tell("DELETED", gone)
        return gone

    def bookmark(self) -> None:
        meta = {"resourceVersion": str(self.version)}
        self.say({"type": "BOOKMARK", "object": {"kind": "Box", "metadata": meta}})

    def say(self, event: Object | bytes) -> None:
        """A line to every watch, whether true or not."""
        line = event if isinstance(event, bytes) else msgspec.json.encode(event)
        for watch in self.watches:
            watch.put_nowait(line)

    def end_watches(self, cause: Exception | None = None) -> None:
        for watch in self.watches:
            watch.put_nowait(cause)

    def compact(self) -> None:
        """Forget the whole history."""
        self.oldest = self.version
        self.history.clear()

    def freeze(self) -> None:
        self.frozen = (self.version, copy.deepcopy(list(self.objects.values())))

    def _uid(self) -> str:
        self.uids += 1
        return f"uid-{self.uids}"

    def _tell(self, what: str, obj: Object) -> None:
        event = {"type": what, "object": copy.deepcopy(obj)}
        self.history.append((self.version, event))
        if not self.mute:
            self.say(event)

    # The transport.

    async def send(self, request: Request) -> Response:
        await self._obstacles()
        if request.writes:
            self.writes.append(request)
        answer = self._answer(request)
        if isinstance(answer, bytes):
            return Response(status=404, body=answer)
        answer = msgspec.json.encode(answer)
        code = msgspec.json.decode(answer).get("code", 200)
        return Response(status=code, body=answer, headers={})

    def lines(self, request: Request) -> AsyncIterator[list[bytes]]:
        return self._lines(request)

    async def close(self) -> None:
        self.closed = True
        self.end_watches(errors.Unreachable("closed"))

    async def _lines(self, request: Request) -> AsyncGenerator[list[bytes]]:
        self.served["watch"] += 1
        await self._obstacles()
        since = int(request.query.get("resourceVersion") or 0)
        if since < self.oldest:
            gone = status(410, "Expired", "too old resource version")
            yield [msgspec.json.encode({"type": "ERROR", "object": gone})]
            return
        if request.opened is not None:
            request.opened()
        heard: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        for version, event in self.history:
            if version > since and not self.mute:
                heard.put_nowait(msgspec.json.encode(event))
        self.watches.append(heard)
        try:
            while True:
                line = await heard.get()
                if isinstance(line, Exception):
                    raise line
                if line is None:
                    return
                yield [line]
        finally:
            self.watches.remove(heard)

    async def _obstacles(self) -> None:
        await asyncio.sleep(0.01)
        if self.closed:
            raise errors.Unreachable("closed")
        if self.hangs:
            await asyncio.sleep(86400)
        if self.trouble:
            raise self.trouble.pop(0)

    def _answer(self, request: Request) -> Object | bytes:
        path, root = request.path, f"/apis/{GROUP}/{self.api}"
        if path == "/apis":
            return {"groups": [_group(GROUP, self.api, "v1alpha1"), _group("other.example", "v2")]}
        if path == root:
            return {"resources": [] if self.unserved else _resources()}
        parts = path.removeprefix(root).strip("/").split("/")
        namespace = parts[1] if parts[0] == "namespaces" else ""
        rest = parts[2:] if namespace else parts
        if not path.startswith(root) or rest[0] != "boxes" or self.unserved:
            return b"404 page not found"
        if len(rest) == 1 and request.method == "GET":
            return self._list(request, namespace)
        return self._one(request, namespace, rest[1] if len(rest) > 1 else "")

    def _list(self, request: Request, namespace: str) -> Object:
        version, objects = self.frozen or (self.version, list(self.objects.values()))
        objects = [one for one in objects if namespace in ("", one["metadata"]["namespace"])]
        start, _, moment = request.query.get("continue", "").partition("@")
        if moment and int(moment) < self.oldest:
            return status(410, "Expired", "the continue token is too old")
        if self.refuses_exact and "resourceVersionMatch" in request.query:
            return status(410, "Expired", "that version is too old")
        limit = int(request.query.get("limit") or 500)
        first = int(start or 0)
        meta: Object = {"resourceVersion": str(version)}
        again = "resourceVersionMatch" in request.query  # a page of a list that is counted already
        self.served["probe" if limit == 1 else "list"] += not start and not again
        if first + limit < len(objects):
            meta["continue"] = f"{first + limit}@{version}"
        page = copy.deepcopy(objects[first : first + limit])
        for one in page:
            # As API servers do for the kinds that are built in.
            del one["apiVersion"], one["kind"]
        for later in self.after_list:
            self.put(**later)
        self.after_list = []
        in_short = "as=PartialObjectMetadataList" in request.accept and self.shortens
        if limit > 1:
            self.pages.append("short" if in_short else "whole")
        if in_short:
            short = [{"metadata": one["metadata"]} for one in page]
            return {"kind": "PartialObjectMetadataList", "metadata": meta, "items": short}
        page, self.swallows = page[self.swallows :], 0
        return {"kind": "BoxList", "metadata": meta, "items": page}

    def _one(self, request: Request, namespace: str, name: str) -> Object:
        old = self.objects.get((namespace, name))
        if request.method == "GET":
            return copy.deepcopy(old) if old else status(404, "NotFound", "no such box")
        body: Object = msgspec.json.decode(request.body or b"{}")
        if request.method == "DELETE":
            if old is None:
                return status(404, "NotFound", "no such box")
            wanted = body.get("preconditions", {}).get("uid", old["metadata"]["uid"])
            if wanted != old["metadata"]["uid"]:
                return status(409, "Conflict", "another uid")
            gone = self.delete(name, namespace)
            return {"kind": "Status", "details": {"uid": gone["metadata"]["uid"]}}
        if request.method == "PATCH" and request.content_type != APPLY and old is None:
            return status(404, "NotFound", "no such box")
        if request.method == "POST" and self.objects.get((namespace, body["metadata"]["name"])):
            return status(409, "AlreadyExists", "there is one")
        made = self.put(name or body["metadata"]["name"], namespace, **body.get("spec", {}))
        return copy.deepcopy(made)


def _group(name: str, *versions: str) -> Object:
    listed = [{"groupVersion": f"{name}/{one}", "version": one} for one in reversed(versions)]
    return {"name": name, "versions": listed, "preferredVersion": {"version": versions[0]}}


def _resources() -> list[Object]:
    box = {"kind": "Box", "namespaced": True}
    return [{"name": "boxes", **box}, {"name": "boxes/status", **box}]
