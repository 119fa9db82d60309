"""
Reads what documents name as secret, at the moment of use, and forgets it.

`{file: …}` and `{env: …}` are read here, `{secret: …}` from a cluster that fleetd has access to;
other ways are provided by the driver that knows them (`openbao`). Nothing is kept: the next use
reads again, so a rotated secret counts at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from fleetd import secrets
from fleetd.kube import errors
from fleetd.kube.clusters import Clusters
from fleetd.secrets import Secret, SecretError
from topology.documents import base
from topology.resource import Facts, Ref, Resource

Reader = Callable[[Facts, Resource], Awaitable[Secret]]


class Keeper:
    """Implements `fleetd.tools.SecretKeeper`."""

    def __init__(self, clusters: Clusters, environ: Mapping[str, str], folder: Path) -> None:
        self._clusters = clusters
        self._environ = environ
        self._folder = folder
        self._folders: Mapping[Ref, Path] = {}
        self._readers: dict[str, Reader] = {"secret": self._from_cluster}

    def take(self, folders: Mapping[Ref, Path]) -> None:
        """Where each document lies: its relative files start there."""
        self._folders = folders

    def provide(self, kind: str, reader: Reader) -> None:
        self._readers[kind] = reader

    async def read(self, access: Facts, want: Resource) -> Secret:
        kind = next((key for key, value in access.items() if value is not None), "")
        if kind in ("file", "env"):
            named = base.Access.model_validate({kind: access[kind]})
            folder = self._folders.get(want.owner, self._folder) if want.owner else self._folder
            return await asyncio.to_thread(secrets.resolve, named, folder, self._environ)
        reader = self._readers.get(kind)
        if reader is None:
            raise SecretError(
                f"access of {want.owner} by {kind or 'nothing'} cannot be read: no driver that "
                "knows how is loaded; use file, env or secret, or load that driver"
            )
        return await reader(access, want)

    async def _from_cluster(self, access: Facts, want: Resource) -> Secret:
        where: Facts = access["secret"]
        place = f"Secret {where['namespace']}/{where['name']} of cluster {where['cluster']}"
        try:
            found = await self._clusters.secret(
                f"cluster:{where['cluster']}", where["name"], where["namespace"]
            )
        except errors.KubeError as cause:
            raise SecretError(f"{place}, which {want.owner} names: {cause}") from cause
        values = found.values if found is not None else dict[str, Secret]()
        key = str(where.get("key") or next(iter(sorted(values)), ""))
        if key in values:
            return values[key]
        raise SecretError(f"{place} has no text under the key {key!r}; put the secret there")
