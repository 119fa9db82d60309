"""
The wire to Ironic: logging in, and the few requests that fleetd makes, through python-ironicclient.

Everything here blocks and runs in `Network.blocking`. The client's own retries are off: who waits
is decided elsewhere. Errors are told apart by what they mean, which for 409 only the words say.
The one rule: what is secret goes into the session or a request, and no error quotes either.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import requests
from ironicclient import exc
from ironicclient.v1.client import Client
from keystoneauth1 import exceptions, http_basic, loading, token_endpoint
from keystoneauth1.session import Session

from fleetd import errors, plainyaml
from fleetd.secrets import Secret, SecretError
from topology import blind

LIMIT = 10.0
"""Seconds for one request. A look has 20."""
VERSION = "1.78"
"""History of nodes; everything else that is used is older."""
FIELDS = (
    *("uuid", "name", "driver", "driver_info", "extra", "resource_class", "automated_clean"),
    *("provision_state", "target_provision_state", "power_state", "maintenance"),
    *("maintenance_reason", "fault", "last_error", "reservation", "inspection_finished_at"),
    *("provision_updated_at", "instance_info", "instance_uuid"),
)

Json = dict[str, Any]


class CannotLook(errors.FleetError):
    """It does not answer, or not as Ironic does."""

    blind = blind.NO_ANSWER


class NotWell(CannotLook):
    """Something answers in its place: an error, or a proxy."""

    blind = blind.NOT_OBSERVED


class Denied(errors.FleetError):
    """It answers, and does not know our credentials or gives them no right."""


class Locked(errors.FleetError):
    """A conductor works on the node."""


class Taken(errors.FleetError):
    """There is one already: a name, or an address."""


class NoConductor(errors.FleetError):
    """The API is up and nobody stands behind it."""


class Refused(errors.FleetError):
    """It will not do it as asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    url: str
    access: Secret
    """What the region's metal.access names."""


class Ironic:
    """One Ironic while a session lasts."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - its managers have no useful types
        self._on = client

    def conductors(self) -> list[Json]:
        return self._pages("/v1/conductors", "", "conductors")

    def nodes(self) -> list[Json]:
        """All of them, in as many pages as it takes."""
        return self._pages("/v1/nodes", f"fields={','.join(FIELDS)}", "nodes")

    def _pages(self, path: str, query: str, key: str) -> list[Json]:
        """Not by way of the library's lists: for those an answer without the list is an empty one,
        and nodes that were not told of would be enrolled again, or taken for gone."""
        found: list[Json] = []
        asked: set[str] = set()
        following: str | None = query
        while following is not None:
            if following in asked:
                raise NotWell(f"its list of {key} never ends")
            asked.add(following)
            _, body = self._on.node.api.json_request("GET", f"{path}?{following}".rstrip("?"))
            told: Any = cast("Json", body).get(key) if isinstance(body, dict) else None
            if not isinstance(told, list):
                raise NotWell(f"it answers without the {key} that it was asked for")
            found += [cast("Json", one) for one in cast("list[Any]", told) if isinstance(one, dict)]
            link = cast("Json", body).get("next")
            # Of the link only where to go on: its host is what a proxy on the way makes of it.
            following = urlsplit(str(link)).query if link else None
        return found

    def node(self, name: str) -> Json | None:
        try:
            return cast("Json", self._on.node.get(name, fields=list(FIELDS)).to_dict())
        except exc.NotFound:
            return None

    def create(self, node: Mapping[str, Any]) -> None:
        self._on.node.create(**node)

    def update(self, name: str, patch: Sequence[Json]) -> None:
        self._on.node.update(name, list(patch))

    def provision(self, name: str, target: str) -> None:
        self._on.node.set_provision_state(name, target)

    def delete(self, name: str) -> None:
        try:
            self._on.node.delete(name)
        except exc.NotFound:
            return

    def history(self, name: str) -> list[Json]:
        found: list[Any] = self._on.node.get_history_list(name)
        return [cast("Json", one if isinstance(one, dict) else one.to_dict()) for one in found]


@contextmanager
def session(plain: requests.Session, who: Login) -> Generator[Ironic]:
    """Raises SecretError if the access cannot be understood, and errors of this module."""
    auth = _auth(who)
    keystone = Session(auth=auth, session=plain, timeout=LIMIT, app_name="fleetd")
    with translated():
        client = Client(
            who.url.rstrip("/"),
            session=keystone,
            os_ironic_api_version=VERSION,
            max_retries=0,
            retry_interval=0,
        )
        yield Ironic(client)


def _auth(who: Login) -> Any:  # noqa: ANN401 - one of keystoneauth's plugins
    """A user name and password, a clouds.yaml, or a token alone."""
    text = who.access.reveal()
    try:
        found: Any = plainyaml.load(text)
    except plainyaml.Error:
        found = None
    url = who.url.rstrip("/")
    if not isinstance(found, dict):
        if not text.strip() or len(text.split()) != 1:
            raise SecretError(
                "the region's metal.access is neither {username, password}, nor a clouds.yaml, "
                "nor a token"
            )
        return token_endpoint.Token(url, text.strip())
    given = cast("Json", found)
    if "username" in given:
        return http_basic.HTTPBasicAuth(
            endpoint=url,
            username=str(given["username"]),
            password=str(given.get("password") or ""),
        )
    return _of_cloud(given)


def _of_cloud(given: Json) -> Any:  # noqa: ANN401
    try:
        entry: Json = next(iter(given["clouds"].values()))
        kind = str(entry.get("auth_type") or "password")
        loader = cast("Any", loading.get_plugin_loader(kind))
        return loader.load_from_options(**entry["auth"])
    except (KeyError, TypeError, AttributeError, StopIteration, exceptions.ClientException):
        raise SecretError(
            "the region's metal.access has no cloud that one can log in to; write a clouds.yaml "
            "with one cloud, or {username, password}"
        ) from None


@contextmanager
def translated() -> Generator[None]:
    """The library's errors by what they mean for fleetd."""
    try:
        yield
    except (exc.Unauthorized, exc.Forbidden, exceptions.Unauthorized) as cause:
        raise Denied(_said(cause)) from None
    except exc.Conflict as cause:
        raise (_conflict(_said(cause))) from None
    except exc.BadRequest as cause:
        said = _said(cause)
        raise (NoConductor if "No valid host" in said else Refused)(said) from None
    except (exc.ConnectionError, exceptions.ConnectionError) as cause:
        raise CannotLook(_said(cause)) from None
    except exc.HttpServerError as cause:
        raise NotWell(_said(cause)) from None
    except exc.HttpError as cause:
        raise Refused(_said(cause)) from None
    except (exc.ClientException, exceptions.ClientException, ValueError) as cause:
        raise NotWell(_said(cause)) from None


def _conflict(said: str) -> Exception:
    """Three things have this code."""
    if "is locked by host" in said:
        return Locked(said)
    return Taken(said) if "already exists" in said else Refused(said)


def _said(cause: Exception) -> str:
    return " ".join(str(cause).split())[:300]
