"""Reading the operator's part of the catalogue: what is refused, and with which words."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from topology import catalogue_load, yamltree
from topology.problem import Problem

BASE: dict[str, Any] = {
    "apiVersion": "fleet.c5c3.io/v1alpha1",
    "kind": "Component",
    "metadata": {"name": "mine"},
    "spec": {
        "title": "Mine",
        "description": "A thing of my own.",
        "scope": "cluster",
        "roles": ["control-plane"],
        "driver": "flux",
        "backend": "management",
        "create": "write its HelmRelease",
        "needs": [{"component": "cert-manager", "why": "it has a webhook"}],
        "health": {"like": "helm-release", "object": {"name": "{cluster}-mine"}},
    },
}


def load(folder: Path, *documents: dict[str, Any]) -> list[Problem]:
    (folder / "mine.yaml").write_text(yaml.safe_dump_all(documents))
    return catalogue_load.load([folder])[1]


def mine(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The base with one change to its spec."""
    document = copy.deepcopy(BASE)
    change(document["spec"])
    return document


def with_health(**health: Any) -> dict[str, Any]:
    return mine(lambda spec: spec["health"].update(health))


def rule(**test: Any) -> list[dict[str, Any]]:
    return [{"when": [test]}]


def link(**fields: Any) -> dict[str, Any]:
    return mine(lambda spec: spec["needs"].append({"why": "so", **fields}))


