"""
An operator that brings one kind of thing up: it starts, takes its time, is ready, and is not when
its nodes are gone. The backing services (cobaltcore 12) are this with words of their own.

A subclass says what the status is in each of the states; nothing here knows any system.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from fleetd.sim.controllers.base import Controller, Key, Obj, key_of
from fleetd.sim.controllers.workloads import NODE
from fleetd.sim.controllers.workloads_look import conditions, meant, part, usable
from fleetd.sim.kube.cluster import GK, Change

RETRY = 30.0
"""Seconds after which something that lacks a thing is looked at again."""


class Settling(Controller):
    kind: ClassVar[GK] = ("", "")
    seconds: ClassVar[tuple[float, float]] = (60.0, 120.0)
    """From the first look to Ready, between these; updates take as long."""
    awaits: ClassVar[tuple[GK, ...]] = ()
    """Kinds whose changes make it look again."""

    def __init__(self, world: Any, cluster: Any) -> None:  # noqa: ANN401 - as the base has them
        super().__init__(world, cluster)
        self._until: dict[Key, tuple[int, float]] = {}

    # What a subclass says.

    def lacks(self, obj: Obj) -> dict[str, Any] | None:
        """The status while something that must be there is not; None: nothing is missing."""
        del obj
        return None

    def starting(self, obj: Obj) -> dict[str, Any]:
        raise NotImplementedError

    def ready(self, obj: Obj) -> dict[str, Any]:
        raise NotImplementedError

    def lost(self, obj: Obj) -> dict[str, Any]:
        """The status when no node can run it."""
        return self.starting(obj)

    def finished(self, obj: Obj) -> None:
        """Once it is ready: what it leaves beside its status."""
        del obj

    # What follows from it.

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == self.kind and meant(change):
            yield key_of(change.gk, change.object)
        if change.gk == NODE or change.gk in self.awaits:
            yield from (key_of(self.kind, one) for one in self.cluster.list(self.kind))

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            self._until.pop(key, None)
            return None
        if not self.nodes():
            self._until.pop(key, None)
            self.status(key, self.lost(obj))
            return None
        missing = self.lacks(obj)
        if missing is not None:
            self._until.pop(key, None)
            self.status(key, missing)
            return RETRY
        generation = int(obj["metadata"].get("generation", 1))
        if key not in self._until and self.settled(obj, generation):
            return None
        began, due = self._until.get(key, (0, 0.0))
        if began != generation:
            low, high = self.seconds
            lasts = self.span(low, high, key, "up", str(generation))
            self._until[key] = (generation, self.world.elapsed() + lasts)
            self.status(key, self.starting(obj))
            return lasts
        left = due - self.world.elapsed()
        if left > 0:
            return left
        self._until.pop(key, None)
        self.finished(obj)
        self.status(key, self.ready(obj))
        return None

    def settled(self, obj: Obj, generation: int) -> bool:
        """Whether its status says already what `ready` would."""
        del generation
        status = part(obj, "status")
        wanted = self.ready(obj)
        for name, value in wanted.items():
            if name == "conditions":
                said = {(one["type"], one["status"]) for one in conditions(obj)}
                if not said >= {(one["type"], one["status"]) for one in value}:
                    return False
            elif status.get(name) != value:
                return False
        return True

    def nodes(self) -> int:
        return sum(1 for node in self.cluster.list(NODE) if usable(node))

    def secret(self, name: str, namespace: str) -> Obj | None:
        return self.cluster.get(("", "Secret"), name, namespace)
