"""Documents and catalogue become resources and edges."""

import pytest

from tests.topology import fleets
from topology import graph
from topology.resource import Edge, EdgeKind, Ref, Topology


def needs(topology: Topology, kind: str, name: str) -> set[str]:
    return {str(ref) for ref in topology.resources[Ref(kind, name)].needs}


def names(topology: Topology, kind: str) -> list[str]:
    return sorted(ref.name for ref in topology.resources if ref.kind == kind)


def test_each_scope_has_its_instances_and_names() -> None:
    """One instance per region, cluster, cloud, pair, Ceph pool, server, pool and document."""
    topology = fleets.topology()

    assert names(topology, "metal") == ["eu-1"]
    assert names(topology, "access") == ["cp", "hv", "mgmt", "st"]
    assert names(topology, "openbao") == ["mgmt"]
    assert names(topology, "controlplane") == ["prod"]
    assert names(topology, "compute") == ["hv"]
    assert names(topology, "ceph-key") == ["st.prod"]
    assert names(topology, "ceph-pool") == ["st.images", "st.vms", "st.volumes"]
    assert len(names(topology, "server")) == 12
    assert names(topology, "serverpool") == ["general"]
    assert names(topology, "cluster") == ["cp", "hv", "mgmt", "st"]
    assert names(topology, "cloud") == ["prod"]
    assert names(topology, "region") == ["eu-1"]


def test_links_lead_to_what_the_two_have_in_common() -> None:
    """`same` is the cluster where both have it, else the cloud; `management` is across."""
    topology = fleets.topology()

    assert needs(topology, "store", "hv") == {"access/hv", "openbao/mgmt"}
    assert needs(topology, "ceph-pool", "st.vms") == {"access/st", "ceph/st"}
    assert needs(topology, "ceph-key", "st.prod") == {
        "ceph-pool/st.images",
        "ceph-pool/st.vms",
        "ceph-pool/st.volumes",
    }
    assert needs(topology, "controlplane", "prod") == {"access/cp", "store/cp"}
    assert needs(topology, "compute", "hv") == {
        "access/hv",
        "ceph-key/st.prod",
        "controlplane/prod",
        "store/hv",
    }


def test_clusters_need_their_pools_and_the_garden() -> None:
    """Edges that hold for any catalogue are there without a link."""
    topology = fleets.topology()

    assert needs(topology, "cluster", "hv") == {"project/eu-1", "serverpool/general"}
    assert needs(topology, "access", "hv") == {"cluster/hv"}


def test_a_region_needs_what_ends_it() -> None:
    """The region waits for what nobody else waits for, and not for bare metal."""
    topology = fleets.topology()

    assert needs(topology, "region", "eu-1") == {
        "cloud/prod",
        "metal/eu-1",
        "store/mgmt",
        "store/st",
    }


def test_servers_feed_pools_host_clusters_host_components() -> None:
    """Blast radius can be read from the edges."""
    edges = set(fleets.topology().edges)

    assert Edge(Ref("server", "general-s0"), EdgeKind.FEEDS, Ref("serverpool", "general")) in edges
    assert Edge(Ref("serverpool", "general"), EdgeKind.HOSTS, Ref("cluster", "hv")) in edges
    assert Edge(Ref("cluster", "hv"), EdgeKind.HOSTS, Ref("compute", "hv")) in edges
    assert Edge(Ref("cluster", "cp"), EdgeKind.HOSTS, Ref("controlplane", "prod")) in edges
    assert Edge(Ref("compute", "hv"), EdgeKind.NEEDS, Ref("store", "hv")) in edges


def test_backends_and_domains() -> None:
    """Each far side and each failure domain has its name."""
    resources = fleets.topology().resources

    assert resources[Ref("cluster", "hv")].backend == "garden:eu-1"
    assert resources[Ref("cluster", "hv")].domains == ("role:eu-1/hypervisor",)
    assert resources[Ref("server", "general-s0")].backend == "metal:eu-1"
    assert resources[Ref("server", "general-s0")].domains == (
        "rack:eu-1/r0",
        "zone:eu-1/a",
        "pool:general",
    )
    assert resources[Ref("openbao", "mgmt")].backend == "openbao:eu-1"
    assert resources[Ref("compute", "hv")].backend == "cluster:hv"
    assert resources[Ref("compute", "hv")].domains == ("cluster:hv",)
    assert resources[Ref("region", "eu-1")].backend == ""


