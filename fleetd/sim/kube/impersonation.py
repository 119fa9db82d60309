"""
Acting as somebody else: a right of its own for each name, group, account and note.

Who asks is known; whom they want to be stands in the headers. Each part is held against the verb
`impersonate` before anything of the request itself is looked at.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.rbac import Ask

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

USER = "impersonate-user"
GROUP = "impersonate-group"
UID = "impersonate-uid"
EXTRA = "impersonate-extra-"
SEPARATOR = "\n"
"""Between the values of a header that was sent more than once; no value can hold it."""
_AUTHENTICATION = "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"
_EVERYBODY = "system:authenticated"
_NOBODY = "system:unauthenticated"
_ANONYMOUS = "system:anonymous"


def acting(cluster: "Cluster", user: User, headers: Mapping[str, str]) -> User:
    """Whom the request counts for. Raises `Refused` 403."""
    name = headers.get(USER, "")
    groups = tuple(filter(None, headers.get(GROUP, "").split(SEPARATOR)))
    uid = headers.get(UID, "")
    extra = tuple(sorted(_extra(headers)))
    if not name:
        if groups or uid or extra:
            raise refusal.Refused(
                500,
                "InternalError",
                "Internal error occurred: requested impersonation without impersonating a user",
            )
        return user
    if cluster.rbac_enforced:
        for ask in (*_names(name), *_parts(groups, uid, extra)):
            if not cluster.rbac.allows(user, ask):
                raise _forbidden(user, ask)
    return User(name, _with_usual(name, groups), uid, extra)


def _extra(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for header, said in headers.items():
        if header.startswith(EXTRA):
            key = unquote(header.removeprefix(EXTRA)).lower()
            yield from ((key, value) for value in said.split(SEPARATOR))


def _names(name: str) -> Iterator[Ask]:
    space, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if name.startswith(_ACCOUNT) and account:
        yield Ask(verb="impersonate", resource="serviceaccounts", namespace=space, name=account)
    else:
        yield Ask(verb="impersonate", resource="users", name=name)


def _parts(groups: tuple[str, ...], uid: str, extra: tuple[tuple[str, str], ...]) -> Iterator[Ask]:
    for group in groups:
        yield Ask(verb="impersonate", resource="groups", name=group)
    if uid:
        yield Ask(verb="impersonate", group=_AUTHENTICATION, resource="uids", name=uid)
    for key, value in extra:
        yield Ask(
            verb="impersonate",
            group=_AUTHENTICATION,
            resource=f"userextras/{key}",
            name=value,
        )


def _with_usual(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups that everybody of this sort is in."""
    usual: tuple[str, ...] = ()
    if name.startswith(_ACCOUNT) and not groups:
        space = name.split(":")[2]
        usual = ("system:serviceaccounts", f"system:serviceaccounts:{space}")
    last = _NOBODY if name == _ANONYMOUS else _EVERYBODY
    both = (*groups, *usual)
    return both if last in both else (*both, last)


def _forbidden(user: User, ask: Ask) -> refusal.Refused:
    plural = ask.resource.partition("/")[0]
    resource = f"{plural}.{ask.group}" if ask.group else plural
    scope = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    details = {"name": ask.name, "kind": plural}
    if ask.group:
        details["group"] = ask.group
    return refusal.Refused(
        403,
        "Forbidden",
        f'{resource} "{ask.name}" is forbidden: User "{user.name}" cannot impersonate resource '
        f'"{ask.resource}" in API group "{ask.group}" {scope}',
        details=details,
    )
