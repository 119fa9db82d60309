"""
What `/api/v1` takes: a body of JSON becomes a call of the desk, and its answer JSON again.

Knows nothing of HTTP but the bytes of a body. Everything is checked by a type before anybody sees
it, and what is not in the type is refused: a misspelt `dryRun` must not retire a cluster.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Literal, TypeVar

import msgspec

from fleetd.surface import problems, shapes
from fleetd.surface.desk import Declined, Desk, Given
from fleetd.surface.shapes import Shape
from topology.resource import Ref

Writer = Callable[[Mapping[str, str], bytes], Awaitable[Shape]]

DEPTH_MAX = 64
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
_Who = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[\w.@+-]+$")]
T = TypeVar("T")


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    who: _Who
    """The user of the machine from which it was said. Believed, because only this machine can
    say it."""


class _Pause(_Body, frozen=True):
    scope: _Text
    reason: _Text


class _Resume(_Body, frozen=True):
    scope: _Text


class _Decision(_Body, frozen=True):
    decision: Literal["approve", "reject"]


class _Retire(_Body, frozen=True):
    kind: _Text
    name: _Text
    dry_run: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: _Text
    text: str
    folder: Annotated[str, msgspec.Meta(pattern=r"^/", max_length=4096)]


class _Plan(_Body, frozen=True):
    documents: Annotated[list[_File], msgspec.Meta(max_length=10_000)]
    prune: bool = False


class _Apply(_Body, frozen=True):
    consent: str = ""


class Writes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> Sequence[tuple[str, Writer]]:
        return (
            ("/pause", self._pause),
            ("/resume", self._resume),
            ("/approvals/{id}", self._approvals),
            ("/retire", self._retire),
            ("/plans", self._plans),
            ("/plans/{id}/apply", self._apply),
        )

    async def _pause(self, _match: Mapping[str, str], body: bytes) -> Shape:
        given = _read(body, _Pause)
        made = await _asked(self._desk.pause(given.scope, who=given.who, why=given.reason))
        return {"pause": shapes.pause(made)}

    async def _resume(self, _match: Mapping[str, str], body: bytes) -> Shape:
        given = _read(body, _Resume)
        await _asked(self._desk.resume(given.scope, who=given.who))
        return {"resumed": given.scope}

    async def _approvals(self, match: Mapping[str, str], body: bytes) -> Shape:
        given = _read(body, _Decision)
        approve = given.decision == "approve"
        about = await _asked(self._desk.decide(match["id"], approve=approve, who=given.who))
        return {"id": match["id"], "decision": given.decision, "about": shapes.refs(about)}

    async def _retire(self, _match: Mapping[str, str], body: bytes) -> Shape:
        given = _read(body, _Retire)
        ref = Ref(given.kind.lower(), given.name)
        going = await _asked(self._desk.retire(ref, who=given.who, only_show=given.dry_run))
        # In the order of their going, so not sorted.
        return {"ref": str(ref), "going": [str(one) for one in going], "dryRun": given.dry_run}

    async def _plans(self, _match: Mapping[str, str], body: bytes) -> Shape:
        given = _read(body, _Plan)
        sent = [Given(one.file, one.folder, one.text) for one in given.documents]
        if not sent and not given.prune:
            raise problems.Refused("bad-body", "documents: there are none")
        return dict(await _asked(self._desk.plan(sent, prune=given.prune)))

    async def _apply(self, match: Mapping[str, str], body: bytes) -> Shape:
        given = _read(body, _Apply)
        return dict(
            await _asked(self._desk.apply(match["id"], who=given.who, consent=given.consent))
        )


def _read(body: bytes, kind: type[T]) -> T:
    if _depth(body) > DEPTH_MAX:
        raise problems.Refused("too-deep")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as wrong:
        raise problems.Refused("bad-body", str(wrong)) from None


def _depth(body: bytes) -> int:
    """How deep brackets nest outside of text."""
    deepest = depth = 0
    for byte in _STRINGS.sub(b"", body):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


async def _asked(act: Awaitable[T]) -> T:
    try:
        return await act
    except Declined as declined:
        raise problems.Refused(declined.code, str(declined), **declined.more) from None
