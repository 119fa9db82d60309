"""The built-in catalogue: complete, in order, and honest about who makes which credential."""

import itertools
import re
from pathlib import Path

import pytest

from topology import catalogue_checks, catalogue_load, graph, health
from topology.catalogue import Component, On, Scope
from topology.documents.cluster import Role

COMPONENTS, PROBLEMS = catalogue_load.load()
DOCS = Path(__file__).parents[2] / "docs" / "catalogue.md"

# What sections 3.1 and 3.2 of the facts about CobaltCore name, and the component that stands for
# it here.
NAMED = {
    "metal-operator": "metal-operator",
    "boot-operator": "boot-operator",
    "Servers Available, BMC Ready": "server",
    "cloud-profile-sync": "cloud-profile",
    "Gardener Project": "garden-project",
    "CredentialsBinding": "credentials-binding",
    "Seed": "seed",
    "Shoot": "cluster",
    "adminkubeconfig": "access",
    "cert-manager": "cert-manager",
    "OpenBao (init, unseal)": "openbao",
    "OpenBao engines": "openbao-engines",
    "OpenBao auth": "openbao-auth",
    "OpenBao policies": "openbao-policies",
    "OpenBao bootstrap secrets": "openbao-secrets",
    "ESO": "external-secrets",
    "ClusterSecretStore": "secret-store",
    "FluxInstance": "flux",
    "Flux sources": "flux-source",
    "kubeconfig secret for Flux": "flux-target",
    "MariaDB": "mariadb",
    "Memcached": "memcached",
    "RabbitMQ": "rabbitmq",
    "Valkey": "valkey",
    "K-ORC": "k-orc",
    "ControlPlane CR": "controlplane",
    "DBCredentials": "openbao-database",
    "Keystone": "keystone",
    "Horizon": "horizon",
    "Glance": "glance",
    "Placement": "placement",
    "Barbican": "barbican",
    "Rook operator": "rook-operator",
    "CephCluster": "cephcluster",
    "RemoteCluster": "remote-cluster",
    "RemoteArbiter": "remote-arbiter",
    "CephBlockPool": "cephpool",
    "CephClient": "cephclient",
    "PushSecret of keys": "ceph-push",
    "Ceph key": "ceph-pull",
    "nova-compute": "nova-compute",
    "Hypervisor CR": "hypervisors",
    "Nova API": "nova",
    "OVN SB": "ovn",
    "aggregates": "aggregates",
    "smoke-test project": "smoke-test",
    "HelmRelease prometheus-operator-crds": "prometheus-operator-crds",
    "HelmRelease mariadb-operator-crds": "mariadb-operator-crds",
    "HelmRelease mariadb-operator": "mariadb-operator",
    "HelmRelease openbao-operator": "openbao-operator",
    "HelmRelease garage-operator": "garage-operator",
    "HelmRelease memcached-operator": "memcached-operator",
    "HelmRelease keystone-operator": "keystone-operator",
    "HelmRelease glance-operator": "glance-operator",
    "HelmRelease placement-operator": "placement-operator",
    "HelmRelease horizon-operator": "horizon-operator",
    "HelmRelease barbican-operator": "barbican-operator",
    "HelmRelease c5c3-operator": "c5c3-operator",
}

ON_ROLE = {
    Role.MANAGEMENT: ["access", "cert-manager", "flux", "flux-source", "openbao", "greenhouse"],
    Role.CONTROL_PLANE: ["access", "flux-target", "secret-store", "mariadb", "k-orc", "ovn"],
    Role.HYPERVISOR: ["access", "flux-target", "kvm-node-agent", "labels-injector"],
    Role.STORAGE: ["access", "rook-operator", "cephcluster", "remote-arbiter", "prysm"],
    Role.ARBITER: ["access", "flux-target", "flux-sync", "arbiter", "greenhouse-cluster"],
}

OPERATORS = ["cert-manager", "mariadb-operator", "memcached-operator", "external-secrets"]
# HelmRelease graph of section 3.2: release, and all it depends on.
SHIPPED: dict[str, list[str]] = {
    "cert-manager": [],
    "prometheus-operator-crds": [],
    "mariadb-operator-crds": [],
    "mariadb-operator": ["cert-manager", "mariadb-operator-crds"],
    "external-secrets": ["cert-manager"],
    "openbao": ["cert-manager"],
    "openbao-operator": ["cert-manager"],
    "garage-operator": ["cert-manager"],
    "memcached-operator": ["cert-manager", "prometheus-operator-crds"],
    "keystone-operator": OPERATORS,
    "glance-operator": [*OPERATORS, "keystone-operator"],
    "placement-operator": [*OPERATORS, "keystone-operator"],
    "horizon-operator": [*OPERATORS, "keystone-operator"],
    "barbican-operator": [*OPERATORS, "keystone-operator", "openbao-operator"],
    "c5c3-operator": ["keystone-operator", *OPERATORS[1:]],
}
FLUX = {"flux", "flux-target", "flux-sync"}
"""What every release needs besides, because Flux of the management cluster installs it."""

