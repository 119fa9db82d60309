"""
Tools that lead nowhere: for drivers that are asked what they would do, and must not do anything.

A driver is cheap to make, so whoever asks about documents that are not in force makes his own set
on these: they hold the topology and the catalogue of those documents, time stands still, and every
way out raises. The drivers at work, with their logins and caches, are not touched.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from fleetd import errors
from fleetd.gate import GateLimits, Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Ways
from fleetd.polls import Polls
from fleetd.tools import Rules, Tools
from fleetd.vocabulary import Condition
from topology.catalogue import Component
from topology.resource import Ref, Topology

_SHUT = GateLimits(
    concurrency=1,
    rate=1.0,
    burst=1,
    failures_max=1,
    open_for=timedelta(0),
    open_max=timedelta(0),
)
"""Nobody comes as far as a gate."""


class Sealed(errors.FleetError):
    """A driver reached out while it was only to decide: that is a fault of the driver."""


def tools(
    topology: Topology,
    catalogue: Mapping[str, Component],
    ready: Mapping[Ref, Condition],
    now: datetime,
) -> Tools:
    rules, clock, net = Rules(), _Still(now), _Nowhere()
    gates = Gates(_SHUT, clock)
    rules.take(catalogue)
    rng = random.Random(0)  # noqa: S311 - nothing is ever retried
    return Tools(
        clock=clock,
        clusters=Clusters(net.kube, gates=gates, clock=clock, rng=rng, wake=_nobody),
        net=Ways(net, gates, clock),
        polls=Polls(clock),
        secrets=_Silent(),
        rules=rules,
        fleet=_Known(topology, ready, rules),
    )


@dataclass(frozen=True, slots=True)
class _Known:
    _topology: Topology
    _ready: Mapping[Ref, Condition]
    _rules: Rules

    def topology(self) -> Topology:
        self._rules.reads.note()
        return self._topology

    def everything(self) -> Topology:
        return self.topology()

    def ready(self, ref: Ref) -> Condition | None:
        return self._ready.get(ref)


@dataclass(frozen=True, slots=True)
class _Still:
    _now: datetime

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return 0.0


class _Nowhere:
    def kube(self, *_: object, **__: object) -> NoReturn:
        raise Sealed("a driver asked for an API server while it was only to decide")

    def adapter(self, *_: object, **__: object) -> NoReturn:
        raise Sealed("a driver asked for a session while it was only to decide")

    def start(self, *_: object, **__: object) -> NoReturn:
        raise Sealed("a driver called a far side while it was only to decide")

    async def close(self) -> None:
        pass


class _Silent:
    async def read(self, *_: object, **__: object) -> NoReturn:
        raise Sealed("a driver read a secret while it was only to decide")

    def provide(self, *_: object, **__: object) -> None:
        """Whoever can read secrets may say so; nobody will ask."""


def _nobody(_: Ref) -> None:
    pass
