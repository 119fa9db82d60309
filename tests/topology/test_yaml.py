"""Reading YAML: values, refusals with their places, and finding the place of a path."""

import pytest

from topology import yamlevents, yamlplace, yamltree
from topology.yamltree import YamlRefused


def refused(data: bytes) -> list[tuple[int, int, str]]:
    """Line, column and code of each fault."""
    return [(f.line, f.column, f.code) for f in yamltree.read_all(data).faults]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("", None),
        ("~", None),
        ("null", None),
        ("nUll", "nUll"),
        ("0", 0),
        ("-12", -12),
        ("+5", 5),
        ("0x1F", 31),
        ("0o17", 15),
        ("0644", "0644"),
        ("22:00", "22:00"),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1877.4.0", "1877.4.0"),
        ("1.33", 1.33),
        ("-", None),
        ("-x", "-x"),
        ("2026-12-20", "2026-12-20"),
        ("2026-12-20T18:00:00Z", "2026-12-20T18:00:00Z"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!float 5", 5.0),
        ("! 5", "5"),
        ("999999999999999999", 999999999999999999),
        ('"a\\tb\\nc"', "a\tb\nc"),
    ],
)
def test_plain_text_becomes_a_value_only_where_nobody_can_doubt_it(
    text: str, value: object
) -> None:
    """Booleans are true and false, numbers are plain numbers, everything else stays text."""
    if text == "-":
        assert yamltree.read(b"-") == [[None]]
        return
    (document,) = yamltree.read(f"a: {text}\n".encode())

    assert document == {"a": value}
    assert isinstance(document, dict)
    read: object = document["a"]
    assert (float if isinstance(read, float) else type(read)) is type(value)


@pytest.mark.parametrize("text", ["1.30", "1e3", "0.10", "-1.0"])
def test_a_number_with_a_fraction_remembers_how_it_was_written(text: str) -> None:
    """`1.30` is not shown as 1.3, which would be another version; it still counts as a number."""
    (document,) = yamltree.read(f"a: {text}\n".encode())

    assert isinstance(document, dict)
    assert f"{document['a']}" == text
    assert document["a"] == float(text)


def test_empty_documents_are_skipped() -> None:
    """Comments, `---` twice and explicit nulls are no documents."""
    data = b"# nothing\n---\n---\na: 1\n---\n~\n---\n!!null\n---\nb: 2\n...\n"

    assert yamltree.read(data) == [{"a": 1}, {"b": 2}]
    assert yamlplace.locate(b"---\n---\n\n---\na: 1", 0, ("a",)) == (5, 4)