BAD: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("unknown component", link(component="cert-manger"), "component-unknown",
     "spec.needs[1].component", "did you mean 'cert-manager'?"),
    ("fed component unknown", mine(lambda s: s.update(feeds=[{"component": "x", "why": "so"}])),
     "component-unknown", "spec.feeds[0].component", "add its file to the catalogue"),
    ("outlived component unknown", mine(lambda s: s.update(outlives=["hypervisor"])),
     "component-unknown", "spec.outlives[0]", "did you mean 'hypervisors'?"),
    ("outlives what it needs", mine(lambda s: s.update(outlives=["cert-manager"])),
     "outlives-what-it-needs", "spec.outlives[0]", "remove one of the two"),
    ("link twice", link(component="cert-manager"), "link-twice",
     "spec.needs[1].component", "keep one of them"),
    ("needs itself", link(component="mine"), "needs-itself",
     "spec.needs[1].component", "remove the link"),
    ("not on that role", link(component="cephcluster"), "component-not-there",
     "spec.needs[1].component", "optional: true"),
    ("not on management", link(component="mariadb", on="management"), "component-not-there",
     "spec.needs[1].component", "optional: true"),
    ("roles without clusters", mine(lambda s: s.update(scope="region")), "roles-without-clusters",
     "spec.roles", "use scope cluster"),
    ("told of what is not there", mine(lambda s: s.update(told=["ceph"])), "told-nothing",
     "spec.told[0]", "there is size, hosts, git"),
    ("when says nothing", mine(lambda s: s.update(when=[{"field": "cluster.role"}])), "when-empty",
     "spec.when[0]", "add anyOf"),
    ("unknown profile", with_health(like="helm-relase"), "profile-unknown",
     "spec.health.like", "did you mean 'helm-release'?"),
    ("bad path", with_health(failed=rule(path="status.[x]", present=True)), "path-invalid",
     "spec.health.failed[0].when[0].path", "docs/catalogue.md"),
    ("bad other path", with_health(failed=rule(path="a", equalsPath="b[*]")), "path-invalid",
     "spec.health.failed[0].when[0].equalsPath", "docs/catalogue.md"),
    ("bad quote", with_health(failed=[{"when": [{"path": "a", "present": True}], "quote": "a..b"}]),
     "path-invalid", "spec.health.failed[0].quote", "docs/catalogue.md"),
    ("bad words", with_health(failed=[{"when": [{"path": "a", "present": True}], "says": "{a..}"}]),
     "path-invalid", "spec.health.failed[0].says", "docs/catalogue.md"),
    ("words about another list", with_health(failed=[
        {"when": [{"path": "a[?].b", "present": True}], "says": "{c[?].b}"}]),
     "path-about-nothing", "spec.health.failed[0].says", "with [?] in `when`"),
    ("test of nothing", with_health(failed=rule(path="a")), "test-empty",
     "spec.health.failed[0].when[0]", "present: true"),
    ("never healthy", mine(lambda s: s.update(health={"object": {"kind": "Pod", "name": "x"}})),
     "never-healthy", "spec.health", "like: <a profile>"),
    ("no object", mine(lambda s: s.update(health={"healthy": rule(path="a", present=True)})),
     "object-missing", "spec.health.object", "add object"),
    ("object of no cluster", mine(lambda s: s.update(health={
        "source": "openbao", "object": {"kind": "Pod", "name": "x"},
        "healthy": rule(path="a", present=True)})),
     "object-unused", "spec.health.object", "remove object"),
    ("no limit for the rest", mine(lambda s: s.update(health={
        "object": {"kind": "Pod", "name": "x"}, "healthy": rule(path="a", present=True)})),
     "limit-missing", "spec.limits", 'state: "*"'),
    ("two limits", mine(lambda s: s.update(limits=[
        {"state": "ClusterSilent", "within": "1h", "action": "look"}] * 2)),
     "limit-twice", "spec.limits[1].state", "keep one of them"),
    ("state of no rule", mine(lambda s: s.update(limits=[
        {"state": "Stalld", "within": "1h", "action": "look"}])),
     "state-unknown", "spec.limits[0].state", "did you mean 'Stalled'?"),
    ("placeholder in an action", mine(lambda s: s.update(limits=[
        {"state": "ClusterSilent", "within": "1h", "action": "look at {cluster}"}])),
     "placeholder-unused", "spec.limits[0].action", "write <cluster>"),
    ("unknown placeholder", with_health(object={"name": "{clustr}-mine"}), "placeholder-unknown",
     "spec.health.object.name", "{cluster}"),
    ("placeholder of another scope", with_health(object={"name": "{pool}"}), "placeholder-unknown",
     "spec.health.object.name", "{cluster}"),
    ("placeholder in parameters", mine(lambda s: s.update(parameters={"a": [{"b": "{x}"}]})),
     "placeholder-unknown", "spec.parameters.a[0].b", "{cluster}"),
    ("credential of nobody", mine(lambda s: s.update(uses=[{"name": "kubeconfg", "proof": "p"}])),
     "credential-unknown", "spec.uses[0].name", "did you mean 'kubeconfig'?"),
    ("credential made twice", mine(lambda s: s.update(makes=[
        {"name": "kubeconfig", "path": "a/b", "how": "h"}])),
     "credential-twice", "spec.makes[0].name", "take another name"),
    ("credential nowhere", mine(lambda s: s.update(makes=[{"name": "new", "how": "h"}])),
     "credential-nowhere", "spec.makes[0].name", "add path"),
    ("one path for all", mine(lambda s: s.update(makes=[
        {"name": "new", "path": "a/{region}", "how": "h"}])),
     "credential-path-shared", "spec.makes[0].path", "put {cluster} into it"),
    ("path of another", mine(lambda s: s.update(makes=[
        {"name": "new", "path": "infrastructure/kubeconfig-{cluster}", "how": "h"}])),
     "credential-path-taken", "spec.makes[0].path", "take another path"),
    ("needed elsewhere", link(component="flux"), "component-not-there",
     "spec.needs[1].component", "write on: management; otherwise"),
    ("when of nobody", mine(lambda s: s.update(when=[{"field": "services", "anyOf": ["nova"]}])),
     "field-of-nobody", "spec.when[0].field", "start with region, cluster, cloud"),
    ("when of no field", mine(lambda s: s.update(when=[
        {"field": "cloud.servces", "anyOf": ["nova"]}])),
     "field-unknown", "spec.when[0].field", "did you mean 'services'?"),
    ("when of a deep field", mine(lambda s: s.update(when=[
        {"field": "storage.ceph.strech", "present": True}])),
     "field-unknown", "spec.when[0].field", "did you mean 'stretch'?"),
    ("when of a pool", mine(lambda s: s.update(when=[{"field": "pool.size", "anyOf": [3]}])),
     "field-unknown", "spec.when[0].field", "scope ceph-pool"),
    ("when of no value", mine(lambda s: s.update(when=[
        {"field": "cloud.services", "anyOf": ["keystone", "nvoa"]}])),
     "value-unknown", "spec.when[0].anyOf[1]", "did you mean 'nova'?"),
    ("placeholder of no field", mine(lambda s: s.update(parameters={"a": "{region.git.pth}"})),
     "field-unknown", "spec.parameters.a", "did you mean 'path'?"),
    ("namespace of no field", mine(lambda s: s.update(install={
        "by": "apply", "namespace": "x-{clustr}"})),
     "placeholder-unknown", "spec.install.namespace", "{cluster}"),
    ("driver misspelt", mine(lambda s: s.update(driver="fluxx")),
     "driver-unknown", "spec.driver", "did you mean 'flux'?"),
    ("status without quotes", with_health(failed=rule(
        **{"path": "status.conditions[Ready].status", "in": ["Unknown", False]})),
     "status-not-text", "spec.health.failed[0].when[0].in[1]", 'write "False" in quotes'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "code", "field", "hint"), [case[1:] for case in BAD], ids=[c[0] for c in BAD]
)
def test_bad_component_is_refused(
    tmp_path: Path, document: dict[str, Any], code: str, field: str, hint: str
) -> None:
    """The complaint has a code, the field, and a hint that helps."""
    problems = load(tmp_path, document)

    found = [p for p in problems if p.code == code]
    assert [p.field for p in found] == [field], [str(p) for p in problems]
    assert hint in found[0].hint
    assert found[0].file.endswith("mine.yaml")
    assert (found[0].kind, found[0].name) == ("Component", "mine")


