"""Objects as facts: what is kept, what is left out, and what counts as a difference."""

from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleetd.kube import facts
from tests.secrets import canary

VALUE = canary.CANARIES["password"]


def live(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, **parts}


@pytest.mark.parametrize("field", ["data", "stringData", "binaryData"])
def test_nothing_secret_gets_in(field: str) -> None:
    """Neither as data nor in the annotation in which kubectl keeps a copy of it."""
    kept = f'{{"data": "{VALUE}"}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": kept, "mine": "x"}
    seen = facts.trim(live(**{field: {"a": VALUE}}, metadata={"annotations": annotations}))
    assert canary.found(repr(seen)) == []
    assert seen == {"metadata": {"annotations": {"mine": "x"}}}


def test_what_moves_at_every_write_is_left_out() -> None:
    """Versions, managed fields and the marks of a step: equal things have equal facts."""

    def written(number: int) -> dict[str, Any]:
        annotations = {facts.STEP: f"step-{number}", facts.GENERATION: f"{number}"}
        moving = {"resourceVersion": str(number), "managedFields": [{"manager": f"m{number}"}]}
        metadata = {"name": "a", "namespace": "ns", "uid": "u", "annotations": annotations}
        return live(metadata={**metadata, **moving}, spec={"a": 1})

    assert facts.trim(written(1)) == facts.trim(written(2))


def test_what_rules_judge_by_is_kept() -> None:
    """Generation, deletion, labels, spec and status."""
    metadata = {"name": "a", "generation": 3, "deletionTimestamp": "t", "labels": {"l": "1"}}
    seen = facts.trim(live(metadata=metadata, spec={"a": 1}, status={"b": 2}))
    assert seen == {"metadata": metadata, "spec": {"a": 1}, "status": {"b": 2}}


def test_a_digest_is_of_the_content() -> None:
    """The order of the keys does not matter, every value does."""
    one = facts.digest({"a": 1, "b": {"c": [1, 2]}})
    assert one == facts.digest({"b": {"c": [1, 2]}, "a": 1})
    assert one != facts.digest({"a": 1, "b": {"c": [2, 1]}})


@pytest.mark.parametrize(
    ("metadata", "made"),
    [
        ({"annotations": {facts.GENERATION: "ab"}}, "ab"),
        ({"annotations": {"other": "ab"}}, ""),
        ({"annotations": None}, ""),
        ({}, ""),
    ],
    ids=["ours", "foreign", "null", "none"],
)
def test_our_own_work_is_known_by_its_mark(metadata: Any, made: str) -> None:
    """What has no mark was never written by fleetd."""
    assert facts.made_from(live(metadata=metadata)) == made


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ({"a": 1}, {"a": 1, "b": "by default"}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),
        ({"a": {}}, {}),
        ({"a": []}, {}),
        ({"on": False, "count": 0, "text": "", "none": None}, {}),
        ({"every": "1h"}, {"every": "1h0m0s"}),
        ({"every": "90s"}, {"every": "1m30s"}),
        ({"all": [{"name": "a", "x": 1}]}, {"all": [{"name": "z"}, {"x": 1, "name": "a", "y": 2}]}),
        ({"all": [{"type": "A"}]}, {"all": [{"type": "B"}, {"type": "A"}]}),
        ({"all": [{"x": 1}]}, {"all": [{"x": 1, "by": "default"}]}),
    ],
    ids=[
        *("a default", "an inner default", "an empty map", "an empty list", "zeros"),
        *("1h", "90s", "by name", "by type", "a default in a list"),
    ],
)
def test_what_a_server_does_to_a_manifest_is_no_difference(wanted: Any, there: Any) -> None:
    """Else fleetd would write it again and again."""
    assert facts.differences(live(spec=wanted), live(spec=there)) == []


