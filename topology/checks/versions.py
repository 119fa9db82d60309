"""
Versions that go together: Kubernetes of control plane and nodes, Nova's API and its hypervisors.

What the far side knows better, such as which patch releases and images a CloudProfile has, is
asked there and not guessed here.
"""

import re
from collections.abc import Iterator

from topology.checks.index import Finding, Index, Path
from topology.documents import base
from topology.documents.cloud import Cloud
from topology.documents.cluster import Cluster
from topology.documents.region import Image, Region

OLDEST, NEWEST = (1, 32), (1, 36)
"""Minor versions of Kubernetes that Gardener 1.150 makes."""
BEHIND_MAX = 3
"""Minors a kubelet may be behind its API server."""
FIRST_RELEASE = "2023.1"
"""The first OpenStack release that is named by its year."""

_IMAGE = re.compile(r"\d+(\.\d+){1,2}([-+][0-9A-Za-z.+-]+)?")


def present(fleet: Index) -> Iterator[Finding]:
    """Every cluster that fleetd makes has a Kubernetes version and an image."""
    for cluster in fleet.every(Cluster):
        region = fleet.regions.get(cluster.spec.region)
        if cluster.spec.adopted is not None or region is None:
            continue
        name = region.metadata.name
        if cluster.spec.kubernetes is None and region.spec.defaults.kubernetes is None:
            yield fleet.complain(
                cluster,
                ("spec", "kubernetes"),
                code="kubernetes-missing",
                message=f"no Kubernetes version is given, and Region {name!r} has no default",
                hint=f'add kubernetes: "{_dotted(NEWEST)}.0" here, {_or_default(fleet, region)}',
            )
        bare = [worker.name for worker in cluster.spec.workers if worker.image is None]
        if bare and cluster.spec.image is None and region.spec.defaults.image is None:
            yield fleet.complain(
                cluster,
                ("spec", "image"),
                code="image-missing",
                message=f"no machine image is given for {', '.join(bare)}, and Region {name!r} has "
                "no default",
                hint='add image: {name: gardenlinux, version: "1877.4.0"} here, '
                f"{_or_default(fleet, region)}",
            )


def _or_default(fleet: Index, region: Region) -> str:
    name, place = region.metadata.name, fleet.place(region, ("spec",))
    return f"or defaults: to Region {name!r} at {place}"


def kubernetes(fleet: Index) -> Iterator[Finding]:
    """Versions that Gardener makes, and nodes that fit their control plane."""
    for region in fleet.every(Region):
        version = region.spec.defaults.kubernetes
        if version is not None:
            yield from supported(fleet, region, ("spec", "defaults", "kubernetes"), version)
    for cluster in fleet.every(Cluster):
        region = fleet.regions.get(cluster.spec.region)
        version = cluster.spec.kubernetes
        if version is not None:
            yield from supported(fleet, cluster, ("spec", "kubernetes"), version)
        elif region is not None:
            version = region.spec.defaults.kubernetes
        for number, worker in enumerate(cluster.spec.workers):
            if worker.kubernetes is not None:
                path: Path = ("spec", "workers", number, "kubernetes")
                yield from _fits(fleet, cluster, path, worker.kubernetes, version)


def supported(fleet: Index, document: base.Document, path: Path, version: str) -> Iterator[Finding]:
    if makes(version):
        return
    yield fleet.complain(
        document,
        path,
        code="kubernetes-unsupported",
        message=f"Kubernetes {version} is outside {_dotted(OLDEST)} to {_dotted(NEWEST)}, which is "
        "what Gardener makes",
        hint="choose a version in between that the CloudProfile lists",
    )


def makes(version: str) -> bool:
    """Whether Gardener makes clusters of this version."""
    return OLDEST <= parts(version)[:2] <= NEWEST


