"""Whoever logs in somewhere waits for what holds the password."""

from pathlib import Path
from typing import Any

import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from topology import load, read
from topology.examples import large
from topology.resource import Ref, Topology

EXAMPLES = Path(large.__file__).parent
KEEPER = Ref("openbao-engines", "mgmt")


def documents(name: str) -> list[Any]:
    files = sorted((EXAMPLES / name).glob("*.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


def three_pools() -> list[Any]:
    """The minimal region with a pool each for general, compute and storage servers."""
    found = [one for one in documents("minimal") if one["kind"] != "ServerPool"]
    homes = {"mgmt": "general", "cp": "general", "hv": "compute", "st": "disks"}
    for cluster, pool in homes.items():
        spec(found, "Cluster", cluster)["workers"][0]["pool"] = pool
    for pool, first, last in (("general", 11, 16), ("compute", 21, 24), ("disks", 31, 34)):
        servers = {"first": f"192.0.2.{first}", "last": f"192.0.2.{last}", "zone": "a"}
        pool_spec = {"region": "eu-1", "class": pool, "access": {"file": "f"}, "range": servers}
        found.append(
            {
                "apiVersion": "fleet.c5c3.io/v1alpha1",
                "kind": "ServerPool",
                "metadata": {"name": pool},
                "spec": pool_spec,
            }
        )
    return found


def spec(found: list[Any], kind: str, name: str) -> dict[str, Any]:
    return next(
        one["spec"] for one in found if (one["kind"], one["metadata"]["name"]) == (kind, name)
    )


def reading(found: list[Any]) -> read.Reading:
    return read.read_bytes({"fleet.yaml": yaml.safe_dump_all(found).encode()})


def topology(found: list[Any]) -> Topology:
    whole = reading(found)
    assert whole.topology is not None, [str(problem) for problem in whole.problems]
    return whole.topology


def test_servers_whose_passwords_lie_in_openbao_wait_for_it() -> None:
    """Hypervisors are enrolled after OpenBao runs; the servers that carry it are not."""
    resources = topology(documents("two-zones")).resources

    assert KEEPER in resources[Ref("server", "a3-h01")].needs
    assert KEEPER in resources[Ref("serverpool", "compute-a")].needs
    assert KEEPER not in resources[Ref("server", "a1-g01")].needs
    assert resources[Ref("cluster", "hv-prod")].rank > resources[KEEPER].rank


def test_an_adopted_cluster_waits_for_its_kubeconfig() -> None:
    """It lies in OpenBao, or in a Secret of another cluster."""
    for access, holder in (
        ({"openbao": {"path": "adopted/st", "key": "value"}}, KEEPER),
        (
            {"secret": {"cluster": "cp", "namespace": "n", "name": "s", "key": "value"}},
            Ref("access", "cp"),
        ),
    ):
        found = documents("minimal")
        st_spec = spec(found, "Cluster", "st")
        del st_spec["workers"]
        st_spec.update(zones=["a"], adopted={"access": access})

        assert holder in topology(found).resources[Ref("cluster", "st")].needs


def test_the_garden_waits_for_what_holds_its_kubeconfig() -> None:
    """With an OpenBao of somebody else's, even the garden's kubeconfig may lie in it."""
    found = documents("minimal")
    region = spec(found, "Region", "eu-1")
    region["secrets"] = {"address": "https://bao.example:8200", "access": {"file": "token"}}
    region["garden"]["access"] = {"openbao": {"path": "garden/eu-1", "key": "value"}}

    resources = topology(found).resources

    for kind, name in (("garden-project", "eu-1"), ("seed", "eu-1"), ("cluster", "mgmt")):
        assert KEEPER in resources[Ref(kind, name)].needs


@st.composite
def accesses(draw: st.DrawFn) -> dict[str, Any]:
    cluster = draw(st.sampled_from(["mgmt", "cp", "hv", "st"]))
    secret = {"cluster": cluster, "namespace": "n", "name": "s", "key": "k"}
    options = [{"file": "f"}, {"openbao": {"path": "a/b", "key": "k"}}, {"secret": secret}]
    return draw(st.sampled_from(options))


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_accesses_never_make_a_circle_that_the_checks_let_pass(data: st.DataObject) -> None:
    """Wherever secrets are said to lie: problems or a topology, and the order keeps the needs."""
    found = three_pools()
    region = spec(found, "Region", "eu-1")
    if data.draw(st.booleans()):
        region["secrets"] = {"address": "https://b.example:8200", "access": data.draw(accesses())}
    region["garden"]["access"] = data.draw(accesses())
    region["metal"]["access"] = data.draw(accesses())
    for pool in ("general", "compute", "disks"):
        spec(found, "ServerPool", pool)["access"] = data.draw(accesses())
    for cluster in data.draw(st.lists(st.sampled_from(["mgmt", "cp", "hv", "st"]), unique=True)):
        given_spec = spec(found, "Cluster", cluster)
        del given_spec["workers"]
        given_spec.update(zones=["a"], adopted={"access": data.draw(accesses())})

    whole = reading(found)

    assert (whole.topology is None) is bool(whole.problems)
    assert {one.code for one in whole.problems} <= {"access-cycle", "access-inside-itself"}
    if whole.topology is not None:
        place = {ref: number for number, ref in enumerate(whole.topology.resources)}
        for ref, resource in whole.topology.resources.items():
            assert all(place[need] < place[ref] for need in resource.needs)


def test_a_password_in_a_later_cluster_is_refused() -> None:
    """Servers of the management cluster, whose password lies on a hypervisor cluster, which comes
    last: the complaint shows the way round."""
    found = three_pools()
    secret = {"cluster": "hv", "namespace": "n", "name": "s", "key": "k"}
    spec(found, "ServerPool", "general")["access"] = {"secret": secret}

    problems = reading(found).problems

    assert [problem.code for problem in problems] == ["access-cycle"]
    assert "Cluster 'hv', which needs" in problems[0].message


def test_a_circle_between_instances_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    """A component that needs its own kind everywhere: each instance waits for the other."""
    component = """
apiVersion: fleet.c5c3.io/v1alpha1
kind: Component
metadata: {name: mine}
spec:
  title: Mine
  description: Mine.
  scope: cluster
  driver: flux
  backend: management
  create: make it
  needs: [{component: mine, on: region, why: "they all wait for each other"}]
  health: {like: helm-release, object: {name: mine}}
"""
    (tmp_path / "mine.yaml").write_text(component)

    whole = read.read([EXAMPLES / "minimal"], [tmp_path])

    assert [problem.code for problem in whole.problems] == ["needs-in-a-circle"]
    assert "none of them can ever be first" in str(whole.problems[0])


def test_a_file_is_waited_for_by_nobody() -> None:
    """The minimal region keeps its first secrets in files, and its servers wait for no OpenBao."""
    bundle = load.load([EXAMPLES / "minimal"])
    assert bundle.problems == ()

    resources = topology(documents("minimal")).resources

    assert all(KEEPER not in one.needs for ref, one in resources.items() if ref.kind == "server")