# The bring-up of the design, each before the next.
CHAIN = [
    ("credentials-binding", ""),
    ("cluster", "management"),
    ("access", "management"),
    ("flux", "management"),
    ("openbao", "management"),
    ("openbao-engines", "management"),
    ("openbao-policies", "management"),
    ("openbao-auth", "management"),
    ("secret-store", "management"),
    ("flux-source", "management"),
    ("flux-sync", "control-plane"),
    ("mariadb-operator", "control-plane"),
    ("mariadb", "control-plane"),
    ("openbao-database", ""),
    ("controlplane", ""),
    ("nova", ""),
    ("smoke-test", ""),
    ("hypervisor-operator", ""),
    ("hypervisors", ""),
    ("cloud", ""),
]
CEPH = [
    ("cluster", "control-plane"),
    ("cluster", "storage"),
    ("access", "storage"),
    ("flux-target", "storage"),
    ("secret-store", "storage"),
    ("flux-sync", "storage"),
    ("rook-operator", "storage"),
    ("cephcluster", "storage"),
    ("remote-arbiter", "storage"),
    ("cephpool", ""),
    ("cephclient", ""),
    ("ceph-push", ""),
    ("ceph-pull", ""),
    ("nova-compute", ""),
    ("hypervisors", ""),
]
NEEDS = catalogue_checks.needs_by_role(COMPONENTS)


def needed(node: tuple[str, str]) -> set[tuple[str, str]]:
    """All that a node needs, directly or not."""
    found: set[tuple[str, str]] = set()
    todo = [node]
    while todo:
        for below in NEEDS[todo.pop()]:
            if below not in found:
                found.add(below)
                todo.append(below)
    return found


def test_built_in_catalogue_has_no_problem() -> None:
    """Every built-in file passes every check."""
    assert [str(problem) for problem in PROBLEMS] == []


@pytest.mark.parametrize("name", NAMED.values(), ids=NAMED.keys())
def test_what_the_facts_name_is_covered(name: str) -> None:
    """Each component of sections 3.1 and 3.2 is in the catalogue."""
    assert name in COMPONENTS


@pytest.mark.parametrize("role", Role)
def test_each_role_has_its_components(role: Role) -> None:
    """The components of a role are placed on it."""
    for name in ON_ROLE[role]:
        spec = COMPONENTS[name].spec
        assert spec.scope is Scope.CLUSTER
        assert not spec.roles or role in spec.roles, name


@pytest.mark.parametrize("name", SHIPPED)
def test_graph_of_the_shipped_releases_is_kept(name: str) -> None:
    """What C5C3's own HelmReleases depend on is needed here, and nothing that they do not."""
    here = {link.component for link in COMPONENTS[name].spec.needs}

    assert here - FLUX == set(SHIPPED[name])


@pytest.mark.parametrize(
    ("first", "then"), [*itertools.pairwise(CHAIN), *itertools.pairwise(CEPH)], ids=str
)
def test_bring_up_is_in_the_order_of_the_design(
    first: tuple[str, str], then: tuple[str, str]
) -> None:
    """Each thing of the design's chain needs the one before it, directly or not."""
    assert first in needed(then)


def test_hypervisors_and_storage_come_up_in_parallel() -> None:
    """Neither cluster waits for the other."""
    assert ("cluster", "storage") not in needed(("cluster", "hypervisor"))
    assert ("cluster", "hypervisor") not in needed(("cluster", "storage"))


def test_management_cluster_bootstraps_without_openbao() -> None:
    """Cluster, access, Flux and cert-manager of the management cluster need no OpenBao."""
    for name in ("cluster", "access", "flux", "cert-manager", "external-secrets"):
        assert ("openbao", "management") not in needed((name, "management"))


def test_remote_stores_need_their_own_login() -> None:
    """A store on another cluster needs that cluster's mount in OpenBao."""
    for role in ("control-plane", "hypervisor", "storage"):
        assert ("openbao-auth", role) in NEEDS["secret-store", role]


def test_there_is_an_order() -> None:
    """Needs contain no circle."""
    assert graph.cycle(NEEDS) is None