def test_what_lies_on_the_management_cluster_is_asked_there() -> None:
    """A HelmRelease for hv is read from mgmt, stands on hv, and needs access to both."""
    release = fleets.component("release", "cluster", "management", roles=["hypervisor"])

    topology = fleets.topology(None, release)

    assert topology.resources[Ref("release", "hv")].backend == "cluster:mgmt"
    assert topology.resources[Ref("release", "hv")].domains == ("cluster:hv",)
    assert needs(topology, "release", "hv") == {"access/hv", "access/mgmt"}


def test_a_server_without_a_rack_is_a_rack_of_its_own() -> None:
    """Two servers without a rack do not share one."""
    span = {"first": "192.0.2.1", "last": "192.0.2.12", "zone": "a"}
    topology = fleets.topology([fleets.region(), fleets.pool("p", servers=[], range=span)])

    domains = [one.domains[0] for one in topology.resources.values() if one.ref.kind == "server"]

    assert domains == sorted({f"rack:eu-1/server.p-{n:02d}" for n in range(1, 13)})


def test_a_range_is_numbered_with_as_many_digits_as_it_needs() -> None:
    """Names sort as the servers stand, and a prefix of one's own is used."""
    span = {"first": "192.0.2.250", "last": "192.0.3.10", "zone": "a", "prefix": "r7-"}

    topology = fleets.topology([fleets.region(), fleets.pool("p", servers=[], range=span)])

    assert names(topology, "server")[0] == "r7-01"
    assert names(topology, "server")[-1] == "r7-17"
    assert topology.resources[Ref("server", "r7-07")].spec["bmc"] == "192.0.3.0"


def test_an_adopted_cluster_needs_neither_servers_nor_garden() -> None:
    """It is looked at through its kubeconfig and never made."""
    adopted = fleets.cluster(
        "old", "management", workers=[], adopted={"access": {"file": "old.kubeconfig"}}
    )
    first = fleets.component(
        "cluster", "cluster-document", "garden", driver="gardener", needs=[("project", "same")]
    )

    topology = fleets.topology([fleets.region(), adopted], first)

    resource = topology.resources[Ref("cluster", "old")]
    assert (resource.driver, resource.backend) == ("adopted", "cluster:old")
    assert resource.needs == frozenset()
    assert needs(topology, "access", "old") == {"cluster/old"}


def test_defaults_of_region_and_role_are_filled_in() -> None:
    """A driver finds version, image, zones, machine type and a careful drain timeout."""
    resources = fleets.topology().resources

    spec = resources[Ref("cluster", "hv")].spec
    assert spec["kubernetes"] == "1.33.4"
    assert spec["image"] == {"name": "gardenlinux", "version": "1877.4.0"}
    assert spec["maintenance"] == {
        "autoUpdateKubernetes": False,
        "autoUpdateImage": False,
        "window": {"from": "22:00", "to": "23:00"},
    }
    assert spec["garden"] == {
        "project": "cobalt",
        "cloudProfile": "metal",
        "ownProfile": False,
        "credentialsBinding": "metal",
        "region": "eu-1",
    }
    assert spec["workers"][0]["drainTimeout"] == "30d"
    assert spec["workers"][0]["zones"] == ["a", "b"]
    assert spec["workers"][0]["machineType"] == "std"
    assert resources[Ref("cluster", "mgmt")].spec["workers"][0]["drainTimeout"] == "2h"
    assert resources[Ref("serverpool", "general")].spec["wanted"] == 4


def test_copies_are_three_or_four_when_stretched() -> None:
    """Ceph pools without a size get the one an expert would choose; a given size stays."""
    stretched = fleets.cluster(
        "st",
        "storage",
        ceph={
            "stretch": {"zones": ["a", "b"], "arbiter": "arb"},
            "pools": [{"name": "vms"}, {"name": "small", "size": 2}],
        },
    )
    items = fleets.with_(fleets.small(), stretched, fleets.cluster("arb", "arbiter"))

    plain, wide = fleets.topology().resources, fleets.topology(items).resources

    assert plain[Ref("ceph-pool", "st.vms")].spec["pool"] == {"name": "vms", "size": 3}
    assert wide[Ref("ceph-pool", "st.vms")].spec["pool"] == {"name": "vms", "size": 4}
    assert wide[Ref("ceph-pool", "st.small")].spec["pool"] == {"name": "small", "size": 2}
    assert wide[Ref("ceph", "st")].spec["ceph"]["stretch"]["arbiter"] == "arb"


