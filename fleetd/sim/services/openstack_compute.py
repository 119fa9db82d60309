"""
What Nova knows: hosts, virtual machines, aggregates, migrations; and where machines may go.

A virtual machine is ground truth as well: it is in `vms` of the server it runs on, and a migration
moves it there when it ends. One rule: Nova decides the place by what it knows (enabled, up, room,
aggregates), and says `No valid host` where there is none.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetd.sim.world import World

STANDARD_TRAITS = tuple(
    f"COMPUTE_{name}"
    for name in (
        "ACCELERATORS",
        "DEVICE_TAGGING",
        "IMAGE_TYPE_QCOW2",
        "IMAGE_TYPE_RAW",
        "NET_ATTACH_INTERFACE",
        "NODE",
        "RESCUE_BFV",
        "STATUS_DISABLED",
        "TRUSTED_CERTS",
        "VOLUME_ATTACH",
        "VOLUME_EXTEND",
        "VOLUME_MULTI_ATTACH",
    )
)
ROOM = 20
"""Virtual machines that fit on a host of the simulated cloud."""
VM_VCPUS, VM_MEMORY = 2, 4096
"""All virtual machines are of one size, in MiB."""
TESTS = "tenant_filter_tests"
LIVE_MIGRATION = (1.5, 3.0)
COLD_MIGRATION = (2.5, 4.0)
"""Seconds, as seen with the fake driver."""


@dataclass(slots=True, kw_only=True)
class Host:
    """A nova-compute service with its hypervisor and resource provider."""

    id: str
    """Of the service."""
    hypervisor: str
    host: str
    cluster: str
    disabled: bool = False
    reason: str = ""
    forced_down: bool = False
    stopped: bool = False
    """Its process is gone, whatever Kubernetes says."""
    room: int = ROOM
    traits: list[str] = field(default_factory=list[str])


@dataclass(slots=True, kw_only=True)
class Vm:
    id: str
    name: str
    host: str
    project: str
    status: str = "ACTIVE"
    fault: str = ""
    created: float = 0.0
    console: float = 0.0
    """When its console shows its name."""
    test: bool = False
    """The hypervisor operator's own; nobody misses it."""


@dataclass(slots=True, kw_only=True)
class Migration:
    id: int
    vm: str
    source: str
    target: str
    status: str
    at: float


@dataclass(slots=True, kw_only=True)
class Aggregate:
    id: int
    uuid: str
    name: str
    zone: str
    hosts: list[str] = field(default_factory=list[str])
    metadata: dict[str, str] = field(default_factory=dict[str, str])


