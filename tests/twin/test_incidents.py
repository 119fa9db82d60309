"""Whole regions with real drivers: a fault is one incident at its cause, and then none."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from fleetd.plan import incidents
from fleetd.plan.incidents import Incident
from fleetd.sim import loop, script
from fleetd.sim.twin import Twin
from tests.twin.stage import Power, Region

LASTS = timedelta(minutes=15)
"""By then everything that is affected was looked at, and every time of grace is over."""
MENDED = timedelta(minutes=15)
GRACE = timedelta(seconds=90)
_SECRET = ("", "Secret")
_KEYS = "openbao-init-keys"

Undo = Callable[[], object]


def no_quorum(region: Region) -> Undo:
    """Two of three monitors have lost what they knew."""
    hosts = [one for one in region.world.truth.machines.values() if one.mons][:2]
    kept = [set(one.mons) for one in hosts]
    for one in hosts:
        one.mons.clear()

    def undo() -> None:
        for one, mons in zip(hosts, kept, strict=True):
            one.mons.update(mons)

    return undo


def sealed_for_good(region: Region) -> Undo:
    """OpenBao is sealed, and the keys to open it are not where they should be."""
    mgmt = region.world.clusters["mgmt"]
    found = mgmt.get(_SECRET, _KEYS, "shared-services")
    assert found is not None
    mgmt.delete(_SECRET, _KEYS, "shared-services")
    region.mishaps.begin(script.read("at 0: openbao eu-1 sealed"))
    metadata: Any = {"name": _KEYS, "namespace": "shared-services"}
    again = {**found, "metadata": {**metadata, "labels": found["metadata"].get("labels", {})}}
    return lambda: mgmt.create(again, manager="somebody")


def dark_rack(region: Region) -> Undo:
    region.mishaps.begin(script.read("at 0: rack a3 dark"))
    return region.mishaps.mend


@dataclass
class Watch:
    """Breaks a region that has come up, mends it, and keeps what was told."""

    region: Region
    fault: Callable[[Region], Undo]
    coming_up: set[str] = field(default_factory=set[str])
    """Causes told before anything was broken."""
    during: list[Incident] = field(default_factory=list[Incident])
    """At the end of the fault."""
    causes: set[str] = field(default_factory=set[str])
    """All that were told from the fault on."""
    after: list[Incident] = field(default_factory=list[Incident])
    _undo: Undo | None = None
    _at: float = 0.0

    def until(self, twin: Twin) -> bool:
        state, world = twin.core.state, self.region.world
        found = incidents.incidents(state.view, state.troubles, now=world.now(), grace=GRACE).items
        told = {str(one.cause.ref) for one in found}
        if not self._at:
            self.coming_up |= told
            if twin.quiet():
                self._at = world.elapsed()
                self._undo = self.fault(self.region)
            return False
        self.causes |= told
        passed = timedelta(seconds=world.elapsed() - self._at)
        if self._undo is not None and passed >= LASTS:
            self.during = [*found]
            self._undo()
            self._undo = None
        self.after = [*found]
        return passed >= LASTS + MENDED


def watched(example: str, fault: Callable[[Region], Undo]) -> Watch:
    async def story() -> Watch:
        watch = Watch(Region.of(example), fault)
        assert await watch.region.live(Power(), until=watch.until)
        return watch

    return loop.run(story())


_STORES = ("cp", "hv", "mgmt", "st")
_POOLS = ("images", "vms", "volumes")


@pytest.mark.parametrize(
    ("fault", "cause", "severity", "affected"),
    [
        (
            no_quorum,
            ("cephcluster/st", "CephError"),
            "critical",
            {*(f"cephpool/st.{name}" for name in _POOLS), "cloud/prod", "region/eu-1"},
        ),
        (
            sealed_for_good,
            ("openbao/mgmt", "Sealed"),
            "critical",
            {
                *(f"secret-store/{name}" for name in _STORES),
                *(f"openbao-auth/{name}" for name in _STORES),
                *("openbao-engines/mgmt", "openbao-policies/mgmt", "openbao-secrets/cp"),
                *("openbao-database/prod", "controlplane/prod", "cloud/prod", "region/eu-1"),
            },
        ),
    ],
    ids=["a Ceph quorum is lost", "OpenBao is sealed"],
)
def test_a_fault_of_a_service_is_one_incident(
    fault: Callable[[Region], Undo], cause: tuple[str, str], severity: str, affected: set[str]
) -> None:
    """One cause, all it affects and nothing else, from the first word on; none after it is mended,
    and none while the region came up."""
    watch = watched("minimal", fault)

    assert [(str(one.cause.ref), one.cause.reason) for one in watch.during] == [cause]
    assert watch.during[0].severity == severity
    assert {str(ref) for ref in watch.during[0].affected} == affected
    assert watch.causes == {cause[0]}
    assert (watch.coming_up, watch.after) == (set(), [])


def test_a_rack_without_power_is_one_incident() -> None:
    """Its cause is the rack, as soon as a second server of it is missed; what stands on the servers
    is affected, and what stands beside them is not."""
    watch = watched("two-zones", dark_rack)
    machines = watch.region.world.truth.machines
    names = [f"a3-h0{number}" for number in range(1, 8)]
    servers = {f"server/{name}" for name in names}
    # Which cloud's hypervisors got servers of this rack is decided while the region comes up.
    clouds = {
        cloud
        for cloud in ("lab", "prod")
        if any(f"--hv-{cloud}-" in machines[name].owner for name in names)
    }

    assert [str(one.cause.ref) for one in watch.during] == ["rack/a3"]
    assert clouds
    assert {str(ref) for ref in watch.during[0].affected} == {
        *servers,
        *(f"{kind}/hv-{cloud}" for kind in ("cluster", "hypervisors") for cloud in clouds),
        *(f"cloud/{cloud}" for cloud in clouds),
        *("serverpool/compute-a", "region/eu-2"),
    }
    assert watch.during[0].severity == "critical"
    assert watch.causes - servers == {"rack/a3"}
    assert (watch.coming_up, watch.after) == (set(), [])
