"""
A small world with ground truth: things that take time to become ready, and a log of all deeds.

It is not a mock: it has a state, it refuses what makes no sense, and it remembers who did what so
that the invariants can be judged against it, not against what the daemon believes. It knows
nothing of fleetd but the words of a step. Time comes in as an argument.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from topology.resource import Ref


@dataclass(frozen=True, slots=True)
class Deed:
    """One write that changed the world, or was taken and changed nothing."""

    at: datetime
    ref: Ref
    verb: str
    step: str
    effect: str
    """create, change, again (the same deed a second time) or refused."""


@dataclass(frozen=True, slots=True)
class Work:
    """One verb in the life of a thing, and how long the world is busy after it."""

    verb: str
    seconds: int
    once: bool = False
    """A second time would do harm: a disk is wiped, a key is made anew."""


LIVES: dict[str, tuple[Work, ...]] = {
    "server": (Work("register", 5), Work("deploy", 90, once=True)),
    "serverpool": (Work("label", 2),),
    "cluster": (Work("create", 480), Work("open_access", 3)),
    "vault": (Work("install", 60), Work("initialise", 5, once=True), Work("unseal", 2)),
    "key": (Work("generate", 1, once=True), Work("push", 4)),
    "agent": (Work("install", 30),),
    "cloud": (Work("declare", 120),),
}
DEFAULT_LIFE = (Work("create", 20),)
UPGRADE = Work("upgrade", 60)
WIPE = "wipe"
"""Makes a thing as if it had never been."""
REMOVE = Work("remove", 15)
"""The orderly way: it takes its time, and nothing may stand on it any more."""


@dataclass(slots=True)
class Thing:
    done: list[str] = field(default_factory=list[str])
    busy_until: datetime | None = None
    version: int = 1
    names: set[str] = field(default_factory=set[str])
    broken: str = ""
    gone_at: datetime | None = None
    """When it is removed altogether."""


@dataclass
class World:
    pace: float = 1.0
    """Seconds of work are divided by this."""
    needs: dict[Ref, frozenset[Ref]] = field(default_factory=dict[Ref, frozenset[Ref]])
    """Who cannot work before whom, for the order invariant."""
    domains: dict[Ref, str] = field(default_factory=dict[Ref, str])
    """Failure domain of each thing that can be down, for the budget invariant."""
    down_max: int = 1
    things: dict[Ref, Thing] = field(default_factory=dict[Ref, Thing])
    deeds: list[Deed] = field(default_factory=list[Deed])
    harm: list[str] = field(default_factory=list[str])
    """What must never happen and did."""
    dead: set[Ref] = field(default_factory=set[Ref])
    """Things that do not answer."""

    def read(self, ref: Ref, now: datetime) -> dict[str, Any]:
        """Facts; empty if it is not there. Raises ConnectionError if it does not answer."""
        if ref in self.dead:
            raise ConnectionError(f"{ref} does not answer")
        thing = self._there(ref, now)
        if thing is None:
            return {}
        return {
            "done": list(thing.done),
            "busy": self._busy(thing, now),
            "version": thing.version,
            "broken": thing.broken,
            "names": sorted(thing.names),
        }

    def write(self, ref: Ref, verb: str, args: dict[str, Any], step: str, now: datetime) -> str:
        """Do one deed; returns its effect. A deed done before is taken and changes nothing."""
        if ref in self.dead:
            raise ConnectionError(f"{ref} does not answer")
        thing = self._there(ref, now)
        effect = self._act(ref, thing, verb, args, now)
        self.deeds.append(Deed(now, ref, verb, step, effect))
        return effect

    def is_ready(self, ref: Ref, now: datetime) -> bool:
        thing = self.things.get(ref)
        if thing is None or ref in self.dead or thing.broken:
            return False
        return self._complete(ref, thing) and not self._busy(thing, now)

    def summary(self) -> Counter[tuple[Ref, str, str]]:
        """How often each thing suffered each deed with an effect: the differential oracle."""
        return Counter(
            (deed.ref, deed.verb, deed.effect)
            for deed in self.deeds
            if deed.effect in {"create", "change", "delete"}
        )

    def down(self, domain: str, now: datetime) -> list[Ref]:
        """Complete things of a failure domain that do not serve at this moment."""
        return [
            ref
            for ref, where in sorted(self.domains.items())
            if where == domain
            and (thing := self.things.get(ref)) is not None
            and self._complete(ref, thing)
            and not self.is_ready(ref, now)
        ]

    def _act(
        self, ref: Ref, thing: Thing | None, verb: str, args: dict[str, Any], now: datetime
    ) -> str:
        life = LIVES.get(ref.kind, DEFAULT_LIFE)
        if verb == REMOVE.verb:
            return self._remove(ref, thing, now)
        self._watch_order(ref, now)
        if verb == WIPE:
            del self.things[ref]
            return "delete"
        if verb == UPGRADE.verb:
            return self._upgrade(ref, thing, args, now)
        work = next((work for work in life if work.verb == verb), None)
        if work is None:
            raise ValueError(f"{ref} knows no {verb}")
        if thing is None:
            thing = self.things[ref] = Thing()
            effect = "create"
        else:
            effect = "change"
        thing.names.add(str(args.get("name", ref.name)))
        if len(thing.names) > 1:
            self.harm.append(f"I8 {ref} was made under several names: {sorted(thing.names)}")
        if verb in thing.done:
            if work.once:
                self.harm.append(f"I9 {verb} was done twice to {ref}")
            return "again"
        if [work.verb for work in life[: len(thing.done)]] != thing.done or (
            life[len(thing.done)].verb != verb
        ):
            self.harm.append(f"I12 {verb} came out of order at {ref}, after {thing.done}")
        thing.done.append(verb)
        thing.version = int(args.get("version", thing.version))
        thing.busy_until = now + timedelta(seconds=work.seconds / self.pace)
        return effect

    def _there(self, ref: Ref, now: datetime) -> Thing | None:
        thing = self.things.get(ref)
        if thing is not None and thing.gone_at is not None and thing.gone_at <= now:
            del self.things[ref]
            return None
        return thing

    def _remove(self, ref: Ref, thing: Thing | None, now: datetime) -> str:
        users = [other for other in self.things if ref in self.needs.get(other, ())]
        left = [other for other in sorted(users) if self._there(other, now) is not None]
        if left:
            self.harm.append(f"I12 {ref} was removed while {', '.join(map(str, left))} stood on it")
        if thing is None or thing.gone_at is not None:
            return "again"
        thing.gone_at = thing.busy_until = now + timedelta(seconds=REMOVE.seconds / self.pace)
        return "delete"

    def _upgrade(self, ref: Ref, thing: Thing | None, args: dict[str, Any], now: datetime) -> str:
        if thing is None or not self._complete(ref, thing):
            return "refused"
        version = int(args["version"])
        if thing.version == version:
            return "again"
        domain = self.domains.get(ref)
        if domain is not None:
            down = [other for other in self.down(domain, now) if other != ref]
            if len(down) + 1 > self.down_max:
                self.harm.append(
                    f"I11 {ref} is taken down in {domain} while {', '.join(map(str, down))} is down"
                )
        thing.version = version
        thing.busy_until = now + timedelta(seconds=UPGRADE.seconds / self.pace)
        return "change"

    def _watch_order(self, ref: Ref, now: datetime) -> None:
        for need in sorted(self.needs.get(ref, ())):
            thing = self.things.get(need)
            if thing is None or not self._complete(need, thing) or self._busy(thing, now):
                self.harm.append(f"I12 {ref} was worked on before {need} was ready")

    def _complete(self, ref: Ref, thing: Thing) -> bool:
        return len(thing.done) == len(LIVES.get(ref.kind, DEFAULT_LIFE))

    @staticmethod
    def _busy(thing: Thing, now: datetime) -> bool:
        return thing.busy_until is not None and now < thing.busy_until
