"""
The secrets of the simulated world, by the access that a document names them with.

In-process, `Keys` reads them for the drivers; for the wire face the same values are written to the
files that the documents name (`write`). Every value follows from the seed, so that a leak can be
found again by its text.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fleetd.secrets import Secret, SecretError
from fleetd.sim.world import World
from topology.resource import Facts, Ref, Resource, Topology

BMC_USER = "fleet"
Reader = Callable[[Facts, Resource], Awaitable[Secret]]


class Keys:
    """Implements `fleetd.tools.SecretKeeper` for a world."""

    def __init__(self, world: World, topology: Topology) -> None:
        self._world = world
        self._values = values(world, topology)
        self._readers: dict[str, Reader] = {}

    def take(self, folders: Mapping[Ref, Path]) -> None:
        """Nothing here is read from a file."""

    def also(self, topology: Topology) -> None:
        """What other documents name is there too: a secret does not go with its document."""
        self._values = {**values(self._world, topology), **self._values}

    def provide(self, kind: str, reader: Reader) -> None:
        self._readers[kind] = reader

    async def read(self, access: Facts, want: Resource) -> Secret:
        found = self._values.get((want.region, _key(access)))
        if found is not None:
            return Secret(found)
        kind = next((key for key, value in access.items() if value is not None), "")
        if kind in self._readers:
            return await self._readers[kind](access, want)
        raise SecretError(f"the simulated world has no secret for the access of {want.owner}")


def values(world: World, topology: Topology) -> dict[tuple[str, str], str]:
    """All that the documents of a topology name, by region and access."""
    found: dict[tuple[str, str], str] = {}
    for resource in topology.resources.values():
        region, spec = resource.region, resource.spec
        for part, make in (("garden", _garden), ("metal", _metal), ("git", _git)):
            access = _access(spec.get(part))
            if access is not None:
                found.setdefault((region, _key(access)), make(world, region))
        if resource.ref.kind in ("server", "serverpool") and spec.get("access"):
            pool = str(spec.get("pool", spec["name"]))
            found.setdefault((region, _key(spec["access"])), bmc(world, pool))
    return found


def write(world: World, topology: Topology, folder: Path) -> list[Path]:
    """The same as files beside the documents; only what is named by a relative file."""
    made: list[Path] = []
    for (_, key), text in sorted(values(world, topology).items()):
        name = json.loads(key).get("file")
        if name is None or Path(name).is_absolute():
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(text, "utf-8")
        made.append(path)
    return made


def bmc(world: World, pool: str) -> str:
    """What the BMCs of a pool accept, as the file of a ServerPool's access has it."""
    return json.dumps({"username": BMC_USER, "password": world.token("bmc", pool)})


def _garden(world: World, region: str) -> str:
    return kubeconfig(world, f"garden-{region}", "fleetd")


def _metal(world: World, region: str) -> str:
    if f"metal-{region}" in world.clusters:
        return kubeconfig(world, f"metal-{region}", "fleetd")
    return json.dumps({"username": "fleetd", "password": world.token("ironic", region)})


def _git(world: World, region: str) -> str:
    return world.token("git", region)


def kubeconfig(world: World, cluster: str, user: str) -> str:
    """For an administrator; JSON, which is YAML too."""
    there = world.clusters[cluster]
    token = there.token(user, ["system:masters"], expires=None)
    return json.dumps(there.kubeconfig(world.address(cluster), token))


def _access(part: Any) -> Facts | None:  # noqa: ANN401
    return part.get("access") if isinstance(part, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def _key(access: Facts) -> str:
    given = {key: value for key, value in access.items() if value is not None}
    return msgspec.json.encode(given, order="deterministic").decode()
