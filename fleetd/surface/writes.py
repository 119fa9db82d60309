"""
What `/api/v1` takes: what was told becomes a call of the desk, and its answer data again.

Knows nothing of HTTP. A caller who is limited to regions is refused before the desk hears of it
where that can be known; where only the documents tell, the desk checks.
"""

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from fleetd.surface import answers, asking, etags, problems, shapes
from fleetd.surface.desk import Declined, Desk, Edit, Given
from fleetd.surface.panel import Panel
from fleetd.surface.routes import Asked
from topology.resource import Ref

T = TypeVar("T")


async def pause(ask: Asked) -> answers.Paused:
    given = ask.as_(asking.BeginPause)
    _check_scope(ask, given.scope)
    made = await _asked(_desk(ask).pause(given.scope, who=ask.who, why=given.reason))
    return {"pause": shapes.pause(made)}


async def resume(ask: Asked) -> answers.Resumed:
    given = ask.as_(asking.Resume)
    _check_scope(ask, given.scope)
    try:
        await _desk(ask).resume(given.scope, who=ask.who)
    except Declined as declined:
        # It names what else is paused, in whatever region.
        limited = ask.caller.regions is not None
        said = f"there is no pause on {given.scope}" if limited else str(declined)
        raise problems.Refused(declined.code, said) from None
    return {"resumed": given.scope}


async def decide(ask: Asked) -> answers.Decided:
    given, id_ = ask.as_(asking.Decision), ask.path["id"]
    _check_approval(ask, id_)
    approve = given.decision == "approve"
    about = await _asked(_desk(ask).decide(id_, approve=approve, who=ask.who))
    return {"id": id_, "decision": given.decision, "about": shapes.refs(about)}


async def retire(ask: Asked) -> answers.Retired:
    given = ask.as_(asking.Retire)
    ref = Ref(given.kind.lower(), given.name)
    if not ask.sees(ref):
        raise _elsewhere(ask, str(ref))

    def agreed(going: Sequence[Ref]) -> bool:
        return given.id in {"", _of_those(going)}

    going = await _asked(
        _desk(ask).retire(ref, who=ask.who, only_show=given.dry_run, agreed=agreed)
    )
    # In the order of their going, so not sorted.
    return {
        "ref": str(ref),
        "id": _of_those(going),
        "going": [str(one) for one in going],
        "dryRun": given.dry_run,
    }


def _of_those(going: Sequence[Ref]) -> str:
    """The same for the same things, whatever order they go in."""
    return etags.of_bytes("\n".join(sorted(map(str, going))).encode())


async def make_plan(ask: Asked) -> answers.Draft:
    given = ask.as_(asking.MakePlan)
    sent = [Given(one.file, one.folder, one.text) for one in given.documents]
    if not sent and not given.prune:
        raise problems.Refused("bad-body", "documents: there are none")
    within = ask.caller.regions
    return await _asked(_desk(ask).plan(sent, prune=given.prune, within=within))


async def apply(ask: Asked) -> answers.Applied:
    consent, within = ask.as_(asking.Apply).consent, ask.caller.regions
    desk = _desk(ask)
    return await _asked(desk.apply(ask.path["id"], who=ask.who, consent=consent, within=within))


async def put_document(ask: Asked) -> answers.Applied:
    content: asking.Document = ask.given
    kind, name = ask.path["kind"], ask.path["name"]
    meta: object = content.get("metadata")
    said = (str(content.get("kind")).lower(), meta.get("name") if isinstance(meta, dict) else None)  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    if said != (kind.lower(), name):
        raise problems.Refused(
            "bad-body", f"the document says it is {said[0]}/{said[1]}, the address {kind}/{name}"
        )
    return await _edit(ask, str(content["kind"]), name, content)


async def delete_document(ask: Asked) -> answers.Applied:
    return await _edit(ask, ask.path["kind"], ask.path["name"], None)


async def _edit(
    ask: Asked, kind: str, name: str, content: asking.Document | None
) -> answers.Applied:
    def expected(now: answers.Plain | None) -> bool:
        tag = etags.of_document(now) if now is not None else None
        if ask.match is not None and not etags.names(ask.match, tag, what="If-Match", strong=True):
            return False
        other = ask.none_match
        return other is None or not etags.names(other, tag, what="If-None-Match")

    consent: str = ask.query.consent
    edit = Edit(kind, name, content, expected)
    within = ask.caller.regions
    return await _asked(_desk(ask).edit(edit, who=ask.who, consent=consent, within=within))


def _desk(ask: Asked) -> Desk:
    assert ask.desk is not None  # noqa: S101 -- without a desk there are no such routes
    return ask.desk


def _check_scope(ask: Asked, scope: str) -> None:
    """A pause of everything, or of a kind, is a pause in all regions."""
    regions = ask.caller.regions
    if regions is None:
        return
    what, colon, name = scope.partition(":")
    if colon and what == "region" and name in regions:
        return
    kind, slash, name = scope.partition("/")
    if slash and ask.sees(Ref(kind, name)):
        return
    raise _elsewhere(ask, scope)


def _check_approval(ask: Asked, given: str) -> None:
    """What waits for it must all be in the caller's regions; what waits for it nowhere can be of
    any region."""
    regions = ask.caller.regions
    if regions is not None and not _waits(ask.panel, given, regions):
        raise _elsewhere(ask, given)


def _waits(panel: Panel, given: str, regions: frozenset[str]) -> bool:
    plans = (panel.plan(region) for region in regions)
    return any(hold.approval == given for plan in plans if plan for hold in plan.holds)


def _elsewhere(ask: Asked, what: str) -> problems.Refused:
    own = ", ".join(sorted(ask.caller.regions or ()))
    return problems.Refused("other-region", f"{what[:80]} is not in your regions ({own})")


async def _asked(act: Awaitable[T]) -> T:
    try:
        return await act
    except Declined as declined:
        raise problems.Refused(declined.code, str(declined), **declined.more) from None
