"""Documents, their catalogue and their folders are one thing: taken together, kept together."""

import asyncio
import random
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from fleetd.clock import LoopClock
from fleetd.daemon.documents import Documents
from fleetd.daemon.keeper import Keeper
from fleetd.daemon.sealed import Sealed
from fleetd.engine import records
from fleetd.engine.records import Surroundings
from fleetd.engine.state import State
from fleetd.gate import Gates
from fleetd.kube.clusters import Clusters
from fleetd.plan.policy import Policy
from fleetd.secrets import Secret
from fleetd.store.memory import MemoryStore
from fleetd.tools import Rules
from tests import defaults
from tests.engine.test_acceptance import EXAMPLE
from tests.toy.universe import START
from topology import catalogue_load
from topology.catalogue import Component
from topology.resource import Ref

REGION = Ref("region", "eu-1")


class Daemon:
    """What a daemon does with its documents when it starts, with a keeper of secrets."""

    def __init__(self, store: MemoryStore, folder: Path, catalogue: Path) -> None:
        def nowhere(_: Secret) -> None:
            raise Sealed("nobody is asked here")

        clusters = Clusters(
            nowhere,  # pyright: ignore[reportArgumentType]
            gates=Gates(defaults.LIMITS, LoopClock(START)),
            clock=LoopClock(START),
            rng=random.Random(1),
            wake=lambda _: None,
        )
        self.keeper = Keeper(clusters, {}, folder.parent)
        self.rules = Rules()
        self.taken: list[str] = []
        self.state = State({}, Policy())
        self.documents = Documents(
            paths=[folder],
            catalogue=[catalogue],
            consents=frozenset(),
            state=self.state,
            store=store,
            every=timedelta(seconds=10),
            surrounded=self.surrounded,
            taken=lambda: self.taken.append(self.state.declared.digest),
        )

    def surrounded(self, around: Surroundings) -> None:
        self.rules.take(around.catalogue)
        self.keeper.take(around.folders)

    async def start(self) -> "Daemon":
        await self.documents.restore()
        await self.documents.look()
        return self

    async def secret(self) -> str:
        want = self.state.view.topology.resources[REGION]
        return (await self.keeper.read(want.spec["garden"]["access"], want)).reveal()


def catalogue_of(folder: Path, kind: str) -> str:
    """The text of a component of our own, made after one that comes with fleetd."""
    found: Mapping[str, Component] = catalogue_load.load([])[0]
    folder.mkdir(exist_ok=True)
    text = found["cert-manager"].model_dump_json(by_alias=True, exclude_unset=True)
    text = text.replace('"cert-manager"', f'"{kind}"', 1)
    (folder / f"{kind}.yaml").write_text(text)
    return text


async def fleet(tmp_path: Path) -> tuple[MemoryStore, Path, Path]:
    store = MemoryStore()
    await store.open()
    folder, catalogue = tmp_path / "documents", tmp_path / "catalogue"
    folder.mkdir()
    (folder / "region.yaml").write_text(EXAMPLE.read_text())
    catalogue_of(catalogue, "our-operator")
    return store, folder, catalogue


async def test_a_restart_with_broken_files_goes_on_with_the_last_good_ones(tmp_path: Path) -> None:
    """Topology, catalogue and the folders in which secrets lie: all three as they were, though the
    documents and the catalogue on disk are no good any more."""
    store, folder, catalogue = await fleet(tmp_path)
    good = await Daemon(store, folder, catalogue).start()
    assert good.documents.complaint == ""
    access = good.state.view.topology.resources[REGION].spec["garden"]["access"]
    secret = folder / access["file"]
    secret.parent.mkdir(exist_ok=True, parents=True)
    secret.write_text("hunter2")
    (folder / "region.yaml").write_text("kind: Nothing\n")
    (catalogue / "our-operator.yaml").write_text("kind: Nothing\n")

    bad = await Daemon(store, folder, catalogue).start()

    assert bad.documents.complaint != ""
    assert bad.state.view.topology == good.state.view.topology
    assert await bad.secret() == "hunter2"
    kinds = {ref.kind for ref in bad.state.view.topology.resources}
    assert "our-operator" in kinds
    for kind in kinds:
        assert bad.rules.component(kind) == good.rules.component(kind)
        bad.rules.reader(kind)


