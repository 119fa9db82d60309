"""
The operators of Keystone, Glance, Placement, Horizon and Barbican: one machine, five tables.

Imitates cobaltcore.md 10.2 and 18.2: each object comes up condition by condition in a fixed order,
waits for its database and cache, and reports endpoint and installedRelease (Horizon reports none).
A raised release goes through upgradePhase where the service has phases; skipping one ends in
UpgradePathInvalid; there is no way back. One rule: an operator looks at its object a moment after
it was changed, so for that moment Ready is that of before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of
from fleetd.sim.kube.cluster import GK, Change
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import DATABASE, OPERATED

CACHE = ("memcached.c5c3.io", "Memcached")
PHASES = ("Expanding", "Migrating", "RollingUpdate", "Contracting")
PHASE_SECONDS = (20.0, 60.0)
SECONDS = (120.0, 180.0)
"""From a new object to Ready, with database and cache at hand."""
REVIEW = 20.0
"""Seconds between looks at what it waits for; a change of it is noticed at once as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What is special about one service."""

    stages: tuple[str, ...]
    """Conditions beside Ready, in the order in which they come true."""
    phases: tuple[str, ...] = ()
    release: bool = True
    database: bool = True


_EARLY = ("SecretsReady",)
_LATE = ("DeploymentReady", "{kind}APIReady", "HPAReady", "NetworkPolicyReady", "HTTPRouteReady")

TABLES: Mapping[str, Table] = {
    "keystone": Table(
        stages=(
            "SecretsReady",
            "FernetKeysReady",
            "CredentialKeysReady",
            "DatabaseReady",
            "DatabaseTLSReady",
            "PolicyValidReady",
            *_LATE,
            "BootstrapReady",
            "TrustFlushReady",
            "PasswordRotationReady",
        ),
        phases=PHASES,
    ),
    "glance": Table(
        stages=(*_EARLY, "DatabaseReady", "BackendsReady", *_LATE, "DBPurgeReady"), phases=PHASES
    ),
    "placement": Table(stages=(*_EARLY, "DatabaseReady", *_LATE)),
    "horizon": Table(stages=(*_EARLY, "ConfigReady", *_LATE), release=False, database=False),
    "barbican": Table(
        stages=(*_EARLY, "DatabaseReady", "SecretStoresReady", *_LATE, "DBCleanReady")
    ),
}


class ServiceOperator(Controller):
    service: ClassVar[str] = ""

    def __init__(self, world: Any, cluster: Any) -> None:  # noqa: ANN401 - as the base has it
        super().__init__(world, cluster)
        self.table = TABLES[self.service]
        self.gk: GK = OPERATED[self.service]
        self._phase: dict[Key, tuple[str, float]] = {}
        """Since when a phase's Job runs; a restarted operator starts the Job anew."""

    def keys(self, change: Change) -> Iterable[Key]:
        yield from super().keys(change)
        if change.gk in (DATABASE, CACHE):
            for obj in self.cluster.list(self.gk, change.object["metadata"]["namespace"]):
                yield key_of(self.gk, obj)

    def wake(self, key: Key, after: float = 2.0) -> None:
        """Slower than most: hence the trap that ControlPlane falls into."""
        super().wake(key, after)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return None
        waits = self._waits(obj)
        status: Mapping[str, Any] = shape.part(obj, "status")
        if waits:
            self._report(key, obj, status, down=waits)
            return REVIEW
        again = self._come_up(key, obj, status)
        if again is not None:
            return again
        return self._upgrade(key, self.get(key) or obj)

    def _waits(self, obj: Obj) -> str:
        """What it cannot work without and is not there; empty if it has all."""
        namespace = obj["metadata"]["namespace"]
        spec: Mapping[str, Any] = obj["spec"]
        if self.table.database:
            name = str(shape.part(spec, "database.clusterRef").get("name", ""))
            live = self.cluster.get(DATABASE, name, namespace)
            if live is None or shape.condition(live, "Ready") != "True":
                return f"MariaDB {name} is not Ready"
        name = str(shape.part(spec, "cache.clusterRef").get("name", ""))
        live = self.cluster.get(CACHE, name, namespace)
        if name and (live is None or shape.condition(live, "Available") != "True"):
            return f"Memcached {name} is not available"
        return ""

    def _stages(self) -> list[str]:
        return [stage.format(kind=self.gk[1]) for stage in self.table.stages]

    def _come_up(self, key: Key, obj: Obj, status: Mapping[str, Any]) -> float | None:
        """The next condition, when the one before has been true long enough; None: all are."""
        held = {one["type"]: one for one in status.get("conditions") or ()}
        began = obj["metadata"]["creationTimestamp"]
        for stage in self._stages():
            one = held.get(stage)
            if one is None or one["status"] != "True":
                takes = self.span(*_share(SECONDS, len(self._stages())), key, stage)
                left = takes - age(self.world, began)
                if left > 0.01:
                    self._not_ready(key, obj, f"Waiting for {stage}")
                    return left
                made = self.condition(stage, "True", "Ready", generation=_generation(obj))
                self.status(key, {"conditions": [made]})
                return self._come_up(key, obj, (self.get(key) or obj).get("status") or {})
            began = one["lastTransitionTime"]
        return None

    def _upgrade(self, key: Key, obj: Obj) -> float | None:
        status: Mapping[str, Any] = shape.part(obj, "status")
        wanted, installed = _release(obj), status.get("installedRelease", "")
        if not self.table.release or not installed or wanted == installed:
            self._phase.pop(key, None)
            self._ready(key, obj, wanted)
            return None
        if not _next(installed, wanted):
            self.event(obj, "UpgradePathInvalid", f"{installed} to {wanted}", warning=True)
            self._not_ready(
                key, obj, f"cannot go from {installed} to {wanted}", "UpgradePathInvalid"
            )
            return None
        phases = self.table.phases or ("",)
        at, since = self._phase.get(key) or ("-", 0.0)
        now = self.world.elapsed()
        if at == "-":
            at, since = phases[0], now
            self._phase[key] = (at, since)
            self._not_ready(key, obj, f"upgrading to {wanted}", "Upgrading")
            self._show_phase(key, at, wanted)
        left = self.span(*PHASE_SECONDS, key, at, wanted) - (now - since)
        if left > 0.01:
            return left
        following = phases[phases.index(at) + 1 :]
        if following:
            self._phase[key] = (following[0], now)
            self._show_phase(key, following[0], wanted)
            return self.span(*PHASE_SECONDS, key, following[0], wanted)
        self._phase.pop(key, None)
        self.event(obj, "UpgradeComplete", f"{installed} to {wanted}")
        self._ready(key, self.get(key) or obj, wanted)
        return None

    def _show_phase(self, key: Key, phase: str, wanted: str) -> None:
        if phase:
            self.status(key, {"upgradePhase": phase, "targetRelease": wanted})

    def _ready(self, key: Key, obj: Obj, release: str) -> None:
        generation = _generation(obj)
        status: dict[str, Any] = {
            **{k: v for k, v in shape.part(obj, "status").items() if k != "upgradePhase"},
            "observedGeneration": generation,
            "endpoint": self.world.address(
                f"{self.service}-{key.name.removesuffix(f'-{self.service}')}"
            ),
        }
        if self.table.release:
            status |= {"installedRelease": release, "targetRelease": release}
        self.cluster.set_status(key.gk, key.name, key.namespace, status, manager=self.name)
        ready = self.condition("Ready", "True", "AllReady", generation=generation)
        self.status(key, {"conditions": [ready]})

    def _not_ready(self, key: Key, obj: Obj, why: str, reason: str = "NotReady") -> None:
        generation = _generation(obj)
        ready = self.condition("Ready", "False", reason, why, generation=generation)
        self.status(key, {"conditions": [ready], "observedGeneration": generation})

    def _report(self, key: Key, obj: Obj, status: Mapping[str, Any], down: str) -> None:
        """What it rests on is away. What was up does not answer any more."""
        held = [one["type"] for one in status.get("conditions") or ()]
        lost = [
            self.condition(kind, "False", "WaitingForInfrastructure", down)
            for kind in ("DatabaseReady", f"{self.gk[1]}APIReady")
            if kind in held
        ]
        if lost:
            self.status(key, {"conditions": lost})
        self._not_ready(key, obj, down)


