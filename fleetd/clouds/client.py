"""
The wire to an OpenStack cloud: logging in, and the few requests that fleetd makes.

Where Keystone is, its own object on the control-plane cluster says; who we are, the clouds.yaml
that the c5c3-operator keeps there. Both are read anew for each look, so a rotated credential is
used at once; a login with it is used again for `ENTERED`, unless it lacks what is asked for or
something goes wrong. Everything here blocks and runs in `Ways.blocking`. The one rule: the secret
goes into the session and nowhere else, and no error quotes a request.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlsplit

import msgspec
import requests
from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from fleetd import errors, plainyaml
from fleetd.gate import GateClosed
from fleetd.kube import errors as kube
from fleetd.kube import facts
from fleetd.secrets import Secret
from fleetd.tools import Tools
from topology import blind

CREDENTIALS = "k-orc-clouds-yaml"
ENTERED = timedelta(minutes=5)
"""How long a login, and the catalogue that came with it, is used again. A token that ends sooner
is renewed by the library."""
LIMIT = 10.0
"""Seconds for one request. A look has 20."""
COMPUTE = "2.88"
"""Microversion: uuids of services and hypervisors, servers of a hypervisor, migrations by host."""
PLACEMENT = "1.6"
"""Microversion: traits."""
ROOM = "1.22"
"""Microversion of Placement: candidates without some trait."""
VERSIONS: Mapping[str, str] = {
    "compute": "2.1",
    "network": "2.0",
    "block-storage": "3",
    "placement": "1",
    "identity": "3",
}
"""Of the APIs. A catalogue may name the service or one version of it; both lead there."""

T = TypeVar("T")
Json = dict[str, Any]


class CannotLook(errors.FleetError):
    """The cloud, or the way to it, does not answer, or not yet."""


class Silent(CannotLook):
    """Nobody answers."""

    blind = blind.NO_ANSWER


class Denied(errors.FleetError):
    """It answers, and our account may not."""


class Refused(errors.FleetError):
    """It answers, and will not do it as asked."""


class NotThere(errors.FleetError):
    """The service has no endpoint in the catalogue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    cloud: str
    url: str
    region: str
    credential: str
    """Id of the application credential."""
    secret: Secret


async def login(tools: Tools, backend: str, namespace: str, cloud: str) -> Login:
    """Raises CannotLook while the control plane has no credential for us."""
    found = await tools.clusters.secret(backend, CREDENTIALS, namespace)
    if found is None:
        raise CannotLook(f"Secret {CREDENTIALS} is not in {namespace} yet")
    try:
        clouds: Json = plainyaml.load(found.values["clouds.yaml"].reveal())["clouds"]
        entry: Json = next(iter(clouds.values()))
        auth: Json = entry["auth"]
        credential = str(auth["application_credential_id"])
        secret = Secret(str(auth["application_credential_secret"]))
        url = str(auth["auth_url"])
    except (KeyError, ValueError, TypeError, StopIteration, plainyaml.Error):
        raise CannotLook(f"clouds.yaml in Secret {CREDENTIALS} cannot be read") from None
    keystone = await _keystone(tools, backend, namespace, cloud)
    return Login(
        cloud=cloud,
        url=f"{keystone}/v3" if keystone else url,
        region=str(entry.get("region_name") or ""),
        credential=credential,
        secret=secret,
    )


async def _keystone(tools: Tools, backend: str, namespace: str, cloud: str) -> str:
    """Where Keystone is, as its operator says; what is in clouds.yaml may be an address that only
    the cluster knows."""
    try:
        cache = await tools.clusters.cache(backend, "keystone.openstack.c5c3.io", "Keystone")
    except kube.NotFound:
        return ""
    live = cache.get(f"{cloud}-keystone", namespace)
    url = str(facts.part(live, "status").get("endpoint") or "")
    return url.rstrip("/").removesuffix("/v3")


async def ask(tools: Tools, who: Login, call: "Callable[[Cloud], T]") -> T:
    """Runs `call` with a session of its own."""
    backend = f"openstack:{who.cloud}"
    entry = await _entry(tools, backend, who)

    def work(session: requests.Session) -> T:
        with _translated():
            inside = Session(auth=entry.auth, session=session, timeout=LIMIT, app_name="fleetd")
            return call(Cloud(inside, who.region))

    try:
        return await tools.net.blocking(backend, work)
    except GateClosed as closed:
        raise Silent(str(closed)) from None
    except errors.FleetError:
        tools.polls.forget(backend, _ENTRY)
        raise


