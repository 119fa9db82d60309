"""Reading: documents and catalogue give a topology, or problems and no topology."""

from pathlib import Path

import pytest

from topology import load, read

HERE = Path(__file__).parent
GOOD = HERE / "good.yaml"
EXAMPLES = Path(load.__file__).parent / "examples"


@pytest.mark.parametrize("path", [GOOD, EXAMPLES / "minimal", EXAMPLES / "two-zones"])
def test_good_documents_give_a_topology(path: Path) -> None:
    """What passes the checks compiles, and the clusters of the documents are in it."""
    reading = read.read([path])

    assert reading.problems == ()
    assert reading.topology is not None
    clusters = {item.name for item in reading.bundle.items if item.kind == "Cluster"}
    assert clusters == {ref.name for ref in reading.topology.resources if ref.kind == "cluster"}


def test_bytes_and_files_are_read_alike() -> None:
    """The same documents have the same digest, from disk or from memory."""
    from_file = read.read([GOOD]).topology
    from_memory = read.read_bytes({"body": GOOD.read_bytes()}).topology

    assert from_file is not None
    assert from_memory is not None
    assert from_file.digest == from_memory.digest


def test_one_problem_refuses_the_whole_set() -> None:
    """A second, good region is not applied when the first has a problem."""
    bad = GOOD.read_text("utf-8").replace("zones: [a]", "zones: [a, a]")

    reading = read.read_bytes({"good.yaml": GOOD.read_bytes(), "bad.yaml": bad.encode()})

    assert reading.topology is None
    assert "listed-twice" in {problem.code for problem in reading.problems}
    assert list(reading.problems) == sorted(set(reading.problems))


def test_a_bad_catalogue_refuses_the_whole_set(tmp_path: Path) -> None:
    """Good documents give no topology beside a component that cannot be read."""
    (tmp_path / "broken.yaml").write_text("kind: Component\n")

    reading = read.read([GOOD], [tmp_path])

    assert reading.topology is None
    assert {Path(problem.file).name for problem in reading.problems} == {"broken.yaml"}