def _fits(
    fleet: Index, cluster: Cluster, path: Path, nodes: str, control: str | None
) -> Iterator[Finding]:
    if control is None:
        yield from supported(fleet, cluster, path, nodes)
        return
    mine, theirs = parts(nodes), parts(control)
    if mine > theirs:
        yield fleet.complain(
            cluster,
            path,
            code="kubernetes-ahead",
            message=f"the nodes would run {nodes}, newer than the control plane's {control}",
            hint="raise the cluster's kubernetes first; nodes may be behind, never ahead",
        )
    elif mine[0] != theirs[0] or theirs[1] - mine[1] > BEHIND_MAX:
        yield fleet.complain(
            cluster,
            path,
            code="kubernetes-too-far-behind",
            message=f"the nodes would run {nodes}, {theirs[1] - mine[1]} minor versions behind the "
            f"control plane's {control}; the limit is {BEHIND_MAX}",
            hint=f"raise it to {theirs[0]}.{theirs[1] - BEHIND_MAX} or newer, or lower the other",
        )
    else:
        yield from supported(fleet, cluster, path, nodes)


def images(fleet: Index) -> Iterator[Finding]:
    """Image versions are numbers: Gardener refuses `latest`."""
    for region in fleet.every(Region):
        yield from image(fleet, region, ("spec", "defaults", "image"), region.spec.defaults.image)
    for cluster in fleet.every(Cluster):
        yield from image(fleet, cluster, ("spec", "image"), cluster.spec.image)
        for number, worker in enumerate(cluster.spec.workers):
            path: Path = ("spec", "workers", number, "image")
            yield from image(fleet, cluster, path, worker.image)


def image(
    fleet: Index, document: base.Document, path: Path, given: Image | None
) -> Iterator[Finding]:
    if given is None or _IMAGE.fullmatch(given.version):
        return
    yield fleet.complain(
        document,
        (*path, "version"),
        code="image-version-invalid",
        message=f"{given.version!r} is not the version of a machine image",
        hint='write the number as the CloudProfile has it, e.g. "1877.4.0"',
    )


def releases(fleet: Index) -> Iterator[Finding]:
    """nova-compute is never ahead of Nova and at most one release behind, or two from one .1
    release to the next."""
    for cloud in fleet.every(Cloud):
        release, nodes = cloud.spec.release, cloud.spec.hypervisor_release
        if release < FIRST_RELEASE:
            yield _no_release(fleet, cloud, "release", release)
        elif nodes is not None and nodes < FIRST_RELEASE:
            yield _no_release(fleet, cloud, "hypervisorRelease", nodes)
        elif nodes is not None:
            yield from _nova(fleet, cloud, release, nodes)


def _no_release(fleet: Index, cloud: Cloud, field: str, release: str) -> Finding:
    return fleet.complain(
        cloud,
        ("spec", field),
        code="release-unknown",
        message=f"there is no OpenStack {release}; releases have had years since {FIRST_RELEASE}",
        hint="correct the year",
    )


def _nova(fleet: Index, cloud: Cloud, release: str, nodes: str) -> Iterator[Finding]:
    behind = _count(release) - _count(nodes)
    path: Path = ("spec", "hypervisorRelease")
    if behind < 0:
        yield fleet.complain(
            cloud,
            path,
            code="release-ahead",
            message=f"the hypervisors would run {nodes}, newer than the cloud's {release}",
            hint="raise release first; hypervisors follow the control plane",
        )
    elif not close(release, nodes):
        yield fleet.complain(
            cloud,
            path,
            code="release-too-far-behind",
            message=f"the hypervisors would run {nodes}, {behind} releases behind {release}; Nova "
            "allows one, or two from one .1 release to the next",
            hint=f"raise it to {before(release)}, or lower release",
        )


def close(release: str, nodes: str) -> bool:
    """Whether nova-compute of the one release may work for Nova of the other, newer one."""
    slurp = release.endswith(".1") and nodes.endswith(".1")
    return _count(release) - _count(nodes) <= (2 if slurp else 1)


def parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _count(release: str) -> int:
    year, half = parts(release)
    return 2 * year + half


def before(release: str) -> str:
    """The release that came before."""
    year, half = parts(release)
    return f"{year}.1" if half == 2 else f"{year - 1}.2"


def after(release: str) -> str:
    """The release that comes next."""
    year, half = parts(release)
    return f"{year}.2" if half == 1 else f"{year + 1}.1"


def image_parts(version: str) -> tuple[int, ...]:
    """The numbers of an image's version, to compare by; empty if it has none."""
    found = _IMAGE.fullmatch(version)
    return parts(re.split("[-+]", version, maxsplit=1)[0]) if found else ()


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
