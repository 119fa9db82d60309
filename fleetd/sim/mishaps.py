"""
Lines of a fault script, done to the world: when they begin, and when they are over.

Requests suffer through the `Climate`, machines through the truth, controllers by what they are told
in `world.mishaps`, objects by strangers (`fleetd.sim.meddling`). A line that names something the
world does not have is refused before the run begins, with what there is: a fault that never fires
proves nothing. `hits` counts those that had something to happen to.
"""

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from fleetd.sim import faults, meddling, script
from fleetd.sim.controllers import gardener_access
from fleetd.sim.faults import Aim, Cell, Climate, Plight
from fleetd.sim.script import Line, ScriptError
from fleetd.sim.truth import Machine
from fleetd.sim.world import World

Deed = Callable[[], None]
Counted = Callable[[], int]
"""How often somebody has met it."""
T = TypeVar("T")

_PLIGHTS = {plight.value: plight for plight in Plight}
BMC = "bmc"
_NO_SHOOTS = ("garden-", "metal-", "seed-")
DAEMON = "daemon"
"""Whose clock it is."""
JUMP = timedelta(hours=1)
SHOWN = 8
"""Names in a complaint."""
_PREFIX = {"cluster": "", "garden": "garden-", "metal": "metal-", "openbao": "openbao-"}


@dataclass(slots=True)
class Begun:
    """A line that has fired."""

    line: Line
    lift: Deed
    count: Counted
    aim: Aim | None
    total: int | None = None
    """How often it was met, once it is over."""

    @property
    def met(self) -> int:
        return self.count() if self.total is None else self.total

    @property
    def lasts(self) -> bool:
        """Whether there is something to mend."""
        return self.aim is None or not self.aim.over

    def end(self) -> None:
        self.total = self.count()
        self.lift()


