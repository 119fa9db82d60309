"""Rollouts: clusters and clouds that exist, and steps that Gardener and OpenStack can take."""

from collections.abc import Iterator

from topology.checks import index as indexes
from topology.checks import references, versions
from topology.checks.index import Finding, Index, Path
from topology.documents.cloud import Cloud
from topology.documents.cluster import Cluster, UpdateStrategy
from topology.documents.region import Image
from topology.documents.rollout import Breach, Rollout


def names(fleet: Index) -> Iterator[Finding]:
    """Region, clusters and cloud of a rollout."""
    for rollout in fleet.every(Rollout):
        region = rollout.spec.region
        if region is not None and region not in fleet.regions:
            yield from fleet.unknown(rollout, ("spec", "region"), "Region", region, fleet.regions)
        for path, name in members(rollout):
            yield from references.cluster(fleet, rollout, path, name)
        release = rollout.spec.what.release
        if release is not None:
            yield from _cloud(fleet, rollout, release.cloud)


def members(rollout: Rollout) -> Iterator[tuple[Path, str]]:
    for number, wave in enumerate(rollout.spec.waves):
        for which, name in enumerate(wave.clusters):
            yield ("spec", "waves", number, "clusters", which), name


def waves(fleet: Index) -> Iterator[Finding]:
    """Waves that can be told apart, each cluster in one of them, and gates before one of them."""
    for rollout in fleet.every(Rollout):
        named: dict[str, int] = {}
        for number, wave in enumerate(rollout.spec.waves):
            if named.setdefault(wave.name, number) != number:
                yield fleet.complain(
                    rollout,
                    ("spec", "waves", number, "name"),
                    code="wave-twice",
                    message=f"there are two waves named {wave.name}",
                    hint="rename one of them",
                )
        taken: dict[str, Path] = {}
        for path, name in members(rollout):
            first = taken.setdefault(name, path)
            if first != path:
                wave = rollout.spec.waves[int(first[2])]
                yield fleet.complain(
                    rollout,
                    path,
                    code="cluster-in-two-waves",
                    message=f"{name} is in wave {wave.name} already",
                    hint="keep it in one of them",
                )
        for number, gate in enumerate(rollout.spec.gates):
            if gate.before is not None and gate.before not in named:
                yield fleet.complain(
                    rollout,
                    ("spec", "gates", number, "before"),
                    code="gate-before-unknown-wave",
                    message=f"there is no wave named {gate.before}",
                    hint=f"use one of {indexes.listed(named)}",
                )


def breaches(fleet: Index) -> Iterator[Finding]:
    """Only an image can go back."""
    for rollout in fleet.every(Rollout):
        if rollout.spec.on_breach is Breach.ROLL_BACK and rollout.spec.what.image is None:
            yield fleet.complain(
                rollout,
                ("spec", "onBreach"),
                code="cannot-roll-back",
                message="neither a Kubernetes version nor a release can go back",
                hint="use pause",
            )


def _cloud(fleet: Index, rollout: Rollout, name: str) -> Iterator[Finding]:
    cloud = fleet.clouds.get(name)
    if cloud is None:
        at: Path = ("spec", "what", "release", "cloud")
        yield from fleet.unknown(rollout, at, "Cloud", name, fleet.clouds)
        return
    if not set(cloud.spec.hypervisors) <= fleet.clusters.keys():
        # The cloud names a cluster that does not exist, and that is told: this one may be meant.
        return
    for path, cluster in members(rollout):
        if cluster in fleet.clusters and cluster not in cloud.spec.hypervisors:
            yield fleet.complain(
                rollout,
                path,
                code="rollout-not-hypervisor",
                message=f"Cluster {cluster!r} is not among the hypervisors of Cloud {name!r} "
                f"({fleet.place(cloud, ('spec', 'hypervisors'))})",
                hint=fleet.speller.hint(cluster, cloud.spec.hypervisors, "take it out of the wave"),
            )


def steps(fleet: Index) -> Iterator[Finding]:
    """Each cluster can take the step from where its document says it is."""
    for rollout in fleet.every(Rollout):
        change = rollout.spec.what
        if change.release is not None:
            cloud = fleet.clouds.get(change.release.cloud)
            if cloud is not None:
                yield from _release(fleet, rollout, cloud, change.release.to)
            continue
        for path, name in members(rollout):
            cluster = fleet.clusters.get(name)
            if cluster is None:
                continue
            if cluster.spec.adopted is not None:
                yield _adopted(fleet, rollout, path, cluster)
            elif change.kubernetes is not None:
                yield from _kubernetes(fleet, rollout, path, cluster, change.kubernetes.version)
            elif change.image is not None:
                yield from _image(fleet, rollout, path, cluster, change.image)


