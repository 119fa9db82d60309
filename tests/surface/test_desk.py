"""Documents handed to a daemon: planned against what it has, kept, refused when it moved."""

import random
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from fleetd.app import Daemon
from fleetd.clock import SystemClock
from fleetd.daemon.handed import Handed
from fleetd.settings import Settings, StoreKind
from fleetd.surface.desk import Declined, Edit, Given
from fleetd.vocabulary import READY, Condition, Observation, Truth
from topology.resource import Ref

EXAMPLE = Path(__file__).parents[2] / "topology" / "examples" / "minimal" / "region.yaml"
POOL = """\
apiVersion: fleet.c5c3.io/v1alpha1
kind: ServerPool
metadata: {name: spare}
spec:
  region: eu-1
  class: std-64c
  servers: [{name: x1, bmc: 192.0.2.211, zone: a, rack: r1}]
  access: {file: bmc.creds}
"""
QUIET = """\
apiVersion: fleet.c5c3.io/v1alpha1
kind: Maintenance
metadata: {name: quiet}
spec: {region: eu-1, host: metal-01, reason: audit}
"""


def given(text: str, file: str = "pool.yaml") -> list[Given]:
    return [Given(file, "/somewhere", text)]


def settings(folder: Path, store: StoreKind = StoreKind.SQLITE) -> Settings:
    documents = folder / "docs"
    documents.mkdir(exist_ok=True)
    if not (documents / "region.yaml").exists():
        (documents / "region.yaml").write_text(EXAMPLE.read_text())
    return Settings(
        documents=(documents,),
        state=folder / "state",
        store=store,
        drivers=(),
        reload=timedelta(hours=1),
    )


async def start(chosen: Settings) -> Daemon:
    """A daemon with its documents taken and its loops standing still."""
    daemon = Daemon(chosen, SystemClock(), random.Random(1))
    await daemon.store.open()
    await daemon.documents.restore()
    await daemon.commands.restore()
    await daemon.documents.look()
    assert daemon.documents.complaint == ""
    return daemon


@pytest_asyncio.fixture
async def daemon(tmp_path: Path) -> AsyncGenerator[Daemon]:
    found = await start(settings(tmp_path))
    yield found
    await found.store.close()


async def apply(daemon: Daemon, text: str, **more: Any) -> Any:
    made = await daemon.desk.plan(given(text), prune=more.pop("prune", False), within=None)
    return await daemon.desk.apply(
        made["id"], who="ada", consent=more.pop("consent", ""), within=None
    )


def all_ready(daemon: Daemon) -> None:
    """Let everything be seen in good health."""
    now = SystemClock().now()
    for ref, want in daemon.state.declared.resources.items():
        seen = Observation(ref=ref, at=now, facts={"there": True}, digest=1)
        daemon.state.view.seen[ref] = seen
        daemon.state.view.ready[ref] = Condition(
            type=READY,
            truth=Truth.TRUE,
            reason=READY,
            message="",
            generation=want.generation,
            since=now,
            reason_since=now,
        )


def servers(daemon: Daemon) -> set[str]:
    return {ref.name for ref in daemon.state.declared.resources if ref.kind == "server"}


async def test_a_plan_changes_nothing(daemon: Daemon, tmp_path: Path) -> None:
    """What would be new is told, with an order, and neither disk nor state moves."""
    before = daemon.state.declared.digest
    all_ready(daemon)
    made = await daemon.desk.plan(given(POOL), prune=False, within=None)
    assert made["change"]["added"] == ["server/x1", "serverpool/spare"]
    assert [step["ref"] for step in made["waves"][0]["steps"]] == made["change"]["added"]
    assert daemon.state.declared.digest == before
    assert not (tmp_path / "state" / "documents").exists()
    assert (await daemon.desk.plan(given(POOL), prune=False, within=None))["id"] == made["id"]


async def test_a_document_without_resources_is_something_to_do(daemon: Daemon) -> None:
    """A Maintenance changes no resource. It is fresh until it is handed over, and then not."""
    before = await daemon.desk.plan(given(QUIET), prune=False, within=None)
    await apply(daemon, QUIET)
    after = await daemon.desk.plan(given(QUIET), prune=False, within=None)

    assert (before["text"], before["fresh"]) == ([], ["Maintenance/quiet"])
    assert after["fresh"] == []


