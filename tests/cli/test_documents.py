"""`fleetctl validate | render | plan --offline | diff --against | tree --offline`: files alone."""

from pathlib import Path

import pytest
import yaml

from tests.cli import programs
from tests.cli.programs import MINIMAL, ROOT, fleetctl

REGION = (ROOT / MINIMAL / "region.yaml").read_text("utf-8")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A set with two problems in two files."""
    (tmp_path / "region.yaml").write_text(REGION.replace("zones:", "zonse:"), "utf-8")
    (tmp_path / "other.yaml").write_text("kind: Cluster\nmetadata: {name: x}\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("validate.txt", ("validate", MINIMAL)),
        ("render.txt", ("render", MINIMAL)),
        ("plan.txt", ("plan", "--offline", MINIMAL)),
        ("tree.txt", ("tree", "--offline", "--documents", MINIMAL)),
    ],
)
def test_the_minimal_example(name: str, args: tuple[str, ...]) -> None:
    """What a newcomer sees first is exactly this, on stdout alone."""
    ran = fleetctl(*args)
    assert (ran.code, ran.err) == (0, "")
    programs.golden(name, ran.out)


@pytest.mark.parametrize(("form", "first"), [("dot", "digraph"), ("mermaid", "flowchart")])
def test_drawings(form: str, first: str) -> None:
    """A drawing starts as its readers expect and names the clusters."""
    ran = fleetctl("render", MINIMAL, "-o", form)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(first)
    assert "cluster/hv" in ran.out


def test_no_line_ends_in_spaces() -> None:
    """Answers can be pasted anywhere."""
    for command in (("validate",), ("render",), ("plan", "--offline")):
        out = fleetctl(*command, MINIMAL).out
        assert [line for line in out.splitlines() if line != line.rstrip()] == []


def test_problems_go_to_stderr(broken: Path) -> None:
    """Every complaint at once, one a line, FILE:LINE:COL first, and exit code 1."""
    ran = fleetctl("validate", str(broken))
    assert (ran.code, ran.out) == (1, "")
    *problems, last = ran.err.splitlines()
    assert any(line.startswith(f"{broken}/region.yaml:") for line in problems)
    assert any(line.startswith(f"{broken}/other.yaml:1:") for line in problems)
    assert "zonse" in ran.err
    assert last == f"{len(problems)} problems in 2 files; nothing is taken from a set that has one"


@pytest.mark.parametrize("command", ["validate", "render", "plan"])
def test_problems_as_json(broken: Path, command: str) -> None:
    """With -o json the problems are the answer: one document on stdout, nothing on stderr."""
    ran = fleetctl(command, str(broken), "-o", "json", "--offline")
    assert (ran.code, ran.err) == (1, "")
    keys = {"file", "line", "column", "kind", "name", "field", "message", "hint", "code"}
    assert {frozenset(problem) for problem in ran.json["problems"]} == {frozenset(keys)}


def test_a_path_that_is_not_there() -> None:
    """A missing file is a problem like any other."""
    ran = fleetctl("validate", "nowhere.yaml")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("nowhere.yaml:1:1: ")


def test_json_is_one_document() -> None:
    """`validate -o json` of good documents has no problems and the sums."""
    ran = fleetctl("-o", "json", "validate", MINIMAL)
    assert ran.json["problems"] == []
    assert ran.json["summary"]["regions"][0]["clusters"]["hypervisor"] == 1
    assert ran.json["summary"]["resources"] > 100


def test_yaml_says_the_same_as_json() -> None:
    """`-o yaml` and `-o json` are the same data."""
    as_yaml = yaml.safe_load(fleetctl("render", MINIMAL, "-o", "yaml").out)
    assert as_yaml == fleetctl("render", MINIMAL, "-o", "json").json
    assert {"kind", "name", "needs", "spec"} <= set(as_yaml["nodes"][0])


def test_options_stand_before_or_after() -> None:
    """Global options mean the same on both sides of the command."""
    after = fleetctl("tree", "--offline", "--documents", MINIMAL, "-o", "json")
    before = fleetctl("--offline", "--documents", MINIMAL, "-o", "json", "tree")
    assert after.code == before.code == 0
    assert after.out == before.out


def test_several_folders_after_one_flag(tmp_path: Path) -> None:
    """`--documents A B` before the command takes both."""
    first, second, *rest = REGION.split("---\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "one.yaml").write_text(first, "utf-8")
    (tmp_path / "b" / "two.yaml").write_text("---\n".join([second, *rest]), "utf-8")
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    ran = fleetctl("--documents", *folders, "--offline", "tree", "-o", "json")
    assert ran.code == 0
    assert [one["region"] for one in ran.json["regions"]] == ["eu-1"]


def test_plan_exit_codes() -> None:
    """`--exit-code` says 3 when there is something to do; without it the answer is good."""
    assert fleetctl("plan", "--offline", MINIMAL).code == 0
    ran = fleetctl("plan", "--offline", MINIMAL, "--exit-code", "-o", "json")
    assert ran.code == 3
    waves = ran.json["waves"]
    refs = [step["ref"] for wave in waves for step in wave["steps"]]
    assert (
        len(refs)
        == len(set(refs))
        == fleetctl("validate", MINIMAL, "-o", "json").json["summary"]["resources"]
    )
    assert refs[-1] == "region/eu-1"


def test_plan_of_one_region() -> None:
    """`--region` keeps one region, and a region that is not there is a bad answer."""
    assert fleetctl("plan", "--offline", MINIMAL, "--region", "eu-1").code == 0
    ran = fleetctl("plan", "--offline", MINIMAL, "--region", "eu-9")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "fleetctl: there is no region eu-9 in these documents\n"


def test_diff_against_older_documents(tmp_path: Path) -> None:
    """A changed version is shown with what it does; `--exit-code` says that there is something."""
    older = tmp_path / "region.yaml"
    older.write_text(REGION.replace('release: "2025.2"', 'release: "2025.1"'), "utf-8")
    ran = fleetctl("diff", MINIMAL, "--against", str(older), "--exit-code")
    assert (ran.code, ran.err) == (3, "")
    assert any(line.startswith("~ cloud/prod: release") for line in ran.out.splitlines())
    shape = fleetctl("diff", MINIMAL, "--against", str(older), "-o", "json").json
    assert "cloud/prod" in [one["ref"] for one in shape["changed"]]
    assert (shape["added"], shape["removed"]) == ([], [])


def test_diff_of_the_same() -> None:
    """Equal documents have no difference."""
    ran = fleetctl("diff", MINIMAL, "--against", MINIMAL, "--exit-code")
    assert (ran.code, ran.out, ran.err) == (0, "No difference.\n", "")


def test_removal_is_an_orphan(tmp_path: Path) -> None:
    """What disappears from the documents is called an orphan, not a deletion."""
    fewer = tmp_path / "region.yaml"
    documents = [one for one in REGION.split("---\n") if "kind: Cloud\n" not in one]
    fewer.write_text("---\n".join(documents), "utf-8")
    ran = fleetctl("diff", str(fewer), "--against", MINIMAL)
    assert ran.code == 0
    assert "orphan" in ran.out
    assert "delete" not in ran.out
