"""
What is really so: machines with their power, what runs on them, and who owns them.

Kubernetes objects and answers of services are what the world says of itself; this is what it is.
The invariants (`fleetd.sim.invariants`) are judged against it, and nothing of fleetd ever reads
it. One rule: it is changed only by the simulated controllers and services, never by a test's wish.
"""

import hashlib
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
    met: int = 0
    """How often somebody asked its BMC while that did not answer as it should."""
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
    """Which version each consumer really uses: credential -> consumer -> version. Fed by those
    who use it: External Secrets, Flux, the metal operator, whoever logs in at a BMC."""
    breaches: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What must not be, as the number of the invariant and words; must stay empty."""
    judge: Callable[[str, str], None] | None = None
    """Told of each of them at once."""
    took: Callable[[Machine, str], None] | None = None
    """Told when somebody, not the grid, has switched a machine off."""
    made: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Which credential and version a value is, by its digest."""
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

    @property
    def harm(self) -> list[str]:
        """The breaches, without their numbers."""
        return [words for _, words in self.breaches]

    def hurt(self, what: str, rule: str = "I2") -> None:
        self.breaches.append((rule, what))
        if self.judge is not None:
            self.judge(rule, what)

    # Credentials.

    def makes(self, credential: str, version: str, value: str) -> None:
        """This value is that version; whoever is seen with it uses that."""
        self.made[digest(value)] = credential, version

    def uses(self, credential: str, consumer: str, version: str) -> None:
        self.credentials.setdefault(credential, {})[consumer] = version

    def has(self, consumer: str, value: str) -> None:
        """Somebody was given a value; if it is known, it is noted what he uses."""
        known = self.made.get(digest(value))
        if known is not None:
            self.uses(known[0], consumer, known[1])

    def leaves(self, consumer: str) -> None:
        """He is gone and uses nothing any more."""
        for users in self.credentials.values():
            users.pop(consumer, None)

    def revoked(self, credential: str, version: str, who: str) -> None:
        """I5: what is taken away nobody uses."""
        users = self.credentials.get(credential, {})
        left = sorted(name for name, used in users.items() if used == version)
        if left:
            self.hurt(
                f"{who} took away version {version} of {credential} while it is used by "
                f"{', '.join(left)}",
                rule="I5",
            )


def digest(value: str) -> str:
    """What is kept of a secret value here."""
    return hashlib.blake2b(value.encode(), digest_size=6).hexdigest()
