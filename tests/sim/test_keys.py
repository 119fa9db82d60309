"""The keys of the simulated world: every access of the documents opens what it should."""

import json
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetd.kube.transport import Request
from fleetd.secrets import Secret, SecretError
from fleetd.sim import build, keys, loop
from fleetd.sim.faults import Climate
from fleetd.sim.keys import Keys
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.world import World
from tests.twin import stage
from topology.resource import Resource, Topology

EXAMPLES = ("minimal", "two-zones")


def played(
    example: str, story: Callable[[World, Topology], Awaitable[None]], seed: int = 1
) -> None:
    async def run() -> None:
        topology = stage.reading(example).topology
        assert topology is not None
        await story(build.build(topology, seed), topology)

    loop.run(run())


def accesses(topology: Topology) -> Iterator[tuple[Resource, str, Any]]:
    """Every access that a resource names, with the part that names it."""
    for resource in topology.resources.values():
        yield from ((resource, part, found) for part, found in _within("", resource.spec))


def _within(part: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            if key == "access":
                yield part, inner
            else:
                yield from _within(str(key), inner)  # pyright: ignore[reportUnknownArgumentType]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_access_of_the_examples_is_answered(example: str) -> None:
    """With something, whichever resource asks."""

    async def story(world: World, topology: Topology) -> None:
        held = Keys(world, topology)
        asked = list(accesses(topology))
        for resource, _, access in asked:
            assert (await held.read(access, resource)).reveal()
        assert {part for _, part, _ in asked} == {"", "garden", "metal", "git"}

    played(example, story)


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_bmc_accepts_what_its_access_says(example: str) -> None:
    """Also where several pools share one access."""

    async def story(world: World, topology: Topology) -> None:
        held = Keys(world, topology)
        for name, machine in world.truth.machines.items():
            server = next(one for ref, one in topology.resources.items() if ref == ("server", name))
            login = json.loads((await held.read(server.spec["access"], server)).reveal())
            assert login == {"username": machine.user, "password": machine.password}

    played(example, story)


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("part", ["garden", "metal"])
def test_a_kubeconfig_opens_its_cluster(example: str, part: str) -> None:
    """Its bearer may read Secrets there."""

    async def story(world: World, topology: Topology) -> None:
        held = Keys(world, topology)
        net = SimNetwork(world, Climate(world, Ledger()))
        region = next(one for ref, one in topology.resources.items() if ref.kind == "region")
        wire = net.kube(await held.read(region.spec[part]["access"], region))
        assert repr(wire) == f"<InProcess {part}-{region.region}>"
        answer = await wire.send(Request(method="GET", path="/api/v1/secrets"))
        assert answer.status == 200

    played(example, story)


def test_values_follow_from_the_seed() -> None:
    """The same for the same seed; passwords and tokens of the documents are others for another."""
    found: list[dict[tuple[str, str], str]] = []

    async def story(world: World, topology: Topology) -> None:
        found.append(keys.values(world, topology))

    for seed in (1, 1, 2):
        played("two-zones", story, seed)

    assert found[0] == found[1]
    assert found[0].keys() == found[2].keys()
    plain = [key for key in found[0] if "kubeconfig" not in key[1]]
    assert len(plain) == 3
    assert all(found[0][key] != found[2][key] for key in plain)


def test_an_unknown_access_is_an_error_without_its_content() -> None:
    """The error says whose access it was."""

    async def story(world: World, topology: Topology) -> None:
        region = next(one for ref, one in topology.resources.items() if ref.kind == "region")
        with pytest.raises(SecretError) as told:
            await Keys(world, topology).read({"file": "nowhere"}, region)
        assert str(told.value) == (
            f"the simulated world has no secret for the access of {region.owner}"
        )

    played("minimal", story)


def test_a_reader_answers_for_its_kind_of_access() -> None:
    """What a driver provides is asked for what the documents do not settle."""

    async def story(world: World, topology: Topology) -> None:
        async def reader(access: Any, want: Resource) -> Secret:
            return Secret(f"{access['openbao']['path']} for {want.ref}")

        held = Keys(world, topology)
        held.provide("openbao", reader)
        region = next(one for ref, one in topology.resources.items() if ref.kind == "region")
        got = await held.read({"file": None, "openbao": {"path": "a/b"}}, region)
        assert got.reveal() == "a/b for region/eu-1"

    played("minimal", story)


@pytest.mark.parametrize(
    ("example", "names"),
    [
        ("minimal", ["bmc.yaml", "garden.kubeconfig", "git.token", "metal.kubeconfig"]),
        ("two-zones", ["bmc.yaml", "garden.kubeconfig", "git.key", "metal.kubeconfig"]),
    ],
)
def test_files_are_written_for_their_owner_only(
    tmp_path: Path, example: str, names: list[str]
) -> None:
    """Mode 0600, also where a file was there that others could read, and only what a file names."""
    (tmp_path / "bmc.yaml").write_text("old", "utf-8")
    (tmp_path / "bmc.yaml").chmod(0o644)

    async def story(world: World, topology: Topology) -> None:
        made = keys.write(world, topology, tmp_path)
        assert sorted(path.name for path in made) == names
        login = json.loads((tmp_path / "bmc.yaml").read_text("utf-8"))
        machine = next(iter(world.truth.machines.values()))
        assert login == {"username": machine.user, "password": machine.password}

    played(example, story)

    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_an_absolute_name_is_left_alone(tmp_path: Path) -> None:
    """What lies elsewhere on the machine is not the world's to write."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()

    async def story(world: World, topology: Topology) -> None:
        ref, region = next(one for one in topology.resources.items() if one[0].kind == "region")
        git = {**region.spec["git"], "access": {"file": str(outside / "git.token")}}
        spec = {**region.spec, "git": git}
        changed = Resource(
            ref=ref, driver=region.driver, region=region.region, spec=spec, generation=1
        )
        only = Topology(digest="", resources={ref: changed}, edges=())
        made = keys.write(world, only, inside)
        assert sorted(path.name for path in made) == ["garden.kubeconfig", "metal.kubeconfig"]

    played("minimal", story)

    assert list(outside.iterdir()) == []
