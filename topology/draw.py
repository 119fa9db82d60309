"""
A topology as text: a tree for people, dot and mermaid for drawing, nodes and edges for programs.

Pure; prints nothing. A region may hold thousands of servers, so drawings show a pool as one node
with its count. The tree reads from top to bottom in the order in which things come up.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from topology.resource import EdgeKind, Ref, Resource, Topology

WIDTH = 80
AFTER = "  after "
Mark = Callable[[Ref], str]
"""What to put in front of a name, e.g. a sign for its state; empty for nothing."""


def no_mark(_: Ref) -> str:
    return ""


def tree(topology: Topology, region: str, mark: Mark = no_mark) -> list[str]:
    """A region as a tree: its own things, server pools, clusters with what they run, clouds.
    `#3` is the rank: lower ones come up first. `after` is what a thing waits for, without what
    those wait for themselves; below a cluster or cloud the short names are its own parts."""
    mine = [topology.resources[ref] for ref in topology.regions.get(region, ())]
    if not mine:
        return [f"region/{region} is empty"]
    sheet = _Sheet(mine, mark)
    deepest = max(one.rank for one in mine)
    head = Ref("region", region)
    lines = [f"{_marked(head, mark)}  {len(mine)} resources, {deepest + 1} ranks"]
    families = _families(mine)
    for number, (title, members) in enumerate(families):
        last = number == len(families) - 1
        fork, trunk = ("└─ ", "   ") if last else ("├─ ", "│  ")
        lines.append(_cut(f"{fork}{sheet.title(title, members)}"))
        twigs = sheet.twigs(title, members)
        leaves = ["├─ "] * (len(twigs) - 1) + ["└─ "]
        lines += [_cut(f"{trunk}{leaf}{twig}") for leaf, twig in zip(leaves, twigs, strict=False)]
    return lines


def dot(topology: Topology, region: str | None = None) -> list[str]:
    """For Graphviz. Solid arrows are needs, dashed feeds, dotted hosts."""
    nodes, edges = _drawn(topology, region)
    lines = ["digraph fleet {", '  rankdir="BT";', '  node [shape="box", fontname="sans-serif"];']
    lines += [f"  {_quoted(key)} [label={_quoted(label)}];" for key, label in nodes.items()]
    style = {EdgeKind.NEEDS: "solid", EdgeKind.FEEDS: "dashed", EdgeKind.HOSTS: "dotted"}
    lines += [
        f'  {_quoted(source)} -> {_quoted(target)} [style="{style[kind]}"];'
        for source, kind, target in edges
    ]
    return [*lines, "}"]


def mermaid(topology: Topology, region: str | None = None) -> list[str]:
    """For Markdown pages that draw mermaid."""
    nodes, edges = _drawn(topology, region)
    ids = {key: f"n{number}" for number, key in enumerate(nodes)}
    arrow = {EdgeKind.NEEDS: "-->", EdgeKind.FEEDS: "-.->", EdgeKind.HOSTS: "==>"}
    lines = ["flowchart BT"]
    lines += [f'  {ids[key]}["{label}"]' for key, label in nodes.items()]
    lines += [f"  {ids[source]} {arrow[kind]} {ids[target]}" for source, kind, target in edges]
    return lines


def as_json(topology: Topology, region: str | None = None) -> dict[str, Any]:
    """Every resource and edge, servers too; plain data for `json` or `yaml`."""
    chosen = _chosen(topology, region)
    return {
        "digest": topology.digest,
        "nodes": [_node(one) for one in chosen.values()],
        "edges": [
            {"source": str(edge.source), "kind": str(edge.kind), "target": str(edge.target)}
            for edge in topology.edges
            if edge.source in chosen and edge.target in chosen
        ],
    }


def _node(one: Resource) -> dict[str, Any]:
    return {
        "kind": one.ref.kind,
        "name": one.ref.name,
        "region": one.region,
        "driver": one.driver,
        "backend": one.backend,
        "domains": list(one.domains),
        "rank": one.rank,
        "generation": one.generation,
        "owner": str(one.owner) if one.owner else None,
        "needs": [str(need) for need in sorted(one.needs)],
        "spec": one.spec,
    }


def _families(mine: Iterable[Resource]) -> list[tuple[Ref | str, list[Resource]]]:
    """The branches of a region in the order in which they come up. What is compiled from one
    Cluster or Cloud is a branch; the rest goes together."""
    own: list[Resource] = []
    pools: list[Resource] = []
    flows: list[Resource] = []
    groups: dict[Ref, list[Resource]] = {}
    for one in mine:
        owner = one.owner or one.ref
        if owner == one.ref and owner.kind == "region":
            continue
        together = {"region": own, "serverpool": pools, "credentialflow": flows}.get(owner.kind)
        (groups.setdefault(owner, []) if together is None else together).append(one)
    ordered = sorted(groups, key=lambda o: (o.kind == "cloud", _first(groups[o]), o.name))
    found: list[tuple[Ref | str, list[Resource]]] = [("region", own), ("servers", pools)]
    found += [(owner, groups[owner]) for owner in ordered]
    found.append(("credentials", flows))
    return [(title, members) for title, members in found if members]


def _first(members: Iterable[Resource]) -> int:
    return min(one.rank for one in members)


class _Sheet:
    """Writes the lines of one region's tree."""

    def __init__(self, mine: Iterable[Resource], mark: Mark) -> None:
        self.mark = mark
        self.below: dict[Ref, frozenset[Ref]] = {}
        for one in mine:
            if one.ref.kind != "server":
                deeper = (self.below.get(need, frozenset()) for need in one.needs)
                self.below[one.ref] = one.needs.union(*deeper)

    def title(self, title: Ref | str, members: list[Resource]) -> str:
        if isinstance(title, str):
            return title
        head = next((one for one in members if one.ref == title), None)
        if head is None:
            return str(title)
        return f"{_marked(title, self.mark)}  #{head.rank}  {_note(head)}{self.after(head, title)}"

    def twigs(self, title: Ref | str, members: list[Resource]) -> list[str]:
        """One line for each thing; the servers of a pool are one line together."""
        servers: dict[str, list[Resource]] = {}
        for one in members:
            if one.ref.kind == "server":
                servers.setdefault(str(one.spec.get("pool", "")), []).append(one)
        lines: list[str] = []
        for one in members:
            if one.ref.kind == "server" or one.ref == title:
                continue
            sign = self.mark(one.ref)
            text = f"{sign} " if sign else ""
            text += f"{_short(one.ref, title)}  #{one.rank}"
            if one.ref.kind == "serverpool":
                text += f"  {_servers(servers.pop(one.ref.name, []), self.mark)}"
            lines.append(f"{text}{self.after(one, title)}")
        lines += [f"{_servers(rest, self.mark)} of pool {pool}" for pool, rest in servers.items()]
        return lines

    def after(self, one: Resource, title: Ref | str) -> str:
        """What it waits for, by name."""
        implied = frozenset[Ref]().union(*(self.below.get(need, frozenset()) for need in one.needs))
        needs = sorted(need for need in one.needs if need not in implied)
        return AFTER + ", ".join(_short(need, title) for need in needs) if needs else ""