@pytest.mark.parametrize(
    ("wanted", "there", "paths"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["spec.a.b"]),
        ({"a": {"b": 1}}, {}, ["spec.a"]),
        ({"a": {"b": 1}}, {"a": "text"}, ["spec.a"]),
        ({"a": 0}, {"a": 5}, ["spec.a"]),
        ({"on": False}, {"on": True}, ["spec.on"]),
        ({"every": "1h"}, {"every": "1m"}, ["spec.every"]),
        ({"every": "500ms"}, {"every": "500m"}, ["spec.every"]),
        ({"all": [{"name": "a", "x": 1}]}, {"all": [{"name": "a", "x": 2}]}, ["spec.all[a].x"]),
        ({"all": [{"name": "a"}]}, {"all": [{"name": "b"}]}, ["spec.all[a]"]),
        ({"all": ["a", "b"]}, {"all": ["a", "c"]}, ["spec.all[1]"]),
        ({"all": ["a"]}, {"all": ["a", "b"]}, ["spec.all"]),
        ({"all": []}, {"all": ["b"]}, ["spec.all"]),
        ({"all": ["a"]}, {}, ["spec.all"]),
    ],
)
def test_a_difference_is_named_by_its_path(wanted: Any, there: Any, paths: list[str]) -> None:
    """The operator reads where, before it is written."""
    assert facts.differences(live(spec=wanted), live(spec=there)) == paths


@pytest.mark.parametrize("other", ["first", "last"])
def test_members_of_one_name_are_told_apart(other: str) -> None:
    """A volume that is mounted twice is no difference, wherever others added a third mount; one
    that somebody changed is."""
    one, two = {"name": "data", "path": "/a"}, {"name": "data", "path": "/b"}
    more = {"name": "data", "path": "/c"}
    wanted = live(spec={"mounts": [one, two]})
    there = [more, one, two] if other == "first" else [one, two, more]
    assert facts.differences(wanted, live(spec={"mounts": there})) == []
    changed = facts.differences(wanted, live(spec={"mounts": [one, more]}))
    assert changed == ["spec.mounts[data].path"]


def test_of_metadata_only_labels_and_annotations_are_compared() -> None:
    """Names were used to find it, and the status is not ours to ask for."""
    wanted = live(metadata={"name": "a", "labels": {"l": "1"}}, status={"x": 1})
    there = live(metadata={"name": "b", "labels": {"l": "2", "m": "3"}})
    assert facts.differences(wanted, there) == ["metadata.labels.l"]


def test_a_few_differences_are_enough() -> None:
    """An object that has nothing of the manifest does not fill the facts."""
    wanted = live(spec={f"f{number}": number + 1 for number in range(50)})
    found = facts.differences(wanted, live(spec={"other": 1}))
    assert found == [f"spec.f{number}" for number in range(facts.DIFFERENCES_MAX)]


NAMES = st.sampled_from(["name", "type", "a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "1h", "60m"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
MANIFESTS = st.dictionaries(NAMES, VALUES, max_size=4)


def served(value: Any) -> Any:
    """As a server gives it back: more fields in every map."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {"added": "by the server", **{key: served(one) for key, one in fields.items()}}
    if isinstance(value, list):
        return [served(one) for one in cast("list[Any]", value)]
    return value


@example({"a": [{"name": {"name": None}}]})
@given(MANIFESTS)
def test_a_manifest_never_differs_from_itself(spec: dict[str, Any]) -> None:
    """Whatever it holds, and whatever the server added."""
    assert facts.differences(live(spec=spec), live(spec=served(spec))) == []


@given(MANIFESTS, MANIFESTS)
def test_no_difference_means_that_writing_it_changes_nothing(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    """What is asked for and has a value is there with that value, at the top at least."""
    if facts.differences(live(spec=one), live(spec=other)):
        return
    for key, value in one.items():
        if isinstance(value, bool | int) and value:
            assert other[key] == value


def test_a_copy_may_be_changed() -> None:
    """To its depth, without changing what it was made from."""
    first = {"a": {"b": [1]}}
    second = facts.copy(first)
    second["a"]["b"].append(2)
    assert first == {"a": {"b": [1]}}