def test_arbiters_and_storage_find_each_other() -> None:
    """`on: arbiter` and `on: storage` are the two directions of one stretch."""
    stretched = fleets.cluster(
        "st", "storage", ceph={"stretch": {"zones": ["a", "b"], "arbiter": "arb"}}
    )
    items = fleets.with_(fleets.small(), stretched, fleets.cluster("arb", "arbiter"))
    tie = fleets.component(
        "tie", "cluster", "cluster", roles=["storage"], needs=[("witness", "arbiter")]
    )
    witness = fleets.component(
        "witness", "cluster", "cluster", roles=["arbiter"], needs=[("ceph", "storage")]
    )

    topology = fleets.topology(items, tie, witness)
    alone = fleets.topology(fleets.without(items, "Cloud", "prod"), tie, witness)

    assert needs(alone, "witness", "arb") == {"access/arb", "ceph/st"}
    assert needs(topology, "tie", "st") == {"access/st", "witness/arb"}
    assert needs(topology, "witness", "arb") == {"access/arb", "ceph/st"}


def test_shared_storage_has_one_key_for_each_cloud() -> None:
    """Two clouds on one storage cluster: a key each, and each cloud needs only its own."""
    items = [
        *fleets.small(),
        fleets.cluster("cp2", "control-plane"),
        fleets.cluster("hv2", "hypervisor"),
        fleets.cloud("lab", controlPlane="cp2", hypervisors=["hv2"]),
    ]

    topology = fleets.topology(items)

    assert names(topology, "ceph-key") == ["st.lab", "st.prod"]
    assert "ceph-key/st.lab" in needs(topology, "compute", "hv2")
    assert "ceph-key/st.prod" not in needs(topology, "compute", "hv2")


def test_a_component_is_placed_only_when_its_fields_match() -> None:
    """`when` sees region, cluster and clouds from where the component would stand."""
    ironic = fleets.component(
        "ironic", "region", "metal", when=[{"field": "region.metal.provider", "anyOf": ["ironic"]}]
    )
    barbican = fleets.component(
        "barbican", "cloud", "cluster", when=[{"field": "cloud.services", "anyOf": ["barbican"]}]
    )
    plain = fleets.component(
        "plain",
        "cluster",
        "cluster",
        roles=["storage"],
        when=[{"field": "cluster.ceph.stretch", "present": False}],
    )
    cinder = fleets.component(
        "volumes",
        "cluster",
        "cluster",
        roles=["storage"],
        when=[{"field": "cloud.services", "anyOf": ["cinder"]}],
    )

    topology = fleets.topology(None, ironic, barbican, plain, cinder)

    assert names(topology, "ironic") == []
    assert names(topology, "barbican") == []
    assert names(topology, "plain") == ["st"]
    assert names(topology, "volumes") == ["st"]


def test_placeholders_are_filled_and_other_braces_stay() -> None:
    """Text takes names; a placeholder alone takes the value itself; templates are left alone."""
    chart = fleets.component(
        "chart",
        "cluster",
        "cluster",
        roles=["hypervisor"],
        parameters={
            "path": "{region.git.path}/{cluster}",
            "traits": "{cluster.hypervisor.traits}",
            "template": "{{ .Values.name }}",
            "list": ["{name}", 3],
            "unknown": "{nobody}",
        },
        install={"by": "flux-helm", "namespace": "n-{cluster}", "name": "x-{cluster}"},
    )

    resource = fleets.topology(None, chart).resources[Ref("chart", "hv")]

    assert resource.spec["parameters"] == {
        "path": "clusters/hv",
        "traits": ["CUSTOM_FLEETD"],
        "template": "{{ .Values.name }}",
        "list": ["hv", 3],
        "unknown": "{nobody}",
    }
    install = resource.spec["install"]
    assert (install["namespace"], install["name"]) == ("n-hv", "x-hv")


@pytest.mark.parametrize(
    ("mirror", "own", "expected"),
    [
        ({}, {}, "oci://ghcr.io/c5c3/charts"),
        ({}, {"repository": "https://charts.example"}, "https://charts.example"),
        (
            {"charts": "oci://mirror.example/charts"},
            {"repository": "https://charts.example"},
            "oci://mirror.example/charts",
        ),
    ],
    ids=["published by C5C3", "named in the catalogue", "the region's mirror"],
)
def test_a_chart_comes_from_the_mirror_or_from_where_it_is_published(
    mirror: dict[str, str], own: dict[str, str], expected: str
) -> None:
    """The region's mirror has all charts; without one, the catalogue knows where each is."""
    chart = fleets.component(
        "chart", "cluster", "cluster", install={"by": "flux-helm", "name": "x", **own}
    )

    found = fleets.topology(fleets.with_(fleets.small(), fleets.region(**mirror)), chart)

    assert found.resources[Ref("chart", "hv")].spec["install"]["repository"] == expected


