"""Fault lines in words: what can be written, what cannot, and what is said about it."""

from datetime import timedelta

import pytest

from fleetd.sim import mishaps, script
from fleetd.sim.script import Line, ScriptError

BMC = "unreachable, refuses, hangs, lies"
KNOWN = ", ".join(script.VOCABULARY)


def test_a_line_says_when_what_whom_how_and_for_how_long() -> None:
    """All five parts are read."""
    assert script.read("at 12m: bmc r1-s03 unreachable for 20m") == Line(
        at=timedelta(minutes=12),
        what="bmc",
        whom="r1-s03",
        how="unreachable",
        span=timedelta(minutes=20),
    )


def test_without_for_it_lasts() -> None:
    """A line without `for` has no end."""
    assert script.read("at 0: rack a1 dark").span is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("0s", 0), ("90s", 90), ("12m", 720), ("1h30m", 5400), ("2d", 172_800)],
)
def test_durations_are_written_as_in_documents(text: str, seconds: int) -> None:
    """The same durations as in documents, and a bare 0 for the beginning."""
    assert script.read(f"at {text}: rack a1 dark").at == timedelta(seconds=seconds)


def test_spaces_do_not_matter() -> None:
    """Any space around the parts, also before the colon."""
    tidy = script.read("at 5m: rack a1 dark for 1h")

    assert script.read("  at  5m :rack   a1  dark  for   1h ") == tidy


@pytest.mark.parametrize(
    ("what", "how"), [(what, how) for what, hows in script.VOCABULARY.items() for how in hows]
)
def test_a_line_is_written_as_it_is_read(what: str, how: str) -> None:
    """Every word of the vocabulary survives reading and writing, with a span and without."""
    for text in (f"at 1h30m: {what} x {how}", f"at 45s: {what} x {how} for 1d2h"):
        assert str(script.read(text)) == text
    assert script.read(str(script.read(f"at 0: {what} x {how}"))).at == timedelta(0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bmc r1-s03 unreachable",
        "at 12m bmc r1-s03 unreachable",
        "at 12m: bmc unreachable",
        "at 12m: bmc r1-s03 unreachable for",
        "at 12m: bmc r1-s03 unreachable 20m",
        "at 12m: bmc r1-s03 unreachable for 20m please",
    ],
)
def test_what_has_not_the_shape_is_shown_one_that_has(text: str) -> None:
    """The complaint repeats what was written and gives an example."""
    with pytest.raises(ScriptError) as told:
        script.read(text)

    example = "'at 12m: bmc r1-s03 unreachable for 20m'"
    assert str(told.value) == (
        f"{text!r} is not a fault; write e.g. {example} (--list-faults shows all)"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("at 1m: bcm x dark", f"nothing is called bcm; did you mean bmc? known: {KNOWN}"),
        ("at 1m: moon x dark", f"nothing is called moon; known: {KNOWN}"),
        (
            "at 1m: bmc x unreachabel",
            f"a bmc cannot be unreachabel; did you mean unreachable? known: {BMC}",
        ),
        ("at 1m: rack x sealed", "a rack cannot be sealed; known: dark"),
        (
            "at 5: rack x dark",
            "5 is not a duration; write e.g. 90s, 12m or 1h30m",
        ),
        (
            "at 5m: rack x dark for ever",
            "ever is not a duration; write e.g. 90s, 12m or 1h30m",
        ),
    ],
)
def test_a_bad_word_is_named_with_what_was_perhaps_meant(text: str, complaint: str) -> None:
    """The nearest word if there is one, otherwise all of them."""
    with pytest.raises(ScriptError) as told:
        script.read(text)

    assert str(told.value) == f"{text!r}: {complaint}"


def test_a_script_is_in_the_order_of_time() -> None:
    """Lines may be given in any order; those of one moment keep theirs."""
    lines = mishaps.read_all(["at 2h: rack a dark", "at 5m: rack c dark", "at 5m: rack b dark"])

    assert [line.whom for line in lines] == ["c", "b", "a"]


def test_one_bad_line_spoils_the_script() -> None:
    """Nothing of a script is taken if one line of it cannot be read."""
    with pytest.raises(ScriptError, match="nothing is called moon"):
        mishaps.read_all(["at 5m: rack a dark", "at 6m: moon x dark"])
