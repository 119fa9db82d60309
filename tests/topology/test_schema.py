"""What is generated from the models: JSON schemas, CRDs and the reference page."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError

from topology import crds, load, schema, yamltree
from topology.catalogue import Component
from topology.documents import fields
from topology.documents.kinds import KINDS

ROOT = Path(__file__).parents[2]
EXAMPLE = (Path(__file__).parent / "load_example.yaml").read_bytes()
HEAD = "apiVersion: fleet.c5c3.io/v1alpha1\nkind: {}\nmetadata: {{name: x}}\nspec: "
OTHERS = [
    HEAD.format("CredentialFlow")
    + "{region: r, path: a/b, source: {generate: {}}, rotation: {every: 90d, overlap: 7d},"
    " targets: [{cluster: c, namespace: n, secret: s, reload: {kind: Deployment, name: d}}]}",
    HEAD.format("Rollout") + "{what: {image: {name: g, version: '1'}}, failureBudget: 5%,"
    " waves: [{name: a, clusters: [c], soak: 2h}], gates: [{kind: approval}]}",
    HEAD.format("Maintenance") + "{region: r, rack: r1, reason: fans, from: 2026-03-01T22:00Z}",
    HEAD.format("Cluster")
    + "{region: r, role: storage, adopted: {access: {env: K}}, kubernetes: }",
]
DOCUMENTS = cast(
    "list[dict[str, Any]]",
    [*yamltree.read(EXAMPLE), *(yamltree.read(text.encode())[0] for text in OTHERS)],
)

FILES = schema.generate()
ANY = schema.of_any()
ONE = {kind: schema.of(model) for kind, model in KINDS.items()}

BAD: list[tuple[str, str, object]] = [
    ("Region", "spec.zones", []),
    ("Region", "spec.zones", "a"),
    ("Region", "spec.unknown", 1),
    ("Region", "spec.garden.project", "Not_A_Name"),
    ("Region", "spec.garden.access", {}),
    ("Region", "spec.garden.access", {"file": "a", "env": "b"}),
    ("Region", "spec.metal.provider", "vmware"),
    ("Region", "spec.git.url", "ftp://x"),
    ("Region", "spec.secrets.replicas", 2),
    ("Region", "spec.budgets", {"rack": "0%"}),
    ("Region", "spec.budgets", {"rack": -1}),
    ("Region", "spec.budgets", {"rack": 1.5}),
    ("Region", "metadata.name", "x" * 64),
    ("Region", "apiVersion", "v1"),
    ("ServerPool", "spec.servers", [{"name": "a"}]),
    ("ServerPool", "spec.class", 5),
    ("ServerPool", "spec.redfish", {"port": 0}),
    ("Cluster", "spec.role", "storag"),
    ("Cluster", "spec.kubernetes", "1.33"),
    ("Cluster", "spec.kubernetes", 1.33),
    ("Cluster", "spec.workers", [{"name": "w", "pool": "p", "minimum": "1", "maximum": 1}]),
    ("Cloud", "spec.release", "2025.3"),
    ("Cloud", "spec.size", "huge"),
    ("Cloud", "spec.services", []),
    ("CredentialFlow", "spec.source", {}),
    ("CredentialFlow", "spec.path", "/a"),
    ("CredentialFlow", "spec.rotation", {"every": "90", "overlap": "1d"}),
    ("CredentialFlow", "spec.targets", []),
    ("Rollout", "spec.what", {}),
    ("Rollout", "spec.onBreach", "rollback"),
    ("Rollout", "spec.failureBudget", "101%"),
    ("Maintenance", "spec.zone", "a"),
    ("Maintenance", "spec.from", "2026-03-01"),
    ("Maintenance", "spec.evacuate", "yes"),
]
GOOD: list[tuple[str, str, object]] = [
    ("Region", "spec.budgets", {"rack": 2, "zone": "100%", "pool": "3"}),
    ("Region", "spec.secrets", {"replicas": 5}),
    ("Cluster", "spec.failureTolerance", "zone"),
    ("Cluster", "spec.failureTolerance", None),
    ("ServerPool", "spec.labels", {"a.b/c": "d"}),
    ("Cloud", "spec.services", ["nova"]),
    ("CredentialFlow", "spec.rotation", {"every": "1h30m", "overlap": "45s"}),
    ("Rollout", "spec.failureBudget", 0),
    ("Maintenance", "spec.evacuate", False),
]


def changed(kind: str, path: str, value: object) -> dict[str, Any]:
    """A good document of the kind with one field set."""
    document = copy.deepcopy(next(one for one in DOCUMENTS if one["kind"] == kind))
    *above, last = path.split(".")
    here = document
    for part in above:
        here = here.setdefault(part, {})
    here[last] = value
    return document


def schema_accepts(document: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(wanted).is_valid(document)  # pyright: ignore[reportUnknownMemberType]


def fleetd_accepts(document: dict[str, Any]) -> bool:
    return not load.load_bytes({"f.yaml": json.dumps(document).encode()}).problems


def test_generated_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """Run `python -m topology.schema` after a change of the models."""
    assert schema.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The check fails with the names; writing repairs it; then there is nothing to write."""
    assert schema.main(["--check"], root=tmp_path) == 1
    assert "docs/documents.md is not current" in capsys.readouterr().err
    assert schema.main([], root=tmp_path) == 0
    (tmp_path / "docs/documents.md").write_text("old")
    capsys.readouterr()

    assert schema.main(["--check"], root=tmp_path) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert schema.main([], root=tmp_path) == 0
    assert schema.main(["--check"], root=tmp_path) == 0


