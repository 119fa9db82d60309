"""
The HTTP side of a `Cluster`: a request and its headers in, an answer or a watch out.

Who calls, what is asked, whether it is allowed, then the verb; every refusal becomes a Status
object. It waits for nothing and remembers nothing between requests.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fleetd.kube.transport import Request, Response
from fleetd.sim.faces.handler import Stream
from fleetd.sim.kube import (
    builtin,
    calls,
    discovery,
    impersonation,
    reading,
    refusal,
    reviews,
    scale,
    selectors,
    verbs,
)
from fleetd.sim.kube.access import BadToken, User
from fleetd.sim.kube.calls import Call, Target
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.rbac import Ask
from fleetd.sim.kube.refusal import Refused
from fleetd.sim.kube.store import Row
from fleetd.sim.kube.values import Obj, encode
from fleetd.sim.kube.writing import Outcome

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

_ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
_BEARER = "Bearer "
_NO_SUCH_PAGE = Response(
    status=404, body=b"404 page not found\n", headers={"content-type": "text/plain; charset=utf-8"}
)


class Server:
    """See `fleetd.sim.faces.handler.Handler`."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster

    def handle(self, request: Request, headers: Mapping[str, str]) -> Response | Stream:
        user = _ANONYMOUS
        try:
            user = self._user(request, headers)
            answer = self._answer(request, headers, user)
        except Refused as refused:
            answer = Response(
                status=refused.status,
                body=encode(refused.body()),
                headers=dict(reading.HEADERS, **refused.headers),
            )
        except Exception as fault:
            # A controller's hook failed, or this server did: the world must hear of it, for the
            # client would take it for weather.
            if self._cluster.failed is None:
                raise
            self._cluster.failed(fault)
            said = Refused(500, "InternalError", "Internal error occurred")
            answer = Response(status=500, body=encode(said.body()), headers=reading.HEADERS)
        if self._cluster.log is not None:
            status = answer.status if isinstance(answer, Response) else 200
            self._cluster.log(user.name, request, status)
        return answer

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether the caller's token is one of this cluster."""
        try:
            self._cluster.tokens.user(headers.get("authorization", "").removeprefix(_BEARER))
        except BadToken:
            return False
        return True

    def _user(self, request: Request, headers: Mapping[str, str]) -> User:
        said = headers.get("authorization", "")
        if not said.startswith(_BEARER):
            if discovery.public(request.path):
                return _ANONYMOUS
            raise Refused(401, "Unauthorized", "Unauthorized")
        try:
            user = self._cluster.tokens.user(said[len(_BEARER) :])
        except BadToken:
            raise Refused(401, "Unauthorized", "Unauthorized") from None
        return impersonation.acting(self._cluster, user, headers)

    def _answer(
        self, request: Request, headers: Mapping[str, str], user: User
    ) -> Response | Stream:
        target = calls.target(request.path)
        if target is None or not target.plural:
            self._may_read(user, request)
            return discovery.answer(self._cluster, request) or _NO_SUCH_PAGE
        table = self._cluster.plurals.get((target.group, target.plural))
        if table is None or target.version not in table.definition.versions:
            if target.group in builtin.GROUPS:
                raise refusal.no_such_resource()
            return _NO_SUCH_PAGE
        definition = table.definition
        asked = calls.verb(request, target.name)
        if target.namespace and not definition.namespaced:
            raise refusal.no_such_resource()
        # A list of one name is about that name.
        about = target._replace(name=target.name or selectors.only_name(request.query))
        self._authorize(user, asked, about, definition)
        if not asked or (definition.namespaced and not target.namespace and target.name):
            raise refusal.not_allowed()
        if asked == "create" and definition.namespaced and not target.namespace:
            raise refusal.not_allowed()
        call = Call(
            request=request,
            headers=headers,
            user=user,
            table=table,
            target=target,
            verb=asked,
        )
        if target.subresource:
            return self._subresource(call)
        return self._verb(call)

    def _may_read(self, user: User, request: Request) -> None:
        """What is said of the server itself is not for everybody either."""
        method = "get" if request.method in ("GET", "HEAD") else request.method.lower()
        ask = Ask(verb=method, path=request.path)
        if self._cluster.rbac_enforced and not self._cluster.rbac.allows(user, ask):
            raise refusal.Refused(
                403,
                "Forbidden",
                f'forbidden: User "{user.name}" cannot {method} path "{request.path}"',
                details={},
            )

    def _authorize(self, user: User, asked: str, target: Target, definition: Definition) -> None:
        if not self._cluster.rbac_enforced:
            return
        resource = target.plural + (f"/{target.subresource}" if target.subresource else "")
        ask = Ask(
            verb=asked,
            group=target.group,
            resource=resource,
            namespace=target.namespace,
            name=target.name,
        )
        if not self._cluster.rbac.allows(user, ask):
            raise calls.forbidden(user, asked, target, definition)

    def _verb(self, call: Call) -> Response | Stream:
        if call.verb not in call.definition.verbs:
            raise refusal.not_allowed()
        if call.definition.kind in reviews.KINDS:
            return _json(201, reviews.answer(self._cluster, call))
        match call.verb:
            case "get":
                return reading.get(self._cluster, call)
            case "list":
                return reading.list_(self._cluster, call)
            case "watch":
                return reading.watch(self._cluster, call)
            case "deletecollection":
                hit = verbs.delete_all(self._cluster, call)
                metadata: Obj = {"resourceVersion": str(self._cluster.store.version)}
                body = reading.form(self._cluster, call).many(hit, metadata)
                return Response(status=200, body=body, headers=reading.HEADERS)
            case _:
                return self._write(call)

    def _write(self, call: Call) -> Response:
        outcome = verbs.VERBS[call.verb](self._cluster, call)
        if outcome.changed and not call.dry_run:
            self._cluster.writes[call.user.name] += 1
        if call.verb == "delete" and outcome.gone:
            return _json(200, _deleted(call, outcome))
        row = call.table.rows.get((call.target.namespace, outcome.obj["metadata"]["name"]))
        if row is None or row.obj is not outcome.obj:
            row = Row(outcome.obj)
        body = reading.form(self._cluster, call).one(row)
        status = 201 if outcome.created else 200
        return Response(status=status, body=body, headers=_headers(call))

    def _subresource(self, call: Call) -> Response:
        definition = call.definition
        name = call.target.subresource
        if name == "status" and definition.status:
            if call.verb == "get":
                return reading.get(self._cluster, call)
            if call.verb not in ("update", "patch"):
                raise refusal.not_allowed()
            return self._write(call)
        if name == "scale" and definition.scale is not None:
            return self._counted(call, lambda: scale.answer(self._cluster, call))
        handler = self._cluster.subresources.get((definition.gk, name))
        if handler is None or name not in definition.subresources:
            raise refusal.no_such_resource()
        row = call.table.rows.get((call.target.namespace, call.target.name))
        if row is None:
            raise refusal.not_found(definition, call.target.name)
        return self._counted(call, lambda: handler(row.obj, call, call.user))

    def _counted(self, call: Call, does: Callable[[], tuple[int, Obj]]) -> Response:
        before = self._cluster.store.version
        status, body = does()
        if self._cluster.store.version != before:
            self._cluster.writes[call.user.name] += 1
        return _json(status, body)


def _headers(call: Call) -> Mapping[str, str]:
    """With what the caller is to be warned of."""
    if not call.warnings:
        return reading.HEADERS
    said = (f"299 - {encode(one).decode()}" for one in dict.fromkeys(call.warnings))
    return {**reading.HEADERS, "warning": ", ".join(said)}


def _deleted(call: Call, outcome: Outcome) -> Obj:
    metadata = outcome.obj["metadata"]
    details: Obj = {
        "name": metadata["name"],
        "group": call.definition.group,
        "kind": call.definition.plural,
        "uid": metadata["uid"],
    }
    if not details["group"]:
        del details["group"]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def _json(status: int, body: Obj) -> Response:
    return Response(status=status, body=encode(body), headers=reading.HEADERS)
