"""
YAML bytes to events, and the parser's complaints in words that say what to do.

It refuses what no parser should be given (too large, not UTF-8) and knows no values: those are
made from the events by `topology.yamltree`. libyaml does the work where PyYAML was built with it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import yaml
from yaml import parser, reader, scanner

try:
    from yaml import _yaml as libyaml
except ImportError:
    libyaml = None

Path = tuple[str | int, ...]

BYTES_MAX = 5 * 1024 * 1024
DIRECTIVES_MAX = 100
"""The parser compares each directive with all before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with the text. Line and column count from 1."""

    line: int
    column: int
    code: str
    message: str
    hint: str
    path: Path = ()
    document: int | None = None
    """Index among the documents of the file; None where the whole file is meant."""


class Mark(Protocol):
    line: int
    column: int


class Event(Protocol):
    """The parts of all events of the parser that are read here."""

    start_mark: Mark
    anchor: str | None
    tag: str | None
    implicit: tuple[bool, bool]
    value: str
    style: str | None
    tags: Mapping[str, str] | None


class Stop(Exception):
    """Reading cannot go on."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def open_events(data: bytes) -> Callable[[], Event | None]:
    """A function that gives the next event, or None after the last; raises `Stop`."""
    data = _plain_utf8(data)
    try:
        source = _parser(data)
    except yaml.YAMLError as cause:
        raise Stop(_syntax(cause, data)) from None

    def following() -> Event | None:
        try:
            return source()
        except yaml.YAMLError as cause:
            raise Stop(_syntax(cause, data)) from None

    return following


class _PythonParser(reader.Reader, scanner.Scanner, parser.Parser):
    """For a PyYAML built without libyaml: twenty times slower, same events."""

    def __init__(self, data: bytes) -> None:
        reader.Reader.__init__(self, data)
        scanner.Scanner.__init__(self)
        parser.Parser.__init__(self)


def _parser(data: bytes) -> Callable[[], Event | None]:
    make = _PythonParser if libyaml is None else cast("type[_PythonParser]", libyaml.CParser)
    return cast("Callable[[], Event | None]", make(data).get_event)


def show(text: str) -> str:
    """Text for a complaint: quoted, cut, nothing unprintable."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")


_DIRECTIVE = re.compile(rb"^%", re.MULTILINE)
_BAD_CHARACTER = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


def _plain_utf8(data: bytes) -> bytes:
    if len(data) > BYTES_MAX:
        raise Stop(
            _whole_file(
                "yaml-too-large",
                f"the file is larger than {BYTES_MAX // 1024**2} MiB",
                "split it into several files",
            )
        )
    if data.startswith(_OTHER_ENCODINGS) or b"\x00" in data[:4]:
        raise Stop(
            _whole_file(
                "yaml-not-utf8",
                "the file is binary, or text in UTF-16 or UTF-32",
                "save it as text in UTF-8",
            )
        )
    if len(_DIRECTIVE.findall(data)) > DIRECTIVES_MAX:
        raise Stop(
            _whole_file(
                "yaml-syntax",
                f"more than {DIRECTIVES_MAX} lines begin with '%'",
                "indent them if they are text; directives are not needed",
            )
        )
    data = data.removeprefix(_ORDER_MARK)
    for sign, message, hint in _LEFT_OVER:
        if (found := sign.search(data)) is not None:
            line, column = _place(data[: found.start()].decode(errors="replace"))
            raise Stop(
                Fault(line=line, column=column, code="yaml-left-over", message=message, hint=hint)
            )
    return data


_ORDER_MARK = b"\xef\xbb\xbf"
_LEFT_OVER = (
    (
        re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE),
        "a merge in Git was not finished here",
        "choose one side and remove the lines with <<<<<<<, ======= and >>>>>>>",
    ),
    (
        re.compile(_ORDER_MARK),
        "the invisible character U+FEFF stands inside the file",
        "remove it; it comes from joining files, each of which began with it",
    ),
)
"""What other tools leave in a file. The parser would complain about a consequence, elsewhere."""


def _place(before: str) -> tuple[int, int]:
    """Line and column of what comes after this text."""
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _whole_file(code: str, message: str, hint: str) -> Fault:
    return Fault(line=1, column=1, code=code, message=message, hint=hint)


def _syntax(cause: yaml.YAMLError, data: bytes) -> Fault:
    """The parser's complaint in words that say what to do."""
    if not isinstance(cause, yaml.MarkedYAMLError):
        return _bad_characters(data)
    mark = cast("Mark | None", cause.problem_mark or cause.context_mark)
    problem = " ".join(str(part) for part in (cause.problem, cause.context) if part)
    known = [words for part, *words in _SYNTAX if part in problem]
    message, hint = (
        known[0]
        if known
        else (f"this is not YAML: {problem}", "check this line and the one above it")
    )
    opened = cast("Mark | None", cause.context_mark)
    if mark and opened and opened.line < mark.line and "clos" in message:
        message += f" (opened on line {opened.line + 1})"
    if "could not find expected ':'" in problem:
        # The parser saw it on a later line; the key that lacks it stands here.
        mark = opened or mark
    if mark and "cannot start any token" in problem and _sign(data, mark) == "\t":
        message, hint = _TAB
    return Fault(
        line=mark.line + 1 if mark else 1,
        column=mark.column + 1 if mark else 1,
        code="yaml-syntax",
        message=message,
        hint=hint,
    )