def test_an_alias_shares_its_value() -> None:
    """A short file with a few aliases reads as if it were written out."""
    assert yamltree.read(b"a: &n {x: 1}\nb: [*n]\n") == [{"a": {"x": 1}, "b": [{"x": 1}]}]


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    """Editors on some systems write one; columns do not count it."""
    data = b"\xef\xbb\xbfa: 1\na: 2"

    assert refused(data) == [(2, 1, "yaml-duplicate-key")]
    assert yamltree.read(b"\xef\xbb\xbfa: 1") == [{"a": 1}]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"a: 1\nb: 2\na: 3\n", (3, 1, "yaml-duplicate-key")),
        (b"a: {b: 1, 'b': 2}\n", (1, 11, "yaml-duplicate-key")),
        (b"a:\n  1: x\n", (2, 3, "yaml-key-not-text")),
        (b"true: x\n", (1, 1, "yaml-key-not-text")),
        (b"? [a]\n: x\n", (1, 3, "yaml-key-not-text")),
        (b"{a: {? {b: 1} : 2}}\n", (1, 8, "yaml-key-not-text")),
        (b"a: &x 1\n*x : 2\n", (2, 1, "yaml-key-not-text")),
        (b"a: &x {b: 1}\nc:\n  <<: *x\n", (3, 3, "yaml-merge-key")),
        (b"a: !!python/object/apply:os.system [ls]\n", (1, 4, "yaml-tag")),
        (b"a: !mine x\n", (1, 4, "yaml-tag")),
        (b"a: !!int x\n", (1, 4, "yaml-tag")),
        (b"a: !!set {x}\n", (1, 4, "yaml-tag")),
        (b"%TAG !e! tag:example,2000:\n---\na: 1\n", (1, 1, "yaml-tag")),
        (b"a: &x [*x]\n", (1, 8, "yaml-alias-of-itself")),
        (b"a: *x\n", (1, 4, "yaml-alias-unknown")),
        (b"a: &x 1\n---\nb: *x\n", (3, 4, "yaml-alias-unknown")),
        (b"a: .inf\n", (1, 4, "yaml-number")),
        (b"a: -.INF\n", (1, 4, "yaml-number")),
        (b"a: .nan\n", (1, 4, "yaml-number")),
        (b"a: 1e999\n", (1, 4, "yaml-number")),
        (b"a: " + b"9" * 5001, (1, 4, "yaml-number")),
        (b"a: 0x" + b"f" * 5001, (1, 4, "yaml-number")),
        (b"a: \xff\n", (1, 4, "yaml-not-utf8")),
        (b"a: 1\nb: \xc3\xa4\xed\xa0\x80\n", (2, 5, "yaml-not-utf8")),
        ("a: 1".encode("utf-16"), (1, 1, "yaml-not-utf8")),
        ("a: 1".encode("utf-16-be"), (1, 1, "yaml-not-utf8")),
        ("a: 1".encode("utf-32"), (1, 1, "yaml-not-utf8")),
        (b"abcd: 1\nb: \x07\n", (2, 4, "yaml-character")),
        (b"abcd: 1\nb: \x00\n", (2, 4, "yaml-character")),
        (b'a: "x\\0"\n', (1, 4, "yaml-character")),
        (b'"\\e": 1\n', (1, 1, "yaml-character")),
        (b"a: b: c\n", (1, 5, "yaml-syntax")),
        (b"a: [1, 2\n", (2, 1, "yaml-syntax")),
        (b"a:\n\t- b\n", (2, 1, "yaml-syntax")),
        (b"a: 'x\n", (2, 1, "yaml-syntax")),
        (b"a: @x\n", (1, 4, "yaml-syntax")),
        (b"a: 1\n b: 2\n", (2, 3, "yaml-syntax")),
        (b"- 1\na: 2\n", (2, 1, "yaml-syntax")),
        (b'a: "\\q"\n', (1, 5, "yaml-syntax")),
        (b"a: &\n", (1, 5, "yaml-syntax")),
    ],
)
def test_what_is_refused_has_its_place(data: bytes, fault: tuple[int, int, str]) -> None:
    """Each refusal names line, column and a stable code, and says what to do."""
    reading = yamltree.read_all(data)

    assert fault in [(f.line, f.column, f.code) for f in reading.faults]
    assert all(f.message and f.hint for f in reading.faults)
    with pytest.raises(YamlRefused):
        yamltree.read(data)


def test_several_faults_are_told_at_once() -> None:
    """A duplicate key does not hide the next one, nor the document after it."""
    reading = yamltree.read_all(b"a: 1\na: 2\nb: {c: 1, c: 2}\n---\nd: 4\n")

    assert [fault.path for fault in reading.faults] == [("a",), ("b", "c")]
    assert reading.documents == [{"a": 1, "b": {"c": 1}}, {"d": 4}]


def test_a_document_with_a_part_missing_is_marked() -> None:
    """Where a value could not be read, further complaints about that document would mislead."""
    reading = yamltree.read_all(b"a: 1\n---\nb: !x 1\n---\nc: 3\n")

    assert frozenset({1}) == reading.broken
    assert reading.complete


def test_a_stop_leaves_what_came_before() -> None:
    """A syntax error ends the reading, but not the documents above it."""
    reading = yamltree.read_all(b"a: 1\n---\nb: [\n")

    assert reading.documents == [{"a": 1}]
    assert not reading.complete


def test_depth_has_a_limit() -> None:
    """Sixty-four levels are read, sixty-five are not, through aliases as well."""
    deep = yamltree.DEPTH_MAX

    assert yamltree.read(b"[" * deep + b"]" * deep)
    assert [(1, deep + 1, "yaml-too-deep")] == refused(b"[" * (deep + 1))
    half = deep // 2
    chain = b"a: &a " + b"[" * half + b"]" * half + b"\nb: &b " + b"[" * half + b"*a" + b"]" * half
    assert [(2, 7 + half, "yaml-too-deep")] == refused(chain)


