"""
Whatever the bytes are, loading gives documents or problems: never a traceback, never more than a
second or 256 MB.

The last test is the one place where time is asserted, because the bound is part of what fleetd
promises. It measures CPU time of the process, so a busy machine does not count against it.
"""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from topology import load, yamltree
from topology.checks import run

EXAMPLE = (Path(__file__).parent / "load_example.yaml").read_bytes()
DOCUMENTS = cast("list[dict[str, Any]]", yamltree.read(EXAMPLE))
ATTACKS = Path(__file__).parent / "fuzz_attacks.py"

FUZZ = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=40),
    st.sampled_from(
        [
            "",
            "no",
            "a" * 100_000,
            "\u202e\u0000\ufeff",
            "💥",
            "../../etc/passwd",
            "0" * 5000,
            "1.33.4",
            "90d",
            "999999d999999h",
            "10%",
            "192.0.2.300",
            "::1%eth0",
            "9999-12-31T23:59-23:59",
            "0001-01-01T00:00+23:59",
            "24:00",
            10**17,
            -(10**17),
            1e308,
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)


def checked(data: bytes) -> load.Bundle:
    """Load, and check what must hold for every answer."""
    bundle = load.load_bytes({"f.yaml": data})
    lines = data.count(b"\n") + data.count(b"\r") + len(data) + 2
    for problem in (*bundle.problems, *run.check(bundle)):
        assert problem.message
        assert problem.hint
        assert 1 <= problem.line <= lines
        assert problem.column >= 1
        assert len(str(problem)) < 2000
        assert str(problem).isprintable()
        json.dumps(problem.as_json())
    for item in bundle.items:
        item.document.model_dump_json(by_alias=True)
        bundle.complain(item, ("spec", "nowhere", 3), code="c", message="m")
    if bundle.refused:
        assert bundle.problems
    return bundle


def lost(data: bytes) -> int:
    """How many documents became neither an item nor a refusal; an unread rest is one refusal."""
    bundle, reading = checked(data), yamltree.read_all(data)
    expected = len(reading.documents) + (0 if reading.complete else 1)
    return expected - len(bundle.items) - len(bundle.refused)


@FUZZ
@given(st.binary(max_size=400))
@example(b"\x00")
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe\x00")
@example(b"%YAML 9.9\n---\na")
@example(b"%YAML 1.2\n---\na: 1")
@example(b"? ")
@example(b"&a")
@example(b"*a")
@example(b"--- !<tag:yaml.org,2002:map> {}")
@example(b"--- |1\n")
@example(b"\xc2\x85\xe2\x80\xa8")
def test_any_bytes_give_an_answer(data: bytes) -> None:
    """Bytes from nowhere: no traceback, and no document is dropped in silence."""
    assert lost(data) == 0


@FUZZ
@given(
    st.lists(
        st.sampled_from(
            [
                *list("{}[]:,-?&*!|>'\"%@`#~ \n\t\r\\0aé"),
                "---\n",
                "...\n",
                "<<: ",
                "&a ",
                "*a",
                "!!str ",
                "!!python/name:os ",
                "  ",
                "kind: ",
            ]
        ),
        max_size=60,
    ).map("".join)
)
def test_anything_that_looks_like_yaml_gives_an_answer(text: str) -> None:
    """The signs of YAML in any order."""
    assert lost(text.encode()) == 0


@FUZZ
@given(st.data())
def test_a_damaged_file_gives_an_answer(data: st.DataObject) -> None:
    """Good documents with bytes cut out, put in or turned over."""
    content = bytearray(EXAMPLE)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content) - 1))
        end = min(len(content), at + data.draw(st.integers(0, 30)))
        content[at:end] = data.draw(st.binary(max_size=12))

    assert lost(bytes(content)) == 0


def paths(value: object, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a document."""
    found = [above]
    if isinstance(value, dict):
        for key, part in cast("dict[str, object]", value).items():
            found.extend(paths(part, (*above, key)))
    elif isinstance(value, list):
        for position, part in enumerate(cast("list[object]", value)):
            found.extend(paths(part, (*above, position)))
    return found


def mutated(document: dict[str, Any], data: st.DataObject) -> Any:
    """The document with one place removed, renamed, doubled or replaced."""
    *above, last = data.draw(st.sampled_from(paths(document)[1:]))
    here: Any = document
    for part in above:
        here = here[part]
    match data.draw(st.sampled_from(["remove", "replace", "wrap", "add", "deepen"])):
        case "remove":
            del here[last]
        case "replace":
            here[last] = data.draw(VALUES)
        case "wrap":
            here[last] = data.draw(st.sampled_from([[here[last]], {"a": here[last]}]))
        case "add" if isinstance(here, dict):
            here[data.draw(st.text(max_size=20))] = data.draw(VALUES)
        case "add":
            here.append(data.draw(VALUES))
        case _:
            for _ in range(data.draw(st.integers(1, 80))):
                here[last] = [here[last]]
    return document


@FUZZ
@given(st.data())
def test_a_document_with_changed_parts_gives_an_answer(data: st.DataObject) -> None:
    """Structure-aware: what is wrong is one field deep inside, of any type and size."""
    document = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    for _ in range(data.draw(st.integers(1, 3))):
        if len(paths(document)) > 1:
            document = mutated(document, data)
    as_yaml = data.draw(st.booleans())
    text = (
        yaml.safe_dump(document, allow_unicode=True)
        if as_yaml
        else json.dumps(document, ensure_ascii=False)
    )

    bundle = checked(text.encode("utf-8", "surrogatepass"))

    assert bundle.items or bundle.problems


@pytest.mark.slow
def test_attacks_stay_within_a_second_and_256_megabytes() -> None:
    """Files made to be slow or large, each within the bound."""
    run = subprocess.run(
        [sys.executable, str(ATTACKS)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )

    assert run.returncode == 0, run.stderr[-3000:]
    results = json.loads(run.stdout)
    assert len(results) >= 80
    assert {n: r for n, r in results.items() if r["seconds"] > 1.0} == {}
    assert {n: r for n, r in results.items() if r["megabytes"] > 256} == {}
    assert {n: r for n, r in results.items() if not r["problems"] and not r["items"]} == {}
