"""
Every route of the HTTP interface, declared once. See `surface.routes` for what a column means.

Add a route here and nowhere else: it is then served, checked, authorised, in OpenAPI, in
`docs/http.md`, and in the matrix of the tests of authorisation.
"""

import functools

from fleetd.surface import answers, api, asking, door, login, routes, trouble, writes
from fleetd.surface.identity import Role, Scope
from fleetd.surface.routes import Route

V1 = "/api/v1"


_get = functools.partial(Route, method="GET", role=Role.VIEWER, scope=Scope.FILTERED)
_tell = functools.partial(Route, role=Role.OPERATOR, scope=Scope.CHECKED, tag="told")


_SERVER = (
    _get(
        path="/healthz",
        name="health",
        summary="Whether the process answers",
        about="Says no more than that: a restart helps nobody whose backend is away.",
        role=Role.OPEN,
        scope=Scope.NONE,
        media=routes.TEXT,
        tag="server",
    ),
    _get(
        path="/readyz",
        name="ready",
        summary="Whether the daemon is ready, and what is not",
        role=Role.OPEN,
        scope=Scope.NONE,
        media=routes.TEXT,
        codes=("not-ready",),
        tag="server",
    ),
    _get(
        path="/metrics",
        name="metrics",
        summary="Metrics for Prometheus",
        about="With `metrics.token` set, that token opens it; else it wants what a reader has, "
        "and on loopback without any way to log in it is open.",
        scope=Scope.FLEET,
        media=routes.TEXT,
        tag="server",
    ),
    _get(
        path="/openapi.json",
        name="openapi",
        summary="This interface as OpenAPI 3.1",
        role=Role.OPEN,
        scope=Scope.NONE,
        answer=answers.Plain,
        tag="server",
    ),
    _get(
        path="/",
        name="page",
        summary="The web page",
        about="Files only: what they show is asked for by the browser, as its user.",
        role=Role.OPEN,
        scope=Scope.NONE,
        media=routes.HTML,
        tag="server",
    ),
    *(
        _get(
            path=path,
            name=name,
            summary="A file of the web page",
            role=Role.OPEN,
            scope=Scope.NONE,
            media=routes.ANY,
            codes=("not-found",),
            tag="server",
        )
        for path, name in (
            ("/assets/{file}", "asset"),
            ("/assets/{folder}/{file}", "assetInFolder"),
        )
    ),
    _get(
        path=door.LOGIN,
        name="login",
        summary="Log in with a browser",
        about="Sends the browser to the issuer.",
        role=Role.OPEN,
        scope=Scope.NONE,
        query=asking.Login,
        media=routes.REDIRECT,
        codes=("not-found", "too-many-requests", "login-unavailable"),
        tag="server",
    ),
    _get(
        path=door.CALLBACK,
        name="loginCallback",
        summary="Where the issuer sends the browser back to",
        about="Begins a session and sends the browser on to where it wanted to go.",
        role=Role.OPEN,
        scope=Scope.NONE,
        query=asking.Callback,
        media=routes.REDIRECT,
        codes=(
            *("not-found", "too-many-requests", "login-unavailable"),
            *("login-refused", "unauthorized", "forbidden"),
        ),
        tag="server",
    ),
    Route(
        method="POST",
        path=door.LOGOUT,
        name="logout",
        summary="End the session of this browser",
        about="Nothing else is told or changed by it.",
        role=Role.VIEWER,
        scope=Scope.NONE,
        answer=login.Left,
        tag="server",
    ),
    _get(
        path=f"{V1}/whoami",
        name="whoami",
        summary="Who you are here",
        scope=Scope.NONE,
        answer=answers.Caller,
        handler=api.whoami,
        tag="server",
    ),
)

