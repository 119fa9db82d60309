"""Changes of a whole region with the built-in catalogue, each with the words a person reads."""

from typing import Any

import pytest

from tests.topology import fleets
from topology import catalogue_load, diff
from topology import compile as compiler

COMPONENTS, _ = catalogue_load.load()
Item = fleets.Item


def lines(old: list[Item], new: list[Item]) -> list[str]:
    before, after = compiler.compile(old, COMPONENTS), compiler.compile(new, COMPONENTS)
    return diff.show(diff.diff(before, after))


def server(**fields: Any) -> Item:
    """Pool one, of one server."""
    given = {"name": "s1", "bmc": "192.0.9.1", "zone": "a", "rack": "r1", **fields}
    return fleets.pool("one", servers=[given])


def st(*pools: dict[str, Any]) -> Item:
    return fleets.cluster("st", "storage", ceph={"pools": list(pools)})


def flow(*clusters: str) -> Item:
    targets = [{"cluster": one, "namespace": "n", "secret": "s"} for one in clusters]
    source = {"generate": {"length": 32}}
    return fleets.item(
        "CredentialFlow",
        "mine",
        {"region": "eu-1", "source": source, "path": "mine", "targets": targets},
    )


VMS = {"name": "vms", "deviceClass": "nvme"}
IRONIC = {"provider": "ironic", "url": "https://i.example", "access": {"file": "m"}}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            [server()],
            [server(zone="b")],
            (
                "~ server/s1: zone a -> b; domains now without zone:eu-1/a and with zone:eu-1/b "
                "(rolls: zone empties it first, as its machines stay in their zone)"
            ),
        ),
        (
            [fleets.region()],
            [fleets.region(metal=IRONIC)],
            (
                "! region eu-1: 12 of 12 servers (100 %) and 4 of 4 clusters (cp, hv, mgmt, st) "
                "would go or be replaced: needs your consent"
            ),
        ),
        (
            [fleets.region()],
            [fleets.region(secrets={"mount": "kv"})],
            (
                "~ openbao-engines/mgmt: secrets.mount kv-v2 -> kv (replaces it: secrets.mount is "
                "an empty store; what lies in the old one does not move)"
            ),
        ),
        (
            [fleets.region()],
            [fleets.region(git={"url": "https://git.example/x.git", "path": "all"})],
            (
                "~ flux-sync/hv: parameters.path clusters/hv -> all/hv "
                "(in place: parameters.path prunes what the new place lacks)"
            ),
        ),
        (
            [st(VMS)],
            [st({**VMS, "deviceClass": "ssd"})],
            (
                "~ cephpool/st.vms: pool.deviceClass nvme -> ssd "
                "(in place: pool.deviceClass moves all of its data to other disks)"
            ),
        ),
        (
            [st(VMS, {"name": "old"})],
            [st(VMS, {"name": "new"})],
            "~ cluster/st: ceph.pools[new] is new; ceph.pools[old] is gone (in place)",
        ),
        (
            [flow("cp", "hv")],
            [flow("cp")],
            (
                "~ credentialflow/mine: targets now without cluster hv, namespace n, secret s, "
                "key value; needs access/hv -> nothing (in place)"
            ),
        ),
        (
            [fleets.cloud(services=["keystone", "glance"])],
            [fleets.cloud(services=["glance", "keystone"])],
            "~ cloud/prod: services in another order (in place)",
        ),
        (
            [fleets.cloud()],
            [fleets.cloud(hypervisors=["hv", "hv2"]), fleets.cluster("hv2", "hypervisor")],
            "~ cloud/prod: hypervisors now with hv2; needs nothing -> hypervisors/hv2 (in place)",
        ),
    ],
    ids=[
        "server in another zone",
        "another metal provider",
        "another mount",
        "another folder",
        "other disks",
        "pool renamed",
        "target removed",
        "list turned round",
        "hypervisors added",
    ],
)
def test_a_change_reads_well(old: list[Item], new: list[Item], line: str) -> None:
    """What changes, how hard it is, and why, in one line."""
    before = fleets.with_(fleets.small(), *old)

    assert line in lines(before, fleets.with_(before, *new))


def test_a_cloud_of_another_name_takes_hosts_and_machines_along() -> None:
    """A renamed cloud is another cloud: its hosts leave the old one, which is orphaned."""
    renamed = fleets.with_(fleets.without(fleets.small(), "Cloud", "prod"), fleets.cloud("new"))

    found = lines(fleets.small(), renamed)

    assert "- cloud/prod: no longer asked for; orphaned, and kept until you retire it" in found
    assert any("replaces it: cloud takes it out of the old one" in line for line in found)


def test_several_orphans_are_retired_as_several() -> None:
    """The sentence fits one thing and many."""
    found = lines(fleets.small(), fleets.without(fleets.small(), "Cloud", "prod"))

    assert any(line.endswith("kept until you retire them") for line in found)
