"""
The verbs that change something, as they come over HTTP.

Here a request is held against the object it is about: names and versions must fit, patches are
put on, preconditions tested. Then it goes the way of every write (`writing`, `lifecycle`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from fleetd.kube.transport import APPLY, JSON_PATCH, MERGE
from fleetd.sim.kube import calls, managed, patch, refusal, selectors
from fleetd.sim.kube import metadata as metadata_rules
from fleetd.sim.kube.calls import STRATEGIC, Call, parsed, true
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.lifecycle import Asked
from fleetd.sim.kube.rbac import Ask
from fleetd.sim.kube.store import Row
from fleetd.sim.kube.values import Obj, is_list, is_map
from fleetd.sim.kube.writing import By, Outcome

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster


def _by(call: Call, operation: str = managed.UPDATE) -> By:
    return By(
        manager=call.manager,
        user=call.user,
        version=call.target.version,
        operation=operation,
        subresource=call.target.subresource,
        dry_run=call.dry_run,
        validation=call.field_validation,
        told=call.warnings.extend,
    )


def create(cluster: "Cluster", call: Call) -> Outcome:
    obj = call.body()
    _fit(call, obj)
    return cluster.writing.create(call.table, obj, _by(call))


def update(cluster: "Cluster", call: Call) -> Outcome:
    obj = call.body()
    _fit(call, obj)
    row = _row(call)
    sent = obj["metadata"].get("resourceVersion", "")
    if not sent and not call.definition.unconditional:
        raise refusal.invalid(
            call.definition,
            call.target.name,
            (
                "FieldValueInvalid",
                "metadata.resourceVersion",
                "Invalid value: 0: must be specified for an update",
            ),
        )
    return _kept(cluster, call, row, obj)


def _kept(cluster: "Cluster", call: Call, row: Row, obj: Obj) -> Outcome:
    check_version(call, row, obj)
    return cluster.writing.update(call.table, row, obj, _by(call))


def check_version(call: Call, row: Row, obj: Obj) -> None:
    metadata = obj["metadata"]
    live = row.obj["metadata"]
    uid = metadata.get("uid", "")
    if uid and uid != live["uid"]:
        raise refusal.conflict(
            call.definition,
            call.target.name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {live['uid']}",
        )
    sent = metadata.get("resourceVersion", "")
    if sent and sent != live["resourceVersion"]:
        raise refusal.conflict(call.definition, call.target.name)


def change(cluster: "Cluster", call: Call) -> Outcome:
    """PATCH, of whichever kind."""
    kind = call.request.content_type.split(";")[0].strip()
    if kind == APPLY:
        return _apply(cluster, call)
    if true(call.request.query.get("force", "")):
        raise refusal.Refused(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
            "non-apply patch",
        )
    row = _row(call)
    live = {**row.obj, "apiVersion": call.definition.api_version(call.target.version)}
    new = patched(call, kind, live, call.definition)
    _fit(call, new)
    return _kept(cluster, call, row, new)


def patched(call: Call, kind: str, live: Obj, definition: Definition) -> Obj:
    """What the patch makes of it."""
    if kind == MERGE:
        return patch.merge(live, call.body())
    if kind == STRATEGIC and not call.definition.typed:
        raise _unsupported(kind)
    if kind == STRATEGIC:
        return patch.strategic(live, call.body(), definition.shape)
    if kind == JSON_PATCH:
        operations = parsed(call.request)
        if not is_list(operations) or not all(is_map(one) for one in operations):
            raise refusal.bad_request("a JSON patch is a list of operations")
        return patch.json_patch(live, operations)
    raise _unsupported(kind)


def _unsupported(kind: str) -> refusal.Refused:
    return refusal.Refused(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format ({kind}) - accepted media types "
        f"include: {JSON_PATCH}, {MERGE}, {APPLY}",
    )


def _apply(cluster: "Cluster", call: Call) -> Outcome:
    if not call.request.query.get("fieldManager"):
        raise refusal.Refused(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required '
            "for apply patch",
        )
    config = call.body()
    _fit(call, config)
    metadata = config["metadata"]
    if metadata.get("managedFields"):
        raise refusal.bad_request("metadata.managedFields must be nil")
    row = call.table.rows.get((call.target.namespace, call.target.name))
    if row is not None:
        check_version(call, row, config)
    elif metadata.get("resourceVersion") or metadata.get("uid"):
        raise refusal.conflict(call.definition, call.target.name)
    if row is None and not call.target.subresource:
        _may_create(cluster, call)
    config = {**config, "metadata": _without(metadata, "resourceVersion", "uid")}
    force = true(call.request.query.get("force", ""))
    return cluster.writing.apply(call.table, config, _by(call, managed.APPLY), force=force)


def _may_create(cluster: "Cluster", call: Call) -> None:
    """What is not there yet is created, and that is a right of its own."""
    where = call.target
    ask = Ask(
        verb="create",
        group=where.group,
        resource=where.plural,
        namespace=where.namespace,
        name=where.name,
    )
    if cluster.rbac_enforced and not cluster.rbac.allows(call.user, ask):
        raise refusal.forbidden(call.definition, where.name, "")


def _without(values: Obj, *names: str) -> Obj:
    return {name: value for name, value in values.items() if name not in names}


def delete(cluster: "Cluster", call: Call) -> Outcome:
    wanted = _asked(call)
    by = replace(_by(call), dry_run=wanted.dry_run)
    return cluster.lifecycle.delete(call.table, _row(call), wanted, by)


def delete_all(cluster: "Cluster", call: Call) -> list[Row]:
    """What a delete of a collection hit."""
    query = call.request.query
    test = selectors.of(
        query.get("labelSelector", ""), query.get("fieldSelector", ""), call.definition
    )
    wanted = _asked(call)
    by = replace(_by(call), dry_run=wanted.dry_run)
    hit: list[Row] = []
    for row in tuple(call.table.all(call.target.namespace)):
        if test is None or test(row.obj):
            outcome = cluster.lifecycle.delete(call.table, row, wanted, by)
            if outcome.changed and not wanted.dry_run:
                cluster.writes[call.user.name] += 1
            hit.append(row)
    return hit


def _asked(call: Call) -> Asked:
    options: Obj = call.body() if call.request.body.strip() not in (b"", b"null") else {}
    if options.get("kind", "DeleteOptions") != "DeleteOptions":
        raise refusal.bad_request(
            f"no kind {options['kind']!r} is registered for the options of a delete"
        )
    return asked(options, call.request.query)


def asked(options: Obj, query: Mapping[str, str]) -> Asked:
    """What a delete is to be like; the options of the body count, or else those of the query."""
    given: Mapping[str, Any] = options or _of_query(query)
    before: Any = given.get("preconditions") or {}
    if not is_map(before):
        raise refusal.bad_request("preconditions is not an object")
    orphan, propagation = given.get("orphanDependents"), given.get("propagationPolicy")
    if orphan is not None and propagation is not None:
        raise calls.bad_option(
            "DeleteOptions",
            "FieldValueInvalid",
            "propagationPolicy",
            f'Invalid value: "{propagation}": orphanDependents and deletionPropagation cannot be '
            "both set",
        )
    if propagation is None:
        propagation = "Orphan" if orphan is True else "Background"
    if propagation not in ("Background", "Foreground", "Orphan"):
        raise calls.bad_option(
            "DeleteOptions",
            "FieldValueNotSupported",
            "propagationPolicy",
            f'Unsupported value: "{propagation}": supported values: "Foreground", "Background", '
            '"Orphan", "nil"',
        )
    grace: Any = given.get("gracePeriodSeconds")
    dry: Any = given.get("dryRun") or []
    if not is_list(dry):
        raise refusal.bad_request("dryRun is not a list")
    return Asked(
        propagation=propagation,
        uid=before.get("uid") or "",
        version=before.get("resourceVersion") or "",
        grace=-1 if grace is None else _seconds(grace),
        dry_run=any(calls.dry(str(one), "DeleteOptions") for one in dry),
    )


def _of_query(query: Mapping[str, str]) -> Obj:
    made: Obj = {
        name: query[name] for name in ("propagationPolicy", "gracePeriodSeconds") if name in query
    }
    if "orphanDependents" in query:
        made["orphanDependents"] = true(query["orphanDependents"])
    if query.get("dryRun"):
        made["dryRun"] = [query["dryRun"]]
    return made


def _seconds(value: Any) -> int:  # noqa: ANN401
    if str(value).removeprefix("-").isdecimal():
        return max(int(value), 1) if int(value) < 0 else int(value)
    raise refusal.bad_request("gracePeriodSeconds is not a number of seconds")


def _row(call: Call) -> Row:
    row = call.table.rows.get((call.target.namespace, call.target.name))
    if row is None:
        raise refusal.not_found(call.definition, call.target.name)
    return row


def _fit(call: Call, obj: Obj) -> None:
    """The object is of the kind, name and namespace that the path says; fills in what it left
    out."""
    if not is_map(obj):
        raise refusal.bad_request("what the patch makes of it is not an object")
    definition = call.definition
    version = definition.api_version(call.target.version)
    kind = obj.get("kind") or definition.kind
    said = obj.get("apiVersion") or version
    if (said, kind) != (version, definition.kind):
        raise refusal.bad_request(
            f"the API version in the data ({said}, kind {kind}) does not match the expected API "
            f"version ({version}, kind {definition.kind})"
        )
    given = obj.get("metadata")
    metadata: Obj = dict(cast("Obj", given)) if isinstance(given, dict) else {}
    where = call.target
    if where.name and metadata.setdefault("name", where.name) != where.name:
        raise refusal.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({where.name})"
        )
    if definition.namespaced:
        namespace = metadata.setdefault("namespace", where.namespace)
        if namespace != where.namespace:
            raise refusal.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
    obj.update(apiVersion=version, kind=definition.kind, metadata=metadata)
    metadata_rules.typed(definition, obj)


Verb = Callable[["Cluster", Call], Outcome]
VERBS: dict[str, Verb] = {"create": create, "update": update, "patch": change, "delete": delete}