def test_no_stale_files_are_left_behind() -> None:
    """What nobody generates any more is gone from the folders."""
    made = set(FILES)

    for folder in ("topology/schema", "deploy/crds"):
        found = {str(path.relative_to(ROOT)) for path in (ROOT / folder).iterdir()}
        assert {name for name in made if name.startswith(folder)} == found


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".json")])
def test_the_schemas_are_schemas(name: str) -> None:
    """Each file is valid JSON schema of the dialect it names."""
    made = json.loads(FILES[name])

    assert made["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$schema"]
    assert schema_accepts(made, cast("dict[str, Any]", jsonschema.Draft202012Validator.META_SCHEMA))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one["kind"])
def test_good_documents_pass(document: dict[str, Any]) -> None:
    """The contract's example and one of each other kind pass schema and fleetd."""
    assert fleetd_accepts(document)
    assert schema_accepts(document, ONE[document["kind"]])
    assert schema_accepts(document, ANY)


@pytest.mark.parametrize(("kind", "path", "value"), BAD)
def test_bad_documents_fail_in_editor_and_fleetd_alike(kind: str, path: str, value: object) -> None:
    """What fleetd refuses for its form, an editor with the schema marks too."""
    document = changed(kind, path, value)

    assert not fleetd_accepts(document)
    assert not schema_accepts(document, ONE[kind])
    assert not schema_accepts(document, ANY)


@pytest.mark.parametrize(("kind", "path", "value"), GOOD)
def test_good_values_pass_in_editor_and_fleetd_alike(kind: str, path: str, value: object) -> None:
    """What fleetd takes, the schema takes."""
    document = changed(kind, path, value)

    assert fleetd_accepts(document)
    assert schema_accepts(document, ONE[kind])


def test_the_common_schema_picks_by_kind() -> None:
    """A wrong field of a Cloud is a complaint about a Cloud alone, and an unknown kind is one."""
    validator = jsonschema.Draft202012Validator(ANY)
    cloud = changed("Cloud", "spec.size", "huge")

    paths = [list(e.absolute_path) for e in validator.iter_errors(cloud)]  # pyright: ignore[reportUnknownMemberType]

    assert paths == [["spec", "size"]]
    assert not schema_accepts({**cloud, "kind": "Clowd"}, ANY)
    assert not schema_accepts({}, ANY)


