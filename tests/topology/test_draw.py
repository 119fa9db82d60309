"""A topology as text."""

import json
import re

from tests.topology import fleets
from topology import draw
from topology.resource import Ref


def test_a_region_is_a_tree() -> None:
    """Own things, servers, clusters in the order they come up, clouds last; read it whole."""
    assert draw.tree(fleets.topology(), "eu-1") == [
        "region/eu-1  37 resources, 9 ranks",
        "├─ region",
        "│  ├─ metal/eu-1  #0",
        "│  └─ project/eu-1  #0",
        "├─ servers",
        "│  └─ serverpool/general  #0  12 servers",
        "├─ cluster/cp  #1  control-plane, 1.33.4, 3 nodes  after project/eu-1 and 1 more",
        "│  ├─ access  #2  after cluster",
        "│  └─ store  #4  after access, openbao/mgmt",
        "├─ cluster/hv  #1  hypervisor, 1.33.4, 3 nodes  after project/eu-1 and 1 more",
        "│  ├─ access  #2  after cluster",
        "│  └─ store  #4  after access, openbao/mgmt",
        "├─ cluster/mgmt  #1  management, 1.33.4, 3 nodes  after project/eu-1 and 1 more",
        "│  ├─ access  #2  after cluster",
        "│  ├─ openbao  #3  after access",
        "│  └─ store  #4  after openbao",
        "├─ cluster/st  #1  storage, 1.33.4, 3 nodes  after project/eu-1 and 1 more",
        "│  ├─ access  #2  after cluster",
        "│  ├─ ceph  #3  after access",
        "│  ├─ ceph-pool images  #4  after ceph",
        "│  ├─ ceph-pool vms  #4  after ceph",
        "│  ├─ ceph-pool volumes  #4  after ceph",
        "│  └─ store  #4  after access, openbao/mgmt",
        "└─ cloud/prod  #7  2025.2, medium  after compute/hv",
        "   ├─ ceph-key/st.prod  #5  after ceph-pool/st.images and 2 more",
        "   ├─ controlplane  #5  after store/cp",
        "   └─ compute/hv  #6  after ceph-key/st.prod, controlplane, store/hv",
    ]


def test_marks_stand_before_names_and_are_counted_for_servers() -> None:
    """A sign for each thing; servers are summed up by their sign."""

    def mark(ref: Ref) -> str:
        return "!" if ref.name in ("general-s3", "hv") else "ok"

    lines = draw.tree(fleets.topology(), "eu-1", mark)

    assert "│  └─ ok serverpool/general  #0  12 servers: 1 !, 11 ok" in lines
    assert any(line.startswith("├─ ! cluster/hv  #1") for line in lines)
    assert lines[0].startswith("ok region/eu-1  ")


def test_lines_fit_a_narrow_terminal() -> None:
    """Long lists of needs are cut at 80 columns, with the number left out."""
    many = [fleets.component(f"part-with-a-name-{n}", "cloud", "cluster") for n in range(9)]
    crowd = fleets.component(
        "crowd", "cloud", "cluster", needs=[(one.metadata.name, "same") for one in many]
    )

    lines = draw.tree(fleets.topology(None, *many, crowd), "eu-1")

    assert max(len(line) for line in lines) <= draw.WIDTH
    assert any(re.search(r"crowd .* and [1-9] more$", line) for line in lines)


def test_a_region_that_is_not_there_is_said_to_be_empty() -> None:
    """No traceback for a name that nobody knows."""
    assert draw.tree(fleets.topology(), "nowhere") == ["region/nowhere is empty"]


def test_json_has_every_node_and_edge() -> None:
    """Plain data with nothing left out, and edges only between its nodes."""
    topology = fleets.topology()

    drawn = json.loads(json.dumps(draw.as_json(topology, "eu-1")))

    nodes = {f"{node['kind']}/{node['name']}" for node in drawn["nodes"]}
    assert drawn["digest"] == topology.digest
    assert nodes == {str(ref) for ref in topology.resources}
    assert len(drawn["edges"]) == len(topology.edges)
    assert {"source": "cluster/hv", "kind": "hosts", "target": "store/hv"} in drawn["edges"]
    assert all(edge["source"] in nodes and edge["target"] in nodes for edge in drawn["edges"])


def test_one_region_of_two_is_drawn_alone() -> None:
    """Edges that leave the region are left out."""
    items = [*fleets.small(), fleets.region("eu-2"), fleets.pool("other", net=2, region="eu-2")]

    drawn = draw.as_json(fleets.topology(items), "eu-2")

    assert {node["region"] for node in drawn["nodes"]} == {"eu-2"}
    assert len(drawn["nodes"]) == 8


def test_dot_draws_pools_instead_of_servers() -> None:
    """Each line is a node, an edge, or the frame; servers are a number."""
    lines = draw.dot(fleets.topology())

    assert lines[0] == "digraph fleet {"
    assert lines[-1] == "}"
    assert '  "serverpool/general" [label="serverpool/general (12 servers)"];' in lines
    assert '  "store/hv" -> "access/hv" [style="solid"];' in lines
    assert not any('"server/' in line for line in lines)


def test_mermaid_names_nodes_by_number() -> None:
    """Names with dots would break mermaid, so they stand in labels only."""
    lines = draw.mermaid(fleets.topology())

    ids = {
        found.group(2): found.group(1)
        for line in lines
        if (found := re.fullmatch(r'  (n\d+)\["(.+)"\]', line))
    }
    assert lines[0] == "flowchart BT"
    assert f"  {ids['ceph-key/st.prod']} --> {ids['ceph-pool/st.vms']}" in lines
    assert "serverpool/general (12 servers)" in ids