def test_aliases_have_a_limit() -> None:
    """A hundred are read; the next one is refused where it stands."""
    most = yamltree.ALIASES_MAX

    assert yamltree.read(b"a: &a 1\nb: [" + b"*a," * most + b"]")
    assert [(2, 5 + 3 * most, "yaml-too-many-aliases")] == refused(
        b"a: &a 1\nb: [" + b"*a," * (most + 1) + b"]"
    )


def test_an_alias_bomb_counts_as_if_written_out() -> None:
    """Nine aliases of nine aliases of nine: few bytes, too many values."""
    lines = [b"a0: &a0 [" + b"1," * 9 + b"]"]
    lines += [b"a%d: &a%d [" % (n, n) + b"*a%d," % (n - 1) * 9 + b"]" for n in range(1, 8)]

    assert "yaml-too-many-values" in [code for _, _, code in refused(b"\n".join(lines))]


def test_values_have_a_limit() -> None:
    """Keys, values and both ends of lists and mappings count."""
    room = yamltree.VALUES_MAX - 4

    assert yamltree.read(b"[" + b"a," * room + b"]")
    assert [c for _, _, c in refused(b"[" + b"a," * (room + 1) + b"]")] == ["yaml-too-many-values"]
    assert [c for _, _, c in refused(b"---\n" * room)] == ["yaml-too-many-values"]


def test_bytes_have_a_limit() -> None:
    """Five MiB and not one more."""
    most = yamlevents.BYTES_MAX

    assert yamltree.read(b"a: " + b"x" * (most - 3))
    assert refused(b"a: " + b"x" * (most - 2)) == [(1, 1, "yaml-too-large")]


def test_many_faults_end_the_reading() -> None:
    """Nobody reads thousands of complaints about one file."""
    assert len(refused(b"a: 1\n" * 1000)) == yamltree.FAULTS_MAX


TREE = b"""\
# a comment
a:
  b: [x, {c: 1, d: 2}]
  e: >-
    folded
"f": &f {g: h}
i: *f
---
j: k
"""


@pytest.mark.parametrize(
    ("document", "path", "key", "place"),
    [
        (0, (), False, (2, 1)),
        (0, ("a",), False, (3, 3)),
        (0, ("a",), True, (2, 1)),
        (0, ("a", "b", 0), False, (3, 7)),
        (0, ("a", "b", 1, "d"), False, (3, 20)),
        (0, ("a", "b", 1, "d"), True, (3, 17)),
        (0, ("a", "b", 1, "missing"), False, (3, 10)),
        (0, ("a", "b", 7), False, (3, 6)),
        (0, ("a", "e"), False, (4, 6)),
        (0, ("a", "e", "below", 5), False, (4, 6)),
        (0, ("f", "g"), True, (6, 10)),
        (0, ("i",), False, (7, 4)),
        (0, ("i", "g"), False, (6, 13)),
        (1, ("j",), False, (9, 4)),
        (7, ("j",), False, (1, 1)),
    ],
)
def test_a_path_has_a_place(
    document: int, path: yamlevents.Path, key: object, place: tuple[int, int]
) -> None:
    """A value is where it begins, a key where it is written, what is missing where it belongs."""
    assert place == yamlplace.locate(TREE, document, path, key=bool(key))


def test_places_are_found_above_a_syntax_error() -> None:
    """What was read before the error still has its place."""
    assert yamlplace.locate(b"x: 1\ny: 2\n---\n[", 0, ("y",)) == (2, 4)


def test_without_libyaml_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML built without libyaml is slower, not different."""
    samples = [TREE, b"a: 1\na: 2", b"a: [1", b"a: \x07", b"a: !x 1", b"[" * 100, b"\xff"]
    fast = [yamltree.read_all(data) for data in samples]
    monkeypatch.setattr(yamlevents, "libyaml", None)

    slow = [yamltree.read_all(data) for data in samples]

    assert [r.documents for r in fast] == [r.documents for r in slow]
    assert [[f.code for f in r.faults] for r in fast] == [[f.code for f in r.faults] for r in slow]
