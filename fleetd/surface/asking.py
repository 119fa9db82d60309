"""
What can be asked and told over HTTP, as types: parameters and bodies, with their limits.

Everything is checked by one of these before anybody sees it, and what is not in the type is
refused: a misspelt `dryRun` must not retire a cluster. OpenAPI is generated from them, so a
description here is what a user reads. Not here: what is answered (`answers`).
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta

from fleetd.surface import problems

DEPTH_MAX = 64
LIMIT = 100
LIMIT_MAX = 1000
NUMBER_MAX = 2**62
_WHOLE = re.compile(r"-?[0-9]+")
_END = r"$(?!\n)"
"""The end of a text in the patterns of Python, where `$` alone lets a line break follow, and in
those of JSON Schema, which do not know Python's own sign for it."""
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
"""One without an end goes to the end of all: else each quote in it is tried as a beginning."""
_ALIKE = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
T = TypeVar("T")

_Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX, description="How many at most.")]
_Seq = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
_Word = Annotated[str, Meta(max_length=253)]
_Text = Annotated[str, Meta(min_length=1, max_length=300)]
_Region = Annotated[str | None, Meta(description="Only this region.")]
_About = Annotated[
    Annotated[str, Meta(pattern=r"^[^/]+/[^\n]+" + _END, max_length=507)] | None,
    Meta(description="Only about this thing, KIND/NAME."),
]
Flag = Literal["true", "false"]


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parameters; a route without any has this."""


class InRegion(Query, frozen=True):
    region: _Region = None


class PlanOf(InRegion, frozen=True):
    brief: Annotated[Flag, Meta(description="Without what each step would send.")] = "false"


class Search(Query, frozen=True):
    q: Annotated[_Text, Meta(description="Words that are all in KIND/NAME, in any order.")]
    limit: Annotated[int, Meta(ge=1, le=100, description="How many at most.")] = 20


class Resources(Query, frozen=True):
    kind: Annotated[_Word | None, Meta(description="Only of this kind.")] = None
    region: _Region = None
    cluster: Annotated[_Word | None, Meta(description="Only this cluster and what is on it.")] = (
        None
    )
    owner: Annotated[
        _Word | None, Meta(description="Only what was compiled from this document, KIND/NAME.")
    ] = None
    ready: Annotated[
        Annotated[str, Meta(pattern=f"^([Tt]rue|[Ff]alse|[Uu]nknown){_END}")] | None,
        Meta(description="Only in this state: true, false or unknown."),
    ] = None
    reason: Annotated[
        _Word | None, Meta(description="Only with this reason of the Ready condition.")
    ] = None
    q: Annotated[_Word, Meta(description="Only with this text in KIND/NAME.")] = ""
    limit: _Limit = LIMIT
    continue_: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-f]{0,16}-[0-9]{1,11}" + _END)] | None,
        Meta(description="Go on where a list ended: the `continue` of its last page."),
    ] = msgspec.field(default=None, name="continue")


class Events(Query, frozen=True):
    for_: _About = msgspec.field(default=None, name="for")
    after: Annotated[_Seq, Meta(description="Only with a higher number than this.")] = 0
    limit: _Limit = LIMIT
    continue_: Annotated[
        _Seq | None, Meta(description="Go on where a list ended: the `continue` of its last page.")
    ] = msgspec.field(default=None, name="continue")
    newest: Annotated[Flag, Meta(description="Newest first, instead of oldest first.")] = "false"


class Watch(Query, frozen=True):
    for_: _About = msgspec.field(default=None, name="for")
    region: _Region = None
    after: Annotated[
        _Seq | None,
        Meta(description="Begin after this number; Last-Event-ID, if sent, is stronger."),
    ] = None


class Login(Query, frozen=True):
    next: Annotated[
        str,
        Meta(
            pattern=r"^/(?![/\\])[!-\[\]-~]*" + _END,
            max_length=1000,
            description="Where to go then: a path on this server.",
        ),
    ] = "/"


class Callback(Query, frozen=True):
    """What an issuer sends a browser back with. It may add more, which is not read."""

    code: Annotated[str, Meta(description="What the issuer is asked about.")] = ""
    state: Annotated[str, Meta(description="As it was sent along.")] = ""
    iss: Annotated[str, Meta(description="Who the issuer is.")] = ""
    error: Annotated[str, Meta(description="That it did not let somebody in.")] = ""


class Edit(Query, frozen=True):
    consent: Annotated[
        _Word, Meta(description="Agree to a change of much at once: the id that a refusal named.")
    ] = ""


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    who: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            pattern=rf"^[A-Za-z0-9_.@+-]+{_END}",
            description="Who says it, where nobody is asked for a proof: on this machine. A caller "
            "who proved who they are is called by that name, whatever stands here.",
        ),
    ] = "local"


class BeginPause(Body, frozen=True):
    scope: Annotated[
        _Text, Meta(description="all, region:NAME, kind:KIND, or KIND/NAME of one thing.")
    ]
    reason: Annotated[_Text, Meta(description="Shown wherever the pause is shown.")]


class Resume(Body, frozen=True):
    scope: Annotated[_Text, Meta(description="As it was named when it was paused.")]


class Decision(Body, frozen=True):
    decision: Literal["approve", "reject"]


class Retire(Body, frozen=True):
    kind: _Text
    name: _Text
    dry_run: Annotated[bool, Meta(description="Only say what would go.")] = False
    id: Annotated[
        _Word,
        Meta(description="The id of what you were shown; refused if others would go by now."),
    ] = ""


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: Annotated[_Text, Meta(description="As its owner calls it.")]
    text: Annotated[str, Meta(description="YAML, one or more documents.")]
    folder: Annotated[
        str,
        Meta(
            pattern=r"^/",
            max_length=4096,
            description="Where the relative files that its documents name are found.",
        ),
    ]


class MakePlan(Body, frozen=True):
    documents: Annotated[list[File], Meta(max_length=10_000)]
    prune: Annotated[
        bool, Meta(description="Take away what was applied earlier and is not sent now.")
    ] = False


class Apply(Body, frozen=True):
    consent: Annotated[str, Meta(description="Agree to a change of much at once.")] = ""


Document = dict[str, Any]


def query(given: Iterable[tuple[str, str]], kind: type[T]) -> T:
    """Parameters as they were sent become their type. Raises Refused."""
    known = {field.encode_name: field for field in msgspec.structs.fields(cast("Any", kind))}
    found: dict[str, str] = {}
    for name, value in given:
        if name not in known:
            offered = f"; there are {', '.join(known)}" if known else ""
            raise problems.Refused("unknown-parameter", f"{name[:40]} is not a parameter{offered}")
        if name in found:
            raise problems.Refused("bad-parameter", f"{name} is given twice")
        found[name] = value
    try:
        made = msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as wrong:
        raise problems.Refused("bad-parameter", _about(str(wrong), kind)) from None
    for name, told in found.items():
        value = getattr(made, known[name].name)
        # A word for "nothing" is not the same as saying nothing.
        if value is None:
            raise problems.Refused("bad-parameter", f"{name}: null is no value; leave it out")
        if isinstance(value, int) and not _WHOLE.fullmatch(told):
            raise problems.Refused("bad-parameter", f"{name}: write a whole number in digits")
    return made


def _about(complaint: str, kind: type) -> str:
    """In the words of the parameter's description: `Expected ... - at `$.limit`` is not for people
    who never saw the type."""
    text, name = _in_words(complaint)
    schema = msgspec.json.schema(kind)
    properties = cast("Mapping[str, Any]", next(iter(schema["$defs"].values()))["properties"])
    told = cast("Mapping[str, Any]", properties.get(name, {}))
    words = "It must be a whole number" if text.startswith("Expected `int`, got") else text
    return f"{name}: {words}. {told.get('description', '')}".strip()


_LENGTH = re.compile(r"Expected `str` of length (<=|>=) (\d+)")


def _in_words(complaint: str) -> tuple[str, str]:
    """What is wrong, and of which field: limits of a text as one would say them."""
    text, _, place = complaint.partition(" - at ")
    if found := _LENGTH.fullmatch(text):
        most = found[1] == "<="
        text = f"is longer than {found[2]} signs; say it shorter" if most else "is empty"
    return text, place.strip("`").removeprefix("$.")


def body(data: bytes, kind: type[T]) -> T:
    """A body as it was sent becomes its type. Raises Refused."""
    if _too_deep(data):
        raise problems.Refused("too-deep")
    _check_names(data)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as wrong:
        raise problems.Refused("bad-body", _said(data, str(wrong))) from None


def _said(data: bytes, complaint: str) -> str:
    if not data.strip():
        return "it is empty"
    if data.startswith(_MARKS) or b"\0" in data[:4]:
        return "it must be UTF-8, without a mark of the byte order"
    if "codec can't decode" in complaint:
        return "it is not UTF-8"
    if _HALF.search(data) and "truncated" in complaint:
        return "a text in it has half of a sign (\\ud800 to \\udfff belong together in twos)"
    if _LENGTH.match(complaint):
        text, name = _in_words(complaint)
        return f"{name}: {text}"
    return complaint


def _too_deep(data: bytes) -> bool:
    """Whether brackets nest deeper than they may, outside of text. What is never closed counts:
    the decoder would follow it."""
    rest = _STRINGS.sub(b"", data).translate(_ALIKE, _OTHERS)
    for _ in range(DEPTH_MAX):
        fewer = rest.replace(b"[]", b"")
        if fewer == rest:
            return rest.count(b"[") > DEPTH_MAX
        rest = fewer
    return b"[" in rest


def _check_names(data: bytes) -> None:
    """That no object says one thing twice, for which of both counts is a guess. What else is wrong
    is told by who reads it."""
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(data, object_pairs_hook=_pairs, parse_int=len, parse_float=len)


def _pairs(given: list[tuple[str, object]]) -> None:
    known: set[str] = set()
    for name, _ in given:
        if name in known:
            shown = name[:40].encode("utf-8", "replace").decode()
            raise problems.Refused("bad-body", f"{shown} stands twice in one object")
        known.add(name)


def gist(given: object) -> dict[str, Any]:
    """What was told, short enough to keep: of documents the name and a digest."""
    if isinstance(given, Query):
        return {}
    if not isinstance(given, Body):
        return {"sha256": _digest(msgspec.json.encode(given))}
    told = cast("dict[str, Any]", msgspec.to_builtins(given))
    if isinstance(given, MakePlan):
        told["documents"] = [
            {"file": one.file, "sha256": _digest(one.text.encode())} for one in given.documents
        ]
    return told


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
