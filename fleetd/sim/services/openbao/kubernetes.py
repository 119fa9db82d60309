"""
The Kubernetes auth method, one mount per cluster: a login asks that cluster's API server who the
token belongs to.

The answers are those of the table in `real-secrets` 3 of the facts, odd ones included: almost
every cause gives the same plain "permission denied". A role without an audience takes a token of
any audience. While a connection to the API server is kept open, a changed authority is not
noticed.
"""

import base64
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from fleetd.sim.kube import access, rbac
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.services.openbao import answers, calls
from fleetd.sim.services.openbao.calls import Call
from fleetd.sim.services.openbao.data import Mount
from fleetd.sim.services.openbao.tokens import Tokens
from fleetd.sim.world import HttpResponse, World

POOLED = timedelta(seconds=90)
"""How long an idle connection to an API server is kept."""
REVIEWER = "system:auth-delegator"
NO_AUDIENCE = "invalid audience (aud) claim: audience claim does not match any expected audience"
_REVIEW = rbac.Ask(verb="create", group="authentication.k8s.io", resource="tokenreviews")
_KEPT = (
    *("bound_service_account_names", "bound_service_account_namespaces"),
    *("audience", "token_policies", "policies", "token_ttl", "token_max_ttl", "ttl", "max_ttl"),
    *("token_no_default_policy", "alias_name_source", "token_type"),
)


class KubernetesAuth:
    def __init__(self, world: World) -> None:
        self._world = world
        self._connected: dict[str, Any] = {}
        """Mount to the time of its last good connection. Lost at a restart, as the real one."""

    def handle(self, mount: Mount, call: Call, tokens: Tokens) -> HttpResponse:
        head, _, name = call.path.partition("/")
        match head:
            case "config":
                return self._config(mount, call)
            case "role":
                return self._role(mount, name, call)
            case "login" if call.operation == "update":
                return self._login(mount, call, tokens)
            case _:
                raise answers.Refused(404)

    def _config(self, mount: Mount, call: Call) -> HttpResponse:
        if call.operation == "read":
            found = mount.settings.get("config")
            if found is None:
                raise answers.Refused(404)
            shown = {key: value for key, value in found.items() if key != "token_reviewer_jwt"}
            return answers.data(
                {**shown, "token_reviewer_jwt_set": bool(found.get("token_reviewer_jwt"))}
            )
        body = dict(call.body)
        if not body.get("kubernetes_host"):
            raise answers.Refused(400, "no host provided")
        if not body.get("kubernetes_ca_cert"):
            local = body.get("disable_local_ca_jwt")
            raise answers.Refused(
                400,
                "kubernetes_ca_cert must be given when disable_local_ca_jwt is true"
                if local
                else "open /var/run/secrets/kubernetes.io/serviceaccount/ca.crt: "
                "no such file or directory",
            )
        mount.settings["config"] = body
        return answers.nothing()

    def _role(self, mount: Mount, name: str, call: Call) -> HttpResponse:
        key = f"role/{name}"
        match call.operation:
            case "list":
                roles = [one.removeprefix("role/") for one in sorted(mount.settings)]
                return answers.keys([one for one in roles if one != "config"])
            case "read":
                if key not in mount.settings:
                    raise answers.Refused(404)
                return answers.data(_shown(mount.settings[key]))
            case "delete":
                mount.settings.pop(key, None)
                return answers.nothing()
            case _:
                given = {name: call.body[name] for name in _KEPT if name in call.body}
                if not calls.words(given.get("bound_service_account_names")):
                    raise answers.Refused(400, '"bound_service_account_names" can not be empty')
                mount.settings[key] = {**mount.settings.get(key, {}), **given}
                return answers.nothing()

    def _login(self, mount: Mount, call: Call, tokens: Tokens) -> HttpResponse:
        name = str(call.body.get("role") or "")
        role = mount.settings.get(f"role/{name}")
        if not name:
            raise answers.Refused(400, "missing role")
        if role is None:
            raise answers.Refused(400, f'invalid role name "{name}"')
        config = mount.settings.get("config")
        if config is None:
            raise answers.Refused(500, "could not load backend configuration")
        jwt = str(call.body.get("jwt") or "")
        claims = _claims(jwt)
        audience = str(role.get("audience") or "")
        if audience and audience not in claims.get("aud", ()):
            raise answers.Refused(403, NO_AUDIENCE)
        account = self._review(mount, config, jwt, claims)
        namespace, account_name, uid = account
        if not _bound(role["bound_service_account_names"], account_name):
            raise answers.Refused(403, "service account name not authorized")
        if not _bound(role.get("bound_service_account_namespaces"), namespace):
            raise answers.Refused(403, "namespace not authorized")
        meta = {
            "role": name,
            "service_account_name": account_name,
            "service_account_namespace": namespace,
            "service_account_uid": uid,
        }
        where = mount.path.removeprefix("auth/").strip("/").replace("/", "-")
        return tokens.login(mount, role, f"{where}-{namespace}-{account_name}", meta)

    def _review(
        self, mount: Mount, config: Mapping[str, Any], jwt: str, claims: Mapping[str, Any]
    ) -> tuple[str, str, str]:
        """Namespace, name and uid of the token's ServiceAccount, as the cluster tells it."""
        cluster = self._cluster(str(config["kubernetes_host"]))
        if cluster is None or not self._trusts(mount, cluster, str(config["kubernetes_ca_cert"])):
            raise answers.denied()
        reviewer = str(config.get("token_reviewer_jwt") or "") or jwt
        try:
            asking = cluster.tokens.user(reviewer)
            if not may_review(cluster, asking):
                raise answers.denied()
            # The plugin names the token's own audiences: so a role without one takes any.
            cluster.tokens.user(jwt, tuple(claims.get("aud", ())))
        except access.BadToken:
            raise answers.denied() from None
        self._connected[mount.path] = self._world.now()
        account = cluster.tokens.passes[jwt].account
        if account is None:
            raise answers.denied()
        return account

    def _cluster(self, host: str) -> Cluster | None:
        wanted = host.rstrip("/")
        for name, cluster in self._world.clusters.items():
            if self._world.address(name).rstrip("/") == wanted:
                return cluster
        return None

    def _trusts(self, mount: Mount, cluster: Cluster, authority: str) -> bool:
        last = self._connected.get(mount.path)
        if last is not None and self._world.now() - last < POOLED:
            return True
        return authority.strip() == authority_of(self._world, cluster.name).strip()


