"""Why an object is written now, and which API it belongs to."""

from typing import Any

import pytest

from fleetd import desired
from fleetd.desired import Manifest
from fleetd.kube import facts
from topology.resource import Ref, Resource

BOX = Manifest(backend="cluster:hv", body={"apiVersion": "v1", "kind": "Box"}, why="keep the box")
AS_IT_SHOULD: dict[str, Any] = {"deleting": False, "made": "d1", "differs": []}


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (None, "keep the box"),
        (AS_IT_SHOULD, ""),
        (AS_IT_SHOULD | {"deleting": True, "differs": ["spec"]}, ""),
        (AS_IT_SHOULD | {"differs": ["spec.a"]}, "keep the box (somebody changed spec.a)"),
        (AS_IT_SHOULD | {"by": "kubectl"}, "keep the box (kubectl changed it)"),
        (AS_IT_SHOULD | {"made": ""}, "keep the box (fleetd did not write it yet)"),
        (AS_IT_SHOULD | {"made": "d0"}, "keep the box (fleetd did not write it as it is)"),
    ],
)
def test_a_write_has_a_reason_or_is_none(seen: dict[str, Any] | None, said: str) -> None:
    """What is as it should be, or on its way out, is left alone."""
    assert desired.reason(BOX, "d1", seen) == said


@pytest.mark.parametrize(
    ("version", "group"),
    [("v1", ""), ("apps/v1", "apps"), ("helm.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io")],
)
def test_a_group_is_named_with_or_without_its_version(version: str, group: str) -> None:
    """The core group has no name; a version may be left to discovery."""
    assert desired.group_of({"apiVersion": version}) == group


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "x"},
        {"name": "x", "labels": {"mine": "1"}, "annotations": {"theirs": "2"}},
        {"name": "x", "labels": {facts.OWNER: "box.another"}},
    ],
    ids=["bare", "with labels", "of another"],
)
def test_a_mark_is_the_digest_that_is_written(metadata: dict[str, Any]) -> None:
    """It is compared with what stands on the live object; and nothing is written to the body."""
    body = {"apiVersion": "v1", "kind": "Box", "metadata": metadata, "spec": {"a": [1]}}
    before = facts.copy(body)
    want = Resource(ref=Ref("box", "x"), driver="kubernetes", region="eu-1", spec={}, generation=1)

    assert desired.mark(body, want) == facts.made_from(desired.marked(body, want))
    assert desired.mark({**body, "spec": {"a": [2]}}, want) != desired.mark(body, want)
    assert body == before
