"""With the built-in catalogue: a change of a document reaches those it concerns, and no others."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topology import fleets, generated
from topology import catalogue_load, diff, fleet, load, places, specs
from topology import compile as compiler
from topology.catalogue import Scope
from topology.examples import large
from topology.resource import Ref, Topology

COMPONENTS, _ = catalogue_load.load()
EXAMPLES = Path(large.__file__).parent

Item = fleets.Item


def built(items: list[Item]) -> Topology:
    return compiler.compile(items, COMPONENTS)


def touched(old: Item, new: Item) -> set[str]:
    """The kinds of all that a changed document changes, without the documents' own."""
    items = fleets.with_(fleets.small(), old)
    change = diff.diff(built(items), built(fleets.with_(items, new)))
    assert change.added == change.removed == ()
    return {one.ref.kind for one in change.changed} - {"region", "cluster", "cloud"}


def cloud(**spec: Any) -> Item:
    return fleets.cloud(services=["keystone", "glance", "placement", "nova", "neutron"], **spec)


def hosts(**options: Any) -> Item:
    return fleets.cluster("hv", "hypervisor", hypervisor={"traits": ["CUSTOM_A"], **options})


SERVICES = {"controlplane", "keystone", "glance", "placement", "nova", "neutron"}
BACKING = {"mariadb", "memcached", "rabbitmq", "valkey", "garage", "ovn"}
ON_HOSTS = {"nova-compute", "hypervisors"}
NOBODY: set[str] = set()


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (cloud(), cloud(release="2026.1"), SERVICES | ON_HOSTS),
        (
            cloud(release="2026.1", hypervisorRelease="2025.2"),
            cloud(release="2026.1"),
            ON_HOSTS,
        ),
        (cloud(), cloud(size="large"), SERVICES | BACKING),
        (hosts(), hosts(traits=["CUSTOM_A", "CUSTOM_B"]), {"aggregates", "hypervisors"}),
        (hosts(), hosts(aggregates=["gold"]), {"aggregates", "hypervisors"}),
        (
            fleets.region(),
            fleets.region(git={"url": "https://git.example/other.git"}),
            {"flux", "flux-source"},
        ),
        (fleets.region(), fleets.region(secrets={"replicas": 5}), {"openbao"}),
        (fleets.region(), fleets.region(windows=[{"from": "22:00", "to": "04:00"}]), NOBODY),
    ],
    ids=[
        "release",
        "hypervisorRelease",
        "size",
        "trait",
        "aggregate",
        "git",
        "replicas",
        "windows",
    ],
)
def test_a_change_reaches_whom_it_concerns(old: Item, new: Item, kinds: set[str]) -> None:
    """A release reaches Nova and nova-compute, a size the databases, a trait Placement; and a new
    Git address is no news for OpenBao."""
    assert touched(old, new) == kinds


def test_hosts_are_counted_so_that_a_missing_one_is_missed() -> None:
    """The driver of the hypervisors knows how many there must be."""
    workers = [
        {"name": "a", "pool": "general", "minimum": 2, "maximum": 4},
        {"name": "b", "pool": "general", "minimum": 1, "maximum": 1},
    ]
    items = fleets.with_(fleets.small(), fleets.cluster("hv", "hypervisor", workers=workers))

    assert built(items).resources[Ref("hypervisors", "hv")].spec["hosts"] == 3


def test_those_who_fetch_ceph_keys_know_the_storage() -> None:
    """The path of a key names its storage cluster, so its reader must know it."""
    resources = built(fleets.small()).resources

    for ref in (Ref("ceph-pull", "hv"), Ref("ceph-pull-services", "prod")):
        assert resources[ref].spec["storage"] == ["st"]


@pytest.mark.parametrize("turned", ["workers", "pools"])
def test_order_of_named_things_is_nothing(turned: str) -> None:
    """Workers and RBD pools are known by their names: turned round they are the same fleet."""
    names = ("a", "b", "c")
    workers = [{"name": n, "pool": "general", "minimum": 1, "maximum": 1} for n in names]
    pools = [{"name": name} for name in names]

    def storage() -> Topology:
        given = fleets.cluster("st", "storage", workers=workers, ceph={"pools": pools})
        return built(fleets.with_(fleets.small(), given))

    before = storage()
    (workers if turned == "workers" else pools).reverse()

    assert storage().digest == before.digest


def credential_paths(items: list[Any]) -> list[tuple[str, str]]:
    """Region and path of every credential that every instance makes in OpenBao."""
    known = fleet.gather(items)
    where = places.Places(known)
    told = specs.Specs(where)
    found: list[tuple[str, str]] = []
    for component in COMPONENTS.values():
        scope = component.spec.scope
        for place in where.of(scope):
            if not told.placed(component, place):
                continue
            here = [place]
            if scope is Scope.SERVER:
                here = [place._replace(server=s) for s in where.servers[place.serverpool]]
            found += [
                (one.region, told.text(make.path, component, one))
                for one in here
                for make in component.spec.makes
                if make.path is not None
            ]
    return found


def test_no_two_things_of_an_example_share_a_path() -> None:
    """Two clouds at one OpenBao never write to one path: one would have the other's passwords."""
    paths = credential_paths(list(load.load([EXAMPLES / "two-zones"]).items))

    assert len(paths) == len(set(paths))
    assert ("eu-2", "database/mariadb/creds/<service>-openstack-cp-lab") in paths


@settings(max_examples=30, deadline=None)
@given(generated.fleets())
def test_no_two_things_of_any_fleet_share_a_path(items: list[Item]) -> None:
    """However clusters, clouds and storage are combined."""
    paths = credential_paths(items)

    assert len(paths) == len(set(paths))


@settings(max_examples=30, deadline=None)
@given(generated.fleets(), st.data())
def test_a_difference_is_shown_where_the_digest_moves_and_only_there(
    old: list[Item], data: st.DataObject
) -> None:
    """An empty difference means an equal digest, so that nothing changes unseen."""
    new = data.draw(st.one_of(st.just(old), st.permutations(old), generated.fleets()))
    before, after = built(old), built(new)

    change = diff.diff(before, after)

    assert change.empty is (before.digest == after.digest)
    assert bool(diff.show(change)) is not change.empty
