"""A desk with state in it, for those who talk to one over HTTP."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleetd.plan.policy import Pause
from fleetd.surface import answers
from fleetd.surface.desk import Declined, Edit, Given
from tests.surface.panels import NOW
from topology.resource import Ref

DRAFT: answers.Draft = {
    "id": "d1",
    "topology": "t",
    "documents": ["Cluster/hv"],
    "fresh": ["Cluster/hv"],
    "pruned": [],
    "owned": [],
    "change": {
        "added": ["cluster/hv"],
        "changed": [],
        "removed": [],
        "guard": [],
        "consent": False,
    },
    "text": ["+ cluster/hv"],
    "waves": [],
    "consent": None,
}


@dataclass
class FakeDesk:
    """Implements `fleetd.surface.desk.Desk` from plain fields."""

    pauses: dict[str, Pause] = field(default_factory=dict[str, Pause])
    waiting: dict[str, list[Ref]] = field(default_factory=dict[str, list[Ref]])
    decided: dict[str, str] = field(default_factory=dict[str, str])
    orphans: list[Ref] = field(default_factory=list[Ref])
    late: list[Ref] = field(default_factory=list[Ref])
    """Orphans that come after what would go was shown once."""
    retired: list[Ref] = field(default_factory=list[Ref])
    sent: list[Given] = field(default_factory=list[Given])
    within: frozenset[str] | None = None
    """The regions to which the last caller was limited."""
    stale: int = 0
    """How often a plan is out of date when it is applied."""
    documents: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    applied: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def pause(self, scope: str, *, who: str, why: str) -> Pause:
        self.pauses[scope] = Pause(scope=scope, who=who, why=why, since=NOW)
        return self.pauses[scope]

    async def resume(self, scope: str, *, who: str) -> None:
        if self.pauses.pop(scope, None) is None:
            raise Declined("refused", f"there is no pause on {scope}")

    async def decide(self, given: str, *, approve: bool, who: str) -> Sequence[Ref]:
        if given not in self.waiting:
            raise Declined("refused", f"nothing waits for {given}")
        self.decided[given] = f"{'approve' if approve else 'reject'} {who}"
        return self.waiting[given]

    async def retire(
        self, ref: Ref, *, who: str, only_show: bool, agreed: Callable[[Sequence[Ref]], bool]
    ) -> Sequence[Ref]:
        if ref not in self.orphans:
            raise Declined("refused", f"{ref} is not known")
        if only_show:
            shown = [*self.orphans]
            self.orphans += self.late
            self.late = []
            return shown
        if not agreed(self.orphans):
            raise Declined("plan-stale", "other things would go")
        self.retired += self.orphans
        return self.orphans

    async def plan(
        self, given: Sequence[Given], *, prune: bool, within: frozenset[str] | None
    ) -> answers.Draft:
        self.within = within
        self.sent = list(given)
        return DRAFT

    async def apply(
        self, plan: str, *, who: str, consent: str, within: frozenset[str] | None
    ) -> answers.Applied:
        self.within = within
        if self.stale:
            self.stale -= 1
            raise Declined("plan-stale", "the world moved")
        self.applied.append((plan, consent))
        return _applied(plan, ["Cluster/hv"])

    async def edit(
        self, asked: Edit, *, who: str, consent: str, within: frozenset[str] | None
    ) -> answers.Applied:
        self.within = within
        kind, name, content, expected = asked
        key = f"{kind.lower()}/{name}"
        if not expected(self.documents.get(key)):
            raise Declined("document-changed", f"{key} is another one")
        if content is None:
            if self.documents.pop(key, None) is None:
                raise Declined("not-found", f"there is no {key}")
        else:
            self.documents[key] = content
        return _applied("d1", [key])


def _applied(plan: str, documents: list[str]) -> answers.Applied:
    return {
        "plan": plan,
        "documents": documents,
        "pruned": [],
        "resources": [],
        "changed": True,
    }
