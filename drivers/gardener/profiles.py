"""
What others keep in the garden and fleetd only looks at: the CloudProfile and the Seeds.

Of the profile it counts what the region's clusters use and the profile lacks, and names what
expires soon: an expired version is force-updated by Gardener.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from drivers.gardener import manifests, offers
from fleetd.kube import facts
from fleetd.objects import ObjectDriver
from topology.resource import Facts, Resource

MANAGED = ("cloudprofilesync.cobaltcore.dev", "ManagedCloudProfile")
OWN = (manifests.CORE, "NamespacedCloudProfile")


async def offer(driver: ObjectDriver, want: Resource) -> Facts | None:
    """What the region's profile offers; None if there is none. One of the project's own is put
    together with its parent by the garden, and is empty until then."""
    garden: Facts = want.spec["garden"]
    name = str(garden["cloudProfile"])
    if not garden.get("ownProfile"):
        found = await driver.read(want, want.backend, manifests.PROFILE, name)
        return None if found is None else found.get("spec") or {}
    space = manifests.namespace_of(str(garden["project"]))
    own = await driver.read(want, want.backend, OWN, name, space)
    return None if own is None else facts.part(own, "status", "cloudProfileSpec")


async def profile(driver: ObjectDriver, want: Resource) -> dict[str, Any]:
    """Of a ManagedCloudProfile the status, of both what is missing. Empty: there is neither."""
    name = str(want.spec["garden"]["cloudProfile"])
    managed = await driver.read(want, want.backend, MANAGED, name)
    offered = await offer(driver, want)
    if managed is None and offered is None:
        return {}
    found = facts.trim(managed) if managed is not None else {"metadata": {"name": name}}
    found.pop("spec", None)
    now = driver.tools.clock.now()
    versions, images, soon = _lacking(_clusters(driver, want), offered or {}, now)
    observed: dict[str, Any] = {"versionsMissing": len(versions), "imagesMissing": len(images)}
    if versions or images:
        observed["missing"] = [*versions, *images]
    if soon:
        observed["expiring"] = soon
    return {**found, "observed": observed}


def _clusters(driver: ObjectDriver, want: Resource) -> Iterator[Resource]:
    for resource in driver.tools.fleet.topology().resources.values():
        mine = resource.ref.kind == "cluster" and resource.region == want.region
        if mine and resource.driver == "gardener" and not resource.absent:
            yield resource


def _lacking(
    clusters: Iterator[Resource], offer: Facts, now: datetime
) -> tuple[list[str], list[str], list[str]]:
    offered: list[Facts] = offer.get("kubernetes", {}).get("versions", [])
    known = {str(one["version"]): one for one in offered}
    versions: set[str] = set()
    images: set[str] = set()
    soon: set[str] = set()
    for cluster in clusters:
        spec = cluster.spec
        for given in (spec, *spec["workers"]):
            version = str(given.get("kubernetes") or "")
            if version and version not in known:
                versions.add(f"Kubernetes {version} for {spec['name']}")
            elif version and offers.near(known[version], now):
                soon.add(f"Kubernetes {version} of {spec['name']} expires soon")
            image: Mapping[str, Any] | None = given.get("image")
            if image is not None:
                images.update(offers.image_missing(image, offer, now))
                soon.update(_near_image(image, offer, now))
    return sorted(versions), sorted(images), sorted(soon)


def _near_image(image: Facts, offer: Facts, now: datetime) -> Iterator[str]:
    offered = offers.image_of(image, offer)
    if offered is not None and offers.near(offered, now):
        yield f"image {image['name']} {image['version']} expires soon"


async def seeds(driver: ObjectDriver, want: Resource) -> dict[str, Any]:
    """Those that may carry the region's control planes."""
    all_of_them = await driver.read_all(want, want.backend, manifests.SEED)
    offered = await offer(driver, want) or {}
    fit = [seed for seed in all_of_them if _selected(seed, offered)]
    region = str(want.spec["garden"]["region"])
    # A garden without a seed in the region takes the nearest.
    near = [seed for seed in fit if seed["spec"]["provider"].get("region") == region] or fit
    if not near:
        return {}
    kept = [facts.trim(seed) for seed in near]
    return {"objects": [{**one, "spec": {"provider": one["spec"]["provider"]}} for one in kept]}


def _selected(seed: Facts, offer: Facts) -> bool:
    selector: Facts = offer.get("seedSelector") or {}
    labels: Facts = seed["metadata"].get("labels") or {}
    wanted: Facts = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    types = selector.get("providerTypes") or ([offer["type"]] if offer.get("type") else ["*"])
    return "*" in types or seed["spec"]["provider"].get("type") in types
