"""`fleetctl validate`: are these documents good, and what do they amount to?"""

from collections import Counter
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from fleetd.cli import output, reading
from fleetd.cli.frame import Frame
from topology import load
from topology.documents.cluster import Cluster, Role
from topology.documents.pool import ServerPool
from topology.resource import EdgeKind, Topology

REGIONS_SHOWN = 20


def run(frame: Frame, paths: tuple[Path, ...], catalogue: tuple[Path, ...]) -> None:
    topology, bundle, _ = reading.fleet(frame, paths, catalogue)
    found = summary(topology, bundle)
    if frame.machine:
        output.data(frame, {"problems": [], "summary": found})
    else:
        _show(found)


def summary(topology: Topology, bundle: load.Bundle) -> dict[str, Any]:
    """The fleet in numbers."""
    kinds = Counter(item.kind for item in bundle.items)
    edges = Counter(edge.kind for edge in topology.edges)
    roles: dict[str, Counter[str]] = {}
    pools: Counter[str] = Counter()
    for item in bundle.items:
        match item.document:
            case Cluster() as cluster:
                roles.setdefault(cluster.spec.region, Counter())[cluster.spec.role] += 1
            case ServerPool() as pool:
                pools[pool.spec.region] += 1
            case _:
                pass
    regions = [
        {
            "name": name,
            "clusters": {role.value: roles.get(name, Counter())[role] for role in Role},
            "servers": sum(ref.kind == "server" for ref in members),
            "serverPools": pools[name],
            "clouds": sum(ref.kind == "cloud" for ref in members),
            "resources": len(members),
        }
        for name, members in sorted(topology.regions.items())
    ]
    return {
        "files": len(bundle.sources),
        "documents": dict(sorted(kinds.items())),
        "regions": regions,
        "resources": len(topology.resources),
        "edges": {kind.value: edges[kind] for kind in EdgeKind},
        "depth": max((one.rank for one in topology.resources.values()), default=-1) + 1,
        "digest": topology.digest,
    }


def _show(found: dict[str, Any]) -> None:
    console = output.answers()
    documents = sum(found["documents"].values())
    head = Text.assemble(
        ("Good: ", "bold green"),
        f"{reading.count(documents, 'document')} in {reading.count(found['files'], 'file')}",
    )
    console.print(head)
    console.print()
    regions = found["regions"]
    if len(regions) == 1:
        output.table(_one(regions[0]))
    elif regions:
        output.table(_many(regions))
    console.print()
    edges = found["edges"]
    console.print(
        f"{reading.count(found['resources'], 'resource')}, "
        f"{reading.count(sum(edges.values()), 'edge')} "
        f"({edges['needs']:,} needs, {edges['feeds']:,} feeds, {edges['hosts']:,} hosts), "
        f"{reading.count(found['depth'], 'step')} deep"
    )


def _one(region: dict[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="left")
    table.add_column(justify="right", style="bold")
    table.add_column(style="dim")
    clusters = {role: n for role, n in region["clusters"].items() if n}
    table.add_row("  Region", region["name"], "")
    table.add_row(
        "  Clusters",
        f"{sum(clusters.values()):,}",
        ", ".join(f"{n} {role}" for role, n in clusters.items()),
    )
    table.add_row(
        "  Servers", f"{region['servers']:,}", f"in {reading.count(region['serverPools'], 'pool')}"
    )
    table.add_row("  Clouds", f"{region['clouds']:,}", "")
    return table


def _many(regions: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=True, header_style="bold")
    table.add_column("REGION")
    for title in ("MGMT", "CONTROL", "HYPERV", "STORAGE", "ARBITER", "SERVERS", "CLOUDS"):
        table.add_column(title, justify="right")
    for region in regions[:REGIONS_SHOWN]:
        numbers = [*region["clusters"].values(), region["servers"], region["clouds"]]
        table.add_row(region["name"], *(f"{n:,}" if n else "-" for n in numbers))
    if len(regions) > REGIONS_SHOWN:
        table.add_row(f"... {len(regions) - REGIONS_SHOWN} more")
    if len(regions) > 1:
        columns = [
            [*region["clusters"].values(), region["servers"], region["clouds"]]
            for region in regions
        ]
        sums = [sum(column) for column in zip(*columns, strict=True)]
        table.add_section()
        table.add_row("all", *(f"{n:,}" for n in sums), style="bold")
    return table