_ENTRY = "login"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A login that many calls share. The plugin has the token, and a lock of its own."""

    who: Login
    auth: "_Plugin"


class _Plugin(v3.ApplicationCredential):
    """Says of nothing that it is missing because of an old catalogue, and seeks what it found in
    one only once."""

    def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401 - the library's
        super().__init__(*given, **more)
        self._catalogue: Any = None
        self._found: dict[str, Any] = {}

    def get_endpoint_data(self, session: Any, *given: Any, **more: Any) -> Any:  # noqa: ANN401 - the library's
        if self.get_access(session) is not self._catalogue:
            self._catalogue, self._found = self.auth_ref, {}
        asked = repr((given, sorted(more.items())))
        found = self._found.get(asked)
        if found is None:
            found = self._sought(session, *given, **more)
            if self.auth_ref is self._catalogue:
                self._found[asked] = found
        return found

    def _sought(self, *given: Any, **more: Any) -> Any:  # noqa: ANN401 - the library's
        kept = self.auth_ref is not None
        try:
            return super().get_endpoint_data(*given, **more)
        except exceptions.CatalogException:
            if not kept:
                raise
        self.invalidate()
        return super().get_endpoint_data(*given, **more)


async def _entry(tools: Tools, backend: str, who: Login) -> _Entry:
    """The one that is kept, if it is for this very credential."""

    async def enter() -> _Entry:
        auth = _Plugin(
            auth_url=who.url,
            application_credential_id=who.credential,
            application_credential_secret=who.secret.reveal(),
        )
        return _Entry(who=who, auth=auth)

    found = await tools.polls.get(backend, _ENTRY, enter, lambda _: ENTERED)
    if found.who != who:
        tools.polls.forget(backend, _ENTRY)
        found = await tools.polls.get(backend, _ENTRY, enter, lambda _: ENTERED)
    return found


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except exceptions.Forbidden as cause:
        raise Denied(_said(cause)) from None
    except (exceptions.EndpointNotFound, exceptions.CatalogException) as cause:
        raise NotThere(_said(cause)) from None
    except exceptions.Unauthorized as cause:
        raise CannotLook(f"our application credential is not accepted: {_said(cause)}") from None
    except exceptions.HttpError as cause:
        if cause.http_status >= 500 or cause.http_status in (408, 429):
            raise CannotLook(_said(cause)) from None
        raise Refused(_said(cause)) from None
    except exceptions.ClientException as cause:
        raise Silent(_said(cause)) from None
    except KeyError as cause:
        raise CannotLook(f"a part of its answer has no {cause}") from None


def _said(cause: Exception) -> str:
    return " ".join(str(cause).split())[:300]


class Cloud:
    """One cloud while a session lasts."""

    def __init__(self, session: Session, region: str) -> None:
        self._session: Any = session
        self._region = region

    def _at(self, service: str) -> Any:  # noqa: ANN401 - keystoneauth has few types
        return Adapter(
            session=self._session,
            service_type=service,
            interface="public",
            region_name=self._region or None,
            version=VERSIONS[service],
        )

    def enter(self) -> None:
        """Log in now, whatever is kept: for who must know that Keystone answers."""
        self._session.invalidate()
        self._session.get_token()

    def registered(self, kind: str) -> bool:
        """Whether the catalogue has an endpoint of this type."""
        try:
            url = self._session.get_endpoint(
                service_type=kind, interface="public", region_name=self._region or None
            )
        except exceptions.EndpointNotFound:
            return False
        return bool(url)

    # Services and their state.

    def nova_services(self) -> list[Json]:
        return self._list(self._at("compute"), "/os-services", "services", COMPUTE)

    def neutron_agents(self) -> list[Json]:
        return self._list(self._at("network"), "/agents", "agents")

    def cinder_services(self) -> list[Json]:
        return self._list(self._at("block-storage"), "/os-services", "services")

    # Hosts.

    def servers_on(self, host: str) -> list[Json]:
        query = f"/servers/detail?all_tenants=1&host={quote(host, safe='')}"
        return self._list(self._at("compute"), query, "servers", COMPUTE)

    def servers(self) -> list[Json]:
        return self._list(self._at("compute"), "/servers/detail?all_tenants=1", "servers", COMPUTE)

    def migrations(self, host: str) -> list[Json]:
        return self._list(
            self._at("compute"),
            f"/os-migrations?host={quote(host, safe='')}",
            "migrations",
            COMPUTE,
        )

    # Aggregates and traits.

    def aggregates(self) -> list[Json]:
        found = self._list(self._at("compute"), "/os-aggregates", "aggregates", COMPUTE)
        return [{key: one[key] for key in ("id", "name", "hosts", "metadata")} for one in found]

    def make_aggregate(self, name: str, zone: str) -> int:
        wanted: Json = {"name": name, "availability_zone": zone or None}
        answer = self._at("compute").post(
            "/os-aggregates", json={"aggregate": wanted}, microversion=COMPUTE, raise_exc=True
        )
        return int(_decoded(answer)["aggregate"]["id"])

    def set_metadata(self, aggregate: int, metadata: Mapping[str, str]) -> None:
        body = {"set_metadata": {"metadata": dict(metadata)}}
        self._at("compute").post(
            f"/os-aggregates/{aggregate}/action", json=body, microversion=COMPUTE, raise_exc=True
        )

    def drop_aggregate(self, aggregate: int) -> None:
        self._at("compute").delete(
            f"/os-aggregates/{aggregate}", microversion=COMPUTE, raise_exc=True
        )

    def traits(self) -> list[str]:
        answer = self._at("placement").get(
            "/traits?name=startswith:CUSTOM_", microversion=PLACEMENT, raise_exc=True
        )
        found = _decoded(answer).get("traits")
        if not isinstance(found, list):
            raise CannotLook("it answers without the traits that it was asked for")
        return [str(one) for one in cast("list[object]", found)]

    def make_trait(self, name: str) -> None:
        self._at("placement").put(f"/traits/{name}", microversion=PLACEMENT, raise_exc=True)

    def providers(self) -> dict[str, str]:
        """Names of all hosts in Placement, by uuid."""
        path = "/resource_providers"
        found = self._list(self._at("placement"), path, "resource_providers", PLACEMENT)
        return {str(one["uuid"]): str(one["name"]) for one in found}

    def candidates(self, vcpus: int, memory: int) -> dict[str, Json]:
        """Hosts that are not disabled and have room for a machine of this size, by uuid: what they
        have and what is used of it. This is what Nova's scheduler asks."""
        size = f"VCPU:{vcpus},MEMORY_MB:{memory}"
        path = f"/allocation_candidates?resources={size}&required=!COMPUTE_STATUS_DISABLED"
        answer = self._at("placement").get(path, microversion=ROOM, raise_exc=True)
        summaries = facts.part(_decoded(answer), "provider_summaries")
        return {uuid: dict(facts.part(one, "resources")) for uuid, one in summaries.items()}

    # Accounts.

    def project(self, name: str, domain: str) -> str:
        """Its id; empty if there is none."""
        domains = self._list(self._at("identity"), f"/domains?name={domain}", "domains")
        if not domains:
            return ""
        query = f"/projects?name={name}&domain_id={domains[0]['id']}"
        projects = self._list(self._at("identity"), query, "projects")
        return str(projects[0]["id"]) if projects else ""

    def _list(self, proxy: Any, path: str, key: str, version: str | None = None) -> list[Json]:  # noqa: ANN401
        """All pages of a list. An answer without the list is none: what it does not tell of would
        count as absent, and a host as empty."""
        found: list[Json] = []
        asked: set[str] = set()
        following: str | None = path
        while following:
            if following in asked:
                raise CannotLook(f"its list of {key} never ends")
            asked.add(following)
            body = _decoded(proxy.get(following, microversion=version, raise_exc=True))
            found += _members(body, key)
            links = [one for one in _members(body, f"{key}_links", []) if one.get("rel") == "next"]
            following = _next(path, str(links[0].get("href"))) if links else None
        return found


def _members(body: Json, key: str, default: object = None) -> list[Json]:
    told: Any = body.get(key, default)
    if not isinstance(told, list):
        raise CannotLook(f"it answers without the {key} that it was asked for")
    return [cast("Json", one) for one in cast("list[Any]", told) if isinstance(one, dict)]


def _next(path: str, link: str) -> str:
    """Of a link only where to go on: behind a proxy its host is often another one, or without TLS,
    and our token would go there."""
    query = urlsplit(link).query
    if not query:
        raise CannotLook("the next page of its list is nowhere")
    return f"{path.partition('?')[0]}?{query}"


def _decoded(answer: Any) -> Json:  # noqa: ANN401
    try:
        return msgspec.json.decode(answer.content, type=Json)
    except msgspec.MsgspecError:
        raise CannotLook("it did not answer as an OpenStack API does") from None