def _sign(data: bytes, mark: Mark) -> str:
    """The character at a place."""
    lines = data.decode(errors="replace").splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    return line[mark.column : mark.column + 1]


def _bad_characters(data: bytes) -> Fault:
    try:
        text = data.decode()
    except UnicodeDecodeError as cause:
        before = data[: cause.start].decode()
        code, message, hint = "yaml-not-utf8", "the text is not UTF-8", "save the file as UTF-8"
    else:
        found = _BAD_CHARACTER.search(text)
        before = text[: found.start()] if found else ""
        sign = f"U+{ord(found.group()):04X}" if found else "one"
        code = "yaml-character"
        message = f"the character {sign} is not allowed in YAML"
        hint = "remove it; it is often invisible and comes from copying"
    line, column = _place(before)
    return Fault(line=line, column=column, code=code, message=message, hint=hint)


_TAB = ("a tab is used for indentation", "use spaces")
_INDENT = "check the indentation of this line and the one above it"
_SYNTAX = (
    (
        "mapping values are not allowed",
        "a ': ' is not possible here",
        "put text that contains ': ' in quotes, or check the indentation",
    ),
    ("tab character", *_TAB),
    (
        "cannot start any token",
        "this character cannot begin a value",
        "put the text in quotes",
    ),
    ("could not find expected ':'", "a ': ' is missing after the key", "write `key: value`"),
    ("did not find expected ',' or ']'", "a list in [ ] is not closed", "add ',' or ']'"),
    ("did not find expected ',' or '}'", "a mapping in { } is not closed", "add ',' or '}'"),
    ("unexpected end of stream", "the quotes are not closed", "add the closing quote"),
    ("unexpected document indicator", "the quotes are not closed before '---'", "close them"),
    ("did not find expected key", "a key is expected here", _INDENT),
    ("did not find expected '-' indicator", "a '- ' is expected here", _INDENT),
    (
        "did not find expected node content",
        "a value is expected here",
        "add the value, or remove the ',' or sign before it",
    ),
    ("block sequence entries are not allowed", "a list cannot begin here", _INDENT),
    ("unknown escape character", "this escape is not known", "use '...' or write \\\\ for one \\"),
    (
        "undefined tag handle",
        "tags ('!...') are not accepted",
        "put text that begins with ! in quotes",
    ),
    (
        "alphabetic or numeric character",
        "an anchor or alias has no name",
        "put text that begins with & or * in quotes",
    ),
    ("<document start>", "'---' is expected here", "a file is a mapping; " + _INDENT),
    ("comment or line break", "there is text after the end of the value", "start a new line"),
)
