"""
What fleetd knows of BMCs by itself: whether they answer, and whether two entries are one machine.

Neither is told by metal-operator: it does not poll, a wrong password still shows Ready, and two
BMC objects for one machine are both served. Asking costs a request to the BMC, so an answer is
used again for some minutes; the index over all BMCs of a region is made at most twice a minute,
however many servers are looked at in between. Both are memories of looks, and nothing is lost
with them: whether a BMC keeps giving the same answer (`Known.steady`) is a fact that takes a minute
to find out again.
"""

import base64
import binascii
import contextlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from drivers.ironcore import manifests
from fleetd import redfish
from fleetd.kube import errors, facts
from fleetd.redfish import Answer, Login, Machines
from fleetd.secrets import SecretError
from fleetd.tools import Tools
from topology.resource import Facts, Resource

KEPT = timedelta(minutes=2)
"""How long an answer is used again, where there are few."""
PER_SECOND = 100
"""Questions at most, over all BMCs: with 100,000 each is asked every 17 minutes."""
FAILING = timedelta(seconds=30)
"""One that did not answer is asked again sooner."""
LOOKS = 3
STEADY = timedelta(minutes=1)
"""An answer that was given so often, and for so long, is no accident of the way."""
CURRENT = "current"
INDEX_AGE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    at: datetime
    answer: Answer
    secret: str
    """The BMCSecret: current, stale or missing."""
    since: datetime
    """When it first gave this answer, of those in a row."""
    looks: int = 1
    """How often in a row."""

    @property
    def steady(self) -> bool:
        return self.looks >= LOOKS and self.at - self.since >= STEADY


@dataclass(slots=True)
class Index:
    by_address: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Names of BMCs."""
    by_uuid: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Names of BMCs whose Server has that UUID."""
    unreadable: tuple[str, ...] = ()


class Bmcs:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._known: dict[str, Known] = {}
        self._machines = Machines()

    def forget(self, name: str) -> None:
        """Ask it at the next look."""
        self._known.pop(name, None)

    async def known(self, want: Resource, *, closely: bool = False) -> Known:
        """`closely`: one that answers is asked as often as one that does not. Raises SecretError
        if the password cannot be read and nothing is remembered, KubeError if the metal API does
        not answer."""
        now = self._tools.clock.now()
        old = self._known.get(want.ref.name)
        if old is not None and now - old.at < self._kept(old, closely=closely):
            return old
        try:
            login = await self.login(want)
        except SecretError:
            if old is None:
                raise
            return old
        base = redfish.address(want.spec)
        answer = await self._tools.net.blocking(
            f"bmc:{want.region}", lambda session: redfish.ask(session, base, login), counted=False
        )
        self._machines.note(want.ref.name, answer.uuid)
        again = old is not None and _gist(old.answer) == _gist(answer)
        made = Known(
            at=now,
            answer=answer,
            secret=await self._secret(want, login),
            since=old.since if old is not None and again else now,
            looks=old.looks + 1 if old is not None and again else 1,
        )
        self._known[want.ref.name] = made
        return made

    def _kept(self, old: Known, *, closely: bool) -> timedelta:
        if closely or old.answer.state != redfish.ANSWERS or old.secret != CURRENT:
            return FAILING
        return max(KEPT, timedelta(seconds=len(self._known) / PER_SECOND))

    async def login(self, want: Resource) -> Login:
        text = await self._tools.secrets.read(want.spec["access"], want)
        return redfish.login(text, str(want.owner))

    async def _secret(self, want: Resource, login: Login) -> str:
        metal = self._tools.clusters.client(want.backend)
        kind = await metal.find(manifests.GROUP, "BMCSecret")
        live = await metal.get(kind, want.ref.name)
        if live is None:
            return "missing"
        data: Facts = live.get("data") or {}
        same = login.password.matches(_text(data.get("password")))
        return CURRENT if same and _text(data.get("username")) == login.user else "stale"

    async def index(self, backend: str) -> Index:
        """Over all BMCs and Servers of a region."""
        return await self._tools.polls.get(
            backend, "bmcs", lambda: self._index(backend), lambda _: INDEX_AGE
        )

    async def _index(self, backend: str) -> Index:
        cache = await self._tools.clusters.cache(backend, manifests.GROUP, "BMC")
        made = Index()
        bad: list[str] = []
        async for bmc in cache.each():
            name = str(bmc["metadata"]["name"])
            ip = str(facts.part(bmc, "spec", "access").get("ip") or "")
            if ip and not manifests.readable(ip):
                bad.append(name)
            elif ip:
                made.by_address.setdefault(redfish.host(ip), []).append(name)
        made.unreadable = tuple(bad)
        with contextlib.suppress(errors.NotFound):
            servers = await self._tools.clusters.cache(backend, manifests.GROUP, "Server")
            async for server in servers.each():
                uuid = redfish.same_uuid(facts.value(server, "spec", "systemUUID"))
                bmc_name = str(facts.value(server, "spec", "bmcRef", "name") or "")
                if uuid and bmc_name:
                    made.by_uuid.setdefault(uuid, []).append(bmc_name)
        return made

    async def same_machine(self, want: Resource, answer: Answer, *, enrolled: bool) -> str:
        """Another BMC that leads to the machine of this one; empty if there is none. Of two that
        are not enrolled yet neither is: the documents must say which."""
        mine = want.ref.name
        twin = "" if enrolled else self._machines.twin(mine, self._tools.fleet.topology())
        if twin:
            return twin
        index = await self.index(want.backend)
        found = [
            *index.by_address.get(redfish.host(str(want.spec["bmc"])), ()),
            *index.by_uuid.get(answer.uuid, ()),
        ]
        return next((name for name in sorted(found) if name != mine), "")


def _gist(answer: Answer) -> tuple[str, bool]:
    return answer.state, answer.hangs


def _text(encoded: object) -> str:
    try:
        return base64.b64decode(str(encoded or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
