"""
Clusters that each have one thing wrong, under one daemon, over real connections: from the wire up
to the condition that people read, and to the words of `fleetctl why`.
"""

import asyncio
import contextlib
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from fleetd.clock import SystemClock
from fleetd.daemon.assembly import Assembly, Door
from fleetd.engine import acceptance
from fleetd.engine.records import Surroundings
from fleetd.kube import http
from fleetd.net import RealNetwork
from fleetd.plan import why
from fleetd.secrets import Secret
from fleetd.settings import BackoffSettings, ObserveSettings, Settings
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import Truth
from tests.drivers.gardener.region import COMPONENTS, MINIMAL, changed
from tests.kube import test_bad_servers as servers
from topology.resource import EMPTY, Facts, Ref, Resource, Topology

GOOD = "good"
WITHIN = 180.0
"""Seconds for a busy machine; two are enough for an idle one."""


class Told(NamedTuple):
    kind: str
    """Of the resource that has the condition."""
    reason: str
    words: str
    """In the condition's message, and in what `fleetctl why` says."""
    truth: Truth = Truth.UNKNOWN


CASES = {
    "unreachable": Told("cluster", "NoAnswer", "Connection refused; see whether it is up"),
    "wrong authority": Told("cluster", "NotTrusted", "not trusted: .*; is the authority"),
    "expired token": Told(
        "cluster", "Refused", "does not let fleetd in: .*renew the kubeconfig", Truth.FALSE
    ),
    "forbidden": Told(
        "access", "Refused", 'refuses .*"nobody" cannot get .*namespaces.*grant it', Truth.FALSE
    ),
    "missing kind": Told("rabbitmq", "Absent", "", Truth.FALSE),
    "other version": Told("rabbitmq", "OtherVersion", servers.WORDS["other version"]),
    "a page": Told("cluster", "NotAnApiServer", "is the address of the kubeconfig right"),
    "elsewhere": Told("cluster", "NotAnApiServer", "sends us to login.example"),
    "announced": Told("cluster", "NotAnApiServer", "announces an answer that never comes"),
    "garbage": Told("cluster", "NotAnApiServer", "does not speak HTTP .* right"),
    "without end": Told("cluster", "NotAnApiServer", "more than 1000000 bytes; is it an API"),
    "nothing": Told("cluster", "NoAnswer", r"no answer within \d s; see whether it is up"),
}


class Keys:
    """Reads the kubeconfig of the cluster that asks."""

    def __init__(self, held: Mapping[str, Secret]) -> None:
        self._held = held

    def take(self, folders: Mapping[Ref, Path]) -> None: ...

    def provide(self, kind: str, reader: Callable[..., Any]) -> None: ...

    async def read(self, access: Facts, want: Resource) -> Secret:
        return self._held[want.ref.name]


class Documents:
    """Brings one topology."""

    asks = ""

    def __init__(self, topology: Topology, door: Door) -> None:
        self._topology = topology
        self._door = door

    def nudge(self) -> None: ...

    async def restore(self) -> None:
        self._door.surrounded(Surroundings(catalogue=COMPONENTS, folders={}))

    async def run(self) -> None:
        offered = acceptance.offer(EMPTY, self._topology, {}, set())
        await acceptance.accept(self._door.state, self._door.store, offered)
        self._door.taken()


def _name(which: str) -> str:
    return which.replace(" ", "-")


def _resources(name: str) -> list[Resource]:
    """An adopted cluster, the way into it, and one thing on it."""
    known = MINIMAL.resources
    given = {"adopted": {"access": {"file": name}, "manage": True}, "cluster": name}
    cluster = changed(known[Ref("cluster", "cp")], **given)
    access = changed(known[Ref("access", "cp")], cluster=name)
    queue = changed(known[Ref("rabbitmq", "cp")], cluster=name)
    needs = {"cluster": (), "access": ("cluster",), "rabbitmq": ("cluster", "access")}
    made = [replace(cluster, driver="adopted"), access, queue]
    return [
        replace(
            one,
            ref=Ref(one.ref.kind, name),
            backend=f"cluster:{name}",
            needs=tuple(Ref(kind, name) for kind in needs[one.ref.kind]),
        )
        for one in made
    ]


