"""
A large fleet, written as documents: by default 1,000 clusters and 100,000 servers in 100 regions.

    python -m topology.examples.large DIR --clusters 1000 --servers 100000

The same numbers give the same bytes. Each region is one file, far below the limits of the
loader, and passes every check: pools are large enough in each zone, addresses (2001:db8::/32) and
names are used once.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CLUSTERS_PER_REGION = 10
CLUSTERS_MIN = 4
"""Management, control plane, storage and one hypervisor cluster."""
GENERAL_NODES = 4
STORAGE_NODES_MIN = 4
RACK = 20
POOL_MAX = 4096
HEAD = "apiVersion: fleet.c5c3.io/v1alpha1"
ZONES = ("a", "b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A server pool and the clusters that take all of it, each as many nodes."""

    name: str
    machine: str
    size: int
    users: tuple[tuple[str, str], ...]
    """Name and role of each cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one region holds."""

    number: int
    pools: tuple[Pool, ...]

    @property
    def name(self) -> str:
        return f"r{self.number:03d}"


def plans(clusters: int, servers: int) -> list[Plan]:
    """Deal clusters and servers out over regions, as evenly as whole numbers allow."""
    count = max(1, clusters // CLUSTERS_PER_REGION)
    if clusters < count * CLUSTERS_MIN:
        raise ValueError(f"{clusters} clusters are too few; a region has {CLUSTERS_MIN} or more")
    return [
        _plan(number, _share(clusters, count, number), _share(servers, count, number))
        for number in range(count)
    ]


def documents(plan: Plan) -> Iterator[str]:
    """The YAML documents of a region."""
    yield _region(plan)
    for number, pool in enumerate(plan.pools):
        yield _pool(plan, number, pool)
    for pool in plan.pools:
        nodes = pool.size // len(pool.users)
        for cluster, role in pool.users:
            yield _cluster(plan, pool, cluster, role, nodes)
    yield from _clouds(plan)


def write(folder: Path, clusters: int, servers: int) -> list[Path]:
    """Write the fleet below a folder, one file a region; the files, sorted."""
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for plan in plans(clusters, servers):
        file = folder / f"{plan.name}.yaml"
        file.write_text("---\n".join(documents(plan)), encoding="utf-8")
        files.append(file)
    return files


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write a large fleet as documents.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--servers", type=int, default=100_000)
    given = parser.parse_args(arguments)
    try:
        write(given.folder, given.clusters, given.servers)
    except ValueError as cause:
        parser.error(str(cause))


def _share(total: int, count: int, number: int) -> int:
    each, left = divmod(total, count)
    return each + (1 if number < left else 0)


def _plan(number: int, clusters: int, servers: int) -> Plan:
    """One management cluster, a second cloud from eight clusters on, the rest hypervisors."""
    name = f"r{number:03d}"
    control = 2 if clusters >= 8 else 1
    general = (
        (f"{name}-mg", "management"),
        *((f"{name}-cp{n}", "control-plane") for n in range(control)),
    )
    hosts = clusters - len(general) - 1
    disks = max(STORAGE_NODES_MIN, servers // 20)
    left = servers - GENERAL_NODES * len(general) - disks
    if left < 2 * hosts or left // hosts >= POOL_MAX or disks > POOL_MAX:
        raise ValueError(f"{servers} servers do not fit the {clusters} clusters of a region")
    pools = [
        Pool(
            name=f"{name}-general",
            machine="std-32c",
            size=GENERAL_NODES * len(general),
            users=general,
        ),
        Pool(
            name=f"{name}-disks", machine="st-24d", size=disks, users=((f"{name}-st", "storage"),)
        ),
    ]
    pools += [
        Pool(
            name=f"{name}-hosts{n}",
            machine="hv-96c",
            size=_share(left, hosts, n),
            users=((f"{name}-hv{n}", "hypervisor"),),
        )
        for n in range(hosts)
    ]
    return Plan(number=number, pools=tuple(pools))


def _region(plan: Plan) -> str:
    opens, closes = f"{plan.number % 24:02d}:00", f"{(plan.number + 6) % 24:02d}:00"
    return f"""{HEAD}
kind: Region
metadata: {{name: {plan.name}}}
spec:
  zones: [{", ".join(ZONES)}]
  garden: {{access: {{file: garden.kubeconfig}}, project: cobalt, cloudProfile: metal}}
  metal: {{provider: ironcore, access: {{file: metal.kubeconfig}}}}
  git: {{url: "https://git.example/c5c3/{plan.name}.git", access: {{file: git.token}}}}
  windows: [{{days: [Tue, Wed], from: "{opens}", to: "{closes}"}}]
  defaults: {{kubernetes: "1.33.4", image: {{name: gardenlinux, version: "1877.4.0"}}}}
"""


def _pool(plan: Plan, number: int, pool: Pool) -> str:
    # Passwords of servers that carry the management cluster cannot lie in the OpenBao on it.
    general = pool.users[0][1] == "management"
    access = "{file: bmc.yaml}" if general else f"{{openbao: {{path: bmc/{plan.name}}}}}"
    lines = [
        HEAD,
        "kind: ServerPool",
        f"metadata: {{name: {pool.name}}}",
        "spec:",
        f"  region: {plan.name}",
        f"  class: {pool.machine}",
        f"  access: {access}",
        "  servers:",
    ]
    network = f"2001:db8:{plan.number + 1:x}:{number + 1:x}"
    for count in range(pool.size):
        # Zones in turn, as Gardener deals nodes out; twenty servers of one zone make a rack.
        zone = ZONES[count % len(ZONES)]
        rack = f"{zone}{number:02d}{count // len(ZONES) // RACK:02d}"
        lines.append(
            f"    - {{name: {plan.name}-p{number:02d}-s{count:04d}, "
            f'bmc: "{network}::{count + 1:x}", zone: {zone}, rack: {rack}}}'
        )
    return "\n".join(lines) + "\n"


def _cluster(plan: Plan, pool: Pool, cluster: str, role: str, nodes: int) -> str:
    return f"""{HEAD}
kind: Cluster
metadata: {{name: {cluster}}}
spec:
  region: {plan.name}
  role: {role}
  workers: [{{name: nodes, pool: {pool.name}, minimum: {nodes}, maximum: {nodes}}}]
"""


def _clouds(plan: Plan) -> Iterator[str]:
    """The hypervisor clusters in turn for each control plane; storage is shared."""
    clusters = [user for pool in plan.pools for user in pool.users]
    control = [name for name, role in clusters if role == "control-plane"]
    hosts = [name for name, role in clusters if role == "hypervisor"]
    for number, plane in enumerate(control):
        mine = hosts[number :: len(control)]
        yield f"""{HEAD}
kind: Cloud
metadata: {{name: {plan.name}-cloud{number}}}
spec:
  region: {plan.name}
  release: "2025.2"
  controlPlane: {plane}
  hypervisors: [{", ".join(mine)}]
  storage: [{plan.name}-st]
"""


if __name__ == "__main__":
    main()
