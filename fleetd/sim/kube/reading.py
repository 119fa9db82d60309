"""
The verbs that change nothing: get, list, watch.

A list in pieces shows one moment: the version of its first piece is in the continue token, and
later pieces are made from the history. What the history has lost is answered with 410.
"""

import base64
import bisect
from typing import TYPE_CHECKING

import msgspec

from fleetd.kube.transport import Response
from fleetd.sim.kube import refusal, selectors
from fleetd.sim.kube.calls import Call, true
from fleetd.sim.kube.forms import Form
from fleetd.sim.kube.store import Key, Row
from fleetd.sim.kube.values import Obj, decode, encode
from fleetd.sim.kube.watch import Ending, Watch, line

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

HEADERS = {"content-type": "application/json"}
DEFAULT_TIMEOUT = 2700.0
"""Seconds a watch lasts that asks for no other time; a real server draws 30 to 60 minutes."""


def form(cluster: "Cluster", call: Call) -> Form:
    return Form(call.definition, call.target.version, call.request.accept, cluster.time.now())


def get(cluster: "Cluster", call: Call) -> Response:
    row = call.table.rows.get((call.target.namespace, call.target.name))
    if row is None:
        raise refusal.not_found(call.definition, call.target.name)
    return Response(status=200, body=form(cluster, call).one(row), headers=HEADERS)


def list_(cluster: "Cluster", call: Call) -> Response:
    query = call.request.query
    now = cluster.store.version
    limit = _number(query.get("limit", ""), "limit")
    test = _test(call)
    start: Key = ("", "")
    version = now
    if token := query.get("continue", ""):
        version, start = _continued(token)
        if version < call.table.horizon:
            raise refusal.expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter, or use the continue "
                "token in this response to retrieve the remainder of the results."
            )
    elif asked := _number(query.get("resourceVersion", ""), "resourceVersion"):
        version = _asked_version(call, asked, now)
    rows, keys = _snapshot(call, version, now)
    first = bisect.bisect_right(keys, start) if token else 0
    namespace = call.target.namespace
    chosen: list[Row] = []
    metadata: Obj = {"resourceVersion": str(version)}
    for place in range(first, len(keys)):
        key = keys[place]
        row = rows[key]
        if (namespace and key[0] != namespace) or (test is not None and not test(row.obj)):
            continue
        if limit and len(chosen) == limit:
            metadata["continue"] = _token(version, keys[place - 1])
            if test is None:
                left = sum(not namespace or one[0] == namespace for one in keys[place:])
                metadata["remainingItemCount"] = left
            break
        chosen.append(row)
    return Response(status=200, body=form(cluster, call).many(chosen, metadata), headers=HEADERS)


def _snapshot(call: Call, version: int, now: int) -> tuple[dict[Key, Row], list[Key]]:
    if version == now:
        return call.table.rows, call.table.keys()
    rows = call.table.as_of(version)
    return rows, sorted(rows)


def _asked_version(call: Call, asked: int, now: int) -> int:
    if asked > now:
        raise _too_new(asked, now)
    if call.request.query.get("resourceVersionMatch") != "Exact":
        return now
    if asked < call.table.horizon:
        raise refusal.expired(
            f"The resourceVersion for the provided list is too old: {asked} ({call.table.horizon})"
        )
    return asked


def _too_new(asked: int, now: int) -> refusal.Refused:
    return refusal.Refused(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {now}",
        details={
            "causes": [
                {
                    "reason": "ResourceVersionTooLarge",
                    "message": "Too large resource version",
                }
            ],
            "retryAfterSeconds": 1,
        },
    )


def _token(version: int, after: Key) -> str:
    text = encode({"v": "meta.k8s.io/v1", "rv": version, "start": list(after)})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _continued(token: str) -> tuple[int, Key]:
    try:
        said = decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = said["start"]
        return int(said["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        raise refusal.bad_request("continue key is not valid") from None


def _number(text: str, name: str) -> int:
    if not text:
        return 0
    if not text.isdecimal():
        raise refusal.bad_request(
            f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax ({name})'
        )
    return int(text)


def _test(call: Call) -> selectors.Test | None:
    query = call.request.query
    return selectors.of(
        query.get("labelSelector", ""), query.get("fieldSelector", ""), call.definition
    )


def watch(cluster: "Cluster", call: Call) -> Watch | Ending:
    query = call.request.query
    test = _test(call)
    asked = query.get("resourceVersion", "")
    since = _number(asked, "resourceVersion")
    now = cluster.store.version
    if since > now:
        raise _too_new(since, now)
    initial = not since
    streamed = _streamed(call)
    if streamed is not None:
        initial = streamed
        since = since or now
    if not initial and since < call.table.horizon:
        said = refusal.expired(f"too old resource version: {since} ({call.table.horizon})")
        return Ending(line("ERROR", encode(said.body())))
    timeout = _number(query.get("timeoutSeconds", ""), "timeoutSeconds") or DEFAULT_TIMEOUT
    written = form(cluster, call)
    marks = true(query.get("allowWatchBookmarks", ""))
    opened = Watch(
        call.table,
        namespace=call.target.namespace,
        test=test,
        form=written.one,
        bookmark=written.bookmark if marks else None,
    )
    opened.start(since, initial=initial, now=now, mark=streamed is True)
    cluster.opened(opened)

    def over() -> None:
        opened.bookmark(cluster.store.version)
        opened.end()

    cluster.time.after(timeout, over)
    return opened


def _streamed(call: Call) -> bool | None:
    """`sendInitialEvents`, if it was given."""
    query = call.request.query
    asked = query.get("sendInitialEvents", "")
    if not asked:
        if query.get("resourceVersionMatch"):
            raise _bad_options(
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
                "unless sendInitialEvents is provided"
            )
        return None
    if query.get("resourceVersionMatch") != "NotOlderThan":
        raise _bad_options(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
            "resourceVersionMatch to NotOlderThan"
        )
    return true(asked)


def _bad_options(why: str) -> refusal.Refused:
    return refusal.Refused(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {why}')