def _settings() -> Settings:
    """As ever, but for a test that does not wait for minutes."""
    second = timedelta(seconds=1)
    return Settings(
        drivers=("drivers.gardener", "drivers.kubernetes"),
        grace=second / 10,
        observe=ObserveSettings(
            interval=2 * second, deadline=2 * second, moving=second, stale_after=60 * second
        ),
        backoff=BackoffSettings(base=second / 10, max=second),
    )


class Daemon(Assembly[Documents]):
    def __init__(self, topology: Topology, held: Mapping[str, Secret]) -> None:
        keys = Keys(held)
        super().__init__(
            _settings(),
            net=RealNetwork(),
            store=MemoryStore(),
            clock=SystemClock(),
            rng=random.Random(1),
            keeper=lambda _: keys,
            source=lambda door: Documents(topology, door),
        )

    def told(self, kind: str, name: str) -> tuple[str, Truth, str]:
        """Reason, truth and message."""
        found = self.ready(Ref(kind, name))
        return (found.reason, found.truth, found.message) if found else ("", Truth.UNKNOWN, "")

    def why(self, kind: str, name: str) -> str:
        state = self.state
        return why.why(Ref(kind, name), state.view, state.plans, now=datetime.now(UTC)).paragraph

    def clear(self, which: str) -> bool:
        case, name = CASES[which], _name(which)
        reason, truth, message = self.told(case.kind, name)
        return (reason, truth) == (case.reason, case.truth) and bool(re.search(case.words, message))

    def told_of(self, which: str) -> bool:
        """Also by what stands on it, unless just then a try is under way."""
        return self.clear(which) and bool(
            re.search(_words(which), self.why("rabbitmq", _name(which)))
        )


async def test_each_fault_becomes_one_condition_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reason and one sentence on the cluster that has it, told by `why` of what stands on it;
    the good one is Ready all the while and gets what it should have; nothing is lost."""
    monkeypatch.setattr(http, "BODY_MAX", 1_000_000)
    names = {which: _name(which) for which in CASES}
    resources = [one for name in (GOOD, *names.values()) for one in _resources(name)]
    topology = Topology(
        digest="bad-clusters", resources={one.ref: one for one in resources}, edges=()
    )
    async with contextlib.AsyncExitStack() as stack:
        cluster, address = await stack.enter_async_context(servers.good())
        cluster.serve(servers.definition("v1beta1"))
        space = str(resources[2].spec["object"]["namespace"])
        space_of = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
        cluster.create(space_of, manager="test")
        mine = cluster.kubeconfig(address, cluster.admin_token())
        held = {GOOD: Secret(msgspec.json.encode(mine).decode())}
        for which, name in names.items():
            # Each has a server of its own: what one is served must not be served by another.
            theirs, there = await stack.enter_async_context(servers.good())
            folder = tmp_path / name
            folder.mkdir()
            made = servers.bad(which, theirs, there, folder)
            held[name], _ = await stack.enter_async_context(made)
        daemon, stop = Daemon(topology, held), asyncio.Event()
        await daemon.store.open()
        await daemon.restore()
        states: list[Truth] = []
        async with asyncio.TaskGroup() as group:
            running = group.create_task(daemon.run(stop), name="daemon")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WITHIN):
                    while not (all(map(daemon.told_of, CASES)) and _made(cluster)):
                        assert not running.done()
                        states.append(daemon.told("access", GOOD)[1])
                        await asyncio.sleep(0.05)
            told = {which: daemon.told(CASES[which].kind, name) for which, name in names.items()}
            reasons = {which: daemon.why("rabbitmq", name) for which, name in names.items()}
            clear = {which: daemon.clear(which) for which in CASES}
            stop.set()

    assert clear == dict.fromkeys(CASES, True), told
    assert states == sorted(states, key=lambda one: one is Truth.TRUE), "up once, up for good"
    assert states[-1] is Truth.TRUE
    assert _made(cluster)
    for which in CASES:
        assert re.search(_words(which), reasons[which]), reasons


def _words(which: str) -> str:
    return CASES[which].words or r"does not serve RabbitmqCluster"


def _made(cluster: Any) -> bool:
    """Whether the good cluster has what it should have."""
    return bool(cluster.list(("rabbitmq.com", "RabbitmqCluster")))
