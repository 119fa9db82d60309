"""
What every simulated controller is: woken by changes, looks at one object, moves it a little.

Level-triggered like the real ones: a wake-up is a key, and `reconcile` reads all it needs again.
It answers with the seconds after which it wants to look again, or None. Time passes between the
steps, as long as the facts say the real thing takes, drawn from the seed; nothing is Ready at
once. One rule: a controller changes objects through its cluster and the truth through machines,
and keeps nothing of its own that a restart of the real one would lose.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from fleetd.sim.kube.cluster import GK, Change, Cluster
from fleetd.sim.world import World

REACTION = 0.1
"""Seconds from a change to the reconcile it causes; what the real ones need on a quiet day."""

SHORTEST = 0.001

Obj = Mapping[str, Any]


class Key(NamedTuple):
    gk: GK
    namespace: str
    name: str


class Controller:
    name: ClassVar[str] = ""
    """Also its field manager."""
    watches: ClassVar[tuple[GK, ...]] = ()

    def __init__(self, world: World, cluster: Cluster) -> None:
        self.world = world
        self.cluster = cluster
        self._pending: dict[Key, float] = {}
        self._stopped = False

    def start(self) -> None:
        key = (self.cluster.name, self.name)
        if key in self.world.controllers:
            return
        self.world.controllers[key] = self
        self.cluster.subscribe(self._changed)
        for gk in self.watches:
            for obj in self.cluster.list(gk):
                self.wake(key_of(gk, obj))

    def stop(self) -> None:
        """As if its pod were gone: nothing is reconciled until another one starts."""
        self._stopped = True
        self._pending.clear()
        self.world.controllers.pop((self.cluster.name, self.name), None)

    def wake(self, key: Key, after: float = REACTION) -> None:
        """Reconcile this in that time, or earlier if that was asked for already."""
        # A delay that is lost in the rounding of time would never be over.
        after = max(after, SHORTEST)
        due = self.world.elapsed() + after
        if self._stopped or self._pending.get(key, due + 1) <= due:
            return
        self._pending[key] = due
        self.world.after(after, lambda: self._due(key, due))

    def keys(self, change: Change) -> Iterable[Key]:
        """Which keys a change concerns. Override where one kind waits for another."""
        if change.gk in self.watches:
            yield key_of(change.gk, change.object)

    def reconcile(self, key: Key) -> float | None:
        """One look at one object."""
        raise NotImplementedError

    # Helpers.

    def get(self, key: Key) -> Obj | None:
        return self.cluster.get(key.gk, key.name, key.namespace)

    def span(self, low: float, high: float, key: Key, *purpose: str) -> float:
        """A duration drawn for this object of this cluster."""
        return self.world.span(
            low, high, self.cluster.name, *key.gk, key.namespace, key.name, *purpose
        )

    def status(self, key: Key, status: Mapping[str, Any]) -> None:
        """Merge these top-level fields into its status; conditions are merged by type."""
        there: Obj = self.get(key) or {}
        old: Obj = there.get("status") or {}
        merged: dict[str, Any] = {**old, **status}
        if "conditions" in status:
            merged["conditions"] = merge_conditions(old.get("conditions", []), status["conditions"])
        self.cluster.set_status(key.gk, key.name, key.namespace, merged, manager=self.name)

    def condition(
        self,
        kind: str,
        status: str,
        reason: str,
        message: str = "",
        *,
        generation: int | None = None,
    ) -> dict[str, Any]:
        """A condition as of now; `merge_conditions` keeps the time where the status stays."""
        made: dict[str, Any] = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": stamp(self.world),
        }
        if generation is not None:
            made["observedGeneration"] = generation
        return made

    def event(self, regarding: Obj, reason: str, message: str, *, warning: bool = False) -> None:
        """A core/v1 Event; of cluster-scoped things it lies in `default`."""
        metadata = regarding["metadata"]
        namespace = metadata.get("namespace") or "default"
        mark = self.world.token(self.cluster.name, metadata["uid"], reason, message)[:12]
        name = f"{metadata['name']}.{mark}"
        if self.cluster.get(("", "Event"), name, namespace) is not None:
            return
        self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": namespace},
                "involvedObject": {
                    "apiVersion": regarding["apiVersion"],
                    "kind": regarding["kind"],
                    "name": metadata["name"],
                    "namespace": metadata.get("namespace", ""),
                    "uid": metadata["uid"],
                },
                "reason": reason,
                "message": message,
                "type": "Warning" if warning else "Normal",
                "lastTimestamp": stamp(self.world),
            },
            manager=self.name,
        )

    def _changed(self, change: Change) -> None:
        if not self._stopped:
            for key in self.keys(change):
                self.wake(key)

    def _due(self, key: Key, due: float) -> None:
        if self._stopped or self._pending.get(key) != due:
            return
        del self._pending[key]
        again = self.reconcile(key)
        if again is not None:
            self.wake(key, again)


def key_of(gk: GK, obj: Obj) -> Key:
    metadata = obj["metadata"]
    return Key(gk, metadata.get("namespace", ""), metadata["name"])


def stamp(world: World) -> str:
    return world.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def merge_conditions(old: Iterable[Obj], new: Iterable[Obj]) -> list[dict[str, Any]]:
    """By type; the time of a condition moves only when its status does."""
    found = {one["type"]: dict(one) for one in old}
    for one in new:
        before = found.get(one["type"])
        made = dict(one)
        if before is not None and before["status"] == one["status"]:
            made["lastTransitionTime"] = before.get("lastTransitionTime")
        found[one["type"]] = made
    return list(found.values())


def age(world: World, text: str) -> float:
    """Seconds since a timestamp of an object."""
    return (world.now() - datetime.fromisoformat(text)).total_seconds()
