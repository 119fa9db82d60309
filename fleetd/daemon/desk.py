"""
The desk at which people tell the daemon something: `surface.desk.Desk`, on the engine.

It turns what was asked into commands and documents, has everything durable before it answers, and
writes one event for each change. It decides nothing about the world; the next plan does.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fleetd import errors
from fleetd.clock import Clock
from fleetd.daemon import drafts
from fleetd.daemon.documents import Documents
from fleetd.daemon.drafts import Draft, Source
from fleetd.daemon.outlook import MakeDrivers
from fleetd.engine.commands import FLEET, Commands
from fleetd.engine.state import State
from fleetd.plan.policy import Pause
from fleetd.store.base import Store
from fleetd.surface import shapes
from fleetd.surface.desk import Declined, Given
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

    async def retire(self, ref: Ref, *, who: str, only_show: bool) -> Sequence[Ref]:
        if not only_show:
            return await _asked(self.commands.retire(ref, who=who))
        try:
            return self.commands.retirable(ref)
        except errors.FleetError as fault:
            raise Declined("refused", str(fault)) from None

    async def plan(self, given: Sequence[Given], *, prune: bool) -> Mapping[str, Any]:
        declared = self.state.declared
        world = drafts.world(self.state, self.clock.now(), self.make)
        made = await asyncio.to_thread(
            drafts.draft,
            given,
            prune=prune,
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
        self._drafts[made.id] = made
        self._drafts.move_to_end(made.id)
        while len(self._drafts) > DRAFTS_MAX:
            self._drafts.popitem(last=False)
        return shapes.draft(
            id=made.id,
            digest=made.digest,
            change=made.change,
            waves=made.waves,
            documents=[f"{kind}/{name}" for kind, name in made.given],
            fresh=[f"{kind}/{name}" for kind, name in made.fresh],
            pruned=[f"{kind}/{name}" for kind, name in made.pruned],
            owned=made.owned,
            consent=made.consent,
            why=made.why,
        )

    async def apply(self, plan: str, *, who: str, consent: str) -> Mapping[str, Any]:
        async with self._applying:
            made = self._drafts.get(plan)
            if made is None:
                raise Declined(
                    "plan-unknown",
                    f"there is no plan {plan[:40]!r}; the last {DRAFTS_MAX} are kept while the "
                    "daemon runs, so plan again",
                )
            self._check(made, consent)
            changed = await self._hand_over(made, who, consent)
            return {
                "plan": made.id,
                "documents": [f"{kind}/{name}" for kind, name in made.given],
                "pruned": [f"{kind}/{name}" for kind, name in made.pruned],
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
        del self._drafts[made.id]
        return not made.change.empty


async def _asked(act: Awaitable[T]) -> T:
    """A command that cannot be carried out is an answer; a broken store is not."""
    try:
        return await act
    except errors.StoreError:
        raise
    except errors.FleetError as fault:
        raise Declined("refused", str(fault)) from None
