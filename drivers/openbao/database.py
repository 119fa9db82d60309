"""
The database engine's connection to a cloud's MariaDB, and a role for each service.

OpenBao tries the connection when it is written, so one that is there has worked. With which
version of the root password it was written stands in that path's custom metadata: a newer version
there means that it must be written again. The password goes from OpenBao to OpenBao and nowhere
else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from drivers.openbao import fleet
from drivers.openbao.client import Bao, Refused
from drivers.openbao.parts import DEADLINE, Part
from fleetd.kube.facts import part
from fleetd.vocabulary import Done, Failed, Outcome, Step, make_step
from topology.resource import Facts, Resource

CONNECT = "connect"
ROLE = "write-role"
DROP = "drop"
ENGINE = "database/mariadb"
INSTANCE = "openstack-db"
TTL = "48h"
MAX_TTL = "72h"
_CREATE = (
    "CREATE USER '{{{{name}}}}'@'%' IDENTIFIED BY '{{{{password}}}}';"
    " GRANT ALL PRIVILEGES ON {service}.* TO '{{{{name}}}}'@'%';"
)


class Database(Part):
    async def look(self, want: Resource, seen: dict[str, Any]) -> dict[str, Any]:
        del seen
        cloud, cluster, mount = str(want.spec["cloud"]), str(want.spec["cluster"]), self.mount(want)
        noted, asked = _noted(cloud), self._roles(want)

        def read(bao: Bao) -> tuple[bool, list[str], int, str]:
            there = _connects(bao.read(f"{ENGINE}/config/{cloud}"), cluster)
            roles = [
                role
                for role in bao.keys(f"{ENGINE}/roles")
                if role not in asked or _leads(bao.read(f"{ENGINE}/roles/{role}"), cloud)
            ]
            root = bao.metadata(mount, _root(cluster)) or {}
            used: Mapping[str, str] = root.get("custom_metadata") or {}
            return there, roles, int(root.get("current_version") or 0), used.get(noted, "")

        there, roles, newest, used = await self.ask(want, read)
        missing = [name for name in self._roles(want) if name not in roles]
        if not there and len(missing) == len(self._roles(want)):
            return {}
        return {
            "connection": "works" if there else "missing",
            "current": used == str(newest),
            "roles": {"missing": len(missing), "names": missing},
        }

    def propose(self, want: Resource, seen: Facts) -> Sequence[Step]:
        steps: list[Step] = []
        cloud, cluster = str(want.spec["cloud"]), str(want.spec["cluster"])
        if not seen or seen["connection"] != "works" or not seen["current"]:
            args = {"cloud": cloud, "cluster": cluster, "roles": self._roles(want)}
            why = f"connect OpenBao with the MariaDB of {cluster}"
            steps.append(make_step(want, CONNECT, args, why=why, deadline=DEADLINE, writes=2))
        for name in self._roles(want):
            if not seen or name in seen["roles"]["names"]:
                service = name.removesuffix(f"-openstack-{cluster}")
                args = {"cloud": cloud, "role": name, "service": service}
                why = f"let {service} get database users"
                after = [steps[0].id] if steps and steps[0].verb == CONNECT else ()
                steps.append(make_step(want, ROLE, args, why=why, deadline=DEADLINE, after=after))
        return steps

    def removal(self, want: Resource, seen: Facts) -> Sequence[Step]:
        """The roles first: without the connection nobody could tell whose they were. Users that
        were made end with their lease."""
        if not seen:
            return ()
        there = [name for name in self._roles(want) if name not in seen["roles"]["names"]]
        paths = [f"{ENGINE}/roles/{name}" for name in there]
        if seen["connection"] == "works":
            paths.append(f"{ENGINE}/config/{want.spec['cloud']}")
        steps: list[Step] = []
        for path in paths:
            steps.append(
                make_step(
                    want,
                    DROP,
                    {"path": path},
                    why=f"delete {path} in OpenBao: it was retired",
                    deadline=DEADLINE,
                    destroys=[want.ref],
                    after=[steps[-1].id] if steps else (),
                )
            )
        return steps

    async def act(self, want: Resource, step: Step) -> Outcome:
        match step.verb:
            case "drop":
                await self.ask(want, lambda bao: _drop(bao, want, str(step.args["path"])))
                return Done()
            case "connect":
                return await self._connect(want, step.args)
            case "write-role":
                cloud, role = str(step.args["cloud"]), str(step.args["role"])
                body = {
                    "db_name": cloud,
                    "creation_statements": [_CREATE.format(service=step.args["service"])],
                    "default_ttl": TTL,
                    "max_ttl": MAX_TTL,
                }
                await self.ask(want, lambda bao: bao.write(f"{ENGINE}/roles/{role}", body))
                return Done()
            case _:
                return await super().act(want, step)

    async def _connect(self, want: Resource, args: Facts) -> Outcome:
        cloud, cluster, mount = str(args["cloud"]), str(args["cluster"]), self.mount(want)

        def connect(bao: Bao) -> bool:
            root = bao.secret(mount, _root(cluster))
            if root is None:
                return False
            body = {
                "plugin_name": "mysql-database-plugin",
                "connection_url": f"{{{{username}}}}:{{{{password}}}}@tcp({_host(cluster)})/",
                "allowed_roles": list(args["roles"]),
                "username": "root",
                "password": root.values["root-password"].reveal(),
            }
            bao.write(f"{ENGINE}/config/{cloud}", body)
            version = str(root.version)
            bao.stamp(mount, _root(cluster), {_noted(cloud): version})
            return True

        try:
            found = await self.ask(want, connect)
        except Refused as cause:
            return Failed("ConnectionRefused", str(cause), retry=True)
        if not found:
            said = f"there is no root password at {mount}/{_root(cluster)} yet"
            return Failed("NoPassword", said, retry=True)
        return Done()

    def _roles(self, want: Resource) -> list[str]:
        services: Sequence[str] = want.spec["services"]
        cluster = str(want.spec["cluster"])
        return [f"{one}-openstack-{cluster}" for one in services if one not in fleet.NO_DATABASE]


def _host(cluster: str) -> str:
    return f"{INSTANCE}-primary.openstack-{cluster}.svc.cluster.local:3306"


def _connects(config: Facts | None, cluster: str) -> bool:
    """Whether the connection leads to the database of this cluster."""
    return _host(cluster) in str(part(config, "connection_details").get("connection_url"))


def _leads(role: Facts | None, cloud: str) -> bool:
    return role is not None and role.get("db_name") == cloud


def _drop(bao: Bao, want: Resource, path: str) -> None:
    """If it is still what was made for this cloud."""
    found = bao.read(path)
    ours = (
        _leads(found, str(want.spec["cloud"]))
        if path.startswith(f"{ENGINE}/roles/")
        else _connects(found, str(want.spec["cluster"]))
    )
    if ours:
        bao.ask("delete", path)


def _root(cluster: str) -> str:
    return f"infrastructure/mariadb-{cluster}"


def _noted(cloud: str) -> str:
    return f"fleetd-database-{cloud}"
