"""
Keystone: tokens for passwords and application credentials, and the catalogue that comes with them.

Imitates what clients of v3 need: discovery, `auth/tokens`, and reading domains, projects, users,
roles, assignments, services and endpoints. Writing is K-ORC's business (`controllers.korc`), which
changes the same tables. An application credential carries its project; a password asks for one.
"""

from typing import Any

from fleetd.sim.services import openstack_http as http
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import TOKEN_LIFE, TYPES, Thing, Token
from fleetd.sim.services.openstack_http import Api, Call, Refused, route
from fleetd.sim.world import HttpResponse

FAR = "2999-01-01T00:00:00.000000Z"
"""When a token says it ends. Clients hold that against the clock of their machine, which is not
that of the world, and a seed must not hang on it. What counts is the 401 after `TOKEN_LIFE`."""
_DENIED = "The request you have made requires authentication."


class Keystone(Api):
    service = "keystone"

    def versions(self, call: Call) -> HttpResponse:
        del call
        return http.reply({"versions": {"values": [self._version()]}}, status=300)

    def version(self, call: Call) -> dict[str, Any]:
        del call
        return {"version": self._version()}

    def _version(self) -> dict[str, Any]:
        return {
            "id": "v3.14",
            "status": "stable",
            "links": [{"rel": "self", "href": f"{self.address}/v3/"}],
            "media-types": [],
        }

    # Logging in.

    def login(self, call: Call) -> HttpResponse:
        auth = shape.part(call.body(), "auth")
        identity = shape.part(auth, "identity")
        methods: list[str] = identity.get("methods") or []
        if methods == ["application_credential"]:
            user, project = self._by_credential(identity["application_credential"])
            by = str(identity["application_credential"]["id"])
        elif methods == ["password"]:
            user = self._by_password(shape.part(identity, "password.user"))
            project = self._scope(shape.part(auth, "scope.project"))
            by = user.id
        else:
            raise Refused(401, _DENIED)
        cloud = self.cloud
        held = [role for (who, where, role) in cloud.roles if (who, where) == (user.id, project.id)]
        if not held:
            raise Refused(401, _DENIED)
        number = len(cloud.tokens) + 1
        value = cloud.world.token("token", cloud.name, str(number))
        expires = cloud.world.elapsed() + TOKEN_LIFE
        cloud.tokens[value] = Token(user=user.id, project=project.id, expires=expires, by=by)
        body = {"token": self._token(user, project, held, methods)}
        return http.reply(body, status=201, headers={"x-subject-token": value})

    def _by_credential(self, given: dict[str, Any]) -> tuple[Thing, Thing]:
        cloud = self.cloud
        rows = cloud.tables.get("ApplicationCredential", {})
        found = rows.get(str(given.get("id")))
        if found is None or cloud.secrets.get(found.id) != given.get("secret"):
            raise Refused(401, _DENIED)
        user = cloud.tables["User"].get(found.more["user_id"])
        project = cloud.tables["Project"].get(found.more["project_id"])
        if user is None or project is None:
            raise Refused(401, _DENIED)
        return user, project

    def _by_password(self, given: dict[str, Any]) -> Thing:
        users = self.cloud.tables["User"].values()
        name, key = given.get("name"), given.get("id")
        found = next((one for one in users if one.id == key or one.name == name), None)
        if found is None or self.cloud.secrets.get(found.id) != given.get("password"):
            raise Refused(401, _DENIED)
        return found

    def _scope(self, given: dict[str, Any]) -> Thing:
        domain = shape.part(given, "domain")
        wanted = domain.get("id") or self._domain(str(domain.get("name", "Default")))
        rows = self.cloud.tables["Project"].values()
        for one in rows:
            if one.id == given.get("id"):
                return one
            if one.name == given.get("name") and one.more.get("domain_id") == wanted:
                return one
        raise Refused(401, _DENIED)

    def _domain(self, name: str) -> str:
        found = self.cloud.find("Domain", name)
        return found.id if found else ""

    def _token(
        self, user: Thing, project: Thing, roles: list[str], methods: list[str]
    ) -> dict[str, Any]:
        names = self.cloud.tables["Role"]
        return {
            "methods": methods,
            "user": {"id": user.id, "name": user.name, "domain": {"id": "default"}},
            "project": {
                "id": project.id,
                "name": project.name,
                "domain": {"id": project.more.get("domain_id")},
            },
            "roles": [{"id": key, "name": names[key].name} for key in roles],
            "issued_at": self.cloud.world.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "expires_at": FAR,
            "catalog": self._catalogue(),
            "is_domain": False,
            "audit_ids": [],
        }

    def _catalogue(self) -> list[dict[str, Any]]:
        names = {kind: name for name, kind in TYPES.items()}
        return [
            {
                "id": self.cloud.uid("service", kind),
                "type": kind,
                "name": names.get(kind, kind),
                "endpoints": [
                    {
                        "id": self.cloud.uid("endpoint", kind),
                        "interface": "public",
                        "region": self.cloud.region,
                        "region_id": self.cloud.region,
                        "url": url,
                    }
                ],
            }
            for kind, url in self.cloud.endpoints.items()
        ]

    # Reading.

    def _listed(self, kind: str, plural: str, call: Call) -> dict[str, Any]:
        query = call.query
        rows = self.cloud.tables.get(kind, {}).values()
        shown = [{"id": row.id, "name": row.name, "enabled": True, **row.more} for row in rows]
        for key in ("name", "domain_id", "type"):
            if key in query:
                shown = [row for row in shown if row.get(key) == query[key]]
        return {plural: shown, "links": {"self": "", "next": None, "previous": None}}

    def domains(self, call: Call) -> dict[str, Any]:
        return self._listed("Domain", "domains", call)

    def projects(self, call: Call) -> dict[str, Any]:
        return self._listed("Project", "projects", call)

    def users(self, call: Call) -> dict[str, Any]:
        return self._listed("User", "users", call)

    def held_roles(self, call: Call) -> dict[str, Any]:
        return self._listed("Role", "roles", call)

    def assignments(self, call: Call) -> dict[str, Any]:
        query = call.query
        shown = [
            {"user": {"id": user}, "role": {"id": role}, "scope": {"project": {"id": project}}}
            for (user, project, role) in self.cloud.roles
            if query.get("user.id", user) == user
            and query.get("scope.project.id", project) == project
            and query.get("role.id", role) == role
        ]
        return {"role_assignments": shown, "links": {"next": None}}


Keystone.routes = (
    route("GET", "/", Keystone.versions, free=True),
    route("GET", "/v3", Keystone.version, free=True),
    route("POST", "/v3/auth/tokens", Keystone.login, free=True),
    route("GET", "/v3/domains", Keystone.domains),
    route("GET", "/v3/projects", Keystone.projects),
    route("GET", "/v3/users", Keystone.users),
    route("GET", "/v3/roles", Keystone.held_roles),
    route("GET", "/v3/role_assignments", Keystone.assignments),
)
