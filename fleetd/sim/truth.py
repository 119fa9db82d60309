"""
What is really so: machines with their power, what runs on them, and who owns them.

Kubernetes objects and answers of services are what the world says of itself; this is what it is.
The invariants (`fleetd.sim.invariants`) are judged against it, and nothing of fleetd ever reads
it. One rule: it is changed only by the simulated controllers and services, never by a test's wish.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Machine:
    """One server of metal."""

    name: str
    """As the documents call it."""
    address: str
    """Of its BMC."""
    uuid: str
    user: str
    password: str
    """What its BMC accepts."""
    region: str
    zone: str
    rack: str
    size: str
    """Its class, e.g. hv-96c."""
    on: bool = False
    bmc: str = "answers"
    """answers, unreachable, hangs, lies (says the opposite of `on`)."""
    image: str = ""
    """What is installed on its disks; empty for nothing."""
    owner: str = ""
    """`<claim or node>@<cluster>` that holds it; empty when free."""
    node: str = ""
    """Its Node, as `<cluster>/<node>`."""
    vms: set[str] = field(default_factory=set[str])
    osds: set[int] = field(default_factory=set[int])
    mons: set[str] = field(default_factory=set[str])
    claimed: int = 0
    """How often somebody became its owner."""
    deployed: int = 0
    """How often an image was written to it."""
    beside: list["Machine"] = field(default_factory=list["Machine"])
    """Others behind the same BMC, as in a chassis."""


@dataclass
class Truth:
    machines: dict[str, Machine] = field(default_factory=dict[str, Machine])
    """By name."""
    credentials: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Which version each consumer really uses: credential -> consumer -> version."""
    harm: list[str] = field(default_factory=list[str])
    """What hurt somebody, in words; must stay empty."""
    listeners: list[Callable[[Machine], None]] = field(
        default_factory=list["Callable[[Machine], None]"]
    )
    """Called when the power of a machine has changed."""

    def power(self, machine: Machine, *, on: bool) -> None:
        """By whoever: a BMC, a controller, or the grid. Says nothing of whether that was right."""
        if machine.on is not on:
            machine.on = on
            for listener in self.listeners:
                listener(machine)

    def at_address(self, address: str) -> Machine | None:
        return next((one for one in self.machines.values() if one.address == address), None)

    def of_node(self, cluster: str, node: str) -> Machine | None:
        named = f"{cluster}/{node}"
        return next((one for one in self.machines.values() if one.node == named), None)

    def on_cluster(self, cluster: str) -> Iterator[Machine]:
        return (one for one in self.machines.values() if one.node.startswith(f"{cluster}/"))

    def hurt(self, what: str) -> None:
        self.harm.append(what)
