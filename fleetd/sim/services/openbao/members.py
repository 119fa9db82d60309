"""
The members of an OpenBao: which of them run, which are sealed, and which one leads.

A member that restarts is sealed again under a Shamir seal, and opens by itself under a static
one. A leader needs a majority of the Raft peers; a lost one is replaced after the seconds that an
election takes. Times are those of `real-secrets` 2 of the facts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from fleetd.sim.services.openbao import answers
from fleetd.sim.services.openbao.data import Data
from fleetd.sim.world import HttpResponse, World

SHAMIR = "shamir"
STATIC = "static"
STABILISED = timedelta(seconds=10)
"""A peer votes so long after it joined."""
VERSION = "2.4.0"


@dataclass(slots=True, kw_only=True)
class Member:
    number: int
    running: bool = False
    sealed: bool = True
    joined: bool = False
    """Whether it has found a store that was initialised."""
    given: list[str] = field(default_factory=list[str])
    """Keys since it was sealed."""
    started: int = 0
    """How often, so that a timer of an earlier life does nothing."""
    audit: str = "audit.log"
    """The file that its configuration declares; all must declare the same."""

    @property
    def node(self) -> str:
        return f"openbao-{self.number}"

    @property
    def serves(self) -> bool:
        return self.running and self.joined and not self.sealed


class Members:
    def __init__(
        self, world: World, name: str, data: Data, count: int, *, seal: str = SHAMIR
    ) -> None:
        self._world = world
        self._name = name
        self.data = data
        self.seal = seal
        self.all = [Member(number=number) for number in range(count)]
        self.leader: int | None = None
        self.initialised = 0
        """How often, since the volumes were last empty."""
        self.changed: Callable[[], None] = lambda: None
        """Called when one is sealed or opened: its pod becomes ready or not."""
        self._electing = 0

    # What happens to pods.

    def start(self, number: int) -> None:
        member = self.all[number]
        if member.running:
            return
        member.running, member.sealed, member.given = True, True, []
        member.started += 1
        member.joined = self.data.initialised and member.node in self.data.peers
        if member.joined and self.seal == STATIC:
            self._later(0.2, 0.5, member, "opens", lambda: self._open(member))
        self._join()

    def stop(self, number: int) -> None:
        member = self.all[number]
        member.running, member.sealed = False, True
        self._check_leader()

    def wipe(self) -> None:
        """The volumes are gone, and with them everything."""
        fresh = Data()
        for name in Data.__dataclass_fields__:
            if name != "numbers":
                setattr(self.data, name, getattr(fresh, name))
        self.leader, self.initialised = None, 0
        for member in self.all:
            member.sealed, member.joined, member.given = True, False, []
        self._world.tell("lost its volumes", self._name)

    # Seal.

    def initialise(self, member: Member, body: Mapping[str, Any]) -> None:
        if self.data.initialised:
            raise answers.Refused(400, "Vault is already initialized")
        static = self.seal == STATIC
        ours = "recovery" if static else "secret"
        if static and body.get("secret_shares"):
            raise answers.Refused(
                400, "parameters secret_shares,secret_threshold not applicable to seal type static"
            )
        shares = int(body.get(f"{ours}_shares") or 0)
        threshold = int(body.get(f"{ours}_threshold") or 0)
        if not 0 < threshold <= shares or (shares > 1 and threshold == 1):
            raise answers.Refused(400, "invalid seal configuration: threshold and shares")
        number = str(self.data.number("init"))
        self.data.cluster_id = self._world.uid(f"{self._name}/{number}")
        self.data.shares = tuple(
            self._world.token(self._name, "share", number, str(one)) for one in range(shares)
        )
        self.data.threshold = threshold
        self.data.initialised = True
        self.initialised += 1
        self._world.tell("initialised", self._name, f"by {member.node}")
        self._enter(member)
        if static:
            self._later(0.1, 0.3, member, "opens", lambda: self._open(member))

    def unseal(self, member: Member, body: Mapping[str, Any]) -> HttpResponse:
        if not member.joined:
            raise answers.Refused(400, "Vault is not initialized")
        if body.get("reset"):
            member.given = []
            return self.seal_status(member)
        key = str(body.get("key") or "")
        if not key:
            raise answers.Refused(400, "'key' must be specified in request body as JSON")
        if member.sealed and key not in member.given:
            member.given.append(key)
            if len(member.given) >= self.data.threshold:
                given, member.given = member.given, []
                if not set(given) <= set(self.data.shares):
                    raise answers.Refused(
                        400, "failed to decrypt keys: cipher: message authentication failed"
                    )
                self._open(member)
        return self.seal_status(member)

    def close(self, member: Member) -> None:
        """Somebody sealed it."""
        member.sealed, member.given = True, []
        self._world.tell("sealed", self._name, member.node)
        self._check_leader()
        self.changed()

    def seal_status(self, member: Member) -> HttpResponse:
        told: dict[str, Any] = {
            "type": self.seal,
            "initialized": member.joined,
            "sealed": member.sealed,
            "t": self.data.threshold,
            "n": len(self.data.shares),
            "progress": len(member.given),
            "nonce": "",
            "version": VERSION,
            "recovery_seal": self.seal == STATIC,
            "storage_type": "raft",
        }
        if not member.sealed:
            told |= {"cluster_name": self._name, "cluster_id": self.data.cluster_id}
        return answers.plain(200, told)

    def health(self, member: Member, query: Mapping[str, str]) -> HttpResponse:
        if not member.joined:
            code = int(query.get("uninitcode") or 501)
        elif member.sealed:
            code = int(query.get("sealedcode") or 503)
        elif self.leader == member.number:
            code = int(query.get("activecode") or 200)
        else:
            standby = 200 if query.get("standbyok") == "true" else 429
            code = int(query.get("standbycode") or standby)
        told: dict[str, Any] = {
            "initialized": member.joined,
            "sealed": member.sealed,
            "standby": self.leader != member.number,
            "server_time_utc": int(self._world.now().timestamp()),
            "version": VERSION,
        }
        if not member.sealed:
            told |= {"cluster_name": self._name, "cluster_id": self.data.cluster_id}
        return answers.plain(code, told)

    # Raft.

    def remove(self, node: str) -> None:
        self.data.peers.pop(node, None)
        self._check_leader()

    def quorum(self) -> bool:
        alive = sum(1 for member in self.all if member.serves and member.node in self.data.peers)
        return alive * 2 > len(self.data.peers)

    def step_down(self) -> None:
        self.leader = None
        self._elect(0.5, 1.0)

    def _open(self, member: Member) -> None:
        member.sealed, member.given = False, []
        if member.node not in self.data.peers:
            self.data.peers[member.node] = self._world.now() + STABILISED
        self._world.tell("unsealed", self._name, member.node)
        if self.leader is None:
            self._elect(0.05, 0.1)
        self.changed()

    def _enter(self, member: Member) -> None:
        member.joined = True
        self.data.peers.setdefault(member.node, self._world.now())
        self._join()

    def _join(self) -> None:
        """Those that wait find the store that was initialised."""
        if not self.data.initialised:
            return
        for member in self.all:
            if member.running and not member.joined:
                self._later(2, 5, member, "joins", lambda one=member: self._joined(one))

    def _joined(self, member: Member) -> None:
        if self.data.initialised and not member.joined:
            member.joined = True
            if self.seal == STATIC:
                self._open(member)

    def _check_leader(self) -> None:
        leader = self.all[self.leader] if self.leader is not None else None
        if leader is None or (leader.serves and self.quorum()):
            return
        self.leader = None
        self._elect(2, 11)

    def _elect(self, low: float, high: float) -> None:
        self._electing += 1
        turn = self._electing
        seconds = self._world.span(low, high, self._name, "election", str(turn))
        self._world.after(seconds, lambda: self._elected(turn))

    def _elected(self, turn: int) -> None:
        if turn != self._electing or self.leader is not None or not self.quorum():
            return
        fit = [one for one in self.all if one.serves and one.node in self.data.peers]
        # Who declares another audit file than the store knows fails when it takes over.
        fit = [one for one in fit if one.audit == (self.data.audit or one.audit)]
        if fit:
            self.data.audit = fit[0].audit
            self.leader = fit[0].number
            self._world.tell("leads", self._name, fit[0].node)

    def _later(
        self, low: float, high: float, member: Member, what: str, call: Callable[[], None]
    ) -> None:
        life = member.started
        seconds = self._world.span(low, high, self._name, member.node, what, str(life))

        def due() -> None:
            if member.running and member.started == life:
                call()

        self._world.after(seconds, due)