class Mishaps:
    """Puts a script into effect."""

    def __init__(
        self, world: World, climate: Climate, known: Iterable[str], *, clock: bool = True
    ) -> None:
        """`known`: names of clusters that will come to be. `clock`: whether the daemon's clock is
        the world's to move; that of another process is not."""
        self._world = world
        self._climate = climate
        self._clock = clock
        self._known = sorted({*known, *world.clusters})
        self._effective = True
        self._layers: dict[tuple[str, str], list[tuple[object, Any]]] = {}
        self.begun: list[Begun] = []
        """Lines that have fired, in the order of their beginning."""
        self._lasting: list[Begun] = []
        self._count: Counted = _once
        self._aim: Aim | None = None
        self._done: Counter[tuple[str, str]] = Counter()
        self.undone: set[str] = set()
        """Objects that a stranger took away, as `<cluster> <kind> <namespace>/<name>`."""

    @property
    def hits(self) -> Counter[tuple[str, str]]:
        """How often each thing that can happen met somebody: what controllers are told counts when
        one of them asks, all else when it is done to something."""
        asked: Counter[tuple[str, str]] = Counter()
        for (what, _, how), count in self._world.mishaps.asked.items():
            asked[what, how] += count
        return self._done + asked

    def plan(self, lines: Sequence[Line]) -> None:
        """Check all of them, then set their timers, which count from the world's beginning."""
        self._plan(lines, -self._world.elapsed())

    def plan_from_now(self, lines: Sequence[Line]) -> None:
        self._plan(lines, 0.0)

    def _plan(self, lines: Sequence[Line], later: float) -> None:
        self.check(lines)
        for line in lines:
            if (line.what, line.how) == ("requests", "stale"):
                self._climate.remembered.update(self._members(line.whom))
            self._world.after(line.at.total_seconds() + later, lambda line=line: self.begin(line))

    def check(self, lines: Sequence[Line]) -> None:
        """Raises ScriptError for the first that names something the world does not have."""
        for line in lines:
            self._check(line)

    def begin(self, line: Line) -> None:
        """Now, whatever its `at` says."""
        self._check(line)
        self._effective, self._count, self._aim = True, _once, None
        lift = self._do(line)
        begun = Begun(line, lift, self._count, self._aim)
        self.begun.append(begun)
        # Single requests and lines are counted by the climate when they meet it.
        if (line.what, line.how) not in script.AIMED:
            self._done[line.what, line.how] += self._effective
        self._world.tell("fault", line.whom, f"{line.what} {line.how}")
        if line.span is not None:
            self._world.after(line.span.total_seconds(), lambda: self._end(begun))
        else:
            self._lasting.append(begun)

    def mend(self) -> list[Line]:
        """End everything that would last until somebody mends it. Says what that was."""
        mended, self._lasting = [one for one in self._lasting if one.lasts], []
        for begun in mended:
            self._end(begun)
        return [begun.line for begun in mended]

    def _end(self, begun: Begun) -> None:
        begun.end()
        line = begun.line
        self._world.tell("mended", line.whom, f"{line.what} is no longer {line.how}")

    def _check(self, line: Line) -> None:
        if line.what == "image":
            _known_cluster(line, self._known)
            return
        _known(line, self.names(line.what))
        if (line.what, line.how) in script.AIMED:
            self._fits(line)
        if line.what == "clock" and not self._clock:
            raise ScriptError(
                f"'{line}': the daemon is another process with a clock of its own; "
                "rehearse it with fleetctl rehearse"
            )

    def _fits(self, line: Line) -> None:
        """Whether what it names can meet it at all."""
        cluster = line.whom in self._known
        fitting = faults.fitting(line.whom, cluster=cluster)
        if Cell(f"{line.what} {line.how}") in fitting:
            return
        known = (one.value.split() for one in Cell if one in fitting)
        hows = ", ".join(how for what, how in known if what == line.what)
        raise ScriptError(f"'{line}': {line.whom} never meets {line.how}; it can meet {hows}")

    def names(self, what: str) -> Collection[str]:
        """What can be named as such."""
        machines, services = self._world.truth.machines, self._world.services
        match what:
            case "bmc" | "server":
                return machines
            case "rack":
                return {one.rack for one in machines.values() if one.rack}
            case "garden" | "metal" | "openbao":
                return {machine.region for machine in machines.values()}
            case "openstack" | "ironic":
                start = "keystone-" if what == "openstack" else "ironic-"
                return [one.removeprefix(start) for one in services if one.startswith(start)]
            case "partition":
                return [*self._known, *self._backends()]
            case "requests":
                here = [one for one in self._known if not one.startswith("seed-")]
                return [*here, *self._backends(), *([BMC] if BMC in services else ())]
            case "token" | "shoot" | "eso" | "ceph":
                return [one for one in self._known if not one.startswith(_NO_SHOOTS)]
            case "clock":
                return [DAEMON]
            case _:
                return [one for one in self._known if not one.startswith("seed-")]

    def _backends(self) -> list[str]:
        """Services that have an address of their own; the members of one go with it."""
        there = self._world.services
        return [one for one in there if one != BMC and one.rpartition("-")[0] not in there]

    def _do(self, line: Line) -> Deed:
        machines = self._world.truth.machines
        if (line.what, line.how) in script.AIMED:
            return self._take_aim(line)
        match line.what:
            case "bmc":
                return self._bmc([machines[line.whom]], line.how)
            case "server":
                return self._dark([machines[line.whom]])
            case "rack":
                return self._dark([one for one in machines.values() if one.rack == line.whom])
            case "watch":
                return self._watch(line.whom, line.how)
            case "token" if line.how == "revoked":
                return self._revoke(line.whom)
            case "token":
                return self._service(line.whom, Plight.EXPIRED)
            case "objects":
                return self._strange(line.whom, line.how)
            case "clock":
                return self._jump(JUMP if line.how == "ahead" else -JUMP)
            case _:
                return self._backend_suffers(line)

    def _backend_suffers(self, line: Line) -> Deed:
        match line.what:
            case "cluster" | "garden" | "metal":
                lift = self._cut_off(line)
                self._effective = True
                return lift
            case "openbao" | "ironic" if line.how in _PLIGHTS:
                return self._service(f"{line.what}-{line.whom}", _PLIGHTS[line.how])
            case "partition":
                # For fleetd alone: whoever else talks to it goes on.
                one_way = line.how == "one-way"
                return self._service(line.whom, Plight.ONE_WAY if one_way else Plight.FROZEN)
            case "openstack":
                return self._openstack(line.whom)
            case "shoot" if line.how == "hibernated":
                return self._asleep(line)
            case _:
                return self._told((line.what, line.whom, line.how))

    def _bmc(self, machines: Sequence[Machine], how: str) -> Deed:
        lifts = [
            self._laid(
                ("bmc", machine.name), how, lambda machine=machine: machine.bmc, _set(machine)
            )
            for machine in machines
        ]
        before = sum(machine.met for machine in machines)
        self._count = lambda: sum(machine.met for machine in machines) - before
        return lambda: _all(lifts)

    def _dark(self, machines: Sequence[Machine]) -> Deed:
        """Power is gone: the machine and its BMC with it. It comes back as it was."""
        power = self._world.truth.power
        were_on = sum(machine.on for machine in machines)
        lifts = [self._bmc(machines, "unreachable")]
        asked = self._count
        self._count = lambda: were_on + asked()
        lifts += [
            self._laid(
                ("power", machine.name),
                False,
                lambda machine=machine: machine.on,
                lambda on, machine=machine: power(machine, on=on),
            )
            for machine in machines
        ]
        return lambda: _all(lifts)

    def _plight(self, backend: str, plight: Plight) -> Deed:
        plights = self._climate.plights

        def put(now: Plight | None) -> None:
            plights.pop(backend, None)
            if now is not None:
                plights[backend] = now

        lift = self._laid(("plight", backend), plight, lambda: plights.get(backend), put)
        cluster = self._world.clusters.get(backend)
        if cluster is not None and plight in (Plight.UNREACHABLE, Plight.FAILING):
            cluster.end_watches()
        return lift

    def _laid(
        self, key: tuple[str, str], new: T, was: Callable[[], T], put: Callable[[T], None]
    ) -> Deed:
        """Lays a state over what is there. Mishaps that overlap end in any order: the newest that
        lasts holds, and when the last is over it is as it was before the first."""
        layers: list[tuple[object, T]] = self._layers.setdefault(key, [])
        if not layers:
            layers.append((None, was()))
        mine = (object(), new)
        layers.append(mine)
        put(new)

        def lift() -> None:
            layers.remove(mine)
            put(layers[-1][1])
            if len(layers) == 1:
                layers.clear()

        return lift

    def _cut_off(self, line: Line) -> Deed:
        """For fleetd, and for the controllers of other clusters that reach into this one."""
        return self._both([self._backend(line)], _PLIGHTS[line.how], line)

    def _both(self, backends: Sequence[str], plight: Plight, line: Line) -> Deed:
        lifts = [self._plights(backends, plight)]
        on_the_way = self._count
        lifts.append(self._told((line.what, line.whom, line.how)))
        inside = self._count
        self._count = lambda: on_the_way() + inside()
        return lambda: _all(lifts)

    def _backend(self, line: Line) -> str:
        ironic = f"ironic-{line.whom}"
        if line.what == "metal" and ironic in self._world.services:
            return ironic
        return _PREFIX[line.what] + line.whom

    def _service(self, name: str, plight: Plight) -> Deed:
        """Its address and each of its members."""
        return self._plights(self._members(name), plight)

    def _members(self, name: str) -> list[str]:
        services = self._world.services
        return [name, *(one for one in services if one.removeprefix(f"{name}-").isdigit())]

    def _plights(self, backends: Sequence[str], plight: Plight) -> Deed:
        lifts = [self._plight(one, plight) for one in backends]
        suffered = self._climate.sufferers
        before = sum(suffered[one, plight] for one in backends)
        self._count = lambda: sum(suffered[one, plight] for one in backends) - before
        return lambda: _all(lifts)

    def _revoke(self, name: str) -> Deed:
        """Every kubeconfig that the garden has minted so far is worthless, whoever holds it."""
        cluster = self._world.clusters.get(name)
        revoked = gardener_access.revoke_all(cluster) if cluster is not None else 0
        self._effective = revoked > 0
        self._count = lambda: revoked
        return lambda: None

    def _asleep(self, line: Line) -> Deed:
        """Gardener says so, and nobody answers."""
        return self._both([line.whom], Plight.UNREACHABLE, line)

    def _jump(self, by: timedelta) -> Deed:
        world = self._world

        def put(skew: timedelta) -> None:
            world.skew = skew

        return self._laid(("clock", DAEMON), by, lambda: world.skew, put)

    def _strange(self, name: str, how: str) -> Deed:
        cluster = self._world.clusters.get(name)
        found = None
        if cluster is not None:
            found = meddling.pick(self._world, cluster, recreated=how == "recreated")
        self._effective = found is not None
        if cluster is None or found is None:
            self._count = _never
            return lambda: None
        gk, obj = found
        metadata = obj["metadata"]
        self._world.tell(how, name, f"{gk[1]} {metadata['name']} by {meddling.STRANGER}")
        if how == "recreated":
            self.undone.add(f"{name} {gk[1]} {metadata.get('namespace', '')}/{metadata['name']}")
            meddling.recreate(cluster, gk, obj)
            return lambda: None
        at_it = [True]

        def again() -> None:
            if at_it:
                meddling.change(cluster, gk, metadata["name"], metadata.get("namespace", ""))
                self._world.after(meddling.EVERY, again)

        again()
        return at_it.clear

    def _openstack(self, cloud: str) -> Deed:
        services = ("keystone", "nova", "placement", "neutron", "cinder", "glance")
        return self._plights([f"{one}-{cloud}" for one in services], Plight.UNREACHABLE)

    def _take_aim(self, line: Line) -> Deed:
        cell = Cell(f"{line.what} {line.how}")
        aim = self._aim = Aim(cell, once=line.span is None)
        for one in self._members(line.whom):
            self._climate.aim(one, aim)
        self._count = lambda: aim.met

        def lift() -> None:
            aim.over = True

        return lift

    def _watch(self, name: str, how: str) -> Deed:
        cluster = self._world.clusters.get(name)
        open_ = cluster.open_watches() if cluster is not None else 0
        self._count = lambda: open_
        if how == "stalled":
            # Those that are open stay silent; a new one is as good as the backend is by then.
            stalled = self._climate.stalled
            return self._laid(
                ("watch", name),
                True,
                lambda: name in stalled,
                lambda on: stalled.add(name) if on else stalled.discard(name),
            )
        if cluster is not None:
            if how == "expired":
                cluster.forget_history()
            cluster.end_watches()
        return lambda: None

    def _told(self, mishap: tuple[str, str, str]) -> Deed:
        there = self._world.mishaps

        self._effective = False
        before = there.asked[mishap]
        self._count = lambda: there.asked[mishap] - before

        def put(on: bool) -> None:  # noqa: FBT001
            (there.add if on else there.discard)(mishap)

        def tell() -> None:
            for listener in self._world.listeners:
                listener(mishap)

        lift = self._laid(("told", "/".join(mishap)), True, lambda: False, put)
        tell()

        def over() -> None:
            lift()
            # A plain set: nobody whom it concerns has asked.
            if mishap not in set(there):
                tell()

        return over


def _set(machine: Machine) -> Callable[[str], None]:
    def put(state: str) -> None:
        machine.bmc = state

    return put


def _once() -> int:
    return 1


def _never() -> int:
    return 0


def _all(deeds: Sequence[Deed]) -> None:
    for deed in deeds:
        deed()


def read_all(texts: Sequence[str]) -> list[Line]:
    """The lines of a script, in order of time. Raises ScriptError for the first bad one."""
    return sorted((script.read(text) for text in texts), key=lambda line: line.at)


def _known(line: Line, names: Iterable[str]) -> None:
    known = sorted(names)
    if line.whom in known:
        return
    near = difflib.get_close_matches(line.whom, known, n=1)
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    there = f"there are {', '.join(known[:SHOWN]) or 'none'}{more}"
    hint = f"did you mean {near[0]}?" if near else there
    raise ScriptError(f"'{line}': there is no {line.what} {line.whom}; {hint}")


def _known_cluster(line: Line, names: Sequence[str]) -> None:
    if line.whom.partition("/")[0] not in names or "/" not in line.whom:
        raise ScriptError(
            f"'{line}': an image is named <cluster>/<component>, e.g. cp/keystone-operator; "
            f"clusters: {', '.join(names)}"
        )