def test_only_design_documents_have_invented_groups() -> None:
    """No component reads a kind of a group that exists only in design documents."""
    invented = re.compile(
        r"hypervisor\.c5c3\.io|ceph\.c5c3\.io|ov[ns]\.c5c3\.io|valkey\.c5c3\.io|cortex\.c5c3\.io"
        r"|(nova|neutron|cinder|tempest)\.openstack\.c5c3\.io"
    )
    for file in sorted(catalogue_load.BUILT_IN.rglob("*.yaml")):
        assert not invented.search(file.read_text()), file.name


def test_files_are_named_after_their_component() -> None:
    """One component a file, under its own name."""
    for name in COMPONENTS:
        assert (catalogue_load.BUILT_IN / f"{name}.yaml").is_file()


NAMESPACE = "openstack-{cluster}"
"""Where a ControlPlane and its databases live. The paths that c5c3-operator and keystone-operator
use are fixed but for the namespace, so two control planes at one OpenBao need one each."""


def test_credentials_of_the_facts_have_their_paths() -> None:
    """The secret flows of the facts are there, each with its path or Secret and its proof."""
    made = {make.name: make for c in COMPONENTS.values() for make in c.spec.makes}
    used = {use.name for c in COMPONENTS.values() for use in c.spec.uses}

    paths = {name: make.path or "" for name, make in made.items()}
    assert paths["kubeconfig"] == "infrastructure/kubeconfig-{cluster}"
    assert paths["keystone-admin"] == f"bootstrap/{NAMESPACE}/{{cloud}}-keystone/admin"
    assert paths["mariadb-root"].startswith("infrastructure/mariadb")
    assert paths["ceph-key-nova"].startswith("ceph/")
    assert paths["database-user"] == f"database/mariadb/creds/<service>-{NAMESPACE}"
    assert made["openbao-keys"].secret == "shared-services/openbao-init-keys"
    assert made["barbican-unseal"].rotate is None
    assert used >= ROTATED
    assert {name for name, make in made.items() if make.rotate is not None} >= ROTATED


ROTATED = {
    "fernet-keys",
    "credential-keys",
    "keystone-admin",
    "admin-application-credential",
    "service-accounts",
    "database-user",
    "barbican-secret-id",
    "provisioner",
    "kubeconfig",
    "shoot-ca",
    "shoot-ssh-keypair",
    "ceph-key-nova",
    "ceph-key-cinder",
    "ceph-key-glance",
    "bmc",
    "libvirt-certificate",
    "greenhouse-token",
    "openbao-tls",
    "openbao-client-tls",
}
"""The table of section 9.5, but for the token of target clusters, which fleetd does not use, and
OpenBao's own certificates of section 7.2."""


def test_every_database_client_says_how_its_user_is_seen() -> None:
    """Users end after 48 hours, so each service that has a database is among those who prove."""
    users = {
        n for n, c in COMPONENTS.items() if any(u.name == "database-user" for u in c.spec.uses)
    }
    named = ["keystone", "glance", "placement", "barbican", "nova", "neutron", "cinder"]

    assert users == set(named)


def test_every_link_reads_as_a_sentence() -> None:
    """A link's reason can follow "because": it starts small and ends without a full stop."""
    for name, component in COMPONENTS.items():
        for link in (*component.spec.needs, *component.spec.feeds):
            assert not link.why.endswith("."), name
            proper = link.why.split()[0] in PROPER
            assert proper or link.why[0].islower(), (name, link.why)


PROPER = {"Flux", "Greenhouse", "Glance", "OpenBao"}


def example() -> str:
    found = re.search(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert found
    return found.group(1)


def test_example_of_the_documentation_works(tmp_path: Path) -> None:
    """The worked example of docs/catalogue.md loads without a problem and is placed."""
    (tmp_path / "cortex.yaml").write_text(example())

    components, problems = catalogue_load.load([tmp_path])

    assert [str(problem) for problem in problems] == []
    added = set(components) - set(COMPONENTS)
    assert added == {"cortex"}
    cortex: Component = components["cortex"]
    assert cortex.spec.health.healthy, "the profile's rules are written in"
    assert {link.on for link in cortex.spec.needs} >= {On.SAME}


def test_documentation_names_every_source_and_own_reason() -> None:
    """docs/catalogue.md explains the sources and the reasons that no rule gives."""
    text = DOCS.read_text()
    words = ["kubernetes", "metal", "openbao", "openstack", "aggregate"]
    for word in [*words, *health.OWN_REASONS]:
        assert f"`{word}`" in text


def test_what_flux_brings_to_another_cluster_needs_the_way_there() -> None:
    """Otherwise it would change over to another way before that is good."""
    astray = [
        name
        for name, one in COMPONENTS.items()
        if one.spec.install.by in ("flux-helm", "flux-kustomization")
        and one.spec.roles != [Role.MANAGEMENT]
        and "flux-target" not in {link.component for link in one.spec.needs}
    ]

    assert astray == []
