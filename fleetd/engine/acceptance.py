"""
New documents at the door: taken, or refused with a reason, as a whole.

Valid documents can still be a mistake. Those that the far side would refuse, and those that would
take away or replace much at once, are not taken without consent; the daemon goes on with what it
had. What they no longer name becomes an orphan, remembered durably before the new state counts.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from fleetd.engine import records
from fleetd.engine.state import State
from fleetd.plan.table import Table
from fleetd.store.base import Store
from fleetd.vocabulary import ABSENT
from topology import diff
from topology.resource import EMPTY, Ref, Resource, Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """New documents, compiled, beside what is in force; worked out away from the event loop."""

    topology: Topology
    table: Table
    refused: str
    removed: tuple[Resource, ...]
    rows: Mapping[str, bytes | None]
    """What changes in the store's record of the accepted topology."""

    @property
    def asks(self) -> str:
        """The consent that would have it taken; empty if none would, or none is needed."""
        consent = consent_id(self.topology)
        return consent if consent in self.refused else ""


def offer(
    old: Topology,
    new: Topology,
    old_rows: Mapping[str, bytes],
    consents: AbstractSet[str],
    around: records.Surroundings | None = None,
) -> Offer:
    """Pure, and slow for a large fleet: call it in a thread."""
    change = diff.diff(old, new)
    _ = new.carriers, new.carries  # made here, away from the loop, for who asks for incidents
    beside = records.encode_surroundings(around) if around is not None else {}
    new_rows = {**records.encode_topology(new), **beside}
    rows: dict[str, bytes | None] = dict.fromkeys(old_rows.keys() - new_rows.keys())
    rows.update((name, row) for name, row in new_rows.items() if old_rows.get(name) != row)
    return Offer(
        topology=new,
        table=Table(new),
        refused=_refusal(change, new, consents) if old is not EMPTY else "",
        removed=change.removed,
        rows=rows,
    )


def consent_id(topology: Topology) -> str:
    """What a person passes to agree to these documents, and to no others."""
    return f"accept-{topology.digest[:12]}"


async def restore(state: State, store: Store, old: Topology | None) -> None:
    """Put into force again what was when the daemon ended."""
    orphans = records.decode_orphans(await store.load(records.ORPHANS))
    retired = await store.load(records.RETIRED)
    state.retired = frozenset(records.parse_ref(name) for name in retired)
    if old is not None:
        state.accept(old, {ref: one for ref, one in orphans.items() if ref not in old.resources})


async def accept(state: State, store: Store, offered: Offer) -> None:
    """Put an offer into force."""
    orphans = await keep(state, store, offered)
    state.accept(offered.topology, orphans, offered.table)


async def keep(state: State, store: Store, offered: Offer) -> dict[Ref, Resource]:
    """Have an offer on disk, so that it may be put into force; returns its orphans. Orphans first:
    a crash in between remembers too much, and the next start drops what is named again."""
    new = offered.topology.resources
    orphans: dict[Ref, Resource] = {
        ref: orphan for ref, orphan in state.view.orphans.items() if ref not in new
    }
    for resource in offered.removed:
        ready = state.view.ready.get(resource.ref)
        if ready is None or ready.reason != ABSENT:
            orphans[resource.ref] = resource
    rows: dict[str, bytes | None] = dict(records.encode_orphans(orphans.values()))
    rows.update({str(ref): None for ref in state.view.orphans if ref not in orphans})
    if rows:
        await store.put(records.ORPHANS, rows)
    named_again = {str(ref): None for ref in state.retired if ref in new}
    if named_again:
        await store.put(records.RETIRED, named_again)
        state.retired = frozenset(ref for ref in state.retired if ref not in new)
    gone = {str(ref): None for ref in state.view.ready if ref not in new and ref not in orphans}
    if gone:
        await store.put(records.CONDITIONS, gone)
    if offered.rows:
        await store.put(records.ACCEPTED, offered.rows)
    return orphans


def _refusal(change: diff.Change, new: Topology, consents: AbstractSet[str]) -> str:
    if change.refusals:
        ref, words = change.refusals[0]
        more = len(change.refusals) - 1
        return f"{ref}: {words}" + (f" (and {more} more)" if more else "")
    if change.consent and consent_id(new) not in consents:
        sums = "; ".join(str(total) for total in change.guard if total.consent)
        return f"{sums}; if that is meant, consent with {consent_id(new)}"
    return ""
