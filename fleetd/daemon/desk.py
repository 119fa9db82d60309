"""
The desk at which people tell the daemon something: `surface.desk.Desk`, on the engine.

It turns what was asked into commands and documents, has everything durable before it answers, and
writes one event for each change. It decides nothing about the world; the next plan does.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fleetd import errors
from fleetd.clock import Clock
from fleetd.daemon import drafts
from fleetd.daemon.documents import Documents
from fleetd.daemon.drafts import Draft, Key, Source
from fleetd.daemon.outlook import MakeDrivers
from fleetd.engine import retirement
from fleetd.engine.commands import FLEET, Commands
from fleetd.engine.state import State
from fleetd.plan.policy import Pause
from fleetd.store.base import Store
from fleetd.surface import answers, reach, shapes
from fleetd.surface.desk import Declined, Edit, Given
from fleetd.vocabulary import Event, PlanId
from topology.resource import EMPTY, Ref

DRAFTS_MAX = 16
"""Kept in memory; whoever planned longer ago plans again."""
T = TypeVar("T")


@dataclass
class FrontDesk:
    """Implements `Desk`."""

    state: State
    store: Store
    clock: Clock
    commands: Commands
    documents: Documents
    source: Source
    make: MakeDrivers
    durable: bool
    """Whether there is a state directory to keep documents in."""
    _drafts: OrderedDict[str, Draft] = field(default_factory=OrderedDict[str, Draft])
    _applying: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def pause(self, scope: str, *, who: str, why: str) -> Pause:
        return await _asked(self.commands.pause(scope, who=who, why=why))

    async def resume(self, scope: str, *, who: str) -> None:
        await _asked(self.commands.resume(scope, who=who))

    async def decide(self, given: str, *, approve: bool, who: str) -> Sequence[Ref]:
        act = self.commands.approve if approve else self.commands.reject
        return await _asked(act(given, who=who))

    async def retire(
        self, ref: Ref, *, who: str, only_show: bool, agreed: Callable[[Sequence[Ref]], bool]
    ) -> Sequence[Ref]:
        try:
            if not only_show:
                return await _asked(self.commands.retire(ref, who=who, agreed=agreed))
            return self.commands.retirable(ref)
        except errors.FleetError as fault:
            raise Declined("refused", str(fault)) from None

    async def plan(
        self, given: Sequence[Given], *, prune: bool, within: frozenset[str] | None
    ) -> answers.Draft:
        made = await self._draft(given, prune=prune, within=within)
        self._drafts[made.id] = made
        self._drafts.move_to_end(made.id)
        while len(self._drafts) > DRAFTS_MAX:
            self._drafts.popitem(last=False)
        return shapes.draft(
            id=made.id,
            digest=made.digest,
            change=made.change,
            waves=made.waves,
            documents=_named(made.given),
            fresh=_named(made.fresh),
            pruned=_named(made.pruned),
            owned=made.owned,
            consent=made.consent,
            why=made.why,
        )

    async def _draft(
        self,
        given: Sequence[Given],
        *,
        prune: bool = False,
        drop: Key | None = None,
        within: frozenset[str] | None,
    ) -> Draft:
        declared = self.state.declared
        world = drafts.world(self.state, self.clock.now(), self.make)
        made = await asyncio.to_thread(
            drafts.draft,
            given,
            prune=prune,
            drop=drop,
            source=self.source,
            world=world,
            declared=declared if declared.resources else EMPTY,
        )
        if isinstance(made, drafts.Wrong):
            raise Declined(
                "documents-bad",
                f"{made.problems[0]}"
                + (f" (and {len(made.problems) - 1} more)" if len(made.problems) > 1 else ""),
                problems=[problem.as_json() for problem in made.problems],
            )
        _check_regions(made, within)
        return made

    async def apply(
        self, plan: str, *, who: str, consent: str, within: frozenset[str] | None
    ) -> answers.Applied:
        async with self._applying:
            made = self._drafts.get(plan)
            if made is None:
                raise Declined(
                    "plan-unknown",
                    f"there is no plan {plan[:40]!r}; the last {DRAFTS_MAX} are kept while the "
                    "daemon runs, so plan again",
                )
            _check_regions(made, within)
            done = await self._apply(made, who, consent)
            del self._drafts[made.id]
            return done

    async def edit(
        self, asked: Edit, *, who: str, consent: str, within: frozenset[str] | None
    ) -> answers.Applied:
        kind, name, content, expected = asked
        async with self._applying:
            now = self._accepted(kind, name, within)
            if not expected(now):
                raise Declined(
                    "document-changed",
                    f"{kind}/{name} is not the one you named; get it again and look at it"
                    if now is not None
                    else f"there is no {kind}/{name}",
                )
            if content is None:
                made = await self._without(kind, name, now, within)
            else:
                sent = Given(f"{kind}-{name}.json", "", json.dumps(content))
                made = await self._draft([sent], within=within)
            return await self._apply(made, who, consent)

    def _accepted(
        self, kind: str, name: str, within: frozenset[str] | None
    ) -> Mapping[str, Any] | None:
        """As its reader may see it."""
        for one in self.documents.accepted:
            if one["kind"].lower() == kind.lower() and one["metadata"]["name"] == name:
                return one if within is None or reach.region_of(one) in within else None
        return None

    async def _without(
        self, kind: str, name: str, now: Mapping[str, Any] | None, within: frozenset[str] | None
    ) -> Draft:
        if now is None:
            raise Declined("not-found", f"there is no {kind}/{name}")
        made = await self._draft([], drop=(now["kind"], name), within=within)
        if not made.pruned:
            raise Declined(
                "document-owned",
                f"{now['kind']}/{name} stands in a file that the daemon reads; take it away there",
            )
        return made

    async def _apply(self, made: Draft, who: str, consent: str) -> answers.Applied:
        self._check(made, consent)
        changed = await self._hand_over(made, who, consent)
        return {
            "plan": made.id,
            "documents": _named(made.given),
            "pruned": _named(made.pruned),
            "resources": [str(ref) for ref in drafts.refs(made.change)],
            "changed": changed,
        }

    def _check(self, made: Draft, consent: str) -> None:
        if made.owned:
            kind, name, file = made.owned[0]
            more = f" (and {len(made.owned) - 1} more)" if len(made.owned) > 1 else ""
            raise Declined(
                "document-owned",
                f"{kind}/{name} stands in {file}, which the daemon reads: that file is its owner; "
                f"change it there{more}",
            )
        if made.change.refusals:
            ref, words = made.change.refusals[0]
            raise Declined("change-refused", f"{ref}: {words}")
        self._check_moved(made)
        if made.consent and consent != made.consent:
            raise Declined(
                "consent-needed",
                f"{made.why}; if that is meant, consent with {made.consent}",
                consent=made.consent,
            )
        if not self.durable:
            raise Declined(
                "not-durable",
                "this daemon keeps nothing (--store memory), so documents cannot be handed over; "
                "put them into a folder of --documents",
            )

    def _check_moved(self, made: Draft) -> None:
        declared = self.state.declared if self.state.declared.resources else EMPTY
        world = drafts.world(self.state, self.clock.now(), self.make)
        now = drafts.identity(made.digest, world, declared, change=made.change, keep=made.keep)
        if now != made.id:
            raise Declined(
                "plan-stale",
                f"the world moved since plan {made.id} was made; plan again and look at it",
            )

    async def _hand_over(self, made: Draft, who: str, consent: str) -> bool:
        handed = self.source.handed
        before = handed.current()
        told = len(made.given) + len(made.pruned)
        if consent and made.consent:
            await _asked(self.commands.consent(made.consent, who=who))
        try:
            await asyncio.to_thread(handed.write, made.keep)
        except OSError as cause:
            raise Declined(
                "not-durable", f"the documents cannot be written: {cause.strerror}"
            ) from None
        complaint = await self.documents.read_now()
        if complaint:
            # Files moved between the plan and now; what was in force stays in force.
            await asyncio.to_thread(handed.turn, before)
            await self.documents.read_now()
            raise Declined("documents-bad", complaint)
        await asyncio.to_thread(handed.tidy)
        plan = PlanId(made.id)
        text = f"{told} document{'' if told == 1 else 's'} by {who}, plan {made.id}"
        event = Event(at=self.clock.now(), ref=FLEET, reason="Applied", message=text, plan=plan)
        await self.store.record([event])
        return not made.change.empty


def _named(keys: Iterable[Key]) -> list[str]:
    return [f"{kind}/{name}" for kind, name in keys]


def _check_regions(made: Draft, within: frozenset[str] | None) -> None:
    outside = sorted(made.regions - within) if within is not None else []
    if outside:
        raise Declined(
            "other-region",
            "these documents touch "
            + (f"region {outside[0]}" if outside[0] else "the whole fleet")
            + f", and you are limited to {', '.join(sorted(within or ()))}",
        )
    if within is not None and made.strange:
        raise Declined(
            "forbidden",
            f"{made.strange[0].kind}: {made.strange[0].place} is named by no document of "
            f"{made.strange[0].region}; whoever is limited to regions names the files and "
            "variables that are named there already, or a secret in OpenBao or in a cluster",
        )


async def _asked(act: Awaitable[T]) -> T:
    """A command that cannot be carried out is an answer; a broken store is not."""
    try:
        return await act
    except errors.StoreError:
        raise
    except retirement.OthersGo as fault:
        raise Declined("plan-stale", str(fault)) from None
    except errors.FleetError as fault:
        raise Declined("refused", str(fault)) from None
