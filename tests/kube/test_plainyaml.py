"""YAML from others: JSON is read as what it is, and all else as YAML."""

import pytest

from fleetd import plainyaml


@pytest.mark.parametrize(
    "text", ['{"users": [{"name": "a"}], "on": true}', "{users: [{name: a}], on: true}"]
)
def test_both_ways_of_writing_are_read_alike(text: str) -> None:
    """A brace at the front may begin either."""
    assert plainyaml.load(text)["users"] == [{"name": "a"}]
    assert plainyaml.load(text.encode()) == plainyaml.load(text)


def test_what_is_neither_is_refused() -> None:
    """With the one error that readers expect."""
    with pytest.raises(plainyaml.Error):
        plainyaml.load('{"users": [')


DEEP = 200_000
BOMB = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{" + ", ".join(f"k{m}: *a{n - 1}" for m in range(10)) + "}\n"
    for n in range(1, 10)
)
MERGED = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [" + ", ".join([f"*a{n - 1}"] * 10) + "]}\n" for n in range(1, 10)
)
HOSTILE = {
    "sequences in one line": "a: " + "[" * DEEP,
    "closed ones": "a: " + "[" * DEEP + "]" * DEEP,
    "mappings in one line": "a: " + "{a: " * DEEP,
    "dashes": "- " * DEEP,
    "questions": "? " * DEEP,
    "indented": "\n".join(" " * level + "a:" for level in range(2000)),
    "JSON": '{"a":' + "[" * DEEP + "]" * DEEP + "}",
    "aliases of aliases": BOMB,
    "merged aliases": MERGED,
    "itself": "a: &a [*a]",
    "a date that is none": "a: 2001-13-45",
    "half a character": "a: \ud800",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_was_made_to_bring_the_reader_down_is_refused(name: str) -> None:
    """Nested without end, unfolding to gigabytes, or holding itself: the process goes on."""
    with pytest.raises(plainyaml.Error):
        plainyaml.load(HOSTILE[name])


def test_aliases_and_many_members_are_no_offence() -> None:
    """As in a kubeconfig of many clusters, and a clouds.yaml with a part that is repeated."""
    many = "\n".join(f"- {{name: c{number}, cluster: {{server: s}}}}" for number in range(500))
    read = plainyaml.load(f"users: &users\n{many}\nagain: *users")
    assert read["users"] == read["again"]
    assert len(read["again"]) == 500
