"""Each built-in component reads healthy, progressing and failed objects as the facts say."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import yaml

from topology import catalogue_load, health, healthpath
from topology.catalogue import Component, Health
from topology.documents.base import parse_duration

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SAMPLES = Path(__file__).parent / "health_samples.yaml"
CRDS = Path(__file__).parents[3] / "shared" / "crds"
GARDENER = "com.github.gardener.gardener.pkg.apis."

COMPONENTS, PROBLEMS = catalogue_load.load()


class Case(NamedTuple):
    component: str
    state: str
    reason: str
    seen: Mapping[str, Any]


def ago(text: str) -> str:
    length = parse_duration(text)
    assert length is not None, text
    return (NOW - length).isoformat().replace("+00:00", "Z")


def written_out(value: Any) -> Any:
    """A sample with its short forms of conditions and times written out."""
    if isinstance(value, str):
        return ago(value[1:]) if re.fullmatch(r"@\d+[smhd]", value) else value
    if isinstance(value, list):
        return [written_out(member) for member in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, inner in cast("dict[str, Any]", value).items():
        if key == "conditions" and isinstance(inner, dict):
            short = cast("dict[str, str]", inner)
            found[key] = [condition(name, text) for name, text in short.items()]
        else:
            found[key] = written_out(inner)
    return found


def condition(name: str, text: str) -> dict[str, str]:
    status, reason, age = text.split()
    return {"type": name, "status": status, "reason": reason, "lastTransitionTime": ago(age)}


@lru_cache
def cases() -> tuple[Case, ...]:
    samples = yaml.safe_load(SAMPLES.read_text())
    found: list[Case] = []
    for name, component in COMPONENTS.items():
        like = component.spec.health.like
        states = samples["components"].get(name) or samples["profiles"][like]
        for state in ("healthy", "progressing", "failed"):
            for sample in states[state]:
                for reason, seen in sample.items():
                    found.append(Case(name, state, reason, written_out(seen)))
    return tuple(found)


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.component}-{case.reason}")
def test_sample_is_read_as_the_facts_say(case: Case) -> None:
    """A sample gives the state and reason written beside it."""
    verdict = health.read(COMPONENTS[case.component].spec.health, case.seen, now=NOW)

    assert (case.state, case.reason) == (verdict.state, verdict.reason), verdict.message


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.component}-{case.reason}")
def test_a_person_reads_words(case: Case) -> None:
    """No message has a path of a rule in it, or a value that was not there."""
    message = health.read(COMPONENTS[case.component].spec.health, case.seen, now=NOW).message

    assert not re.search(
        r"(status|observed|metadata|spec)\.\w|[{}\[\]]|\bmissing: |^missing", message
    )


def test_every_rule_of_trouble_has_words() -> None:
    """Whatever keeps a component from being Ready is said for an operator, not as a path."""
    silent = [
        f"{name}: {rule.reason}"
        for name, component in COMPONENTS.items()
        for rule in (*component.spec.health.failed, *component.spec.health.progressing)
        if not rule.says
    ]

    assert silent == []


def test_every_component_has_samples_of_all_three_states() -> None:
    """No component is left without a healthy, a progressing and a failed object."""
    covered = {(case.component, case.state) for case in cases()}

    wanted = {(n, s) for n in COMPONENTS for s in ("healthy", "progressing", "failed")}
    assert set() == wanted - covered


def test_every_rule_of_a_component_has_a_sample() -> None:
    """Every reason that rules of a component give is shown by a sample, of its own or of the
    profile, so that no rule is dead."""
    samples = yaml.safe_load(SAMPLES.read_text())
    profiles: dict[str, set[str]] = {
        name: {reason for group in states.values() for sample in group for reason in sample}
        for name, states in samples["profiles"].items()
    }
    shown: dict[str, set[str]] = {}
    for case in cases():
        shown.setdefault(case.component, set()).add(case.reason)

    for name, component in COMPONENTS.items():
        known = shown[name] | profiles.get(component.spec.health.like or "", set())
        unseen = health.reasons(component.spec.health) - health.OWN_REASONS - known
        assert frozenset() == unseen, name


def test_object_on_its_way_out_is_never_healthy() -> None:
    """An object with a deletionTimestamp is Deleting, whatever else it says."""
    for case in cases():
        rules = COMPONENTS[case.component].spec.health
        if rules.source != "kubernetes" or case.state != "healthy":
            continue
        leaving = {**case.seen, "metadata": {**case.seen.get("metadata", {}), **LEAVING}}
        verdict = health.read(rules, leaving, now=NOW)
        assert (verdict.state, verdict.reason) == ("progressing", "Deleting"), case.component


LEAVING = {"deletionTimestamp": "2030-01-01T11:59:00Z"}


def test_empty_status_is_never_healthy() -> None:
    """An object that says nothing yet proves nothing."""
    for name, component in COMPONENTS.items():
        seen = {"metadata": {"name": "x", "generation": 1}, "spec": {}, "status": {}}
        verdict = health.read(component.spec.health, seen, now=NOW)
        assert verdict.state != "healthy", name


# What is written against a kind must be a field of that kind.


def crd_files() -> list[Path]:
    if not CRDS.is_dir():
        pytest.skip("needs ../shared/crds, the CRDs of the systems we drive")
    return sorted(CRDS.rglob("*.yaml"))


@lru_cache
def schemas() -> Mapping[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    wanted = {watched(c.spec.health) for c in COMPONENTS.values()}
    groups = {group for group, _ in wanted if group}
    for file in crd_files():
        if not any(file.name.startswith(group + "_") for group in groups):
            continue
        crd = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
        names = (crd["spec"]["group"], crd["spec"]["names"]["kind"])
        for version in crd["spec"]["versions"]:
            if version["served"]:
                found.setdefault(names, []).append(version["schema"]["openAPIV3Schema"])
    definitions = json.loads((CRDS / "gardener" / "gardener-openapi-v2.json").read_bytes())
    for group, package in (
        ("core.gardener.cloud", "core.v1beta1"),
        ("security.gardener.cloud", "security.v1alpha1"),
    ):
        for kind in ("Shoot", "Seed", "Project", "CredentialsBinding"):
            name = f"{GARDENER}{package}.{kind}"
            if name in definitions["definitions"]:
                whole = {"$ref": f"#/definitions/{name}", "definitions": definitions["definitions"]}
                found[group, kind] = [whole]
    return found


def watched(rules: Health) -> tuple[str, str]:
    return (rules.object.group, rules.object.kind or "") if rules.object else ("", "")


def resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = root["definitions"][schema["$ref"].removeprefix("#/definitions/")]
    return schema


def lacking(schema: dict[str, Any], steps: tuple[healthpath.Step, ...]) -> str | None:
    """The first key of a path that the schema does not have."""
    root = schema
    for step in steps:
        schema = resolved(schema, root)
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return None
        if not isinstance(step, str) and "items" in schema:
            schema = schema["items"]
            continue
        key = step.name if isinstance(step, healthpath.Pick) else step
        if key in schema.get("properties", {}):
            schema = schema["properties"][key]
        elif isinstance(schema.get("additionalProperties"), dict):
            schema = schema["additionalProperties"]
        else:
            return str(key)
    return None


def paths_of(component: Component) -> Iterator[str]:
    rules = component.spec.health
    for rule in (*rules.failed, *rules.progressing, *rules.healthy):
        if rule.quote:
            yield rule.quote
        for test in rule.when:
            yield from filter(None, (test.path, test.equals_path, test.differs_from))


IRONIC = {"provision_state", "maintenance", "fault"}


def test_every_path_is_a_field_of_the_real_kind() -> None:
    """A health path for a kind whose CRD or OpenAPI is at hand exists in it."""
    known = schemas()
    bad: list[str] = []
    for name, component in COMPONENTS.items():
        for text in paths_of(component):
            path = healthpath.parse(text)
            head = path.steps[0]
            if head in {"observed", "metadata"} or text in IRONIC:
                continue
            options = known.get(watched(component.spec.health))
            if options and all(lacking(schema, path.steps) for schema in options):
                bad.append(f"{name}: {text}")

    assert bad == []


def leaf(schema: dict[str, Any], steps: tuple[healthpath.Step, ...]) -> dict[str, Any]:
    """The schema of the value a path leads to; empty where it cannot be told."""
    root = schema
    for step in steps:
        schema = resolved(schema, root)
        if not isinstance(step, str) and "items" in schema:
            schema = schema["items"]
            continue
        key = step.name if isinstance(step, healthpath.Pick) else step
        schema = schema.get("properties", {}).get(key, {})
    return resolved(schema, root)


def test_every_value_is_one_the_real_kind_can_have() -> None:
    """Where the CRD lists the values of a field, a rule asks for none beside them."""
    known = schemas()
    checked = 0
    bad: list[str] = []
    for name, component in COMPONENTS.items():
        rules = component.spec.health
        for rule in (*rules.failed, *rules.progressing, *rules.healthy):
            for test in rule.when:
                steps = healthpath.parse(test.path).steps
                found = [leaf(schema, steps) for schema in known.get(watched(rules), [])]
                possible = {value for one in found for value in one.get("enum", ())}
                checked += bool(possible)
                asked = [*test.in_, *test.not_in] if possible else []
                bad += [f"{name}: {test.path}: {one}" for one in asked if one not in possible]

    assert bad == []
    assert checked > 100


def test_every_sample_uses_fields_of_the_real_kind() -> None:
    """A sample does not show a field that the real kind does not have."""
    known = schemas()
    bad: list[str] = []
    for case in cases():
        options = known.get(watched(COMPONENTS[case.component].spec.health))
        if not options or IRONIC & set(case.seen):
            continue
        for steps in keys_of(case.seen):
            if steps[0] in {"observed", "metadata"}:
                continue
            if all(lacking(schema, steps) for schema in options):
                bad.append(f"{case.component}: {'.'.join(map(str, steps))}")

    assert sorted(set(bad)) == []


def keys_of(
    value: Any, before: tuple[healthpath.Step, ...] = ()
) -> Iterator[tuple[healthpath.Step, ...]]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from keys_of(inner, (*before, key))
    elif isinstance(value, list):
        for number, member in enumerate(cast("list[Any]", value)):
            yield from keys_of(member, (*before, number))
    elif before:
        yield before


NO_CRD_AT_HAND = {("garage.rajsingh.info", "GarageCluster")}
"""Real, by C5C3's own manifests, but its CRD is not among those we keep."""


def test_kinds_of_cobaltcore_are_real() -> None:
    """A kind in a group of CobaltCore, Flux, Rook ... has a CRD; invented groups have none."""
    known = schemas()
    without = {
        watched(c.spec.health)
        for c in COMPONENTS.values()
        if "." in watched(c.spec.health)[0] and watched(c.spec.health) not in known
    }

    assert without == NO_CRD_AT_HAND