def authority_of(world: World, name: str) -> str:
    """The certificate authority of a cluster, as its garden publishes it, or else itself."""
    for cluster in world.clusters.values():
        for published in cluster.list(("", "ConfigMap")):
            if published["metadata"]["name"] == f"{name}.ca-cluster":
                return str(published["data"]["ca.crt"])
    own = world.clusters[name].get(("", "ConfigMap"), "kube-root-ca.crt", "kube-system")
    return str(own["data"]["ca.crt"]) if own is not None else ""


def may_review(cluster: Cluster, user: access.User) -> bool:
    """By its rules, or by being bound to the built-in role for it."""
    if cluster.rbac.allows(user, _REVIEW):
        return True
    for binding in cluster.list((rbac.GROUP, "ClusterRoleBinding")):
        if binding["roleRef"]["name"] != REVIEWER:
            continue
        for subject in binding.get("subjects") or ():
            named = f"system:serviceaccount:{subject.get('namespace', '')}:{subject['name']}"
            if named == user.name:
                return True
    return False


def _bound(allowed: object, name: str) -> bool:
    words = calls.words(allowed)
    return "*" in words or name in words


def _claims(jwt: str) -> Mapping[str, Any]:
    parts = jwt.split(".")
    if len(parts) != 3:
        raise answers.denied()
    try:
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (ValueError, msgspec.MsgspecError):
        raise answers.denied() from None


def _shown(role: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **role,
        "bound_service_account_names": calls.words(role.get("bound_service_account_names")),
        "bound_service_account_namespaces": calls.words(
            role.get("bound_service_account_namespaces")
        ),
        "token_policies": calls.words(role.get("token_policies") or role.get("policies")),
        "audience": role.get("audience", ""),
        "token_ttl": calls.seconds(role.get("token_ttl") or role.get("ttl"), 0),
        "token_max_ttl": calls.seconds(role.get("token_max_ttl") or role.get("max_ttl"), 0),
    }