async def test_what_is_applied_holds_over_a_restart(daemon: Daemon, tmp_path: Path) -> None:
    """It is in force when the answer comes, and the next daemon reads it too."""
    told = await apply(daemon, POOL)
    assert told["resources"] == ["server/x1", "serverpool/spare"]
    assert "x1" in servers(daemon)
    kept = tmp_path / "state" / "documents" / "ServerPool-spare.yaml"
    assert "/somewhere/bmc.creds" in kept.read_text()
    events = await daemon.store.events(newest=True, limit=1)
    assert events[0].event.message == f"1 document by ada, plan {told['plan']}"
    await daemon.store.close()
    second = await start(settings(tmp_path))
    assert "x1" in servers(second)
    await second.store.close()


async def test_a_plan_is_applied_once_and_only_to_its_world(daemon: Daemon) -> None:
    """When something else was taken, or a person said something, the plan is out of date."""
    made = await daemon.desk.plan(given(POOL), prune=False, within=None)
    await daemon.commands.pause("all", who="bob", why="wait")
    with pytest.raises(Declined) as refused:
        await daemon.desk.apply(made["id"], who="ada", consent="", within=None)
    assert refused.value.code == "plan-stale"
    await daemon.commands.resume("all", who="bob")
    await daemon.desk.apply(made["id"], who="ada", consent="", within=None)
    with pytest.raises(Declined) as refused:
        await daemon.desk.apply(made["id"], who="ada", consent="", within=None)
    assert refused.value.code == "plan-unknown"


async def test_a_file_owns_its_documents(daemon: Daemon) -> None:
    """The same document is no change; a changed one can be planned, and is refused by apply."""
    text = EXAMPLE.read_text()
    made = await daemon.desk.plan(given(text, "region.yaml"), prune=False, within=None)
    assert (made["text"], made["owned"]) == ([], [])
    newer = text.replace('release: "2025.2"', 'release: "2026.1"')
    made = await daemon.desk.plan(given(newer, "region.yaml"), prune=False, within=None)
    assert [one["document"] for one in made["owned"]] == ["Cloud/prod"]
    assert "cloud/prod" in {one["ref"] for one in made["change"]["changed"]}
    with pytest.raises(Declined, match="that file is its owner") as refused:
        await daemon.desk.apply(made["id"], who="ada", consent="", within=None)
    assert refused.value.code == "document-owned"


async def test_documents_with_problems_are_told_with_their_place(daemon: Daemon) -> None:
    """Problems in one document and between documents both name the file that was sent."""
    for text, code in (
        (POOL.replace("region: eu-1", "region: eu-9"), "documents-bad"),
        (POOL.replace("class", "clazz"), "documents-bad"),
    ):
        with pytest.raises(Declined) as refused:
            await daemon.desk.plan(given(text), prune=False, within=None)
        assert refused.value.code == code
        problems: Any = refused.value.more["problems"]
        assert {one["file"] for one in problems} == {"pool.yaml"}


async def test_prune_makes_orphans(daemon: Daemon, tmp_path: Path) -> None:
    """What was handed over earlier and is not given now goes from the documents, not the world."""
    await apply(daemon, POOL)
    other = POOL.replace("spare", "more").replace("x1", "y1").replace(".211", ".212")
    await apply(daemon, other)
    assert {"x1", "y1"} <= servers(daemon)
    told = await apply(daemon, other, prune=True)
    assert told["pruned"] == ["ServerPool/spare"]
    assert "x1" not in servers(daemon)
    assert [file.name for file in (tmp_path / "state" / "documents").iterdir()] == [
        "ServerPool-more.yaml"
    ]
    made = await daemon.desk.plan([], prune=True, within=None)
    await daemon.desk.apply(made["id"], who="ada", consent="", within=None)
    assert not servers(daemon) & {"x1", "y1"}
    assert not (tmp_path / "state" / "documents").exists()


