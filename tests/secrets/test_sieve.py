"""The sieve finds what a letter by letter search finds, wherever it lies, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetd.sieve import TELLING, Sieve

_LETTERS = st.sampled_from("abé\x00")
_SPELLINGS = st.lists(st.text(_LETTERS, min_size=8, max_size=45), min_size=1, max_size=6)


def _hidden(text: bytes, spellings: list[bytes]) -> list[bool]:
    """Letter by letter: which bytes belong to one."""
    found = [False] * len(text)
    for at in range(len(text)):
        for one in spellings:
            length = 0
            while length < len(one) and text[at + length : at + length + 1] == one[length:][:1]:
                length += 1
            if length < min(len(one), TELLING):
                continue
            if length < len(one):  # cut off: the letter that begins is hidden as well
                while text[at + length : at + length + 1] and text[at + length] & 0xC0 == 0x80:
                    length += 1
            found[at : at + length] = [True] * length
    return found


@given(_SPELLINGS, st.data())
def test_it_finds_what_there_is(given: list[str], data: st.DataObject) -> None:
    """Of every text of few letters, with spellings in it whole and cut off, the same bytes go."""
    pieces = st.one_of(
        st.text(_LETTERS, max_size=9),
        st.sampled_from(given),
        st.sampled_from([one[:cut] for one in given for cut in (20, 33, 40)]),
    )
    text = "".join(data.draw(st.lists(pieces, max_size=6))).encode()
    spellings = [one.encode() for one in given]
    sieve = Sieve()
    for one in spellings:
        sieve.add(one)
    shown = bytes(
        byte for byte, hidden in zip(text, _hidden(text, spellings), strict=True) if not hidden
    )
    assert sieve.replaced(text, b"") == shown
    assert sieve.holds(text) is (len(shown) < len(text))


@given(_SPELLINGS, st.data())
def test_what_was_taken_out_is_not_found(given: list[str], data: st.DataObject) -> None:
    """It is as if those that were removed had never been there; an equal one stays."""
    sieve, kept = Sieve(), data.draw(st.lists(st.sampled_from(given), max_size=3))
    fresh = Sieve()
    for one in (*given, *kept):
        sieve.add(one.encode())
    for one in given:
        sieve.remove(one.encode())
    for one in kept:
        fresh.add(one.encode())
    text = " ".join(given).encode()
    assert sieve.replaced(text, b"*") == fresh.replaced(text, b"*")
    assert bool(sieve) is bool(kept)


@pytest.mark.parametrize("length", [*range(8, 20), 31, 32, 33, 100])
def test_it_is_found_at_every_place(length: int) -> None:
    """However a spelling lies between groups of four and eight bytes."""
    spelling = bytes(97 + number % 23 for number in range(length))
    sieve = Sieve()
    sieve.add(spelling)
    for before in range(17):
        for after in range(9):
            text = b"." * before + spelling + b"." * after
            assert sieve.replaced(text, b"*") == b"." * before + b"*" + b"." * after


def test_two_that_overlap_go_together() -> None:
    """The end of one that begins inside of another is not left over."""
    sieve = Sieve()
    for one in (b"canary-one-two", b"two-canary", b"canary-three"):
        sieve.add(one)
    assert sieve.replaced(b"[canary-one-two-canary-three]", b"*") == b"[*]"
    assert sieve.replaced(b"[canary-threecanary-three]", b"*") == b"[**]"
