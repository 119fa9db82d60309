"""From files to documents, and from mistakes to sentences."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from topology import files, load
from topology.documents import fields
from topology.documents.cluster import Cluster
from topology.documents.kinds import KINDS

EXAMPLE = (Path(__file__).parent / "load_example.yaml").read_bytes()
HEAD = "apiVersion: fleet.c5c3.io/v1alpha1\nkind: {}\nmetadata: {{name: x}}\nspec:\n"
CLUSTER = HEAD.format("Cluster") + "  region: eu-1\n  role: storage\n"
WORKER = "  workers: [{name: w, pool: p, minimum: 1, maximum: 1}]\n"
REGION = (
    HEAD.format("Region")
    + """\
  zones: [a]
  garden: {access: {env: G}, project: cobalt, cloudProfile: metal}
  metal: {provider: ironcore, access: {env: M}}
  git: {url: "https://git.example/x.git"}
"""
)
POOL = HEAD.format("ServerPool") + "  region: eu-1\n  class: c\n  access: {env: B}\n"
FLOW = HEAD.format("CredentialFlow") + "  region: eu-1\n  path: a/b\n"
TARGETS = "  targets: [{cluster: hv, namespace: n, secret: s}]\n"
ROLLOUT = HEAD.format("Rollout") + '  what: {kubernetes: {version: "1.33.4"}}\n'
MAINTENANCE = HEAD.format("Maintenance") + "  region: eu-1\n  reason: new fans\n"


def complaints(text: str) -> list[str]:
    """The problems of one file as an operator sees them."""
    return [str(problem) for problem in load.load_bytes({"f.yaml": text.encode()}).problems]


def test_the_example_region_loads() -> None:
    """The region of the public contract gives four documents, each with its place."""
    bundle = load.load_bytes({"docs/eu-1.yaml": EXAMPLE})

    assert bundle.problems == ()
    assert [(item.kind, item.name, item.index) for item in bundle.items] == [
        ("Region", "eu-1", 0),
        ("ServerPool", "compute", 1),
        ("Cluster", "hv", 2),
        ("Cloud", "prod", 3),
    ]
    assert {Path("docs")} == {item.folder for item in bundle.items}


def written_down() -> list[tuple[str, str]]:
    """The cases of load_complaints.txt: a file, then `>>>` and the complaint it gets."""
    found = (Path(__file__).parent / "load_complaints.txt").read_text()
    cases = re.split(r"(?m)^>>> (.*)\n\n?", found)[:-1]
    return list(zip(cases[::2], cases[1::2], strict=True))


@pytest.mark.parametrize(("text", "complaint"), written_down())
def test_a_complaint_says_where_what_and_what_to_do(text: str, complaint: str) -> None:
    """One mistake gives one sentence, at the exact place."""
    assert [complaint] == complaints(text)


@pytest.mark.parametrize(
    "text",
    [
        FLOW + TARGETS + "  source: {cephClient: {cluster: st, client: nova}}\n",
        FLOW + TARGETS + "  source: {generate: {alphabet: hex}}\n"
        "  rotation: {every: 90d, overlap: 7d}\n",
        ROLLOUT + "  waves: [{name: a, clusters: [c], atOnce: 2, soak: 2h}]\n"
        "  failureBudget: 5%\n  gates: [{kind: approval, before: a}, {kind: healthy}]\n",
        HEAD.format("Rollout") + "  what: {image: {name: g, version: '1'}}\n"
        "  waves: [{name: a, clusters: [c]}]\n  onBreach: rollBack\n",
        MAINTENANCE + "  zone: a\n  from: 2026-03-01T22:00+01:00\n  to: 2026-03-02T04:00Z\n",
        REGION + "  windows: [{days: [Sat], from: 22:00, to: 24:00}]\n"
        "  freezes: [{from: 2026-12-20, to: 2027-01-06, reason: holidays}]\n",
    ],
)
def test_the_other_documents_load(text: str) -> None:
    """What is right gives no problem, also without quotes where YAML would guess."""
    bundle = load.load_bytes({"f.yaml": text.encode()})

    assert (bundle.problems, len(bundle.items)) == ((), 1)


SECRETS = [
    "access: hunter2-secret",
    "access: {hunter2-secret}",
    "access: [hunter2-secret]",
    "access: {password: hunter2-secret}",
    "access: {file: [hunter2-secret]}",
    "access: {openbao: hunter2-secret}",
    "access: {secret: {cluster: 'hunter2-secret ', namespace: N, name: n}}",
    "access: {secret: {cluster: c, namespace: n, name: n, key: {hunter2-secret: 1}}}",
    "access: {env: !hunter2-secret}",
    "access: {env: *hunter2-secret}",
    "access: {env: !!int hunter2-secret}",
    'access: {env: "hunter2-secret\\0"}',
    "access: {env: hunter2-secret",
]


@pytest.mark.parametrize("access", SECRETS)
def test_what_may_be_secret_is_never_shown(access: str) -> None:
    """A secret written where it should be named stays out of every complaint."""
    text = HEAD.format("Cluster") + f"  region: r\n  role: storage\n  adopted: {{{access}}}\n"

    found = complaints(text)

    assert found
    assert not [line for line in found if "hunter2" in line]


def test_long_and_odd_values_are_cut_and_escaped() -> None:
    """A megabyte of text, or a terminal escape, does not reach the terminal."""
    long = CLUSTER.replace("storage", "x" * 1_000_000) + WORKER
    odd = CLUSTER.replace("storage", "'\u202e\u2028ä'") + WORKER

    assert max(len(line) for line in complaints(long)) < 300
    assert all(line.isascii() for line in complaints(odd))


def test_all_problems_come_at_once() -> None:
    """Independent mistakes in several documents of several files are all told, in order."""
    bundle = load.load_bytes(
        {
            "b.yaml": (
                CLUSTER + "  wrong: 1\n  alsoWrong: 2\n---\n" + REGION + "  x: 1\n"
            ).encode(),
            "a.yaml": b"a: [\n",
        }
    )

    assert [p.file for p in bundle.problems] == ["a.yaml", "b.yaml", "b.yaml", "b.yaml"]
    assert [p.code for p in bundle.problems] == [
        "yaml-syntax",
        "unknown-field",
        "unknown-field",
        "unknown-field",
    ]
    assert bundle.refused == (("Cluster", "x"), ("Region", "x"), ("", ""))


def test_a_document_with_a_harmless_fault_is_still_there_for_others() -> None:
    """A key given twice is a problem, but the Region exists for those who name it."""
    bundle = load.load_bytes({"f.yaml": (REGION + "  zones: [b]\n").encode()})

    assert [problem.code for problem in bundle.problems] == ["yaml-duplicate-key"]
    assert [(item.kind, item.name) for item in bundle.items] == [("Region", "x")]


def test_many_problems_are_cut_with_a_word() -> None:
    """After a hundred the rest is announced, not listed."""
    text = CLUSTER + WORKER + "".join(f"  unknown{n}: 1\n" for n in range(500))

    problems = load.load_bytes({"f.yaml": text.encode()}).problems

    assert len(problems) == load.PROBLEMS_MAX + 1
    assert problems[0].code == "more-problems"


def test_checks_complain_at_a_place() -> None:
    """`Bundle.complain` fills in file, line, column, kind, name and the dotted field."""
    bundle = load.load_bytes({"f.yaml": (CLUSTER + WORKER).encode()})
    (item,) = bundle.items
    path = ("spec", "workers", 0, "pool")

    problem = bundle.complain(item, path, code="unknown-pool", message="no pool p", hint="add it")
    at_key = bundle.complain(item, path, code="c", message="m", at_key=True)

    assert str(problem) == "f.yaml:7:29: Cluster/x: spec.workers[0].pool: no pool p; add it"
    assert (at_key.line, at_key.column) == (7, 23)
    assert {"file", "line", "column", "kind", "name", "field", "message", "hint", "code"} == set(
        problem.as_json()
    )


def test_a_path_is_shown_as_people_write_it() -> None:
    """Dots for fields, brackets for positions and for keys that are no plain words."""
    assert (
        load.show_path(("spec", "workers", 0, "labels", "a.b/c"))
        == "spec.workers[0].labels['a.b/c']"
    )
    assert load.show_path(("a",) * 100).endswith("...")


def test_directories_are_read_with_everything_below(tmp_path: Path) -> None:
    """Sorted, *.yaml only, hidden names left out, each file once however often it is named."""
    for name in ("b.yaml", "a/z.yaml", "a/a.yaml", ".git/x.yaml", "..data/b.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(EXAMPLE)
    (tmp_path / "compose.yml").write_text("services: {}\n")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "same.yaml").symlink_to(tmp_path / "b.yaml")

    bundle = load.load([tmp_path, tmp_path / "b.yaml", tmp_path / "a"])

    assert bundle.problems == ()
    names = [str(Path(name).relative_to(tmp_path)) for name in bundle.sources]
    assert names == ["a/a.yaml", "a/same.yaml", "a/z.yaml"]
    assert len(bundle.items) == 12
    assert tmp_path / "a" == bundle.items[0].folder


def test_a_document_that_would_be_passed_over_is_told(tmp_path: Path) -> None:
    """A document in a `.yml` or `.YAML` file of a directory is not missing in silence; given by
    name, such a file is read."""
    for name in ("a.yaml", "b.yml", "deep/C.YAML"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(EXAMPLE)

    told = [(p.file, p.code, p.hint) for p in load.load([tmp_path, tmp_path]).problems]

    assert told == [
        (str(tmp_path / "b.yml"), "file-misnamed", "rename it to b.yaml"),
        (str(tmp_path / "deep" / "C.YAML"), "file-misnamed", "rename it to C.yaml"),
    ]
    assert load.load([tmp_path / "b.yml"]).items


def test_a_folder_that_cannot_be_read_is_named_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One closed sub-directory hides neither its own name nor the other files."""
    for name in ("a.yaml", "closed/b.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(EXAMPLE)
    listed = Path.iterdir

    def iterdir(self: Path) -> Iterator[Path]:
        if self.name == "closed":
            raise PermissionError(13, "Permission denied")
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    bundle = load.load([tmp_path])

    assert len(bundle.items) == 4
    assert [str(problem) for problem in bundle.problems] == [
        f"{tmp_path}/closed:1:1: cannot be read: permission denied; check its permissions"
    ]


def test_a_folder_whose_files_cannot_be_asked_about_is_told_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names may be listed in a folder that may not be entered: no traceback, a sentence each."""
    (tmp_path / "a.yaml").write_bytes(EXAMPLE)
    stat = Path.stat

    def closed(self: Path, **given: bool) -> os.stat_result:
        if self.parent == tmp_path:
            raise PermissionError(13, "Permission denied")
        return stat(self, **given)

    monkeypatch.setattr(Path, "stat", closed)

    assert [str(problem) for problem in load.load([tmp_path]).problems] == [
        f"{tmp_path}/a.yaml:1:1: cannot be read: permission denied; check its permissions"
    ]


def test_links_that_lead_back_are_followed_once(tmp_path: Path) -> None:
    """Two of them in each folder would otherwise be a walk without end."""
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_bytes(EXAMPLE)
        for link in ("up", "again"):
            (tmp_path / name / link).symlink_to(tmp_path)

    def never(folder: Path, cause: OSError) -> None:
        raise AssertionError(folder, cause)

    assert len(list(files.below(tmp_path, never))) == 3


def test_a_file_named_as_secret_is_not_a_document(tmp_path: Path) -> None:
    """`access: {file: bmc.yaml}` is relative to the document, so the file often lies beside it. It
    is neither complained about nor kept; a stranger beside it is."""
    pool = POOL.replace("{env: B}", "{file: bmc.yaml}")
    servers = "  servers: [{name: s, bmc: 192.0.2.1, zone: a}]\n"
    (tmp_path / "pool.yaml").write_text(pool + servers)
    (tmp_path / "bmc.yaml").write_text("username: admin\npassword: k4n4ry\n")
    (tmp_path / "stray.yaml").write_text("username: admin\n")

    for paths in ([tmp_path], sorted(tmp_path.iterdir())):
        bundle = load.load(paths)
        assert {Path(problem.file).name for problem in bundle.problems} == {"stray.yaml"}
        assert not [data for data in bundle.sources.values() if b"k4n4ry" in data]


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n---\n", "null\n"])
def test_a_set_without_a_document_is_refused(tmp_path: Path, text: str) -> None:
    """An empty file is a slip of the hand, not an empty fleet; beside others it does no harm."""
    (tmp_path / "a.yaml").write_text(text)

    assert [(p.file, p.code) for p in load.load([tmp_path]).problems] == [
        (str(tmp_path / "a.yaml"), "no-documents")
    ]
    (tmp_path / "b.yaml").write_bytes(EXAMPLE)
    assert load.load([tmp_path]).problems == ()


def test_a_link_to_nothing_is_told_as_one(tmp_path: Path) -> None:
    """Also a link that leads to itself."""
    (tmp_path / "a.yaml").symlink_to("gone.yaml")
    (tmp_path / "b.yaml").symlink_to("b.yaml")

    assert [p.message for p in load.load([tmp_path]).problems] == ["this is a link to nothing"] * 2


def test_a_wrong_version_hides_no_other_fault() -> None:
    """The fields are looked at as well, so that one round of repairs is enough."""
    text = EXAMPLE.replace(b"v1alpha1", b"v1", 1).replace(b"zones: [a, b]", b"zones: [A, b]", 1)

    told = [(p.line, p.code) for p in load.load_bytes({"f.yaml": text}).problems]

    assert told == [(1, "wrong-api-version"), (5, "name-invalid")]


def test_a_namesake_of_another_group_is_not_read() -> None:
    """A Cluster of Cluster API gets one complaint, not one for each of its fields."""
    text = (
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: a}\nspec: {b: 1}\n"
    )

    (problem,) = load.load_bytes({"f.yaml": text.encode()}).problems

    assert (problem.field, problem.code) == ("apiVersion", "wrong-api-version")


def test_names_are_shown_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path stays relative in a complaint."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.yaml").write_text("a")
    monkeypatch.chdir(tmp_path)

    assert [p.file for p in load.load([Path("docs")]).problems] == ["docs/a.yaml"]
    assert [p.file for p in load.load([Path("docs/a.yaml")]).problems] == ["docs/a.yaml"]


def test_paths_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    """Missing, empty, not a file, not a name: a sentence each, no traceback."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    bundle = load.load(
        [tmp_path / "none", tmp_path / "empty", Path("/dev/null"), Path("a\0b"), tmp_path / "loop"]
    )

    assert sorted(
        ["path-missing", "no-documents", "path-not-a-file", "path-missing", "path-missing"]
    ) == sorted(problem.code for problem in bundle.problems)
    assert all(problem.hint for problem in bundle.problems)
    assert all(str(problem).isprintable() for problem in bundle.problems)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    """The limit holds for files as it does for bytes."""
    (tmp_path / "a.yaml").write_bytes(b"#" * (6 * 1024 * 1024))

    bundle = load.load([tmp_path])

    assert [problem.code for problem in bundle.problems] == ["yaml-too-large"]


def test_other_kinds_can_be_loaded_with_their_own_table() -> None:
    """The catalogue uses the same reader with its own kinds."""
    bundle = load.load_bytes({"f.yaml": REGION.encode()}, kinds={"Cluster": Cluster})

    assert [problem.code for problem in bundle.problems] == ["unknown-kind"]
    assert bundle.problems[0].hint == "it describes a fleet: give it among the documents"


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_description(kind: str) -> None:
    """What a user fills in is explained, down to the last field."""
    undescribed = [
        path
        for path, field in fields.everything(KINDS[kind])
        if not (field.description or "").strip()
    ]

    assert undescribed == []
