"""
The garden of each region as it stands before fleetd comes: a gardener-apiserver with a Seed, a
CloudProfile and registered extensions, and the seed cluster with the machine controller.

The CloudProfile offers what the region's documents ask for, the versions before and after, and
machine types for the classes of its servers. It selects servers by the label that fleetd puts on
them (`fleet.c5c3.io/class`), as an operator would write it.
"""

from typing import Any

from fleetd.sim.controllers import gardener_access, gardener_identities
from fleetd.sim.controllers.gardenadmission import SEED, Admission
from fleetd.sim.controllers.gardener import Gardenlet, ProjectController
from fleetd.sim.controllers.gardener_profiles import ProfileController
from fleetd.sim.controllers.machines import DEFINITIONS, MachineControllerManager
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.world import World
from topology.resource import Resource, Topology

MANAGER = "site"
PROVIDER = "ironcore-metal"
CONFIGS = f"{PROVIDER}.provider.extensions.gardener.cloud/v1alpha1"
CLASS = "fleet.c5c3.io/class"
API = "core.gardener.cloud/v1beta1"
_TYPES = (
    *((kind, PROVIDER) for kind in ("ControlPlane", "Infrastructure", "Worker")),
    ("Network", "calico"),
    ("Network", "cilium"),
    ("DNSRecord", "designate"),
)


def furnish(world: World, topology: Topology) -> None:
    for resource in topology.resources.values():
        if resource.ref.kind == "region":
            _garden(world, topology, resource)


def _garden(world: World, topology: Topology, region: Resource) -> None:
    name = region.ref.name
    if f"garden-{name}" in world.clusters:
        return
    garden = world.add_cluster(f"garden-{name}")
    seed = world.add_cluster(f"seed-{name}")
    for definition in DEFINITIONS:
        seed.serve(definition)
    Admission(garden).install()
    gardener_access.install(world, garden)
    gardener_identities.install(world, garden)
    clusters = [
        one
        for one in topology.resources.values()
        if one.ref.kind == "cluster" and one.region == name and one.driver == "gardener"
    ]
    profile = _profile(world, topology, region, clusters)
    for body in (_registration(clusters), profile, _seed(region)):
        garden.create(body, manager=MANAGER)
    _seed_ready(world, garden, f"seed-{name}")
    MachineControllerManager(world, seed).start()
    Gardenlet(world, garden).start()
    ProjectController(world, garden).start()
    ProfileController(world, garden).start()


def _registration(clusters: list[Resource]) -> dict[str, Any]:
    systems = {str(image["name"]) for one in clusters for image in _images(one)}
    types = (*_TYPES, *(("OperatingSystemConfig", one) for one in sorted(systems)))
    return {
        "apiVersion": API,
        "kind": "ControllerRegistration",
        "metadata": {"name": "site"},
        "spec": {"resources": [{"kind": kind, "type": one} for kind, one in types]},
    }


def _images(cluster: Resource) -> list[dict[str, Any]]:
    given = [cluster.spec.get("image"), *(one.get("image") for one in cluster.spec["workers"])]
    return [dict(one) for one in given if one]


def _profile(
    world: World, topology: Topology, region: Resource, clusters: list[Resource]
) -> dict[str, Any]:
    garden = region.spec["garden"]
    classes = sorted(
        {
            str(one.spec["class"])
            for one in topology.resources.values()
            if one.ref.kind == "serverpool" and one.region == region.ref.name
        }
        | {str(worker["machineType"]) for one in clusters for worker in one.spec["workers"]}
    )
    images: dict[str, set[str]] = {}
    for cluster in clusters:
        for image in _images(cluster):
            images.setdefault(str(image["name"]), set()).update(_around(str(image["version"])))
    versions = {
        version
        for cluster in clusters
        for given in (cluster.spec.get("kubernetes"), *_own_versions(cluster))
        if given
        for version in _minors(str(given))
    }
    return {
        "apiVersion": API,
        "kind": "CloudProfile",
        "metadata": {"name": garden["cloudProfile"]},
        "spec": {
            "type": PROVIDER,
            "kubernetes": {"versions": [{"version": one} for one in sorted(versions)]},
            "machineImages": [
                {"name": name, "versions": [_image(one) for one in sorted(images[name])]}
                for name in sorted(images)
            ]
            or [{"name": "gardenlinux", "versions": [_image("1877.4.0")]}],
            "machineTypes": [
                {"name": one, "cpu": "64", "gpu": "0", "memory": "512Gi", "architecture": "amd64"}
                for one in classes
            ]
            or [{"name": "metal", "cpu": "64", "gpu": "0", "memory": "512Gi"}],
            "regions": [
                {
                    "name": garden["region"],
                    "zones": [{"name": zone} for zone in region.spec["zones"]],
                }
            ],
            "providerConfig": {
                "apiVersion": CONFIGS,
                "kind": "CloudProfileConfig",
                "machineTypes": [{"name": one, "serverLabels": {CLASS: one}} for one in classes],
                "regionConfigs": [
                    {
                        "name": garden["region"],
                        "server": world.address(f"metal-{region.ref.name}"),
                    }
                ],
            },
        },
    }


def _own_versions(cluster: Resource) -> list[str]:
    return [str(one["kubernetes"]) for one in cluster.spec["workers"] if one.get("kubernetes")]


def _minors(version: str) -> list[str]:
    """This one, its neighbours, and the next two minors."""
    major, minor, patch = (int(part) for part in version.split("."))
    found = [f"{major}.{minor}.{one}" for one in range(max(patch - 1, 0), patch + 3)]
    return [*found, f"{major}.{minor - 1}.6", f"{major}.{minor + 1}.2", f"{major}.{minor + 2}.1"]


def _around(version: str) -> list[str]:
    """This one, one before and two after, by its middle part."""
    parts = version.split(".")
    if len(parts) != 3 or not parts[1].isdigit():
        return [version]
    middle = int(parts[1])
    return [f"{parts[0]}.{one}.{parts[2]}" for one in range(max(middle - 1, 0), middle + 3)]


def _image(version: str) -> dict[str, Any]:
    return {
        "version": version,
        "architectures": ["amd64"],
        "cri": [{"name": "containerd"}],
        "inPlaceUpdates": {"supported": True, "minVersionForUpdate": "1.0.0"},
    }


def _seed(region: Resource) -> dict[str, Any]:
    name = region.ref.name
    return {
        "apiVersion": API,
        "kind": "Seed",
        "metadata": {"name": f"seed-{name}"},
        "spec": {
            "provider": {"type": PROVIDER, "region": region.spec["garden"]["region"]},
            "networks": {"pods": "10.96.0.0/11", "services": "10.128.0.0/12"},
            "ingress": {"domain": f"{name}.seed.example", "controller": {"kind": "nginx"}},
            "dns": {"provider": {"type": "designate"}},
        },
    }


def _seed_ready(world: World, garden: Cluster, name: str) -> None:
    now = world.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": "SeedHealthy",
            "message": "",
            "lastTransitionTime": now,
            "lastUpdateTime": now,
        }
        for kind in (
            "GardenletReady",
            "BackupBucketsReady",
            "ExtensionsReady",
            "SeedSystemComponentsHealthy",
        )
    ]
    status = {
        "conditions": conditions,
        "observedGeneration": 1,
        "kubernetesVersion": "v1.33.4",
        "allocatable": {"shoots": "250"},
        "capacity": {"shoots": "250"},
    }
    garden.set_status(SEED, name, "", status, manager=MANAGER)