_READ = (
    _get(
        path=f"{V1}/regions",
        name="listRegions",
        summary="All regions, with counts and conditions",
        answer=answers.Regions,
        handler=api.regions,
    ),
    _get(
        path=f"{V1}/regions/{{name}}",
        name="getRegion",
        summary="One region",
        answer=answers.Region,
        handler=api.region,
        codes=("not-found",),
    ),
    _get(
        path=f"{V1}/resources",
        name="listResources",
        summary="Resources, filtered and in pages",
        about="In the order in which they come up. A page can be short or empty and still have a "
        "`continue`; the list ends where that is null.",
        query=asking.Resources,
        answer=answers.Resources,
        handler=api.resources,
        codes=("continue-expired",),
    ),
    _get(
        path=f"{V1}/resources/{{kind}}/{{name}}",
        name="getResource",
        summary="Everything about one resource",
        about="Desired, observed, conditions, steps, events, needs and needed-by.",
        answer=answers.Thing,
        handler=api.resource,
        codes=("not-found",),
    ),
    _get(
        path=f"{V1}/topology/{{region}}",
        name="getTopology",
        summary="Nodes and edges of a region, for drawing",
        answer=answers.Topology,
        handler=api.topology,
        codes=("not-found",),
    ),
    _get(
        path=f"{V1}/picture/{{region}}",
        name="getPicture",
        summary="A region folded to its documents, for drawing",
        about="One box for each cluster, pool and cloud, with counts of what it consists of.",
        answer=answers.Picture,
        handler=api.picture_of,
        codes=("not-found",),
    ),
    _get(
        path=f"{V1}/search",
        name="search",
        summary="Anything by a part of its name, the best first",
        query=asking.Search,
        answer=answers.Hits,
        handler=api.search,
    ),
    _get(
        path=f"{V1}/plan",
        name="getPlan",
        summary="What is to be done now, in each region",
        query=asking.PlanOf,
        answer=answers.Plans,
        handler=api.plan,
        codes=("not-found",),
    ),
    _get(
        path=f"{V1}/events",
        name="listEvents",
        summary="History, in pages",
        about="Oldest first, unless `newest=true`.",
        query=asking.Events,
        answer=answers.Events,
        handler=api.events,
    ),
    _get(
        path=f"{V1}/watch",
        name="watch",
        summary="Events as they happen, as server-sent events",
        about="Each has its number in history as `id`. A client that was cut off sends it as "
        "Last-Event-ID and gets what it missed, each event once. A quiet stream sends a comment "
        "every 15 seconds, with the number up to which all was looked through. `event: gone` at "
        "the end says that the reader was so slow that history went away under it.",
        query=asking.Watch,
        media=routes.EVENT_STREAM,
        codes=("bad-event-id", "history-gone", "too-many-watchers"),
    ),
    _get(
        path=f"{V1}/incidents",
        name="listIncidents",
        summary="Open incidents: each failure once, at its cause, with what it affects",
        about="The worst first. What only waits for something else is no incident.",
        query=asking.InRegion,
        answer=trouble.Incidents,
        handler=api.incidents,
        codes=("not-found",),
    ),
    _get(
        path=f"{V1}/capacity",
        name="getCapacity",
        summary="Free and used servers by pool, class and zone, and who has them",
        query=asking.InRegion,
        answer=trouble.CapacityShape,
        handler=api.capacity,
        codes=("not-found",),
    ),
    _get(
        path=f"{V1}/kinds",
        name="listKinds",
        summary="Kinds of resources, with counts",
        answer=answers.Kinds,
        handler=api.kinds,
    ),
    _get(
        path=f"{V1}/orphans",
        name="listOrphans",
        summary="What exists though no document names it any more",
        query=asking.InRegion,
        answer=answers.Orphans,
        handler=api.orphans,
    ),
    _get(
        path=f"{V1}/credentials",
        name="listCredentials",
        summary="The ledger of credentials and when they end; never a value",
        query=asking.InRegion,
        answer=answers.Credentials,
        handler=api.credentials,
        codes=("not-found",),
    ),
    _get(
        path=f"{V1}/documents",
        name="listDocuments",
        summary="The accepted documents, as they were written",
        answer=answers.Documents,
        handler=api.documents,
    ),
    _get(
        path=f"{V1}/documents/{{kind}}/{{name}}",
        name="getDocument",
        summary="One document; its ETag is what If-Match wants",
        answer=answers.Plain,
        handler=api.document,
        codes=("not-found",),
    ),
)

_APPLYING = (
    "document-owned",
    "change-refused",
    "consent-needed",
    "documents-bad",
    "not-durable",
    "plan-stale",
)

_TOLD = (
    _tell(
        method="POST",
        path=f"{V1}/pause",
        name="pause",
        summary="Begin nothing new with a thing, a kind, a region or all",
        body=asking.BeginPause,
        answer=answers.Paused,
        handler=writes.pause,
    ),
    _tell(
        method="POST",
        path=f"{V1}/resume",
        name="resume",
        summary="End a pause",
        body=asking.Resume,
        answer=answers.Resumed,
        handler=writes.resume,
    ),
    _tell(
        method="POST",
        path=f"{V1}/approvals/{{id}}",
        name="decide",
        summary="Approve or reject what waits for a person",
        body=asking.Decision,
        answer=answers.Decided,
        handler=writes.decide,
    ),
    _tell(
        method="POST",
        path=f"{V1}/retire",
        name="retire",
        summary="Have an orphan removed for good, or see what would go",
        body=asking.Retire,
        answer=answers.Retired,
        handler=writes.retire,
    ),
    _tell(
        method="POST",
        path=f"{V1}/plans",
        name="makePlan",
        summary="What documents would do; nothing is changed",
        body=asking.MakePlan,
        answer=answers.Draft,
        handler=writes.make_plan,
        codes=("documents-bad",),
    ),
    _tell(
        method="POST",
        path=f"{V1}/plans/{{id}}/apply",
        name="applyPlan",
        summary="Hand over the documents of a plan; refused if the world moved",
        role=Role.ADMIN,
        body=asking.Apply,
        answer=answers.Applied,
        handler=writes.apply,
        codes=("plan-unknown", *_APPLYING),
    ),
    _tell(
        method="PUT",
        path=f"{V1}/documents/{{kind}}/{{name}}",
        name="putDocument",
        summary="Put one document",
        about="Planned and handed over in one. With If-Match only if that is what is there, with "
        "`If-None-Match: *` only if nothing is. Files it names must have absolute paths.",
        role=Role.ADMIN,
        query=asking.Edit,
        body=asking.Document,
        answer=answers.Applied,
        handler=writes.put_document,
        codes=("document-changed", "bad-etag", *_APPLYING),
    ),
    _tell(
        method="DELETE",
        path=f"{V1}/documents/{{kind}}/{{name}}",
        name="deleteDocument",
        summary="Take one document away; what it was about becomes an orphan",
        role=Role.ADMIN,
        query=asking.Edit,
        answer=answers.Applied,
        handler=writes.delete_document,
        codes=("not-found", "document-changed", "bad-etag", *_APPLYING),
    ),
)

ROUTES: tuple[Route, ...] = (*_SERVER, *_READ, *_TOLD)