async def test_much_at_once_needs_consent(daemon: Daemon) -> None:
    """Taking away a third of the servers is refused without the consent that the plan names."""
    many = ", ".join(
        f"{{name: x{n}, bmc: 192.0.2.{n}, zone: a, rack: r1}}" for n in range(100, 110)
    )
    await apply(daemon, POOL.replace("{name: x1, bmc: 192.0.2.211, zone: a, rack: r1}", many))
    made = await daemon.desk.plan([], prune=True, within=None)
    asks = made["consent"]
    assert asks is not None
    assert asks["id"].startswith("accept-")
    with pytest.raises(Declined) as refused:
        await daemon.desk.apply(made["id"], who="ada", consent="", within=None)
    assert refused.value.code == "consent-needed"
    await daemon.desk.apply(made["id"], who="ada", consent=asks["id"], within=None)
    assert "x100" not in servers(daemon)


async def test_files_that_went_bad_in_between_change_nothing(
    daemon: Daemon, tmp_path: Path
) -> None:
    """If the daemon's own files cannot be read any more, the old set stays in force."""
    await apply(daemon, POOL)
    other = POOL.replace("spare", "more").replace("x1", "y1").replace(".211", ".212")
    made = await daemon.desk.plan(given(other), prune=False, within=None)
    (tmp_path / "docs" / "bad.yaml").write_text("kind: [")
    with pytest.raises(Declined) as refused:
        await daemon.desk.apply(made["id"], who="ada", consent="", within=None)
    assert refused.value.code == "documents-bad"
    assert [file.name for file in (tmp_path / "state" / "documents").iterdir()] == [
        "ServerPool-spare.yaml"
    ]
    assert "x1" in servers(daemon)


async def test_a_store_that_forgets_takes_no_documents(tmp_path: Path) -> None:
    """What cannot be kept is refused, not forgotten later."""
    daemon = await start(settings(tmp_path, StoreKind.MEMORY))
    with pytest.raises(Declined) as refused:
        await apply(daemon, POOL)
    assert refused.value.code == "not-durable"
    await daemon.store.close()


def test_a_crash_before_the_turn_leaves_the_old_set(tmp_path: Path) -> None:
    """A set that was written but not turned to is not read, and is tidied away."""
    handed = Handed(tmp_path)
    handed.write({("Cluster", "a"): {"kind": "Cluster"}})
    (tmp_path / ".documents-half").mkdir()
    (tmp_path / ".documents-half" / "Cluster-b.yaml").write_text("x")
    (tmp_path / ".documents.next").symlink_to(".documents-half")
    assert [file.name for file in handed.folder.iterdir()] == ["Cluster-a.yaml"]
    handed.write({("Cluster", "c"): {"kind": "Cluster"}})
    handed.tidy()
    assert [file.name for file in handed.folder.iterdir()] == ["Cluster-c.yaml"]
    assert not (tmp_path / ".documents-half").exists()


def document(text: str) -> dict[str, Any]:
    """As it is put: by itself it has no folder."""
    return yaml.safe_load(text.replace("file: bmc.creds", "file: /etc/bmc.creds"))


async def edit(daemon: Daemon, content: dict[str, Any] | None, **more: Any) -> Any:
    asked = Edit("ServerPool", "spare", content, more.pop("expected", as_it_is))
    told: Any = {"who": "ada", "consent": "", "within": None, **more}
    return await daemon.desk.edit(asked, **told)


def as_it_is(_now: object) -> bool:
    return True


async def test_one_document_is_put_and_taken_away(daemon: Daemon) -> None:
    """A document that is put is in force and kept; taken away, it leaves orphans behind."""
    pool = document(POOL)
    told = await edit(daemon, pool)
    assert (told["documents"], told["changed"]) == (["ServerPool/spare"], True)
    assert Ref("serverpool", "spare") in daemon.state.declared.resources
    told = await edit(daemon, None)
    assert told["pruned"] == ["ServerPool/spare"]
    assert Ref("serverpool", "spare") not in daemon.state.declared.resources
    with pytest.raises(Declined) as refused:
        await edit(daemon, None)
    assert refused.value.code == "not-found"


async def test_a_document_that_is_not_as_expected_stays(daemon: Daemon) -> None:
    """What is there is shown to who decides; a no changes nothing."""
    await edit(daemon, document(POOL))
    shown: list[Any] = []

    def no(now: object) -> bool:
        shown.append(now)
        return False

    with pytest.raises(Declined) as refused:
        await edit(daemon, None, expected=no)
    assert refused.value.code == "document-changed"
    assert shown[0]["metadata"] == {"name": "spare"}
    assert Ref("serverpool", "spare") in daemon.state.declared.resources


