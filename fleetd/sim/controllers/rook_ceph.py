"""
Ceph itself, as it runs on the machines of one storage cluster; Rook only looks after it.

Monitors and OSDs stand on machines (`truth.Machine.mons`, `.osds`) and work while their machine is
on, belongs to the cluster and has not been drained. Losing one host of a healthy cluster costs
redundancy for a while; what was lost is copied again, in minutes where the host comes back, in a
good half hour where it does not. A majority of monitors must work, or nothing does. Whoever stops
a healthy host while data is being restored hurts somebody, and that is written down. A monitor
whose host is gone for good stays in the map, and counts against the majority, until Rook replaces
it; where no majority is left nobody can, and it takes a person. Fewer hosts than a pool has copies
are never HEALTH_OK.

It answers as the metrics page of the mgr does. Simplified: placement groups are one thing that is
clean or not; capacity is fixed; an external monitor works while its own machine's cluster says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fleetd.sim.controllers.rook_kinds import POOL
from fleetd.sim.controllers.workloads_look import part
from fleetd.sim.truth import Machine
from fleetd.sim.world import HttpRequest, HttpResponse, World

OSDS_PER_HOST = 4
DISK = 7_681_501_126_656
OUT_AFTER = 600.0
"""Seconds until Ceph takes a host's data for lost and copies it elsewhere."""
RETURNED = (60.0, 300.0)
"""Seconds until what a returned host missed is there again."""
REBUILT = (900.0, 2400.0)
"""Seconds until what a lost host had is there again, on others."""
NEVER = float("inf")


@dataclass(slots=True)
class Host:
    """One machine with daemons, as Ceph knows it."""

    name: str
    node: str
    """`<cluster>/<node>` it was found on."""
    up: bool = True
    """Whether its OSDs serve."""
    down_since: float = 0.0
    out: bool = False
    drained: bool = False
    """Its OSDs were evicted."""


