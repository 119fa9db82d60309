"""
What a server calls its kinds: the path of an object, and finding the path out from the server.

Nothing here knows any kind by heart. The version is one that fleetd speaks (`versions`), else the
server's choice: the first of a group, in the server's own order of preference, that serves the
kind. What was found is remembered until `forget`; what was not found is asked for again, because
definitions are installed while we run.
"""

import asyncio
import functools
import urllib.parse
from typing import Any, NamedTuple

import msgspec

from fleetd.kube import errors, versions
from fleetd.kube.transport import Request, Transport


class Kind(NamedTuple):
    group: str
    """Empty for the core group."""
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @functools.lru_cache(4096)  # noqa: B019 -- what is kept is a few texts
    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """Of one object, or of all of them. A namespace means nothing to a kind without."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        elif self.namespaced and name:
            raise errors.Invalid(f"a {self.kind} is in a namespace; say in which {name} is")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "".join(f"/{_segment(part)}" for part in parts)

    def __str__(self) -> str:
        return f"{self.kind} ({self.api_version})"


@functools.lru_cache(4096)
def _segment(text: str) -> str:
    """Between two slashes. Two dots would walk up the path, and reach another object."""
    if text in (".", ".."):
        raise errors.Invalid(f"{text} is not a name")
    return urllib.parse.quote(text, safe="")


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct, rename="camel"):
    name: str
    versions: list[_Version] = []
    preferred_version: _Version | None = None


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


class _Resource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False


class _Resources(msgspec.Struct):
    resources: list[_Resource] | None = None


class Discovery:
    """Asks one server. One question at a time: a thousand readers start together and want the
    same answer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._known: dict[tuple[str, str], Kind] = {}
        self._asking = asyncio.Lock()

    async def find(self, group: str, kind: str) -> Kind:
        """Raises `errors.NotServed` if the server does not serve it now, `errors.OtherVersion` if
        in no version that we speak."""
        known = self._known.get((group, kind))
        if known is not None:
            return known
        async with self._asking:
            known = self._known.get((group, kind))
            if known is not None:
                return known
            strange: list[str] = []
            for version in await self._versions(group, kind):
                if await self._learn(group, version, kind):
                    strange.append(version)
                known = self._known.get((group, kind))
                if known is not None:
                    return known
        if strange:
            raise errors.OtherVersion(
                f"the server serves {kind} of group {group} in {', '.join(strange)} only, and "
                f"fleetd speaks {', '.join(versions.spoken(group, kind))}: install a release of "
                "what brings it that has this version, or a fleetd that speaks the other"
            )
        of = f"of group {group}" if group else "of the core group"
        raise errors.NotServed(
            f"the server does not serve {kind} {of}; what brings it is not installed, or not up",
            status=404,
        )

    def forget(self) -> None:
        self._known.clear()

    async def _versions(self, group: str, kind: str) -> list[str]:
        """Those that we speak, in our order; then in the server's, the preferred one first."""
        if not group:
            return ["v1"]
        found = await self._ask("/apis", _Groups)
        for one in found.groups if found is not None else ():
            if one.name == group:
                served = [version.version for version in one.versions]
                if one.preferred_version is not None:
                    served.insert(0, one.preferred_version.version)
                ours = [version for version in versions.spoken(group, kind) if version in served]
                return list(dict.fromkeys([*ours, *served]))
        return []

    async def _learn(self, group: str, version: str, asked: str) -> bool:
        """Whether it serves the kind that was asked for. Whoever came first keeps its place:
        versions are asked in order of preference. Of other kinds only the best is kept."""
        parts = ("apis", group, version) if group else ("api", version)
        found = await self._ask("".join(f"/{_segment(part)}" for part in parts), _Resources)
        serves = False
        # A group that is listed but not found is being removed: it serves nothing.
        for one in (found.resources if found is not None else None) or ():
            if "/" in one.name:
                continue
            serves = serves or one.kind == asked
            spoken = versions.spoken(group, one.kind)
            if not spoken or version in (spoken if one.kind == asked else spoken[:1]):
                self._known.setdefault(
                    (group, one.kind), Kind(group, version, one.kind, one.name, one.namespaced)
                )
        return serves

    async def _ask(self, path: str, answer: type[Any]) -> Any:  # noqa: ANN401 -- as asked for
        response = await self._transport.send(Request(method="GET", path=path))
        if response.status == 404:
            gone = errors.of(404, response.body, response.headers)
            if isinstance(gone, errors.Garbled):
                raise gone
            if path == "/apis":
                raise errors.not_an_api_server(f"{path} is not there")
            return None
        if response.status != 200:
            raise errors.of(response.status, response.body, response.headers)
        errors.check_form(path, response.headers)
        try:
            return msgspec.json.decode(response.body, type=answer)
        except errors.UNREADABLE:
            raise errors.not_an_api_server(f"{path} answers what is no list of kinds") from None