async def test_a_document_of_a_file_is_not_taken_away(daemon: Daemon) -> None:
    """What stands in a file is changed there."""
    with pytest.raises(Declined) as refused:
        await daemon.desk.edit(
            Edit("region", "eu-1", None, as_it_is), who="ada", consent="", within=None
        )
    assert refused.value.code == "document-owned"


async def test_whoever_is_limited_to_regions_changes_only_those(daemon: Daemon) -> None:
    """Planning, applying, putting and taking away are refused where they touch another region."""
    theirs, others = frozenset({"eu-1"}), frozenset({"eu-2"})
    stored = POOL.replace("{file: bmc.creds}", "{openbao: {path: bmc/spare}}")
    made = await daemon.desk.plan(given(stored), prune=False, within=theirs)
    for act in (
        daemon.desk.plan(given(stored), prune=False, within=others),
        daemon.desk.apply(made["id"], who="ada", consent="", within=others),
        edit(daemon, document(stored), within=others),
    ):
        with pytest.raises(Declined) as refused:
            await act
        assert refused.value.code == "other-region"
    await edit(daemon, document(stored), within=theirs)
    with pytest.raises(Declined) as refused:
        await edit(daemon, None, within=others)
    assert refused.value.code == "not-found"
    with pytest.raises(Declined) as refused:
        await daemon.desk.plan([], prune=True, within=others)
    assert refused.value.code == "other-region"


async def test_a_document_of_another_region_is_not_taken_over(
    daemon: Daemon, tmp_path: Path
) -> None:
    """Nor is one that makes no resource: to give it another region takes it from its own."""
    region = yaml.safe_load(EXAMPLE.read_text().split("\n---")[0])
    region["metadata"]["name"] = "eu-2"
    (tmp_path / "docs" / "other.yaml").write_text(yaml.safe_dump(region))
    assert await daemon.documents.read_now() == ""
    await apply(daemon, QUIET)
    mine = QUIET.replace("eu-1, host: metal-01", "eu-2, zone: a")
    with pytest.raises(Declined) as refused:
        await daemon.desk.plan(given(mine), prune=False, within=frozenset({"eu-2"}))
    assert refused.value.code == "other-region"


async def test_of_a_document_of_another_region_nothing_is_told(daemon: Daemon) -> None:
    """Whoever may not see it is told that there is none, whatever they expect."""
    await edit(daemon, document(POOL))
    shown: list[Any] = []

    def no(now: object) -> bool:
        shown.append(now)
        return False

    with pytest.raises(Declined, match="there is no ServerPool/spare"):
        await edit(daemon, None, expected=no, within=frozenset({"eu-2"}))
    assert shown == [None]


async def test_a_relative_file_of_a_document_without_a_folder_is_refused(daemon: Daemon) -> None:
    """It is not taken for one at the root of the file system; the complaint says where it is."""
    with pytest.raises(Declined) as refused:
        await edit(daemon, yaml.safe_load(POOL))
    assert refused.value.code == "documents-bad"
    (problem,) = refused.value.more["problems"]
    assert (problem["name"], problem["field"]) == ("spare", "spec.access.file")
    assert problem["code"] == "file-relative"
    assert Ref("serverpool", "spare") not in daemon.state.declared.resources


@pytest.mark.parametrize("access", ["{file: /etc/bmc.creds}", "{env: FLEETD_METRICS_TOKEN}"])
async def test_who_is_limited_names_no_new_place_of_secrets(daemon: Daemon, access: str) -> None:
    """Neither by put nor by plan; what the region names already may be named again, and a place in
    its OpenBao is its own."""
    within = frozenset({"eu-1"})
    text = POOL.replace("{file: bmc.creds}", access)
    for act in (
        edit(daemon, yaml.safe_load(text), within=within),
        daemon.desk.plan(given(text), prune=False, within=within),
    ):
        with pytest.raises(Declined) as refused:
            await act
        assert refused.value.code == "forbidden"
    await edit(daemon, yaml.safe_load(text))
    named = text.replace("spare", "more").replace("x1", "y1").replace(".211", ".212")
    await daemon.desk.plan(given(named), prune=False, within=within)
    stored = text.replace(access, "{openbao: {path: bmc/more}}")
    await edit(daemon, yaml.safe_load(stored), within=within)
