"""
One mistake, one complaint: no cascades, and nothing that hides behind something else.

Every place of a good fleet is broken once, alone; and a refused document still tells what else is
wrong with it.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from topology import load, yamltree
from topology.checks import run
from topology.problem import Problem

GOOD = (Path(__file__).parent / "good.yaml").read_bytes()
DOCUMENTS = cast("list[dict[str, Any]]", yamltree.read(GOOD))
Place = tuple[str | int, ...]


def told(documents: list[dict[str, Any]]) -> list[Problem]:
    """All complaints about a fleet, each document in a file of its own."""
    files = {f"{n}.yaml": json.dumps(one).encode() for n, one in enumerate(documents)}
    bundle = load.load_bytes(files)
    return sorted({*bundle.problems, *run.check(bundle)})


def places(value: object, above: Place = ()) -> Iterator[Place]:
    """Every place in a document."""
    if above:
        yield above
    if isinstance(value, dict):
        for key, part in cast("dict[str, object]", value).items():
            yield from places(part, (*above, key))
    elif isinstance(value, list):
        for number, part in enumerate(cast("list[object]", value)):
            yield from places(part, (*above, number))


def broken(number: int, place: Place, wrong: object) -> list[dict[str, Any]]:
    """The good fleet with one wrong value."""
    fleet = copy.deepcopy(DOCUMENTS)
    here: Any = fleet[number]
    for part in place[:-1]:
        here = here[part]
    here[place[-1]] = wrong
    return fleet


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_a_value_of_the_wrong_type_is_told_once(number: int) -> None:
    """Whatever is broken, and whoever refers to it: one complaint, about that document."""
    for place in places(DOCUMENTS[number]):
        problems = told(broken(number, place, [[1.5]]))

        assert [problem.file for problem in problems] == [f"{number}.yaml"], place


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_an_unknown_field_is_told_once(number: int) -> None:
    """Also deep inside, and also in a document that many others name."""
    for place in (("surprise",), ("metadata", "surprise"), ("spec", "surprise")):
        (problem,) = told(broken(number, place, 1))

        assert (problem.file, problem.code) == (f"{number}.yaml", "unknown-field")


NAMES = {"region", "pool", "zone", "rack", "host", "cluster", "cloud", "controlPlane", "arbiter"}
LISTS = {"zones", "clusters", "hypervisors", "storage"}


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_a_name_that_leads_nowhere_is_told_once(number: int) -> None:
    """Where it is written, and not again as something that is then in the wrong place, too few
    or unused."""
    kind = DOCUMENTS[number]["kind"]
    for place in places(DOCUMENTS[number]):
        name = [part for part in place if isinstance(part, str)][-1]
        reference = name in LISTS if isinstance(place[-1], int) else name in NAMES
        # The zones of a region and the racks of a pool are names that are given, not used.
        if kind == "Region" or (kind, name) == ("ServerPool", "rack") or not reference:
            continue
        problems = told(broken(number, place, "nowhere"))

        assert [problem.file for problem in problems] == [f"{number}.yaml"], place


def test_a_refused_document_tells_the_rest_as_well() -> None:
    """A member of a list that cannot be read does not shift the places of the others."""
    pool = next(n for n, one in enumerate(DOCUMENTS) if one["metadata"]["name"] == "compute")
    fleet = broken(pool, ("spec", "servers", 0, "bmc"), "bmc-7.example")
    fleet[pool]["spec"]["servers"][2]["zone"] = "z"
    fleet[pool]["spec"]["access"]["openbao"]["path"] = "/bmc"

    assert [(problem.field, problem.code) for problem in told(fleet)] == [
        ("spec.servers[0].bmc", "bmc-address-invalid"),
        ("spec.servers[2].zone", "unknown-zone"),
        ("spec.access.openbao.path", "openbao-path-invalid"),
    ]


def test_a_misspelt_field_is_read_as_what_was_meant() -> None:
    """So that a document with a misspelt required field can tell the rest."""
    cluster = next(n for n, one in enumerate(DOCUMENTS) if one["metadata"]["name"] == "hv-b")
    fleet = copy.deepcopy(DOCUMENTS)
    spec = fleet[cluster]["spec"]
    spec["regoin"] = spec.pop("region")
    spec["workers"][0]["minimun"] = spec["workers"][0].pop("minimum")
    spec["workers"][0]["zones"] = ["z"]

    assert [(problem.field, problem.code) for problem in told(fleet)] == [
        ("spec.workers[0].zones[0]", "unknown-zone"),
        ("spec.workers[0].minimun", "unknown-field"),
        ("spec.regoin", "unknown-field"),
    ]


def test_a_refused_document_still_takes_its_name() -> None:
    """A second document of the name is told even if it cannot be used."""
    cluster = next(one for one in DOCUMENTS if one["metadata"]["name"] == "cp")
    copied = copy.deepcopy(cluster)
    copied["spec"]["surprise"] = 1

    codes = sorted(problem.code for problem in told([*DOCUMENTS, copied]))

    assert codes == ["name-taken", "unknown-field"]


def test_what_a_document_cannot_do_without_ends_the_second_look() -> None:
    """With its role unknown a cluster is not judged: every further complaint would be a guess."""
    cluster = next(n for n, one in enumerate(DOCUMENTS) if one["metadata"]["name"] == "hv-a")
    fleet = broken(cluster, ("spec", "role"), "compute")
    fleet[cluster]["spec"]["workers"][0]["pool"] = "nowhere"

    assert [problem.field for problem in told(fleet)] == ["spec.role"]