@dataclass
class Ceph:
    world: World
    cluster: str
    fsid: str
    mons: dict[str, str] = field(default_factory=dict[str, str])
    """Id to machine."""
    resting: dict[str, float] = field(default_factory=dict[str, float])
    """Monitors that were evicted, and since when."""
    external: dict[str, bool] = field(default_factory=dict[str, bool])
    """Ids of monitors elsewhere that once joined, and whether they take part now."""
    hosts: dict[str, Host] = field(default_factory=dict[str, Host])
    """By machine."""
    osds: dict[int, str] = field(default_factory=dict[int, str])
    """Id to machine."""
    clean_at: float = 0.0
    """When all data is as redundant as it should be; `NEVER` while nothing helps."""
    keys: dict[str, int] = field(default_factory=dict[str, int])
    """Generation of the key of each user."""
    degraded: bool = False
    """By mishap: a disk broke."""

    # Who is there.

    def machine(self, name: str) -> Machine | None:
        return self.world.truth.machines.get(name)

    def usable(self) -> list[Machine]:
        """Machines of the cluster on which daemons can run, in order."""
        there = self.world.truth.on_cluster(self.cluster)
        drained = [host.name for host in self.hosts.values() if host.drained]
        able = (one for one in there if one.on and one.name not in drained)
        return sorted(able, key=lambda one: one.name)

    def place_mon(self, mon: str, machine: Machine) -> None:
        self.mons[mon] = machine.name
        machine.mons.add(mon)
        self._know(machine)

    def place_osds(self, machine: Machine) -> None:
        if any(where == machine.name for where in self.osds.values()):
            return
        first = max(self.osds, default=-1) + 1
        for osd in range(first, first + OSDS_PER_HOST):
            self.osds[osd] = machine.name
            machine.osds.add(osd)
        self._know(machine)

    def _know(self, machine: Machine) -> None:
        self.hosts.setdefault(machine.name, Host(machine.name, machine.node))

    def forget(self, name: str) -> None:
        """A host is gone for good; its daemons with it. The monitors' map does not know."""
        machine = self.machine(name)
        if machine is not None:
            machine.osds.difference_update(o for o, where in self.osds.items() if where == name)
            machine.mons.difference_update(m for m, where in self.mons.items() if where == name)
        self.osds = {osd: where for osd, where in self.osds.items() if where != name}
        self.hosts.pop(name, None)

    def drop_mon(self, mon: str) -> None:
        """Out of the map; only a majority can decide that."""
        self.resting.pop(mon, None)
        machine = self.machine(self.mons.pop(mon))
        if machine is not None:
            machine.mons.discard(mon)

    def lost(self, mon: str) -> bool:
        """Whether what it knew is gone, with its host."""
        where = self.mons[mon]
        machine = self.machine(where)
        return where not in self.hosts or machine is None or mon not in machine.mons

    def rest(self, name: str, mons: set[str]) -> None:
        """These of the host's monitors were evicted, the others run."""
        for mon, where in self.mons.items():
            if where == name and mon in mons:
                self.resting.setdefault(mon, self.world.elapsed())
            elif where == name:
                self.resting.pop(mon, None)

    def silent(self, mon: str) -> float:
        """Seconds since it was last heard of; 0 while it takes part."""
        host = self.hosts.get(self.mons[mon])
        since = self.resting.get(mon)
        if since is None and host is not None and not host.up and not self._on(host):
            since = host.down_since
        return self.world.elapsed() - since if since is not None else 0.0

    def stop(self) -> None:
        """All daemons end. What is on the disks stays there."""
        for name in list(self.hosts):
            self.forget(name)
        self.mons.clear()
        self.resting.clear()

    # How it is.

    def update(self) -> bool:
        """Look at the machines. True if something came or went."""
        now = self.world.elapsed()
        moved, work = False, (0.0, 0.0)
        for host in list(self.hosts.values()):
            machine = self.machine(host.name)
            gone = machine is None or machine.node != host.node
            up = self._on(host) and not host.drained
            if up != host.up:
                moved = True
                work = max(work, RETURNED) if up else work
                self._went(host, up=up, meant=gone or host.drained, now=now)
            if gone:
                moved = True
                work = work if host.out and self.clean else max(work, REBUILT)
                self.forget(host.name)
            elif not host.up and not host.out and now - host.down_since >= OUT_AFTER:
                host.out = moved = True
                work = max(work, REBUILT)
        waits = any(not host.up and not host.out for host in self.hosts.values())
        if waits and self.osds:
            self.clean_at = NEVER
        elif work[1]:
            self.clean_at = now + self.world.span(*work, self.cluster, "recovery", str(now))
        return moved

    def _went(self, host: Host, *, up: bool, meant: bool, now: float) -> None:
        host.up, host.out = up, False
        if up:
            return
        if meant and not self.clean and self.osds:
            self.world.truth.hurt(
                f"{host.name} was taken out of {self.cluster} while Ceph was restoring data"
            )
        host.down_since = now
        if self.osds:
            self.clean_at = NEVER

    @property
    def clean(self) -> bool:
        return self.world.elapsed() >= self.clean_at and not self.degraded

    def in_quorum(self) -> list[str]:
        """Monitors that take part, or would if they were enough."""
        up = [mon for mon, where in self.mons.items() if self._votes(mon, where)]
        return sorted([*up, *(mon for mon, joined in self.external.items() if joined)])

    def all_mons(self) -> list[str]:
        return sorted([*self.mons, *self.external])

    @property
    def quorum(self) -> bool:
        return len(self.in_quorum()) * 2 > len(self.all_mons())

    def _on(self, host: Host) -> bool:
        machine = self.machine(host.name)
        return machine is not None and machine.node == host.node and machine.on

    def _votes(self, mon: str, where: str) -> bool:
        host = self.hosts.get(where)
        there = host is not None and self._on(host) and mon not in self.resting
        return there and not self.lost(mon)

    def _up(self, name: str) -> bool:
        host = self.hosts.get(name)
        return host is not None and host.up

    def next_change(self) -> float | None:
        """Seconds until time alone changes something."""
        now = self.world.elapsed()
        due = [
            host.down_since + OUT_AFTER - now
            for host in self.hosts.values()
            if not host.up and not host.out
        ]
        if now < self.clean_at < NEVER:
            due.append(self.clean_at - now)
        return min(due, default=None)

    def health(self) -> tuple[str, dict[str, Any]]:
        if not self.quorum:
            said = "failed to get status. . timed out: exit status 1"
            return "HEALTH_ERR", {"error": {"severity": "Urgent", "message": said}}
        checks = dict(self._checks())
        details = {
            name: {"severity": "HEALTH_WARN", "message": text} for name, text in checks.items()
        }
        return ("HEALTH_WARN" if details else "HEALTH_OK"), details

    def _checks(self) -> Iterator[tuple[str, str]]:
        mons, there = self.all_mons(), self.in_quorum()
        if len(there) < len(mons):
            away = len(mons) - len(there)
            yield "MON_DOWN", f"{away}/{len(mons)} mons down, quorum {','.join(there)}"
        down = [host for host in self.hosts.values() if not host.up and not host.out]
        names = {host.name for host in down}
        osds = [osd for osd, where in self.osds.items() if where in names]
        if osds:
            yield "OSD_DOWN", f"{len(osds)} osds down"
            yield "OSD_HOST_DOWN", f"{len(names)} host ({len(osds)} osds) down"
        elif self.degraded:
            yield "OSD_DOWN", "1 osds down"
        if len([host for host in down if host.name in self.osds.values()]) > 1:
            yield "PG_AVAILABILITY", "Reduced data availability: pgs inactive"
        if not self.clean or self._few_hosts():
            yield "PG_DEGRADED", "Degraded data redundancy: pgs degraded, pgs undersized"

    def _few_hosts(self) -> bool:
        """Whether some pool wants more copies than there are hosts with disks."""
        there = self.world.clusters.get(self.cluster)
        pools = there.list(POOL) if there is not None else ()
        copies = max(
            (int(part(one["spec"], "replicated").get("size") or 0) for one in pools), default=0
        )
        return len({where for where in self.osds.values() if self._up(where)}) < copies

    def capacity(self) -> dict[str, int]:
        total = len(self.osds) * DISK
        used = total // 50
        return {"bytesTotal": total, "bytesUsed": used, "bytesAvailable": total - used}

    # The metrics page of the mgr.

    def handle(self, request: HttpRequest) -> HttpResponse:
        if request.path.rstrip("/") != "/metrics":
            return HttpResponse(status=404)
        if not self.quorum:
            return HttpResponse(status=503)
        health, _ = self.health()
        number = ("HEALTH_OK", "HEALTH_WARN", "HEALTH_ERR").index(health)
        there = self.in_quorum()
        lines = [f"ceph_health_status {number}.0"]
        lines += [
            f'ceph_mon_quorum_status{{ceph_daemon="mon.{mon}"}} {float(mon in there)}'
            for mon in self.all_mons()
        ]
        return HttpResponse(status=200, body="\n".join([*lines, ""]).encode())


def service(cluster: str) -> str:
    return f"ceph-{cluster}"


def find(world: World, cluster: str) -> Ceph | None:
    found = world.services.get(service(cluster))
    return found if isinstance(found, Ceph) else None


def begin(world: World, cluster: str) -> Ceph:
    """The Ceph of a cluster; its first monitor would make it."""
    found = find(world, cluster)
    if found is None:
        found = Ceph(world, cluster, fsid=world.uid(f"ceph/{cluster}"))
        world.services[service(cluster)] = found
    return found