class Nova:
    def __init__(self, world: World, cloud: str) -> None:
        self.world = world
        self.cloud = cloud
        self.hosts: dict[str, Host] = {}
        """By host name."""
        self.vms: dict[str, Vm] = {}
        self.aggregates: dict[int, Aggregate] = {}
        self.migrations: list[Migration] = []
        self.registered: dict[str, str] = {}
        """Which Node (by uid) a nova-compute has registered; it does so once in its life."""
        self.servers = 0
        self.opened: Callable[[str], None] | None = None
        """Told when a host takes machines of anybody."""

    # Hosts.

    def register(self, host: str, cluster: str) -> Host:
        """As a nova-compute does when it starts; the same provider if it was known."""
        known = self.hosts.get(host)
        if known is None:
            uid = self.world.uid(f"nova/{self.cloud}/{host}/{len(self.registered)}")
            hypervisor = self.world.uid(f"hypervisor/{self.cloud}/{host}")
            known = Host(id=uid, hypervisor=hypervisor, host=host, cluster=cluster)
            known.traits = list(STANDARD_TRAITS)
            self.hosts[host] = known
        known.stopped = False
        return known

    def unregister(self, host: str) -> None:
        """The service is deleted; its hypervisor and provider go with it."""
        self.hosts.pop(host, None)
        for aggregate in self.aggregates.values():
            if host in aggregate.hosts:
                aggregate.hosts.remove(host)

    def like(self, pattern: str) -> list[Host]:
        """Nova's search by name: every host whose name has this in it."""
        return [known for name, known in self.hosts.items() if pattern in name]

    # Aggregates.

    def aggregate(self, name: str) -> Aggregate | None:
        return next((one for one in self.aggregates.values() if one.name == name), None)

    def make_aggregate(self, name: str, zone: str) -> Aggregate:
        number = max(self.aggregates, default=0) + 1
        uuid = self.world.uid(f"aggregate/{self.cloud}/{name}/{number}")
        made = Aggregate(id=number, uuid=uuid, name=name, zone=zone)
        if zone:
            made.metadata["availability_zone"] = zone
        self.aggregates[number] = made
        return made

    def of_host(self, host: str) -> list[Aggregate]:
        return [one for one in self.aggregates.values() if host in one.hosts]

    def put_in(self, host: str, names: list[str]) -> list[str]:
        """The host is in exactly these; gives those that do not exist, and changes nothing then."""
        missing = [name for name in names if self.aggregate(name) is None]
        if missing:
            return missing
        for one in self.aggregates.values():
            if one.name in names and host not in one.hosts:
                one.hosts.append(host)
            elif one.name not in names and host in one.hosts:
                one.hosts.remove(host)
        if names and TESTS not in names and self.opened is not None:
            self.opened(host)
        return []

    # Virtual machines.

    def on(self, host: str) -> Iterator[Vm]:
        return (vm for vm in self.vms.values() if vm.host == host)

    def boot(self, name: str, host: str, *, project: str = "", test: bool = False) -> Vm:
        """A machine that runs, on this very host."""
        self.servers += 1
        uid = self.world.uid(f"vm/{self.cloud}/{name}/{self.servers}")
        now = self.world.elapsed()
        vm = Vm(id=uid, name=name, host=host, project=project, created=now, test=test)
        vm.console = now + self.world.span(20.0, 70.0, "boot", self.cloud, name)
        self.vms[uid] = vm
        if not test:
            self._place(vm, "", host)
        return vm

    def remove(self, vm: Vm) -> None:
        self.vms.pop(vm.id, None)
        if not vm.test:
            self._place(vm, vm.host, "")

    def target(self, vm: Vm, alive: Callable[[str], bool]) -> Host | None:
        """Where it may go; None: no valid host. The emptiest host, by name where equal."""
        fits = [
            host
            for host in self.hosts.values()
            if host.host != vm.host and self._takes(host, vm, alive)
        ]
        return min(fits, key=lambda host: (self.load(host.host), host.host), default=None)

    def migrate(self, vm: Vm, alive: Callable[[str], bool]) -> bool:
        """Live if it runs, cold if it is stopped. False: there is no valid host."""
        found = self.target(vm, alive)
        number = len(self.migrations) + 1
        now = self.world.elapsed()
        move = Migration(
            id=number,
            vm=vm.id,
            source=vm.host,
            target=found.host if found else "",
            status="running" if found else "error",
            at=now,
        )
        self.migrations.append(move)
        if found is None:
            return False
        low, high = COLD_MIGRATION if vm.status == "SHUTOFF" else LIVE_MIGRATION
        before, vm.status = vm.status, "MIGRATING"
        seconds = self.world.span(low, high, "migration", self.cloud, vm.id, str(number))
        self.world.after(seconds, lambda: self._arrived(vm, move, before))
        return True

    def _arrived(self, vm: Vm, move: Migration, status: str) -> None:
        if vm.id not in self.vms or vm.status != "MIGRATING":
            return
        vm.status = status
        move.status = "completed"
        move.at = self.world.elapsed()
        if not vm.test:
            self._place(vm, move.source, move.target)
        vm.host = move.target
        self.world.tell("migrated", f"nova-{self.cloud}", f"{vm.name} to {move.target}")

    def _takes(self, host: Host, vm: Vm, alive: Callable[[str], bool]) -> bool:
        mine = self.of_host(host.host)
        if host.disabled or host.forced_down or not alive(host.host) or not mine:
            return False  # in no aggregate: it was never onboarded
        for aggregate in mine:
            tenants = aggregate.metadata.get("filter_tenant_id", "")
            if tenants and vm.project not in tenants.split(","):
                return False
        return self.load(host.host) < host.room

    def load(self, host: str) -> int:
        coming = sum(1 for one in self.migrations if one.status == "running" and one.target == host)
        return coming + sum(1 for _ in self.on(host))

    def _place(self, vm: Vm, source: str, target: str) -> None:
        """Ground truth: the machine leaves one server and is on another."""
        for name, known in ((source, False), (target, True)):
            host = self.hosts.get(name)
            machine = self.world.truth.of_node(host.cluster, name) if host else None
            if machine is not None:
                (machine.vms.add if known else machine.vms.discard)(vm.id)


def show(host: Host, *, up: bool) -> Mapping[str, Any]:
    """A service as the API lists it."""
    return {
        "id": host.id,
        "binary": "nova-compute",
        "host": host.host,
        "zone": "nova",
        "status": "disabled" if host.disabled else "enabled",
        "disabled_reason": host.reason or None,
        "state": "up" if up and not host.forced_down else "down",
        "forced_down": host.forced_down,
    }