def test_the_catalogue_has_a_schema_too() -> None:
    """Whoever adds a component gets help from the editor."""
    made = json.loads(FILES["topology/schema/component.json"])

    assert made == schema.of(Component)
    assert "health" in made["$defs"]["ComponentSpec"]["properties"]


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A structural schema and all schemas in it."""
    yield path, node
    for name, part in node.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes(node["additionalProperties"], f"{path}{{}}")


SUPPORTED = {
    "type", "description", "enum", "pattern", "format", "minimum", "maximum", "minLength",
    "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "required", "nullable",
    "properties", "items", "additionalProperties", "anyOf", "oneOf",
    "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_crds_are_structural(kind: str) -> None:
    """The rules of apiextensions.k8s.io/v1: a type everywhere, no references, nothing unknown."""
    version = crds.definition(kind, ONE[kind])["spec"]["versions"][0]

    for path, node in nodes(version["schema"]["openAPIV3Schema"]):
        assert set(node) <= SUPPORTED, path
        int_or_string = node.get("x-kubernetes-int-or-string", False)
        assert ("type" in node) != int_or_string, path
        assert not ("properties" in node and "additionalProperties" in node), path
        for arm in node.get("anyOf", []) + node.get("oneOf", []):
            assert set(arm) <= {"format", "required"}, path
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
        if node.get("nullable") and "enum" in node:
            assert None in node["enum"], path
        # Kubernetes compiles patterns with RE2, which knows no look-around.
        assert "(?" not in node.get("pattern", ""), path


@pytest.mark.parametrize("kind", KINDS)
def test_crds_look_as_an_operator_expects(kind: str) -> None:
    """Cluster-scoped, with status, with columns that answer the first question."""
    text = (ROOT / "deploy/crds" / crds.file_name(kind)).read_bytes()
    (made,) = cast("list[dict[str, Any]]", yamltree.read(text))
    (version,) = made["spec"]["versions"]
    columns = [column["name"] for column in version["additionalPrinterColumns"]]

    assert made["metadata"]["name"] == f"{made['spec']['names']['plural']}.fleet.c5c3.io"
    assert (made["spec"]["scope"], version["name"]) == ("Cluster", "v1alpha1")
    assert version["subresources"] == {"status": {}}
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert status["x-kubernetes-preserve-unknown-fields"]
    assert {"Ready", "Age"} <= set(columns)
    assert kind == "Region" or "Region" in columns


def test_a_keyword_without_translation_is_refused() -> None:
    """A model that grows something Kubernetes does not know fails here, not on a cluster."""
    with pytest.raises(ValueError, match="uniqueItems"):
        crds.structural({"type": "array", "uniqueItems": True})
    with pytest.raises(ValueError, match="choice"):
        crds.structural({"anyOf": [{"type": "array"}, {"type": "string"}]})


def test_the_reference_page_names_every_field() -> None:
    """Each field of each kind has a row with a meaning; links lead somewhere."""
    page = FILES["docs/documents.md"]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]

    assert {row[0] for row in rows} >= {"`spec.workers[].minimum`", "`access.openbao.path`"}
    assert all(len(row) == 4 and row[3] for row in rows)
    headings = {line[3:].lower() for line in page.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"\(#([a-z]+)\)", page)) <= headings


ODD: list[Any] = [
    None, True, 0, 3, "", "a", "1.33.4", "2025.2", "90d", "10%", "192.0.2.1", "22:00",
    "2026-01-01T10:00Z", "managed", [], ["a"], {}, {"file": "a", "env": None},
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_takes_whatever_fleetd_takes(kind: str) -> None:
    """Odd values at every place of a good document, those with a default included: an editor
    marks nothing that fleetd would have read."""
    fleet = (Path(__file__).parent / "good.yaml").read_bytes()
    documents = cast("list[dict[str, Any]]", yamltree.read(fleet))
    for document in (one for one in documents if one["kind"] == kind):
        for place in _places(KINDS[kind], document):
            for value in ODD:
                odd = copy.deepcopy(document)
                here: Any = odd
                for part in place[:-1]:
                    here = here[part]
                here[place[-1]] = value
                try:
                    KINDS[kind].model_validate(odd)
                except ValidationError:
                    continue
                assert schema_accepts(odd, ONE[kind]), (place, value)


def _places(
    model: type[BaseModel], value: object, above: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Every place in a document, and every field that it could have beside."""
    if isinstance(value, list):
        for number, part in enumerate(cast("list[object]", value)):
            yield (*above, number)
            yield from _places(model, part, (*above, number))
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value)
        inner = fields.model_at(model, above)
        for key in {**parts, **(fields.of(inner) if inner is not None else {})}:
            yield (*above, key)
            yield from _places(model, parts.get(key), (*above, key))
