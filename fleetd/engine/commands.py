"""
What a person may tell a running daemon: pause, resume, approve, reject, retire.

Each command is on disk before it counts, and counts again after a restart (`restore`). It changes
the policy or what is wanted, never the world: the next plan does, or says why not.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from fleetd import errors
from fleetd.clock import Clock
from fleetd.engine import records, retirement
from fleetd.engine.state import State
from fleetd.plan.policy import ALL, Pause
from fleetd.store.base import Store
from fleetd.vocabulary import Event, Hold
from topology.resource import Ref

_encoder = msgspec.json.Encoder(order="sorted")
FLEET = Ref("fleet", "all")
"""The ref of events that concern everything."""
_CONSENT = re.compile(r"(mass|accept)-[a-z0-9.-]+")


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

    async def restore(self) -> None:
        """What people said before the daemon ended."""
        pauses = {
            scope: msgspec.json.decode(row, type=Pause)
            for scope, row in sorted((await self._store.load(records.PAUSES)).items())
        }
        said = frozenset(await self._store.load(records.APPROVALS))
        consents = frozenset(name for name in said if _CONSENT.fullmatch(name))
        now = self._state.policy
        self._set(
            pauses={**now.pauses, **pauses},
            approvals=now.approvals | (said - consents),
            consents=now.consents | consents,
        )

    async def pause(self, scope: str, *, who: str, why: str) -> Pause:
        self._check_scope(scope)
        if not why.strip():
            raise BadCommand("a pause needs a reason: whoever finds it in a month asks for it")
        made = Pause(scope=scope, who=who, why=why.strip(), since=self._clock.now())
        await self._store.put(records.PAUSES, {scope: _encoder.encode(made)})
        self._set(pauses={**self._state.policy.pauses, scope: made})
        await self._tell(scope, "Paused", f"by {who}: {made.why}")
        return made

    async def resume(self, scope: str, *, who: str) -> None:
        if scope not in self._state.policy.pauses:
            known = ", ".join(sorted(self._state.policy.pauses)) or "nothing is paused"
            raise BadCommand(f"there is no pause on {scope}; paused: {known}")
        await self._store.put(records.PAUSES, {scope: None})
        left = {key: one for key, one in self._state.policy.pauses.items() if key != scope}
        self._set(pauses=left)
        await self._tell(scope, "Resumed", f"by {who}")

    async def approve(self, given: str, *, who: str) -> list[Ref]:
        """Let what waits for this id happen, once. Says what that is."""
        waiting = self._asks_for(given)
        if not waiting:
            raise BadCommand(_nothing_waits(given))
        await self._store.put(records.APPROVALS, {given: who.encode()})
        now = self._state.policy
        if _CONSENT.fullmatch(given):
            self._set(consents=now.consents | {given})
        else:
            self._set(approvals=now.approvals | {given})
        for ref in waiting:
            await self._tell(str(ref), "Approved", f"{given} by {who}")
        if given == self._asked():
            self._nudge()
        return waiting

    async def consent(self, given: str, *, who: str) -> None:
        """Agree to documents that are about to be taken."""
        await self._store.put(records.APPROVALS, {given: who.encode()})
        self._set(consents=self._state.policy.consents | {given})
        await self._tell(ALL, "Approved", f"{given} by {who}")

    async def reject(self, given: str, *, who: str) -> list[Ref]:
        """Take an approval back, or refuse what waits for one: its thing is paused."""
        now = self._state.policy
        waiting = self._asks_for(given)
        if given in now.approvals or given in now.consents:
            await self._store.put(records.APPROVALS, {given: None})
            self._set(approvals=now.approvals - {given}, consents=now.consents - {given})
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

    def retirable(self, ref: Ref) -> list[Ref]:
        """What would go with it, in the order of its going. Raises CannotRetire."""
        orphans = self._state.view.orphans
        retirement.check(ref, self._state.declared, orphans, self._state.retired)
        going = retirement.family(ref, orphans)
        tombs = retirement.tombstones(orphans, frozenset(going))
        return sorted(going, key=lambda one: (tombs[one].rank, one))

    async def retire(self, ref: Ref, *, who: str) -> list[Ref]:
        going = self.retirable(ref)
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

    def _set(self, **changed: object) -> None:
        changes: dict[str, Any] = changed
        self._state.set_policy(replace(self._state.policy, **changes))

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