def test_unknown_profile_is_complained_about_once(tmp_path: Path) -> None:
    """What would be in the profile is not missed a second and a third time."""
    document = with_health(like="helm-relase")
    document["spec"]["limits"] = [{"state": "ClusterSilent", "within": "1h", "action": "look"}]

    assert [problem.code for problem in load(tmp_path, document)] == ["profile-unknown"]


@pytest.mark.parametrize(
    "change",
    [
        {"driver": "my-own-thing"},
        {"when": [{"field": "cluster.labels.tier", "anyOf": ["gold"]}]},
        {"when": [{"field": "cluster.hypervisor.highAvailability", "anyOf": [True]}]},
        {"when": [{"field": "cloud.hypervisorRelease", "present": True}]},
        {"parameters": {"a": "{cluster.garden.project}", "b": "{region.garden.region}"}},
        {"makes": [{"name": "new", "path": "a/{name}", "how": "h"}]},
        {"roles": ["management"], "makes": [{"name": "new", "path": "a/b", "how": "h"}]},
    ],
)
def test_what_only_looks_odd_is_taken(tmp_path: Path, change: dict[str, Any]) -> None:
    """A driver of one's own, a label, a field that fleetd fills in: none is a mistake."""
    assert load(tmp_path, mine(lambda spec: spec.update(change))) == []


def test_good_component_is_taken(tmp_path: Path) -> None:
    """The base itself is fine, and its profile is written in."""
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(BASE))

    components, problems = catalogue_load.load([tmp_path])

    assert problems == []
    spec = components["mine"].spec
    assert spec.health.object is not None
    assert spec.health.object.model_dump(exclude={"owned"}) == {
        "group": "helm.toolkit.fluxcd.io",
        "kind": "HelmRelease",
        "namespace": "flux-system",
        "name": "{cluster}-mine",
    }
    assert spec.health.failed[0].reason == "ClusterSilent"
    assert "*" in {limit.state for limit in spec.limits}


def test_own_rules_and_limits_come_before_the_profiles(tmp_path: Path) -> None:
    """What a component gives beside a profile decides first, and its limit for a state counts."""
    document = with_health(failed=[{"reason": "Odd", "when": [{"path": "a", "present": True}]}])
    document["spec"]["limits"] = [{"state": "ClusterSilent", "within": "9h", "action": "wait"}]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(document))

    spec = catalogue_load.load([tmp_path])[0]["mine"].spec

    assert [rule.reason for rule in spec.health.failed][:2] == ["Odd", "ClusterSilent"]
    assert [limit.action for limit in spec.limits if limit.state == "ClusterSilent"] == ["wait"]


