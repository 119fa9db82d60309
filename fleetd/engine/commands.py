"""
What a person may tell a running daemon: pause, resume, approve, reject, retire.

Each command is on disk before it counts, and counts again after a restart (`restore`). It changes
the policy or what is wanted, never the world: the next plan does, or says why not. What a person
allowed ends when it was used or is not asked for any more (`run`), and history says so.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from fleetd import errors
from fleetd.clock import Clock
from fleetd.engine import grants, records, retirement
from fleetd.engine.grants import Grant, Kind
from fleetd.engine.state import State
from fleetd.plan.policy import ALL, Pause
from fleetd.store.base import Store
from fleetd.vocabulary import Event, Hold
from topology.resource import Ref

_encoder = msgspec.json.Encoder(order="sorted")
FLEET = Ref("fleet", "all")
"""The ref of events that concern everything."""
EVERY = timedelta(minutes=1)
"""How often it is asked whether something that people allowed is over."""


class BadCommand(errors.FleetError):
    """It cannot be carried out; says why and what would be right."""


class Commands:
    def __init__(
        self,
        state: State,
        store: Store,
        clock: Clock,
        *,
        wake: Callable[[Ref], None],
        asked: Callable[[], str],
        nudge: Callable[[], None],
    ) -> None:
        """`wake` has a thing looked at soon; `asked` is the consent that documents at the door
        wait for, if any; `nudge` has the documents read again."""
        self._state = state
        self._store = store
        self._clock = clock
        self._wake = wake
        self._asked = asked
        self._nudge = nudge
        self._grants: dict[str, Grant] = {}
        self._unasked: dict[str, datetime] = {}
        """Since when nobody asks for one."""
        self._deciding = asyncio.Lock()
        self.moved = asyncio.Event()
        """Set when new documents are in force: what was allowed for the old ones is over."""

    @property
    def granted(self) -> Mapping[str, Grant]:
        """What people allowed and what still counts, by id."""
        counting = self._state.policy.approvals | self._state.policy.consents
        return {name: one for name, one in self._grants.items() if name in counting}

    async def restore(self) -> None:
        """What people said before the daemon ended."""
        pauses = {
            scope: msgspec.json.decode(row, type=Pause)
            for scope, row in sorted((await self._store.load(records.PAUSES)).items())
        }
        rows = await self._store.load(records.APPROVALS)
        self._grants = grants.decode(rows, self._clock.now())
        steps = {name for name, one in self._grants.items() if one.kind is Kind.STEP}
        now = self._state.policy
        self._state.set_policy(
            replace(
                now,
                pauses={**now.pauses, **pauses},
                approvals=now.approvals | steps,
                consents=now.consents | (self._grants.keys() - steps),
            )
        )

    async def run(self) -> None:
        """End what is over, now and then and whenever new documents are in force."""
        while True:
            await self.lapse()
            try:
                async with asyncio.timeout(EVERY.total_seconds()):
                    await self.moved.wait()
            except TimeoutError:
                continue
            self.moved.clear()

    async def pause(self, scope: str, *, who: str, why: str) -> Pause:
        self._check_scope(scope)
        if not why.strip():
            raise BadCommand("a pause needs a reason: whoever finds it in a month asks for it")
        made = Pause(scope=scope, who=who, why=why.strip(), since=self._clock.now())
        await self._store.put(records.PAUSES, {scope: _encoder.encode(made)})
        self._set_pauses({**self._state.policy.pauses, scope: made})
        await self._tell(scope, "Paused", f"by {who}: {made.why}")
        return made

    async def resume(self, scope: str, *, who: str) -> None:
        if scope not in self._state.policy.pauses:
            known = ", ".join(sorted(self._state.policy.pauses)) or "nothing is paused"
            raise BadCommand(f"there is no pause on {scope}; paused: {known}")
        await self._store.put(records.PAUSES, {scope: None})
        left = {key: one for key, one in self._state.policy.pauses.items() if key != scope}
        self._set_pauses(left)
        await self._tell(scope, "Resumed", f"by {who}")

    async def approve(self, given: str, *, who: str) -> list[Ref]:
        """Let what waits for this id happen, once. Says what that is."""
        waiting = self._asks_for(given)
        if not waiting:
            raise BadCommand(_nothing_waits(given))
        await self._grant(given, who, waiting)
        for ref in waiting:
            await self._tell(str(ref), "Approved", f"{given} by {who}")
        if given == self._asked():
            self._nudge()
        return waiting

    async def consent(self, given: str, *, who: str) -> None:
        """Agree to documents that are about to be taken."""
        await self._grant(given, who, ())
        await self._tell(ALL, "Approved", f"{given} by {who}")

    async def reject(self, given: str, *, who: str) -> list[Ref]:
        """Take an approval back, or refuse what waits for one: its thing is paused."""
        now = self._state.policy
        waiting = self._asks_for(given)
        if given in now.approvals or given in now.consents:
            async with self._deciding:
                await self._end(given)
            await self._tell(ALL, "Rejected", f"{given} by {who}, who takes the approval back")
            return []
        if not waiting:
            raise BadCommand(_nothing_waits(given))
        if given == self._asked():
            raise BadCommand(
                f"{given} is about documents that are not taken yet; put the old ones back"
            )
        for ref in waiting:
            await self._tell(str(ref), "Rejected", f"{given} by {who}")
            await self.pause(str(ref), who=who, why=f"{given} was rejected")
        return waiting

    async def lapse(self) -> None:
        """End what people allowed and what is over."""
        now = self._clock.now()
        for name, one in sorted(self._grants.items()):
            if name not in self.granted:
                del self._grants[name]  # the executor used it up
                continue
            why = grants.over(one, self._state)
            if not why and grants.asked_for(one, self._state, self._asked()):
                self._unasked.pop(name, None)
                continue
            since = self._unasked.setdefault(name, now)
            if not why and now - since < grants.UNASKED_MAX:
                continue
            async with self._deciding:
                if self._grants.get(name) is not one:
                    continue  # it was given again, or taken back
                await self._end(name)
            given = one.at.isoformat(timespec="seconds")
            why = why or "nothing asks for it any more"
            for ref in one.refs or (FLEET,):
                await self._tell(str(ref), "Lapsed", f"{name} by {one.who} of {given}: {why}")

    async def _grant(self, given: str, who: str, refs: Sequence[Ref]) -> None:
        now = self._clock.now()
        made = Grant(id=given, kind=grants.kind_of(given), who=who, at=now, refs=tuple(refs))
        async with self._deciding:
            await self._store.put(records.APPROVALS, {given: grants.encode(made)})
            self._grants[given] = made
            self._unasked.pop(given, None)
            self._allow(made, counts=True)

    async def _end(self, given: str) -> None:
        await self._store.put(records.APPROVALS, {given: None})
        self._unasked.pop(given, None)
        made = self._grants.pop(given, None)
        if made is None:  # it stands in the settings
            made = Grant(id=given, kind=grants.kind_of(given), who="", at=self._clock.now())
        self._allow(made, counts=False)

    def _allow(self, made: Grant, *, counts: bool) -> None:
        now, one = self._state.policy, {made.id}
        if made.kind is not Kind.STEP:
            kept = now.consents | one if counts else now.consents - one
            self._state.allow(consents=kept, regions=grants.regions(made, self._state))
            return
        kept = now.approvals | one if counts else now.approvals - one
        if made.refs:
            self._state.allow(approvals=kept, refs=made.refs)
        else:  # an older fleetd did not write down what it is about
            self._state.set_policy(replace(now, approvals=kept))

    def retirable(self, ref: Ref) -> list[Ref]:
        """What would go with it, in the order of its going. Raises CannotRetire."""
        orphans = self._state.view.orphans
        retirement.check(ref, self._state.declared, orphans, self._state.retired)
        going = retirement.family(ref, orphans)
        tombs = retirement.tombstones(orphans, frozenset(going))
        return sorted(going, key=lambda one: (tombs[one].rank, one))

    async def retire(
        self, ref: Ref, *, who: str, agreed: Callable[[Sequence[Ref]], bool] = lambda _going: True
    ) -> list[Ref]:
        """`agreed`: whether somebody was shown, and agreed to, just what goes."""
        going = self.retirable(ref)
        if not agreed(going):
            raise retirement.OthersGo(
                f"other things would go with {ref} by now than those that were shown; look again"
            )
        await self._store.put(records.RETIRED, {str(one): who.encode() for one in going})
        self._state.retire(going)
        for one in going:
            self._wake(one)
        more = f", and {len(going) - 1} more with it" if len(going) > 1 else ""
        await self._tell(str(ref), "Retired", f"by {who}{more}")
        return going

    def _asks_for(self, given: str) -> list[Ref]:
        held: Sequence[Hold] = [hold for plan in self._state.plans.values() for hold in plan.holds]
        waiting = {hold.ref for hold in held if hold.approval == given}
        if given and given == self._asked():
            waiting.add(FLEET)
        return sorted(waiting)

    def _check_scope(self, scope: str) -> None:
        topology = self._state.view.topology
        kind, colon, name = scope.partition(":")
        if scope == ALL:
            return
        if colon and kind == "region" and name in topology.regions:
            return
        if colon and kind == "kind" and any(ref.kind == name for ref in topology.resources):
            return
        if not colon and records.parse_ref(scope) in topology.resources:
            return
        raise BadCommand(
            f"{scope} names nothing that can be paused; give all, region:<region>, kind:<kind> or "
            "<kind>/<name> of something that exists"
        )

    def _set_pauses(self, pauses: Mapping[str, Pause]) -> None:
        self._state.set_policy(replace(self._state.policy, pauses=pauses))

    async def _tell(self, scope: str, reason: str, message: str) -> None:
        kind, _, name = scope.partition(":")
        if "/" in scope:
            ref, text = records.parse_ref(scope), message
        elif kind == "region":
            ref, text = Ref(kind, name), message
        else:
            ref, text = FLEET, f"{scope}: {message}"
        at: datetime = self._clock.now()
        await self._store.record([Event(at=at, ref=ref, reason=reason, message=text)])


def _nothing_waits(given: str) -> str:
    return f"nothing waits for {given[:80]!r}; `fleetctl plan` shows what waits, and for which id"