def _generation(obj: Obj) -> int:
    return int(obj["metadata"].get("generation", 1))


def _release(obj: Obj) -> str:
    return str(shape.part(obj, "spec.image").get("tag", ""))


def _share(whole: tuple[float, float], parts: int) -> tuple[float, float]:
    return whole[0] / parts, whole[1] / parts


def _next(old: str, new: str) -> bool:
    """Whether one release follows the other: 2025.1, 2025.2, 2026.1 ..."""
    year, half = (int(part) for part in old.split("."))
    following = f"{year}.2" if half == 1 else f"{year + 1}.1"
    return new == following


def _operator(service: str) -> type[ServiceOperator]:
    made: type[ServiceOperator] = type(
        f"{OPERATED[service][1]}Operator",
        (ServiceOperator,),
        {
            "name": f"{service}-operator",
            "service": service,
            "watches": (OPERATED[service],),
        },
    )
    return made


DEFINITIONS: Mapping[str, Definition] = {
    service: Definition(
        group=group,
        kind=kind,
        plural=f"{service}s",
        versions=("v1alpha1",),
        columns=(Column("Ready", "status.conditions[Ready]"),),
        lists={"status.conditions": ("type",)},
    )
    for service, (group, kind) in OPERATED.items()
}
CHARTS: Mapping[str, Chart] = {
    f"{service}-operator": Chart(
        definitions=(DEFINITIONS[service],),
        controllers=(_operator(service),),
        deployments=(f"{service}-operator",),
    )
    for service in OPERATED
}