def test_circle_is_shown(tmp_path: Path) -> None:
    """Components that wait for each other are named one after the other."""
    one = mine(lambda spec: spec["needs"].append({"component": "other", "why": "so"}))
    other = link(component="mine")
    other["metadata"]["name"] = "other"

    problems = load(tmp_path, one, other)

    assert [p.code for p in problems] == ["needs-in-a-circle"]
    assert "mine (control-plane) needs other (control-plane) needs mine" in problems[0].message
    assert problems[0].field == "spec.needs[1].component"


def test_circle_through_a_built_in_component_is_found(tmp_path: Path) -> None:
    """A component that something it needs is made to need in turn is a circle."""
    built_in = (catalogue_load.BUILT_IN / "cert-manager.yaml").read_bytes()
    cert = cast("dict[str, Any]", yamltree.read(built_in)[0])
    cert["metadata"]["annotations"] = {"fleet.c5c3.io/replaces": "cert-manager"}
    cert["spec"]["needs"].append({"component": "mine", "optional": True, "why": "so"})

    problems = load(tmp_path, cert, BASE)

    assert [p.code for p in problems] == ["needs-in-a-circle"]


def test_second_component_of_a_name_is_refused(tmp_path: Path) -> None:
    """A built-in component is not replaced by accident, and the first one is kept."""
    document = copy.deepcopy(BASE)
    document["metadata"]["name"] = "openbao"
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(document))

    components, problems = catalogue_load.load([tmp_path])

    assert [p.code for p in problems] == ["component-twice"]
    assert "openbao.yaml" in problems[0].message
    assert components["openbao"].spec.driver == "openbao"


def test_component_is_replaced_when_that_is_said(tmp_path: Path) -> None:
    """With the annotation an operator's component takes the place of a built-in one."""
    document = copy.deepcopy(BASE)
    document["metadata"] = {
        "name": "valkey",
        "annotations": {"fleet.c5c3.io/replaces": "valkey"},
    }
    document["spec"]["makes"] = [{"name": "valkey-binding", "path": "a-{cluster}", "how": "h"}]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(document))

    components, problems = catalogue_load.load([tmp_path])

    assert problems == []
    assert components["valkey"].spec.title == "Mine"


@pytest.mark.parametrize(
    ("name", "replaces", "hint"),
    [("mine", "openbao", "give it the name"), ("opnbao", "opnbao", "did you mean 'openbao'?")],
)
def test_replacing_nothing_is_refused(tmp_path: Path, name: str, replaces: str, hint: str) -> None:
    """The annotation must name the component itself, and one that is there."""
    document = copy.deepcopy(BASE)
    document["metadata"] = {"name": name, "annotations": {"fleet.c5c3.io/replaces": replaces}}

    problems = load(tmp_path, document)

    assert [p.code for p in problems] == ["replaces-unknown"]
    assert hint in problems[0].hint


def test_profile_is_checked(tmp_path: Path) -> None:
    """A profile of the operator's is read as strictly as a component."""
    profile = {
        "apiVersion": "fleet.c5c3.io/v1alpha1",
        "kind": "HealthProfile",
        "metadata": {"name": "own"},
        "spec": {
            "description": "Of my own.",
            "health": {"like": "deployment", "healthy": rule(path="a[", present=True)},
        },
    }

    assert {p.code for p in load(tmp_path, profile)} == {"path-invalid", "profile-of-profile"}


def test_other_documents_do_not_belong_here(tmp_path: Path) -> None:
    """A Region in a catalogue folder is a problem, not ignored."""
    region = {"apiVersion": "fleet.c5c3.io/v1alpha1", "kind": "Region", "metadata": {"name": "x"}}

    assert load(tmp_path, region) != []


def test_order_of_folders_does_not_matter(tmp_path: Path) -> None:
    """Two folders of new components give the same catalogue either way."""
    for name in ("one", "two"):
        document = copy.deepcopy(BASE)
        document["metadata"]["name"] = name
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.yaml").write_text(yaml.safe_dump(document))
    folders = [tmp_path / "one", tmp_path / "two"]

    assert catalogue_load.load(folders) == catalogue_load.load(folders[::-1])
