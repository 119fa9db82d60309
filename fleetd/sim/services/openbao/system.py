"""The paths below sys/ that need a token: engines, auth methods, policies, Raft, leases, chance."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from fleetd.sim.services.openbao import answers, calls, policy
from fleetd.sim.services.openbao.calls import Call
from fleetd.sim.services.openbao.data import Data, Mount
from fleetd.sim.services.openbao.members import Member, Members
from fleetd.sim.services.openbao.tokens import Tokens
from fleetd.sim.world import HttpResponse, World

ENGINES = frozenset({"kv", "pki", "database", "transit", "totp", "ssh", "rabbitmq", "cubbyhole"})
METHODS = frozenset({"kubernetes", "approle", "token", "userpass", "jwt", "oidc", "cert", "ldap"})
AUDIT = "cannot enable audit device via API; use declarative, config-based audit device management"
RANDOM_MAX = 128 * 1024
_DEFAULT_TTL = 2764800


class System:
    def __init__(
        self, world: World, name: str, data: Data, members: Members, tokens: Tokens
    ) -> None:
        self._world = world
        self._name = name
        self._data = data
        self._members = members
        self._tokens = tokens

    def furnish(self) -> None:
        """What a fresh store has of its own."""
        for path, kind in (("cubbyhole/", "cubbyhole"), ("auth/token/", "token")):
            self._data.mounts[path] = self._mount(path, kind, {})
        self._data.policies = {policy.DEFAULT: policy.DEFAULT_TEXT, policy.ROOT: ""}

    def handle(self, member: Member, call: Call) -> HttpResponse:
        head, _, rest = call.path.partition("/")
        match head:
            case "mounts" | "auth":
                return self._mounts(head, rest, call)
            case "policies" | "policy":
                return self._policies(rest.removeprefix("acl").lstrip("/"), call)
            case "storage":
                return self._raft(rest.removeprefix("raft/"), call)
            case "audit":
                return self._audit(call)
            case "seal" if call.operation == "update":
                self._members.close(member)
                return answers.nothing()
            case "step-down" if call.operation == "update":
                self._members.step_down()
                return answers.nothing()
            case "capabilities-self" | "capabilities":
                return self._capabilities(call)
            case "tools" if rest.startswith("random"):
                return self._random(rest, call)
            case "leases":
                return self._leases(rest, call)
            case _:
                raise answers.Refused(404)

    def _mounts(self, head: str, rest: str, call: Call) -> HttpResponse:
        prefix = "auth/" if head == "auth" else ""
        tune = rest.endswith("/tune") or rest == "tune"
        path = f"{prefix}{rest.removesuffix('/tune').strip('/')}/"
        if not rest:
            return answers.data(
                {
                    one.path.removeprefix(prefix): _shown(one)
                    for one in self._data.mounts.values()
                    if one.path.startswith("auth/") == bool(prefix)
                }
            )
        found = self._data.mounts.get(path)
        if call.operation == "update" and not tune:
            return self._enable(path, prefix, found, call)
        if found is None:
            raise answers.Refused(400, f"No secret engine mount at {path}")
        match call.operation:
            case "read":
                return answers.data(_tuned(found) if tune else _shown(found))
            case "delete":
                del self._data.mounts[path]
                return answers.nothing()
            case _:
                found.description = str(call.body.get("description", found.description))
                for key in ("default_lease_ttl", "max_lease_ttl"):
                    if key in call.body:
                        found.config[key] = call.body[key]
                return answers.nothing()

    def _enable(self, path: str, prefix: str, found: Mount | None, call: Call) -> HttpResponse:
        kind = str(call.body.get("type") or "")
        known = METHODS if prefix else ENGINES
        if kind == "kv-v2":
            kind = "kv"
        if kind not in known:
            raise answers.Refused(400, f'plugin not found in the catalog: "{kind}"')
        taken = found or next(
            (
                one
                for one in self._data.mounts.values()
                if one.path.startswith(path) or path.startswith(one.path)
            ),
            None,
        )
        if taken is not None:
            raise answers.Refused(400, f"path is already in use at {taken.path}")
        self._data.mounts[path] = self._mount(path, kind, call.body)
        return answers.nothing()

    def _mount(self, path: str, kind: str, body: Mapping[str, Any]) -> Mount:
        options: dict[str, str] = dict(body.get("options") or {})
        if body.get("type") == "kv-v2":
            options["version"] = "2"
        accessor = self._world.token(self._name, self._data.cluster_id, "mount", path)[:8]
        return Mount(
            path=path,
            type=kind,
            accessor=f"{'auth_' if path.startswith('auth/') else ''}{kind}_{accessor}",
            description=str(body.get("description") or ""),
            options=options,
            config=dict(body.get("config") or {}),
        )

    def _policies(self, name: str, call: Call) -> HttpResponse:
        match call.operation:
            case "list" | "read" if not name:
                return answers.keys(sorted(self._data.policies))
            case "read":
                if name not in self._data.policies:
                    raise answers.Refused(404)
                text = self._data.policies[name]
                return answers.data({"name": name, "policy": text, "rules": text})
            case "delete":
                self._data.policies.pop(name, None)
                return answers.nothing()
            case _:
                text = str(call.body.get("policy") or "")
                if name == policy.ROOT:
                    raise answers.Refused(400, 'cannot update "root" policy')
                try:
                    policy.parse(text)
                except policy.BadPolicy as cause:
                    raise answers.Refused(400, str(cause)) from None
                self._data.policies[name] = text
                return answers.nothing()

    def _raft(self, what: str, call: Call) -> HttpResponse:
        now = self._world.now()
        match what:
            case "configuration":
                servers = [
                    {
                        "node_id": node,
                        "address": f"{node}.openbao-internal:8201",
                        "leader": self._leads(node),
                        "protocol_version": "3",
                        "voter": votes <= now,
                    }
                    for node, votes in self._data.peers.items()
                ]
                return answers.data({"config": {"servers": servers, "index": 0}})
            case "autopilot/state":
                alive = {one.node for one in self._members.all if one.serves}
                up = sum(1 for node in self._data.peers if node in alive)
                total = len(self._data.peers)
                return answers.data(
                    {
                        "healthy": up == total,
                        "failure_tolerance": max(0, up - (total // 2 + 1)),
                        "servers": {
                            node: {
                                "healthy": node in alive,
                                "status": "leader" if self._leads(node) else "voter",
                            }
                            for node in self._data.peers
                        },
                    }
                )
            case "snapshot" if call.operation == "read":
                return HttpResponse(status=200, body=b"\x1f\x8b simulated snapshot")
            case "remove-peer" if call.operation == "update":
                self._members.remove(str(call.body.get("server_id") or ""))
                return answers.nothing()
            case _:
                raise answers.Refused(404)

    def _leads(self, node: str) -> bool:
        leader = self._members.leader
        return leader is not None and self._members.all[leader].node == node

    def _audit(self, call: Call) -> HttpResponse:
        if call.operation == "read":
            options = {"file_path": self._members.data.audit}
            return answers.data({"file/": {"type": "file", "options": options, "path": "file/"}})
        raise answers.Refused(400, f"{AUDIT} instead")

    def _capabilities(self, call: Call) -> HttpResponse:
        token = call.token
        if token is None:
            raise answers.denied()
        found = {
            path: sorted(self._tokens.granted(token, path)) or ["deny"]
            for path in calls.words(call.body.get("paths") or call.body.get("path"))
        }
        return answers.data({**found, "capabilities": next(iter(found.values()), ["deny"])})

    def _random(self, rest: str, call: Call) -> HttpResponse:
        last = rest.rpartition("/")[2]
        count = int(last) if last.isdigit() else int(call.body.get("bytes") or 32)
        if not 0 < count <= RANDOM_MAX:
            raise answers.Refused(400, f'"bytes" should be less than {RANDOM_MAX}')
        number = str(self._data.number("random"))
        seed = self._world.token(self._name, self._data.cluster_id, "random", number).encode()
        made = b"".join(
            hashlib.blake2b(seed, salt=block.to_bytes(8)).digest()
            for block in range(count // 64 + 1)
        )[:count]
        text = made.hex() if call.body.get("format") == "hex" else base64.b64encode(made).decode()
        return answers.data({"random_bytes": text})

    def _leases(self, what: str, call: Call) -> HttpResponse:
        lease = str(call.body.get("lease_id") or what.partition("/")[2])
        if what.startswith("revoke"):
            self._data.leases.pop(lease, None)
            return answers.nothing()
        found = self._data.leases.get(lease)
        if found is None:
            raise answers.Refused(400, "invalid lease")
        return answers.data({"id": found.id, "expire_time": found.expires.isoformat()})


def _shown(mount: Mount) -> dict[str, Any]:
    return {
        "type": mount.type,
        "accessor": mount.accessor,
        "description": mount.description,
        "options": mount.options or None,
        "config": _tuned(mount),
        "local": False,
        "seal_wrap": False,
    }


def _tuned(mount: Mount) -> dict[str, Any]:
    return {
        "default_lease_ttl": calls.seconds(mount.config.get("default_lease_ttl"), _DEFAULT_TTL),
        "max_lease_ttl": calls.seconds(mount.config.get("max_lease_ttl"), _DEFAULT_TTL),
        "description": mount.description,
    }