def test_a_server_may_be_named_in_the_catalogue() -> None:
    """Parameters of servers name the server, and links may lead from one to itself."""
    server = fleets.component(
        "server", "server", "metal", parameters={"object": "{server}-system-0"}
    )
    twin = fleets.component("twin", "server", "metal", needs=[("server", "same")])

    topology = fleets.topology(None, server, twin)

    resource = topology.resources[Ref("server", "general-s7")]
    assert resource.spec["parameters"] == {"object": "general-s7-system-0"}
    assert needs(topology, "twin", "general-s7") == {"server/general-s7"}


def test_the_region_says_who_drives_its_servers() -> None:
    """One component serves both metal providers."""
    server = fleets.component("server", "server", "metal", driver="{region.metal.provider}")

    resources = fleets.topology(None, server).resources

    assert resources[Ref("server", "general-s0")].driver == "ironcore"


def test_a_server_carries_labels_of_pool_and_its_own() -> None:
    """The server's label wins over the pool's."""
    servers = [
        {"name": "s1", "bmc": "192.0.2.1", "zone": "a", "labels": {"disk": "nvme"}},
        {"name": "s2", "bmc": "192.0.2.2", "zone": "a"},
    ]
    pool = fleets.pool("p", servers=servers, labels={"disk": "ssd", "gen": "4"})

    resources = fleets.topology([fleets.region(), pool]).resources

    assert resources[Ref("server", "s1")].spec["labels"] == {"disk": "nvme", "gen": "4"}
    assert resources[Ref("server", "s2")].spec["labels"] == {"disk": "ssd", "gen": "4"}


def test_a_flow_needs_the_clusters_it_names() -> None:
    """A credential can be carried only to clusters that can be reached."""
    flow = fleets.item(
        "CredentialFlow",
        "f",
        {
            "region": "eu-1",
            "source": {"cephClient": {"cluster": "st", "client": "nova"}},
            "path": "ceph/nova",
            "targets": [{"cluster": "hv", "namespace": "n", "secret": "s"}],
        },
    )

    topology = fleets.topology([*fleets.small(), flow])

    assert needs(topology, "credentialflow", "f") == {"access/hv", "access/st", "openbao/mgmt"}
    assert topology.resources[Ref("credentialflow", "f")].owner == Ref("credentialflow", "f")


def test_owners_are_documents() -> None:
    """Every resource knows the document without which it would not be there."""
    items = fleets.small()
    documents = {
        Ref(type(one.document).__name__.lower(), one.document.metadata.name) for one in items
    }

    owners = {one.owner for one in fleets.topology(items).resources.values()}

    assert owners == documents


def test_a_circle_in_the_catalogue_is_named() -> None:
    """The checks refuse it before; compile still never returns a topology without an order."""
    first = fleets.component("first", "region", needs=[("second", "same")])
    second = fleets.component("second", "region", needs=[("first", "same")])

    with pytest.raises(graph.Cycle, match="first/eu-1 needs second/eu-1 needs first/eu-1"):
        fleets.topology(None, first, second)


def test_nothing_gives_nothing() -> None:
    """No documents, no resources, and still a digest."""
    topology = fleets.topology([])

    assert not topology.resources
    assert topology.edges == ()
    assert topology.digest


def test_limits_are_one_object_for_all_of_a_kind() -> None:
    """A hundred thousand servers share their limits, and so do charts on a thousand clusters."""
    chart = fleets.component("chart", "cluster", "cluster", install={"by": "flux-helm"})
    resources = fleets.topology(None, chart).resources

    first, second = (resources[Ref("server", f"general-s{n}")] for n in (0, 1))

    assert first.limits is second.limits
    assert first.needs is second.needs
    assert first.limits["*"].action == "look at server"
    assert resources[Ref("chart", "hv")].limits is resources[Ref("chart", "st")].limits


def test_needed_by_is_the_other_direction() -> None:
    """Who must be planned again when a thing changes, in the order of the topology."""
    topology = fleets.topology()

    above = topology.needed_by[Ref("openbao", "mgmt")]

    assert above == tuple(Ref("store", name) for name in ("cp", "hv", "mgmt", "st"))
    assert list(topology.needed_by) == [
        ref for ref in topology.resources if ref in topology.needed_by
    ]
