"""
What the faces may ask for: the one way in for what people tell the daemon.

`fleetd.daemon.desk` implements `Desk` on the engine. Everything that is answered is durable before
it is answered. What cannot be done is `Declined`, with the stable code of the problem and a
sentence that says what to do.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fleetd import errors
from fleetd.plan.policy import Pause
from fleetd.surface import answers
from topology.resource import Ref


class Declined(errors.FleetError):
    def __init__(self, code: str, detail: str, **more: Any) -> None:  # noqa: ANN401 -- JSON
        super().__init__(detail)
        self.code = code
        self.more = more


class Given(NamedTuple):
    """A file of documents that somebody sent."""

    file: str
    """As its owner calls it."""
    folder: str
    """Where the relative files that its documents name are found; empty if it lies nowhere."""
    text: str


class Owned(NamedTuple):
    """A document that was sent and differs from a file the daemon reads: the file is its owner."""

    kind: str
    name: str
    file: str


class Edit(NamedTuple):
    """One document that is to be put or taken away."""

    kind: str
    name: str
    content: Mapping[str, Any] | None
    """None: it is to be taken away."""
    expected: Callable[[Mapping[str, Any] | None], bool]
    """Whether what is there now is what the caller thinks is there."""


class Desk(Protocol):
    async def pause(self, scope: str, *, who: str, why: str) -> Pause: ...

    async def resume(self, scope: str, *, who: str) -> None: ...

    async def decide(self, given: str, *, approve: bool, who: str) -> Sequence[Ref]:
        """What it was about."""
        ...

    async def retire(
        self, ref: Ref, *, who: str, only_show: bool, agreed: Callable[[Sequence[Ref]], bool]
    ) -> Sequence[Ref]:
        """What goes, in the order of its going; if that is not `agreed` by then, it is declined as
        `plan-stale`."""
        ...

    async def plan(
        self, given: Sequence[Given], *, prune: bool, within: frozenset[str] | None
    ) -> answers.Draft:
        """What the documents would do. `within`: Declined if they touch another region."""
        ...

    async def apply(
        self, plan: str, *, who: str, consent: str, within: frozenset[str] | None
    ) -> answers.Applied:
        """Take a draft's documents. Declined if the world moved since."""
        ...

    async def edit(
        self, asked: Edit, *, who: str, consent: str, within: frozenset[str] | None
    ) -> answers.Applied:
        """Put one document, or take it away, if what is there now is as expected."""
        ...
