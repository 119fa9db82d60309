"""
The database engine: a connection to a MariaDB, roles, and users that end with their lease.

The connection works while the MariaDB that its address names is Ready; which cluster that is, is
read from the namespace in the address. No user is really made: nothing here connects as one.
"""

import re
from datetime import timedelta
from typing import Any

from fleetd.sim.services.openbao import answers, calls
from fleetd.sim.services.openbao.calls import Call
from fleetd.sim.services.openbao.data import Data, Lease, Mount
from fleetd.sim.world import HttpResponse, World

MARIADB = ("k8s.mariadb.com", "MariaDB")
_HOST = re.compile(r"tcp\(([^)]*)\)")


class Database:
    def __init__(self, world: World, name: str, data: Data) -> None:
        self._world = world
        self._name = name
        self._data = data

    def handle(self, mount: Mount, call: Call) -> HttpResponse:
        head, _, name = call.path.partition("/")
        match head:
            case "config" | "roles":
                return self._stored(mount, head, name, call)
            case "creds" if call.operation == "read":
                return self._user(mount, name, call)
            case "reset" if call.operation == "update":
                self._connect(mount.settings.get(f"config/{name}"))
                return answers.nothing()
            case _:
                raise answers.Refused(404)

    def _stored(self, mount: Mount, head: str, name: str, call: Call) -> HttpResponse:
        key = f"{head}/{name}"
        match call.operation:
            case "list":
                return answers.keys(
                    [
                        one.removeprefix(f"{head}/")
                        for one in sorted(mount.settings)
                        if one.startswith(f"{head}/")
                    ]
                )
            case "read":
                if key not in mount.settings:
                    raise answers.Refused(404)
                found = mount.settings[key]
                return answers.data(_config_shown(found) if head == "config" else found)
            case "delete":
                mount.settings.pop(key, None)
                return answers.nothing()
            case _:
                made = {**mount.settings.get(key, {}), **call.body}
                if head == "config":
                    if not made.get("plugin_name"):
                        raise answers.Refused(400, '"plugin_name" not found')
                    if made.get("verify_connection", True):
                        self._connect(made)
                elif not made.get("db_name"):
                    raise answers.Refused(400, "empty database name attribute")
                mount.settings[key] = made
                return answers.nothing()

    def _connect(self, config: dict[str, Any] | None) -> None:
        if config is None:
            raise answers.Refused(400, "failed to find entry for connection with name")
        failed = "error creating database object: error verifying connection: "
        host = _HOST.search(str(config.get("connection_url", "")))
        found = self._mariadb(host.group(1) if host else "")
        if found is None:
            raise answers.Refused(400, f"{failed}ping failed: dial tcp: lookup: no such host")
        ready = {
            one["type"]: one["status"] for one in found.get("status", {}).get("conditions", [])
        }
        if ready.get("Ready") != "True":
            raise answers.Refused(400, f"{failed}ping failed: dial tcp: connection refused")

    def _mariadb(self, host: str) -> dict[str, Any] | None:
        for cluster in self._world.clusters.values():
            for found in cluster.list(MARIADB):
                metadata = found["metadata"]
                name = str(metadata["name"])
                named = f"{metadata['namespace']}.svc" in host or f".{cluster.name}." in f".{host}"
                if named and host.startswith(name):
                    return found
        return None

    def _user(self, mount: Mount, name: str, call: Call) -> HttpResponse:
        role = mount.settings.get(f"roles/{name}")
        if role is None:
            raise answers.Refused(400, f"unknown role: {name}")
        config = mount.settings.get(f"config/{role['db_name']}")
        allowed = calls.words((config or {}).get("allowed_roles"))
        if "*" not in allowed and name not in allowed:
            raise answers.Refused(400, f'"{name}" is not an allowed role')
        self._connect(config)
        number = str(self._data.number("lease"))
        password = self._world.token(self._name, self._data.cluster_id, "database", number)
        user = f"v-{name[:8]}-{number}"
        ttl = calls.seconds(role.get("default_ttl"), 768 * 3600)
        lease = f"{mount.path}creds/{name}/{password[:24]}"
        self._data.leases[lease] = Lease(
            id=lease,
            token=call.token.id if call.token else "",
            expires=call.now + timedelta(seconds=ttl),
            user=user,
        )
        return answers.data({"username": user, "password": password}, lease=lease, seconds=ttl)


def _config_shown(config: dict[str, Any]) -> dict[str, Any]:
    details = {key: config[key] for key in ("connection_url", "username") if key in config}
    return {
        "plugin_name": config.get("plugin_name", ""),
        "allowed_roles": calls.words(config.get("allowed_roles")),
        "connection_details": details,
    }
