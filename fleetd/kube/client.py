"""
A client of one API server: objects in, objects out, as plain dicts; many of them as `Slim`.

It neither retries nor waits nor remembers objects; a read goes to the server and is its newest
word. Whoever keeps a cache hears of what was written here through `Listener`, so that nobody
reads an answer that is older than what he did himself.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec

from fleetd.kube import errors, pages, slim, transport
from fleetd.kube.kinds import Discovery, Kind
from fleetd.kube.pages import Listing
from fleetd.kube.room import MIB, MOST, Part, Room
from fleetd.kube.slim import Change, Key, Object, Slim
from fleetd.kube.transport import Request, Response, Transport

MANAGER = "fleetd"
PAGE = 500
"""Objects. 500 of 3 KiB are 1.5 MiB and some milliseconds of skimming."""
PAGES = 20_000
"""Of one list. A million objects, and a server that gives fifty at a time."""
BREATH = 256
"""Changes that are given in one go, some milliseconds; then others may run."""
PIECE = 500
"""Objects that are skimmed in one go; then others run. A server may send more than a page."""


class Listener(Protocol):
    """Hears what the server said about an object it had just written or deleted."""

    def wrote(self, kind: Kind, obj: Object, told: Slim | None = None) -> None:
        """`told`: the same, as it is kept."""
        ...

    def deleted(self, kind: Kind, name: str, namespace: str, uid: str) -> None: ...


_OBJECT = msgspec.json.Decoder(Object)


class KubeClient:
    def __init__(
        self,
        transport: Transport,
        *,
        manager: str = MANAGER,
        listener: Listener | None = None,
    ) -> None:
        self._transport = transport
        self._manager = manager
        self._listener = listener
        self._discovery = Discovery(transport)

    async def find(self, group: str, kind: str) -> Kind:
        """Raises `errors.NotServed` if the server does not serve it (yet)."""
        return await self._discovery.find(group, kind)

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """None: there is no such object. A server that does not know the kind is an error."""
        try:
            response = await self._ask(Request(method="GET", path=kind.path(name, namespace)))
        except errors.NotFound as missing:
            if self._no_such_object(missing):
                return None
            raise
        return _named(response)

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
        *,
        managed: bool = False,
        room: Room | None = None,
    ) -> Listing:
        """All of them, at one moment. Takes several requests if there are more than `limit`.
        `managed`: with managedFields. `room`: of this server; raises `TooMuch` if it is full."""
        query = _given(labelSelector=labels, fieldSelector=fields, limit=str(limit))
        part = (room or Room(MOST * MIB)).part()
        try:
            return await self._pages(kind, namespace, query, part, managed=managed)
        except errors.Gone:
            # The moment of the first page is out of the server's memory: take a newer one.
            return await self._pages(kind, namespace, query, part, managed=managed)
        finally:
            part.leave()

    async def _pages(
        self, kind: Kind, namespace: str, query: dict[str, str], part: Part, *, managed: bool
    ) -> Listing:
        items: list[Slim] = []
        path = kind.path(namespace=namespace)
        size = 0
        for _ in range(PAGES):
            response = await self._kind_ask(Request(method="GET", path=path, query=query))
            size += len(response.body)
            part.keep(size)
            page = pages.page(response, path)
            found = page.items or []
            for start in range(0, len(found), PIECE):
                if start:
                    await asyncio.sleep(0)
                items += pages.slims(found[start : start + PIECE], kind, path, managed=managed)
            if not page.metadata.more:
                return Listing(items, page.metadata.version)
            if page.metadata.more == query.get("continue"):
                break  # the same place again
            query = {**query, "continue": page.metadata.more}
        raise errors.not_an_api_server(f"{path} is a list that never ends")

    async def list_again(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        known: Mapping[Key, Slim],
        managed: bool = False,
        room: Room | None = None,
    ) -> Listing:
        """All of them, for who has had them: names and versions first, and in whole only the pages
        on which something is not as `known`. What is as it was comes as the same `Slim`."""
        part = (room or Room(MOST * MIB)).part()
        try:
            found = await self._pages_again(kind, namespace, known, part, managed=managed)
        except errors.KubeError as cause:
            if cause.status not in pages.UNABLE:
                raise
            found = None
        finally:
            part.leave()
        return found or await self.list(kind, namespace, managed=managed, room=room)

    async def _pages_again(
        self,
        kind: Kind,
        namespace: str,
        known: Mapping[Key, Slim],
        part: Part,
        *,
        managed: bool,
    ) -> Listing | None:
        """None: what came in whole is not what had come in short."""
        items: list[Slim] = []
        path = kind.path(namespace=namespace)
        query = {"limit": str(PAGE)}
        size = same = changed = 0
        for _ in range(PAGES):
            # Where most has changed, to ask in short as well would only cost more.
            accept = pages.IN_SHORT if changed <= same else transport.JSON
            request = Request(method="GET", path=path, query=query, accept=accept)
            response = await self._kind_ask(request)
            page = pages.short(response, path)
            found = pages.as_known(page, known)
            if found is None and page.kind == pages.SHORT_KIND:
                response = await self._kind_ask(
                    Request(method="GET", path=path, query=pages.at(query, page))
                )
            if found is None:
                size += len(response.body)
                part.keep(size)
                raw = pages.page(response, path).items or []
                found = pages.slims(raw, kind, path, managed=managed)
                if not pages.the_same(page, found):
                    return None
                changed += 1
            else:
                same += 1
            items += found
            if not page.metadata.more:
                return Listing(items, page.metadata.version)
            if page.metadata.more == query.get("continue"):
                break  # the same place again
            query = {**query, "continue": page.metadata.more}
        raise errors.not_an_api_server(f"{path} is a list that never ends")

    async def version(self, kind: Kind, namespace: str = "") -> str:
        """Where the server stands now. Costs one object, however many there are."""
        path = kind.path(namespace=namespace)
        response = await self._kind_ask(Request(method="GET", path=path, query={"limit": "1"}))
        return pages.page(response, path).metadata.version

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        version: str = "",
        labels: str = "",
        seconds: int = 300,
        *,
        managed: bool = False,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[Sequence[Change]]:
        """What changes after `version`, as much at once as came, until the server ends it, after
        `seconds` at the latest. `managed`: with managedFields. `opened` is called when the server
        has taken it. Close it with `aclose` when you stop reading early."""
        query = _given(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=version,
            labelSelector=labels,
            timeoutSeconds=str(seconds),
        )
        path = kind.path(namespace=namespace)
        request = Request(method="GET", path=path, query=query, opened=opened)
        lines = cast("AsyncGenerator[list[bytes]]", self._transport.lines(request))
        async with contextlib.aclosing(lines):
            try:
                async for some in lines:
                    for start in range(0, len(some), BREATH):
                        changes, failed = _changes(some[start : start + BREATH], managed=managed)
                        if changes:
                            yield changes
                        if failed is not None:
                            raise failed
            except errors.NotFound as missing:
                self._no_such_object(missing)
                raise

    async def create(
        self, kind: Kind, body: Mapping[str, Any], namespace: str = "", *, dry_run: bool = False
    ) -> Object:
        """The namespace is the argument's, or else that of the body."""
        meta = _meta(body)
        request = Request(
            method="POST",
            path=kind.path(namespace=namespace or meta.get("namespace", "")),
            query=self._writing(dry_run=dry_run),
            body=_encoded(_complete(kind, body)),
        )
        return await self._write(kind, request)

    async def apply(
        self,
        kind: Kind,
        body: Mapping[str, Any],
        *,
        force: bool = False,
        dry_run: bool = False,
        subresource: str = "",
    ) -> Object:
        """Server-side apply: the body says what we own, everything else stays. `Conflict` if a
        field has another owner, unless `force`."""
        meta = _meta(body)
        query = self._writing(dry_run=dry_run)
        if force:
            query["force"] = "true"
        request = Request(
            method="PATCH",
            path=kind.path(_name(meta), meta.get("namespace", ""), subresource),
            query=query,
            body=_encoded(_complete(kind, body)),
            content_type=transport.APPLY,
        )
        return await self._write(kind, request)

    async def patch(
        self,
        kind: Kind,
        name: str,
        change: Mapping[str, Any] | Sequence[Any],
        namespace: str = "",
        how: str = transport.MERGE,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        request = Request(
            method="PATCH",
            path=kind.path(name, namespace, subresource),
            query=self._writing(dry_run=dry_run),
            body=_encoded(change),
            content_type=how,
        )
        return await self._write(kind, request)

    async def replace(
        self,
        kind: Kind,
        body: Mapping[str, Any],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """All of it, as the body says. With a resourceVersion in it: only if it is still that."""
        meta = _meta(body)
        request = Request(
            method="PUT",
            path=kind.path(_name(meta), meta.get("namespace", ""), subresource),
            query=self._writing(dry_run=dry_run),
            body=_encoded(_complete(kind, body)),
        )
        return await self._write(kind, request)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        uid: str = "",
        propagation: str = "Background",
        *,
        version: str = "",
    ) -> bool:
        """False: it was not there. True: it is gone, or will be when its finalizers are done.
        `Conflict` if the object of that name is not the one with this `uid`, or was written since
        it had this `version`."""
        options: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if held := _given(uid=uid, resourceVersion=version):
            options["preconditions"] = held
        request = Request(method="DELETE", path=kind.path(name, namespace), body=_encoded(options))
        try:
            answer = _decoded(await self._ask(request))
        except errors.NotFound as missing:
            if self._no_such_object(missing):
                return False
            raise
        if self._listener is not None:
            # A Status: it is gone. The object itself: its finalizers are still at work.
            gone = cast("Object", answer.get("details") or {}).get("uid")
            if answer.get("kind") == kind.kind:
                self._listener.wrote(kind, answer)
            elif answer.get("kind") == "Status" and isinstance(gone, str) and gone:
                self._listener.deleted(kind, name, namespace, gone)
        return True

    async def post(
        self, path: str, body: Mapping[str, Any], query: Mapping[str, str] | None = None
    ) -> Object:
        """For what is not an object's life: a token, a kubeconfig, an access review."""
        request = Request(method="POST", path=path, query=query or {}, body=_encoded(body))
        return _decoded(await self._ask(request))

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """The body of a GET, whatever it is: `/version`, `/readyz`, a service behind the proxy."""
        request = Request(method="GET", path=path, query=query or {}, accept="*/*")
        return (await self._ask(request, plain=True)).body

    async def _write(self, kind: Kind, request: Request) -> Object:
        """Gives the object without its managedFields."""
        response = await self._kind_ask(request)
        try:
            told = slim.of_answer(response.body)
        except errors.UNREADABLE:
            raise errors.not_an_api_server("it answers what is no object") from None
        answer = told.object()
        # A subresource may answer with something else of the same name, e.g. a Scale.
        if (
            self._listener is not None
            and "dryRun" not in request.query
            and answer.get("kind") == kind.kind
        ):
            self._listener.wrote(kind, answer, told)
        return answer

    async def _kind_ask(self, request: Request) -> Response:
        try:
            return await self._ask(request)
        except errors.NotFound as missing:
            self._no_such_object(missing)
            raise

    async def _ask(self, request: Request, *, plain: bool = False) -> Response:
        """`plain`: the answer need not be JSON."""
        response = await self._transport.send(request)
        if not 200 <= response.status < 300:
            raise errors.of(response.status, response.body, response.headers)
        if not plain:
            errors.check_form(request.path, response.headers)
        return response

    def _no_such_object(self, missing: errors.NotFound) -> bool:
        """Whether it is the object that is missing. The path itself is answered without a Status:
        then the kind moved to another version, or is gone, and has to be found again."""
        if missing.reason == "NotFound":
            return True
        self._discovery.forget()
        return False

    def _writing(self, *, dry_run: bool) -> dict[str, str]:
        query = {"fieldManager": self._manager}
        if dry_run:
            query["dryRun"] = "All"
        return query


def _changes(
    lines: Sequence[bytes], *, managed: bool
) -> tuple[list[Change], errors.KubeError | None]:
    """Those before the first line that is none, and what is the matter with that."""
    found: list[Change] = []
    try:
        for line in lines:
            found.append(slim.of_event(line, managed=managed))  # noqa: PERF401 -- kept if it fails
    except errors.UNREADABLE:
        return found, errors.not_an_api_server("the watch says what is no change")
    except errors.KubeError as told:
        return found, told
    return found, None


def _decoded(response: Response) -> Object:
    try:
        return _OBJECT.decode(response.body)
    except errors.UNREADABLE:
        raise errors.not_an_api_server("it answers what is no object") from None


def _named(response: Response) -> Object:
    """Of what has a name: whoever reads it may rely on that."""
    found = _decoded(response)
    meta: object = found.get("metadata")
    if not isinstance(meta, dict) or not cast("Object", meta).get("name"):
        raise errors.not_an_api_server("it answers an object without a name")
    return found


def _encoded(body: object) -> bytes:
    return msgspec.json.encode(body, enc_hook=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"an object cannot hold a {type(value).__name__}")


def _meta(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", body.get("metadata") or {})


def _name(meta: Mapping[str, Any]) -> str:
    name = meta.get("name")
    if not name:
        raise errors.Invalid("the object has no metadata.name")
    return str(name)


def _complete(kind: Kind, body: Mapping[str, Any]) -> Object:
    """The kind was found on the server; a manifest was written before anybody asked."""
    return {**body, "apiVersion": kind.api_version, "kind": kind.kind}


def _given(**query: str) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}
