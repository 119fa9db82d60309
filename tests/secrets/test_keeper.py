"""What documents name as secret, read at the moment of use; complaints are sentences, no values."""

import asyncio
import base64
import json
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fleetd.clock import LoopClock
from fleetd.daemon.keeper import Keeper
from fleetd.gate import Gates
from fleetd.kube.clusters import Clusters
from fleetd.secrets import Secret, SecretError
from fleetd.sim import loop
from fleetd.sim.faults import Climate, Plight
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.world import World
from tests import defaults
from tests.secrets import canary
from topology.resource import Facts, Ref, Resource

START = datetime(2026, 3, 3, tzinfo=UTC)
VALUE = canary.CANARIES["password"]
REGION = Ref("region", "eu-1")
WANT = Resource(
    ref=Ref("flux", "hv"), driver="flux", region="eu-1", spec={}, generation=1, owner=REGION
)
WHERE = {"cluster": "mgmt", "namespace": "default", "name": "login"}


class Scene:
    def __init__(self, folder: Path) -> None:
        self.world = World(1, START)
        self.climate = Climate(self.world, Ledger())
        self.clusters = Clusters(
            SimNetwork(self.world, self.climate).kube,
            gates=Gates(defaults.LIMITS, LoopClock(START)),
            clock=LoopClock(START),
            rng=random.Random(1),
            wake=lambda _: None,
        )
        self.environ: dict[str, str] = {}
        self.keeper = Keeper(self.clusters, self.environ, folder)

    def admit(self, **data: str) -> None:
        """A management cluster with one Secret, and the way in."""
        there = self.world.add_cluster("mgmt")
        metadata = {"name": "login", "namespace": "default"}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        there.create(body, manager="t")
        token = there.token("fleetd", ("system:masters",))
        config = there.kubeconfig(self.world.address("mgmt"), token)
        self.clusters.put("cluster:mgmt", Secret(json.dumps(config)))


def run(folder: Path, script: Callable[[Scene], Awaitable[Any]], *, virtual: bool = True) -> Any:
    """Files are read in a thread, which virtual time does not have."""

    async def main() -> Any:
        scene = Scene(folder)
        try:
            return await script(scene)
        finally:
            await scene.clusters.close()

    return loop.run(main()) if virtual else asyncio.run(main())


def refused(folder: Path, access: Facts, prepare: Callable[[Scene], None]) -> str:
    """The complaint; neither it nor what it was raised from holds the value."""

    async def script(scene: Scene) -> str:
        prepare(scene)
        with pytest.raises(SecretError) as complaint:
            await scene.keeper.read(access, WANT)
        error: BaseException | None = complaint.value
        while error is not None:
            assert canary.found(repr(error) + str(error) + repr(vars(error))) == []
            error = error.__cause__ or error.__context__
        return str(complaint.value)

    return run(folder, script, virtual="secret" in access)


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


def test_a_file_is_relative_to_its_document(tmp_path: Path) -> None:
    """To the folder of the document that the thing was compiled from; others start where the
    daemon does."""
    for name, text in (("here", "of the daemon"), ("there", VALUE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(f"{text}\n")
    other = Resource(ref=Ref("flux", "x"), driver="flux", region="r", spec={}, generation=1)

    async def script(scene: Scene) -> list[str]:
        scene.keeper.take({REGION: tmp_path / "there"})
        read = [await scene.keeper.read({"file": "token"}, one) for one in (WANT, other)]
        return [secret.reveal() for secret in read]

    assert run(tmp_path / "here", script, virtual=False) == [VALUE, "of the daemon"]


def test_a_rotated_secret_counts_at_once(tmp_path: Path) -> None:
    """Nothing is kept: each use reads again."""

    async def script(scene: Scene) -> None:
        for value in ("first-value", "second-value"):
            scene.environ["TOKEN"] = value
            access = {"file": None, "env": "TOKEN"}
            assert (await scene.keeper.read(access, WANT)).reveal() == value

    run(tmp_path, script, virtual=False)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With what to do."""
    said = refused(tmp_path, {"file": "token"}, lambda _: None)
    assert said == f"{tmp_path / 'token'} does not exist; create it or correct the path"


def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    """With what to do."""
    said = refused(tmp_path, {"env": "TOKEN"}, lambda _: None)
    assert said == "the environment variable TOKEN is not set; set it"


@pytest.mark.parametrize("access", [{"openbao": {"path": "kv/x", "key": "y"}}, {"file": None}, {}])
def test_a_way_that_nobody_knows(tmp_path: Path, access: Facts) -> None:
    """It is said which thing named it, and which ways there are."""
    kind = "openbao" if "openbao" in access else "nothing"
    said = refused(tmp_path, access, lambda _: None)
    assert f"access of region/eu-1 by {kind} cannot be read" in said
    assert "use file, env or secret, or load that driver" in said


def test_a_driver_provides_its_own_way(tmp_path: Path) -> None:
    """It is handed the access and who asks."""

    async def reader(access: Facts, want: Resource) -> Secret:
        return Secret(f"{access['openbao']['path']} for {want.ref}")

    async def script(scene: Scene) -> str:
        scene.keeper.provide("openbao", reader)
        return (await scene.keeper.read({"openbao": {"path": "kv/x"}}, WANT)).reveal()

    assert run(tmp_path, script) == "kv/x for flux/hv"


@pytest.mark.parametrize("key", ["password", None], ids=["by key", "the only one"])
def test_a_secret_of_a_cluster(tmp_path: Path, key: str | None) -> None:
    """Decoded; without a key it is the only one there is."""

    async def script(scene: Scene) -> str:
        scene.admit(password=encoded(VALUE.encode()))
        return (await scene.keeper.read({"secret": {**WHERE, "key": key}}, WANT)).reveal()

    assert run(tmp_path, script) == VALUE


@pytest.mark.parametrize(
    ("where", "data", "words"),
    [
        ({"key": "token"}, {"password": encoded(VALUE.encode())}, "no text under the key 'token'"),
        ({"key": "bin"}, {"bin": encoded(VALUE.encode() + b"\xff")}, "no text under the key 'bin'"),
        ({"name": "other", "key": "k"}, {}, "Secret default/other of cluster mgmt has no text"),
        ({"cluster": "hv"}, {}, "which region/eu-1 names: there is no kubeconfig for cluster:hv"),
    ],
    ids=["no key", "not text", "no secret", "no access"],
)
def test_a_secret_that_cannot_be_read(
    tmp_path: Path, where: dict[str, str], data: dict[str, str], words: str
) -> None:
    """The place is named to the key, and nothing of what lies there."""
    said = refused(tmp_path, {"secret": {**WHERE, **where}}, lambda scene: scene.admit(**data))
    assert words in said


def test_a_cluster_that_is_away(tmp_path: Path) -> None:
    """It is said which Secret was wanted there."""

    def prepare(scene: Scene) -> None:
        scene.admit(password=encoded(VALUE.encode()))
        scene.climate.plights["mgmt"] = Plight.UNREACHABLE

    said = refused(tmp_path, {"secret": WHERE}, prepare)
    assert said.startswith("Secret default/login of cluster mgmt, which region/eu-1 names: ")