async def test_what_is_in_force_is_always_of_the_same_documents(tmp_path: Path) -> None:
    """While new ones are written down, the old catalogue, folders and topology count, together."""
    store, folder, catalogue = await fleet(tmp_path)
    daemon = await Daemon(store, folder, catalogue).start()
    mixed: list[bool] = []

    class Watching(MemoryStore):
        async def put(self, table: str, values: Mapping[str, bytes | None]) -> None:
            await asyncio.sleep(0)
            await store.put(table, values)
            wanted = any(ref.kind == "second" for ref in daemon.state.view.topology.resources)
            try:
                known = bool(daemon.rules.component("second"))
            except KeyError:
                known = False
            mixed.append(wanted != known)

        async def load(self, table: str) -> Mapping[str, bytes]:
            return await store.load(table)

    daemon.documents._store = Watching()
    catalogue_of(catalogue, "second")
    await daemon.documents.read_now()

    assert daemon.documents.complaint == ""
    assert any(ref.kind == "second" for ref in daemon.state.view.topology.resources)
    assert mixed
    assert not any(mixed)


async def test_a_catalogue_that_changes_nothing_but_rules_is_in_force_and_kept(
    tmp_path: Path,
) -> None:
    """The topology has the same digest; the rules to judge by are others, also after a restart."""
    store, folder, catalogue = await fleet(tmp_path)
    daemon = await Daemon(store, folder, catalogue).start()
    before = daemon.state.declared.digest
    text = (catalogue / "our-operator.yaml").read_text()
    (catalogue / "our-operator.yaml").write_text(
        text.replace('"description":"', '"description":"x')
    )

    await daemon.documents.read_now()
    again = Daemon(store, folder, catalogue)
    await again.documents.restore()

    assert daemon.state.declared.digest == before
    assert daemon.taken == [before, before]  # judged and proposed anew, by the new rules
    for one in (daemon, again):
        assert one.rules.component("our-operator").spec.description.startswith("x")


async def test_a_store_of_an_older_fleetd_has_no_surroundings_yet(tmp_path: Path) -> None:
    """Then the catalogue is read from the disk, as before."""
    store, folder, catalogue = await fleet(tmp_path)
    await Daemon(store, folder, catalogue).start()
    await store.put(records.ACCEPTED, {records.CATALOGUE: None, records.FOLDERS: None})

    old = Daemon(store, folder, catalogue)
    await old.documents.restore()

    assert old.rules.component("our-operator")
    assert old.state.view.topology.resources


POOL = """apiVersion: fleet.c5c3.io/v1alpha1
kind: ServerPool
metadata: {name: spare}
spec:
  region: eu-1
  class: std-64c
  access: {file: bmc.login}
  range: {first: 192.0.2.31, last: 192.0.2.31, zone: a}
"""


async def test_secrets_of_an_orphan_lie_where_its_document_lay(tmp_path: Path) -> None:
    """Also after other documents came and the daemon started anew; and no longer than that."""
    store, folder, catalogue = await fleet(tmp_path)
    spare = folder / "spare"
    spare.mkdir()
    (spare / "pool.yaml").write_text(POOL)
    (spare / "bmc.login").write_text("hunter2")
    daemon = await Daemon(store, folder, catalogue).start()
    (spare / "pool.yaml").unlink()
    await daemon.documents.read_now()
    catalogue_of(catalogue, "second")
    await daemon.documents.read_now()

    again = await Daemon(store, folder, catalogue).start()
    orphan = again.state.view.orphans[Ref("server", "spare-1")]
    found = await again.keeper.read(orphan.spec["access"], orphan)

    assert again.documents.complaint == ""
    assert found.reveal() == "hunter2"
    again.state.accept(again.state.declared, {})
    catalogue_of(catalogue, "third")
    await again.documents.read_now()
    assert orphan.owner not in again.documents._folders