def _adopted(fleet: Index, rollout: Rollout, path: Path, cluster: Cluster) -> Finding:
    return fleet.complain(
        rollout,
        path,
        code="rollout-adopted",
        message=f"Cluster {cluster.metadata.name!r} is adopted "
        f"({fleet.place(cluster, ('spec', 'adopted'))}); fleetd does not upgrade it",
        hint="take it out of the wave, and upgrade it where it was made",
    )


def _kubernetes(
    fleet: Index, rollout: Rollout, path: Path, cluster: Cluster, target: str
) -> Iterator[Finding]:
    region = fleet.regions.get(cluster.spec.region)
    current = cluster.spec.kubernetes or (region.spec.defaults.kubernetes if region else None)
    if current is None or not versions.makes(current):
        return
    now, then = versions.parts(current), versions.parts(target)
    if then < now:
        wrong = f"is at {current} already, and Kubernetes cannot go back to {target}"
        right = f"choose {current} or newer, or take the cluster out of the wave"
    elif then[1] - now[1] > 1:
        wrong = f"is at {current}; {target} would skip a minor version"
        right = f"go to {now[0]}.{now[1] + 1} first: Gardener takes one minor at a time"
    elif pinned := _left_behind(cluster, then):
        worker, version = pinned
        wrong = f"keeps worker {worker!r} at {version}, too far behind {target}"
        right = f"raise the worker's kubernetes first: at most {versions.BEHIND_MAX} minors behind"
    else:
        return
    yield fleet.complain(
        rollout,
        path,
        code="rollout-step-impossible",
        message=f"Cluster {cluster.metadata.name!r} {wrong}",
        hint=right,
    )


def _left_behind(cluster: Cluster, then: tuple[int, ...]) -> tuple[str, str] | None:
    """Name and version of the first worker that keeps a version the new one does not allow."""
    for worker in cluster.spec.workers:
        if worker.kubernetes is not None:
            behind = then[1] - versions.parts(worker.kubernetes)[1]
            if behind > versions.BEHIND_MAX:
                return worker.name, worker.kubernetes
    return None


def _image(
    fleet: Index, rollout: Rollout, path: Path, cluster: Cluster, target: Image
) -> Iterator[Finding]:
    """Pools that keep their machines go neither back nor to another image."""
    region = fleet.regions.get(cluster.spec.region)
    default = cluster.spec.image or (region.spec.defaults.image if region else None)
    for worker in cluster.spec.workers:
        current = worker.image or default
        if worker.update_strategy is UpdateStrategy.ROLLING or current is None:
            continue
        if current.name != target.name:
            wrong = f"cannot change its image from {current.name} to {target.name} in place"
        elif versions.image_parts(target.version) < versions.image_parts(current.version):
            wrong = f"cannot go back in place from {current.version} to {target.version}"
        else:
            continue
        yield fleet.complain(
            rollout,
            path,
            code="rollout-step-impossible",
            message=f"worker {worker.name!r} of Cluster {cluster.metadata.name!r} {wrong}",
            hint="choose a newer version of the same image, or make a new worker and remove this "
            "one",
        )


def _release(fleet: Index, rollout: Rollout, cloud: Cloud, target: str) -> Iterator[Finding]:
    current = cloud.spec.release
    if current == target or versions.before(target) == current:
        yield from _hypervisors(fleet, rollout, cloud, target)
        return
    back = target < current
    yield fleet.complain(
        rollout,
        ("spec", "what", "release", "to"),
        code="rollout-step-impossible",
        message=f"Cloud {cloud.metadata.name!r} is at {current} "
        f"({fleet.place(cloud, ('spec', 'release'))}), and OpenStack cannot "
        f"{'go back' if back else 'go straight'} to {target}",
        hint=f"go to {versions.after(current)}: one release at a time, never back",
    )


def _hypervisors(fleet: Index, rollout: Rollout, cloud: Cloud, target: str) -> Iterator[Finding]:
    """The control plane goes first; until their wave comes, the hypervisors stay where they are."""
    nodes = cloud.spec.hypervisor_release
    if nodes is None or nodes > target or versions.close(target, nodes):
        return
    yield fleet.complain(
        rollout,
        ("spec", "what", "release", "to"),
        code="rollout-step-impossible",
        message=f"the hypervisors of Cloud {cloud.metadata.name!r} are still at {nodes} "
        f"({fleet.place(cloud, ('spec', 'hypervisorRelease'))}), too far behind {target}",
        hint=f"bring them to {cloud.spec.release} first; Nova allows one release, or two from one "
        ".1 release to the next",
    )


def targets(fleet: Index) -> Iterator[Finding]:
    """The version to go to is one that exists."""
    for rollout in fleet.every(Rollout):
        change = rollout.spec.what
        at: Path = ("spec", "what")
        if change.kubernetes is not None:
            path = (*at, "kubernetes", "version")
            yield from versions.supported(fleet, rollout, path, change.kubernetes.version)
        yield from versions.image(fleet, rollout, (*at, "image"), change.image)
