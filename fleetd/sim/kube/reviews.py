"""
Kinds that are questions, not objects: who is this token, may they do that; and the tokens of
service accounts.

Nothing here is stored. A review of a token this server did not give answers "not authenticated"
with a reason, never an error.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from fleetd.sim.kube import metadata, refusal
from fleetd.sim.kube.access import BadToken, User
from fleetd.sim.kube.calls import Call
from fleetd.sim.kube.rbac import Ask
from fleetd.sim.kube.values import Obj, stamp

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

SHORTEST = 600
USUAL = 3600
LONGEST = 2**32


def answer(cluster: "Cluster", call: Call) -> Obj:
    body = call.body()
    definition = call.definition
    said = (body.get("apiVersion"), body.get("kind"))
    if said != (definition.api_version(), definition.kind):
        raise refusal.bad_request(
            f"{said[1]} in version {said[0]} cannot be handled as a {definition.kind}"
        )
    metadata.decode(definition, body)
    status = _REVIEWS[definition.kind](cluster, call, body.get("spec") or {})
    return {**body, "metadata": body.get("metadata") or {}, "status": status}


def _token_review(cluster: "Cluster", _call: Call, spec: Obj) -> Obj:
    token = spec.get("token", "")
    wanted = tuple(spec.get("audiences") or ())
    try:
        user = cluster.tokens.user(token, wanted)
    except BadToken as bad:
        return {"user": {}, "error": str(bad)}
    return {
        "authenticated": True,
        "user": user.shown(),
        "audiences": cluster.tokens.audiences(token, wanted),
    }


def _self(_cluster: "Cluster", call: Call, _spec: Obj) -> Obj:
    return {"userInfo": call.user.shown()}


def _may_i(cluster: "Cluster", call: Call, spec: Obj) -> Obj:
    return _may(cluster, call.user, spec)


def _may_they(cluster: "Cluster", _call: Call, spec: Obj) -> Obj:
    user = User(spec.get("user", ""), tuple(spec.get("groups") or ()))
    return _may(cluster, user, spec)


def _may(cluster: "Cluster", user: User, spec: Obj) -> Obj:
    attributes: Obj | None = spec.get("resourceAttributes")
    if attributes is not None:
        sub = attributes.get("subresource")
        ask = Ask(
            verb=attributes.get("verb", ""),
            group=attributes.get("group", ""),
            resource=attributes.get("resource", "") + (f"/{sub}" if sub else ""),
            namespace=attributes.get("namespace", ""),
            name=attributes.get("name", ""),
        )
    else:
        path: Obj = spec.get("nonResourceAttributes") or {}
        ask = Ask(verb=path.get("verb", ""), path=path.get("path", ""))
    allowed = not cluster.rbac_enforced or cluster.rbac.allows(user, ask)
    return {"allowed": allowed} if allowed else {"allowed": False, "reason": ""}


def _rules(cluster: "Cluster", call: Call, spec: Obj) -> Obj:
    space = spec.get("namespace", "")
    if not space:
        raise refusal.bad_request("no namespace on request")
    parts: tuple[list[Obj], list[Obj]] = ([], [])
    for rule in cluster.rbac.rules(call.user, space):
        paths = "nonResourceURLs" in rule
        parts[paths].append({name: list(values) for name, values in rule.items()})
    return {"resourceRules": parts[0], "nonResourceRules": parts[1], "incomplete": False}


_REVIEWS: dict[str, Callable[["Cluster", Call, Obj], Obj]] = {
    "TokenReview": _token_review,
    "SelfSubjectReview": _self,
    "SelfSubjectAccessReview": _may_i,
    "SelfSubjectRulesReview": _rules,
    "SubjectAccessReview": _may_they,
    "LocalSubjectAccessReview": _may_they,
}

KINDS = frozenset(_REVIEWS)


def install(cluster: "Cluster") -> None:
    """Gives ServiceAccounts their tokens, and namespaces their end."""

    def token(account: Obj, call: Call, _user: User) -> tuple[int, Obj]:
        return 201, token_request(cluster, account, call.body())

    def finalize(namespace: Obj, call: Call, _user: User) -> tuple[int, Obj]:
        spec: Obj = call.body().get("spec") or {}
        wanted: list[str] = spec.get("finalizers") or []
        return 200, cluster.lifecycle.finalize(namespace, wanted)

    cluster.subresource(("", "ServiceAccount"), "token", token)
    cluster.subresource(("", "Namespace"), "finalize", finalize)


def token_request(cluster: "Cluster", account: Obj, body: Obj) -> Obj:
    spec: Obj = body.get("spec") or {}
    mine = account["metadata"]
    asked = spec.get("expirationSeconds")
    if asked is not None and not isinstance(asked, int):
        raise refusal.bad_request("spec.expirationSeconds is not a number")
    seconds = USUAL if asked is None else asked
    problem = ""
    if seconds < SHORTEST:
        problem = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        problem = "may not specify a duration larger than 2^32 seconds"
    if problem:
        raise refusal.Refused(
            422,
            "Invalid",
            f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
            f"Invalid value: {seconds}: {problem}",
        )
    namespace, name = mine["namespace"], mine["name"]
    expires = cluster.time.now() + timedelta(seconds=seconds)
    audiences = tuple(spec.get("audiences") or ()) or (cluster.tokens.audience,)
    token = cluster.tokens.issue(
        f"system:serviceaccount:{namespace}:{name}",
        ("system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
        expires=expires,
        audiences=audiences,
        account=(namespace, name, mine["uid"]),
    )
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"audiences": list(audiences), "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": stamp(expires)},
    }