def _short(ref: Ref, title: Ref | str) -> str:
    """Below cluster/hv, `access/hv` is access and `ceph-pool/hv.vms` is ceph-pool vms."""
    if isinstance(title, str):
        return str(ref)
    if ref.name == title.name:
        return ref.kind
    if ref.name.startswith(f"{title.name}."):
        return f"{ref.kind} {ref.name[len(title.name) + 1 :]}"
    return str(ref)


def _note(head: Resource) -> str:
    """What a reader wants to know of a cluster or a cloud at first sight."""
    spec = head.spec
    nodes = sum(worker["maximum"] for worker in spec.get("workers", ()))
    said = [str(spec[key]) for key in ("role", "kubernetes", "release", "size") if spec.get(key)]
    if nodes:
        said.append(f"{nodes} node{'' if nodes == 1 else 's'}")
    if "adopted" in spec:
        said.append("adopted")
    return ", ".join(said)


def _servers(servers: list[Resource], mark: Mark) -> str:
    """`24 servers` or, with marks, how many have each."""
    counts: dict[str, int] = {}
    for one in servers:
        sign = mark(one.ref)
        counts[sign] = counts.get(sign, 0) + 1
    total = f"{len(servers)} server{'' if len(servers) == 1 else 's'}"
    if set(counts) <= {""}:
        return total
    parts = [f"{count} {sign}".strip() for sign, count in sorted(counts.items())]
    return f"{total}: {', '.join(parts)}"


def _marked(ref: Ref, mark: Mark) -> str:
    sign = mark(ref)
    return f"{sign} {ref}" if sign else str(ref)


def _cut(line: str) -> str:
    """A long list of needs is cut, with the number of those left out."""
    head, after, tail = line.partition(AFTER)
    needs = tail.split(", ")
    if len(line) <= WIDTH or not after:
        return line
    for kept in range(len(needs) - 1, 0, -1):
        text = f"{head}{AFTER}{', '.join(needs[:kept])} and {len(needs) - kept} more"
        if len(text) <= WIDTH:
            return text
    return f"{head}{AFTER}{len(needs)} others" if len(needs) > 1 else line


def _chosen(topology: Topology, region: str | None) -> Mapping[Ref, Resource]:
    if region is None:
        return topology.resources
    return {ref: topology.resources[ref] for ref in topology.regions.get(region, ())}


def _drawn(
    topology: Topology, region: str | None
) -> tuple[dict[str, str], list[tuple[str, EdgeKind, str]]]:
    """Nodes and edges of a drawing. Servers are counted in their pool, and an edge is left out
    where a `needs` between the same two says more."""
    chosen = _chosen(topology, region)
    counts: dict[str, int] = {}
    for ref, one in chosen.items():
        if ref.kind == "server":
            pool = str(one.spec.get("pool", ""))
            counts[pool] = counts.get(pool, 0) + 1
    nodes: dict[str, str] = {}
    for ref in chosen:
        if ref.kind == "server":
            continue
        count = counts.get(ref.name, 0) if ref.kind == "serverpool" else 0
        nodes[str(ref)] = f"{ref} ({count} servers)" if count else str(ref)
    edges: list[tuple[str, EdgeKind, str]] = []
    for edge in topology.edges:
        source, target = str(edge.source), str(edge.target)
        if source not in nodes or target not in nodes:
            continue
        needed = chosen[edge.target].needs
        if edge.kind is not EdgeKind.NEEDS and edge.source in needed:
            continue
        edges.append((source, edge.kind, target))
    return nodes, edges


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
