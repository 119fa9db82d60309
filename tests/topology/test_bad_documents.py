"""
The corpus of bad documents: each set beside the exact complaints it must give.

A set is `bad/<name>.yaml` or the directory `bad/<name>/`; its complaints stand in
`bad/<name>.expected`, one per line, sorted, with file names relative to `bad/`. What cannot be
kept in a repository (huge files, files that cannot be read) is made here.

`python tests/topology/test_bad_documents.py` writes all complaints anew; read the difference
aloud before you keep it.
"""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from topology import complaints, load
from topology.checks import run
from topology.documents import region
from topology.problem import Problem

BAD = Path(__file__).parent / "bad"
SOURCES = Path(load.__file__).parent
SETS = sorted(path.stem for path in BAD.glob("*.expected"))
LINE = re.compile(r"[^:]+:\d+:\d+: ([^ ]+/[^ ]+: )?([^ ]+: )?.+; .+")


def problems_of(name: str) -> list[Problem]:
    """All complaints about one set, seen from inside `bad/`."""
    folder = Path(name)
    bundle = load.load([folder if folder.is_dir() else Path(f"{name}.yaml")])
    return sorted([*bundle.problems, *run.check(bundle)])


@pytest.mark.parametrize("name", SETS)
def test_a_bad_set_gives_exactly_its_complaints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every problem of a set is told, in order, word by word, and nothing else is."""
    monkeypatch.chdir(BAD)

    told = [str(problem) for problem in problems_of(name)]

    assert (BAD / f"{name}.expected").read_text("utf-8").splitlines() == told


def test_the_corpus_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document has its complaints beside it, and there are at least 250 sets."""
    monkeypatch.chdir(BAD)
    subjects = {path.stem if path.is_file() else path.name for path in Path().iterdir()}

    assert len(SETS) >= 250
    assert subjects == set(SETS)


def test_every_complaint_says_where_what_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A complaint has a place, a message, a hint and a code, in the form that scripts rely on."""
    monkeypatch.chdir(BAD)

    for name in SETS:
        for problem in problems_of(name):
            assert problem.message, problem
            assert problem.hint, problem
            assert problem.code, problem
            assert LINE.fullmatch(str(problem)), problem


def test_no_complaint_shows_a_secret() -> None:
    """The password that some of the sets write into their documents is in no complaint."""
    written = [path for path in BAD.glob("*.yaml") if b"hunter2" in path.read_bytes()]

    assert len(written) >= 4
    for path in BAD.glob("*.expected"):
        assert "hunter2" not in path.read_text("utf-8"), path


def test_every_code_is_hit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There is no kind of complaint that the corpus does not show."""
    monkeypatch.chdir(BAD)
    hit = {problem.code for name in SETS for problem in problems_of(name)}
    hit |= {*made(tmp_path), *half_a_character()}

    assert sorted(codes_in_source() - hit) == []


def made(folder: Path) -> Iterator[str]:
    """Codes of the complaints about what cannot be kept in a repository."""
    head = "apiVersion: fleet.c5c3.io/v1alpha1\nkind: Region\nmetadata: {name: eu-1}\nspec:\n"
    (folder / "large.yaml").write_text("#" * (5 * 1024 * 1024 + 1))
    (folder / "many.yaml").write_text(f"{head}  zones: [{'a, ' * 200_000}]\n")
    (folder / "wrong.yaml").write_text(head + "".join(f"  field-{n}: 1\n" for n in range(200)))
    (folder / "empty").mkdir()
    paths = [folder / name for name in ("large.yaml", "many.yaml", "wrong.yaml", "empty")]
    paths += [folder / "missing.yaml", Path("/dev/null"), folder / ("long" * 100)]
    for problem in load.load(paths).problems:
        assert problem.hint, problem
        yield problem.code


def half_a_character() -> Iterator[str]:
    """Half of a surrogate pair: no YAML parser lets it through, the models refuse it too."""
    value = {"url": "https://git.example/\ud800"}
    with pytest.raises(ValidationError) as caught:
        region.Git.model_validate(value)
    for complaint in complaints.translate(region.Git, value, caught.value, 10):
        assert complaint.hint, complaint
        yield complaint.code


def codes_in_source() -> set[str]:
    """All codes that the sources can give, wherever one is written."""
    files = [SOURCES / "load.py", SOURCES / "complaints.py", *SOURCES.glob("yaml*.py")]
    files += [*SOURCES.glob("documents/*.py"), *SOURCES.glob("checks/*.py")]
    return {code for file in files for code in codes_of(ast.parse(file.read_text("utf-8")))}


CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
SPEAKERS = {"complain", "_complaint", "_fault", "_broken", "_add", "_whole_file"}


def codes_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="code", value=value):
                yield from texts(value)
            case ast.Assign(targets=[ast.Name(id="code")], value=value):
                yield from texts(value)
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id="code"), *_])], value=value):
                yield from texts(value)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SPEAKERS:
                for argument in node.args[:2]:
                    yield from texts(argument)
            case _:
                pass


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        found = node.value if isinstance(node, ast.Constant) else None
        if isinstance(found, str) and CODE.fullmatch(found):
            yield found


def write_anew() -> None:
    os.chdir(BAD)
    for name in sorted({path.stem for path in Path().iterdir()}):
        told = "".join(f"{problem}\n" for problem in problems_of(name))
        Path(f"{name}.expected").write_text(told, "utf-8")


if __name__ == "__main__":
    write_anew()
