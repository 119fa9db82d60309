"""
How much more may go down. Pure.

A failure domain's budget counts what is down *already*, whoever caused it, what steps in flight
take down, and what was admitted earlier in the same plan. Unknown counts as down; a thing that was
looked for and is not there never served, so it does not. Taking down what is down costs nothing.
"""

import heapq
from collections.abc import Iterable

from fleetd.plan import words
from fleetd.plan.policy import Policy
from fleetd.plan.standing import Standing
from fleetd.plan.table import Table
from topology.resource import Ref


def allowed(share: int | str, members: int) -> int:
    """How many of `members` may be down: a number as it is, `10%` rounded down, at least 1."""
    if isinstance(share, int):
        return share
    return max(1, members * int(share.removesuffix("%")) // 100)


class Budget:
    """For one plan of one region; spending changes it."""

    def __init__(
        self, table: Table, standing: Standing, policy: Policy, taken: Iterable[Ref]
    ) -> None:
        self._table = table
        self._standing = standing
        self._policy = policy
        self._taken: dict[str, set[int]] = {}
        """Rows that are not down, but going down, by domain."""
        self._gone: set[int] = set()
        self._answers: dict[str, dict[tuple[str, int], str]] = {}
        """By domain, for a region and a number of rows: why so many more do not fit, or nothing.
        Good until something in the domain is taken: the thousand servers of a pool that may lose
        one get the same answer, and it is worked out once."""
        self.regions: set[str] = set()
        """Regions of all that was to be taken down: how things stand there matters."""
        for ref in sorted(set(taken)):
            row = table.index.get(ref)
            if row is not None and not standing.is_down(row):
                self._take(row)

    def spend(self, refs: frozenset[Ref]) -> str:
        """Take these down. Empty if they fit; otherwise why not, and nothing is spent."""
        rows: list[int] = []
        for ref in refs:
            row = self._table.index.get(ref)
            if row is None:
                continue
            self.regions.add(self._table.resources[row].region)
            if row not in self._gone and not self._standing.is_down(row):
                rows.append(row)
        rows.sort()
        more: dict[str, list[int]] = {}
        for row in rows:
            for domain in self._table.domains[row]:
                more.setdefault(domain, []).append(row)
        for domain in sorted(more):
            problem = self._problem(domain, more[domain])
            if problem:
                return problem
        for row in rows:
            self._take(row)
        return ""

    def _take(self, row: int) -> None:
        self._gone.add(row)
        for domain in self._table.domains[row]:
            self._taken.setdefault(domain, set()).add(row)
            self._answers.pop(domain, None)

    def _problem(self, domain: str, more: list[int]) -> str:
        answers = self._answers.setdefault(domain, {})
        asked = (self._table.resources[more[0]].region, len(more))
        if asked not in answers:
            answers[asked] = self._answer(domain, *asked)
        return answers[asked]

    def _answer(self, domain: str, region: str, more: int) -> str:
        share = self._policy.region(region).budgets.of_level(domain.split(":", 1)[0])
        if share is None:
            return ""
        members = self._table.members[domain]
        most = allowed(share, members)
        down = self._standing.down.get(domain, set())
        going = self._taken.get(domain, set())
        if len(down) + len(going) + more <= most:
            return ""
        text = f"{domain} may have {most} of {members} down"
        if more > most:
            text += f", but this takes {more} at once, which never fits; raise the budget"
        elif more > 1:
            text += f", and this takes {more}"
        if down:
            text += f"; down already: {self._names(down)}"
        if going:
            text += f"; going down: {self._names(going)}"
        return text

    def _names(self, rows: set[int]) -> str:
        first = [self._table.refs[row] for row in heapq.nsmallest(3, rows)]
        return words.listed(first, total=len(rows))
