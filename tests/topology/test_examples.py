"""The examples pass every check, compile whole, and stay what their README says."""

import hashlib
from pathlib import Path

import pytest

from topology import catalogue_load, diff, draw, load
from topology import compile as compiler
from topology.checks import run
from topology.examples import large
from topology.resource import Ref, Topology

EXAMPLES = Path(large.__file__).parent
VALUES_MAX = 200_000
BYTES_MAX = 5 * 1024 * 1024


def compiled(folder: Path) -> Topology:
    components, problems = catalogue_load.load()
    assert problems == []
    return compiler.compile(load.load([folder]).items, components)


@pytest.fixture(scope="module", name="small_fleet")
def _small_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    large.write(folder, clusters=30, servers=900)
    return folder


@pytest.mark.parametrize("name", ["minimal", "racks", "two-zones"])
def test_an_example_has_no_problem(name: str) -> None:
    """Neither in itself nor between its documents."""
    bundle = load.load([EXAMPLES / name])

    assert bundle.problems == ()
    assert run.check(bundle) == []


@pytest.mark.parametrize("name", ["minimal", "racks", "two-zones"])
def test_every_link_of_the_catalogue_leads_somewhere(name: str) -> None:
    """In a whole region nothing waits for a component that is not there."""
    components, _ = catalogue_load.load()

    assert compiler.unresolved(load.load([EXAMPLES / name]).items, components) == []


@pytest.mark.parametrize(("name", "region"), [("minimal", "eu-1"), ("two-zones", "eu-2")])
def test_all_of_a_region_leads_to_its_readiness(name: str, region: str) -> None:
    """From the region every component is reached over needs: none can fail unseen."""
    topology = compiled(EXAMPLES / name)
    seen = {Ref("region", region)}
    todo = list(seen)
    while todo:
        fresh = topology.resources[todo.pop()].needs - seen
        seen |= fresh
        todo.extend(sorted(fresh))

    unseen = {ref.kind for ref in topology.resources if ref not in seen}

    assert unseen == {"server"}


def test_the_bring_up_has_its_order() -> None:
    """Management before control plane before hypervisors; OpenBao before stores; cloud last."""
    topology = compiled(EXAMPLES / "minimal")
    place = {str(ref): number for number, ref in enumerate(topology.resources)}

    chain = [
        "serverpool/metal",
        "cluster/mgmt",
        "access/mgmt",
        "flux/mgmt",
        "openbao/mgmt",
        "secret-store/cp",
        "controlplane/prod",
        "hypervisors/hv",
        "cloud/prod",
        "region/eu-1",
    ]
    assert [place[one] for one in chain] == sorted(place[one] for one in chain)


def test_the_minimal_region_is_short() -> None:
    """About 40 lines: a newcomer reads it on one screen."""
    lines = (EXAMPLES / "minimal" / "region.yaml").read_text(encoding="utf-8").splitlines()

    assert len(lines) <= 42


def test_the_two_zones_share_storage_and_have_an_arbiter() -> None:
    """The example shows what its README promises."""
    topology = compiled(EXAMPLES / "two-zones")
    kinds = {type(item.document).__name__ for item in load.load([EXAMPLES / "two-zones"]).items}

    assert {"CredentialFlow", "Rollout", "Maintenance"} <= kinds
    assert topology.resources[Ref("cluster", "st")].spec["ceph"]["stretch"]["arbiter"] == "arb"
    shared = [ref.name for ref in topology.resources if ref.name.startswith("st.")]
    assert any(name.endswith(".prod") for name in shared)
    assert any(name.endswith(".lab") for name in shared)


@pytest.mark.parametrize(("name", "region"), [("minimal", "eu-1"), ("two-zones", "eu-2")])
def test_the_tree_of_an_example_fits_80_columns(name: str, region: str) -> None:
    """What a person sees first is not wrapped."""
    lines = draw.tree(compiled(EXAMPLES / name), region)

    assert max(len(line) for line in lines) <= 80


def test_a_generated_fleet_has_no_problem(small_fleet: Path) -> None:
    """It passes the same checks as what people write."""
    bundle = load.load([small_fleet])

    assert bundle.problems == ()
    assert run.check(bundle) == []


def test_a_generated_fleet_has_the_numbers_asked_for(small_fleet: Path) -> None:
    """Clusters and servers are neither lost nor doubled when dealt out."""
    resources = compiled(small_fleet).resources

    assert sum(ref.kind == "cluster" for ref in resources) == 30
    assert sum(ref.kind == "server" for ref in resources) == 900
    assert sum(ref.kind == "region" for ref in resources) == 3


def test_the_same_numbers_give_the_same_bytes(small_fleet: Path, tmp_path: Path) -> None:
    """Two runs differ in nothing, so measurements can be compared."""
    large.main([str(tmp_path), "--clusters", "30", "--servers", "900"])

    digests = [
        [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.yaml"))]
        for folder in (small_fleet, tmp_path)
    ]

    assert digests[0] == digests[1]
    assert diff.diff(compiled(small_fleet), compiled(tmp_path)).empty


def test_the_default_fleet_has_its_size_and_keeps_the_limits() -> None:
    """1,000 clusters and 100,000 servers in 100 files, each far below what the loader takes."""
    fleet = large.plans(1000, 100_000)
    text = "---\n".join(large.documents(fleet[0]))

    assert len(fleet) == 100
    assert sum(pool.size for plan in fleet for pool in plan.pools) == 100_000
    assert sum(len(pool.users) for plan in fleet for pool in plan.pools) == 1000
    assert len(text.encode()) < BYTES_MAX
    assert text.count(":") * 2 < VALUES_MAX


@pytest.mark.parametrize(("clusters", "servers"), [(3, 100), (10, 20), (10, 90_000)])
def test_numbers_that_make_no_fleet_are_refused(
    clusters: int, servers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence and exit code 2, not a fleet that fails the checks."""
    with pytest.raises(SystemExit) as caught:
        large.main([str(tmp_path), "--clusters", str(clusters), "--servers", str(servers)])

    assert caught.value.code == 2
    assert "clusters" in capsys.readouterr().err
