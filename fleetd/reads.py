"""
Whether a proposal hangs on more than its own thing: a count of how often drivers read around it.

A driver may look at the topology and the catalogue when it proposes (`vocabulary.Driver`). Whoever
hands these out counts here, and the planner, which asks between two counts, knows whose proposals
it must not remember beyond the topology and catalogue they were made from. Nobody has to say so.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Reads:
    count: int = 0

    def note(self) -> None:
        self.count += 1
