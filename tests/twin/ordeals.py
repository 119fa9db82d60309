"""
The scripts that befall a region in the trials of planted bugs: strangers, silence, lag, other
documents. Each is a `Trial`; what they have in common is `tests.twin.trials.script`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from drivers.gardener import access
from drivers.ironcore import manifests as metal
from fleetd.kube.client import KubeClient
from fleetd.kube.transport import Request, Response
from fleetd.plan.policy import Window
from fleetd.sim.faces.weather import Fate
from tests.twin import moments, oracles, trials, workflows
from tests.twin.stage import Power, Region
from tests.twin.trials import Trial, come_up, crash, deleted, edited, mishap, script
from topology.resource import Ref, Topology

POOL = ("ceph.rook.io", "CephBlockPool")
PUSH = ("external-secrets.io", "PushSecret")
_delete = deleted("st", POOL, "images", "rook-ceph")


def kill(region: Region) -> None:
    """A pool goes at once only while no machine has its disk there."""
    region.vacate()
    _delete(region)


def _always(_: object) -> bool:
    """For a region that is not to be Ready, or not yet."""
    return True


def _nothing(_: Region) -> None:
    pass


# -- A stranger's hand, and what is seen of it -----------------------------------------------

DELETED = script("a stranger deletes a pool", [(30, kill)], least=3)
DELETED_TWICE = script(
    "a stranger deletes a pool, and once more", [(30, kill), (120, kill)], least=5
)
UNSEEN = script(
    "a pool is deleted while its watch is silent",
    [(30, mishap("watch st stalled for 20s")), (35, kill)],
    least=5,
)
FORGOTTEN = script(
    "a pool is deleted while its watch is silent, and the server forgets that",
    [(30, mishap("watch st stalled for 1m")), (40, kill), (100, mishap("watch st expired"))],
    least=5,
)
UNSECRET = script(
    "a stranger deletes a kubeconfig that Flux has",
    [(30, deleted("mgmt", oracles.SECRET, "cp-kubeconfig", "flux-system"))],
    least=3,
)
REPUSHED = script(
    "a stranger deletes what pushes a Ceph key",
    [(60, deleted("st", PUSH, "prod-client-nova", "rook-ceph"))],
    least=3,
)
UNHEARD = script(
    "a stranger changes a release while Flux is down",
    [
        (5, lambda region: region.world.controllers["mgmt", "helm-controller"].stop()),
        (
            30,
            edited(
                "mgmt",
                oracles.RELEASE,
                "st-prysm",
                "flux-system",
                lambda obj: obj["spec"].update(timeout="7m"),
            ),
        ),
    ],
    least=3,
    until=_always,
    same=False,
    also=[oracles.unsettled],
)


def _fight(region: Region) -> None:
    """Another field manager that insists."""
    body = {
        "apiVersion": "ceph.rook.io/v1",
        "kind": "CephBlockPool",
        "metadata": {"name": "images", "namespace": "rook-ceph"},
        "spec": {"replicated": {"size": 2}},
    }
    region.world.clusters["st"].apply(body, manager="stranger", force=True)


async def _rewrites(region: Region) -> list[str]:
    """I14: three rewrites of what another owns, and then it is said instead."""
    path = "/cephblockpools/images"
    count = sum(path in deed.path for deed in region.ledger.deeds) - 1
    return [f"I14: a fight over a pool, {count} rewrites"] if count > 3 else []


FOUGHT_OVER = script(
    "a stranger insists on a field of ours",
    [(at, _fight) for at in range(30, 390, 60)],
    least=7,
    until=_always,
    same=False,
    also=[_rewrites],
)


# -- Servers that lag, are away, or are busy -------------------------------------------------


@dataclass
class _Lag:
    """A server that answers lists as it did at first, for a while."""

    on: bool = False
    deeds: int = 0
    old: dict[str, Response] = field(default_factory=dict[str, Response])

    def first(self, region: Region) -> None:
        """What pushes a key is not there when it is listed first; then fleetd makes it."""
        deleted("st", PUSH, "prod-client-nova", "rook-ceph")(region)
        region.climate.after = partial(self._after, region.climate.after)

    def begin(self, region: Region) -> None:
        self.on, self.deeds = True, len(region.ledger.deeds)

    def end(self, _: Region) -> None:
        self.on = False

    async def written(self, region: Region) -> list[str]:
        new = region.ledger.since(self.deeds)
        return [f"I13: written on the word of a server that lags: {deed}" for deed in new[:3]]

    def _after(
        self,
        real: Callable[[str, Request, Response], Fate],
        backend: str,
        request: Request,
        response: Response,
    ) -> Fate:
        fate = real(backend, request, response)
        listed = backend == "st" and "limit" in request.query and response.status == 200
        if not listed:
            return fate
        first = self.old.setdefault(f"{request.path} {request.query}", response)
        return Fate(answer=first) if self.on else fate


def _labelled(obj: Any) -> None:
    obj["metadata"]["labels"]["stranger"] = "was-here"


_lag = _Lag()
LAGGING = script(
    "a watch is silent, the server forgets, and the next one lags behind",
    [
        (60, mishap("watch st stalled for 1m")),
        (70, edited("st", PUSH, "prod-client-nova", "rook-ceph", _labelled)),
        (90, _lag.begin),
        (95, mishap("watch st expired")),
        (330, _lag.end),
    ],
    first=_lag.first,
    least=8,
    also=[_lag.written],
)

AWAY = script(
    "a cluster is unreachable",
    [(30, mishap("cluster st unreachable for 1h"))],
    least=8,
    until=_always,
    also=[oracles.blind_of("cluster:st")],
)


@dataclass
class _Count:
    """Requests to a server that said "later"."""

    asked: int = 0

    def first(self, region: Region) -> None:
        region.climate.before = partial(self._before, region)
        self.real = type(region.climate).before

    def _before(self, region: Region, backend: str, request: Request) -> Fate:
        self.asked += backend == "st" and "st" in region.climate.plights
        return self.real(region.climate, backend, request)

    async def too_many(self, _: Region) -> list[str]:
        few = 200
        return [f"I14: asked {self.asked} times in 20 s"] if self.asked > few else []


_count = _Count()
BUSY = script(
    "a server answers 429 for 20 s after its watches broke",
    [(30, mishap("cluster st busy for 20s")), (31, mishap("watch st dropped"))],
    first=_count.first,
    least=3,
    also=[_count.too_many],
)

SEALED = script(
    "OpenBao is sealed",
    [(30, mishap("openbao eu-1 sealed"))],
    least=4,
    minutes=8,
    also=[oracles.sealed],
)
HANGING = script("a BMC hangs for 5 min", [(30, mishap("bmc metal-03 hangs for 5m"))], least=12)


def _short_lives(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(access, "LIFE", timedelta(minutes=12))
    patch.setattr(access, "MARGIN", timedelta(minutes=4))
    patch.setattr(access, "SPREAD", timedelta(minutes=1))


EXPIRING = script(
    "kubeconfigs end after 12 min", [(1, _nothing)], least=16, minutes=17, ground=_short_lives
)
REVOKED = script(
    "all kubeconfigs of a cluster are revoked",
    [(30, mishap("token cp revoked"))],
    least=10,
    also=[oracles.shut_out],
)


def _small_pages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KubeClient.list, "__defaults__", ("", "", "", 5))


PAGED = Trial("rest, five objects to a page", moments.HEALTHY, trials.RESTART.story, _small_pages)


# -- Other documents -------------------------------------------------------------------------


def _without_cloud(region: Region) -> None:
    region.vacate()
    workflows.change(region, without=[workflows.CLOUD])


UNNAMED = script("the document of the cloud goes", [(1, _nothing)], first=_without_cloud, least=4)


def _raise_kubernetes(region: Region) -> None:
    role = "role: control-plane,"
    workflows.change(region, {role: f'{role} kubernetes: "1.33.5",'})
    mishap("watch garden-eu-1 stalled for 1m")(region)


UPGRADED = script(
    "Kubernetes is raised while the garden's watch is silent",
    [(1, _nothing)],
    first=_raise_kubernetes,
    least=3,
    same=False,
    minutes=30,
    also=[oracles.repeated],
)


def _shrink(region: Region) -> None:
    wide = "name: compute, pool: metal, minimum: 4, maximum: 4"
    workflows.change(region, {wide: wide.replace("4", "3")})


async def _unmoved(region: Region) -> list[str]:
    """I11: a pool that may not lose a node now keeps all that it has."""
    shoot = region.world.clusters["garden-eu-1"].get(oracles.SHOOT, "hv", "garden-cobalt")
    assert shoot is not None
    held = shoot["spec"]["provider"]["workers"][0]["maximum"]
    return [f"I11: hv may have {held} nodes now, and it is not the time for it"] if held < 4 else []


def _shrink_at_noon(region: Region) -> None:
    _shrink(region)
    limits = region.policy.regions["eu-1"]
    sunday = Window(
        days=frozenset({6}), start=timedelta(), end=timedelta(hours=1), zone=limits.windows[0].zone
    )
    regions = {"eu-1": replace(limits, windows=(sunday,))}
    region.policy = replace(region.policy, regions=regions)


NOON = script(
    "a pool is to shrink outside of the windows",
    [(1, _nothing)],
    first=_shrink_at_noon,
    least=3,
    until=_always,
    same=False,
    also=[_unmoved],
)


def _shrink_while_down(region: Region) -> None:
    _shrink(region)
    mishap("server metal-09 dark")(region)


DOWN = script(
    "a pool is to shrink while a server is down",
    [(1, _nothing)],
    first=_shrink_while_down,
    least=3,
    until=_always,
    same=False,
    also=[_unmoved],
)

SERVER = Ref("server", "metal-14")


def _without_server(region: Region) -> None:
    known = region.topology
    left = {ref: one for ref, one in known.resources.items() if ref != SERVER}
    edges = tuple(edge for edge in known.edges if SERVER not in (edge.source, edge.target))
    region.topology = Topology(digest=known.digest + "-", resources=left, edges=edges)


def _retire(region: Region) -> None:
    assert region.twin is not None
    region.twin.core.state.retire([SERVER])
    region.twin.core.wake(SERVER)


async def _spared(region: Region) -> list[str]:
    """I2: the machine of a node is not given up while it is one."""
    found = region.world.clusters["metal-eu-1"].get(oracles.BMC, "metal-14")
    gone = found is None or found["metadata"].get("deletionTimestamp")
    return ["I2: the BMC of a claimed machine is gone"] if gone else []


RETIRED = script(
    "a server is retired that a cluster has claimed",
    [(30, _retire)],
    first=_without_server,
    least=3,
    until=_always,
    same=False,
    also=[_spared],
)


# -- On the way up ---------------------------------------------------------------------------


async def _known_machine(region: Region) -> list[str]:
    """Somebody has enrolled one of the machines already, under another name."""
    manifest = metal.bmc(region.topology.resources[Ref("server", "metal-03")])
    body = {**manifest.body, "metadata": {"name": "stranger"}}
    body["apiVersion"] = "metal.ironcore.dev/v1alpha1"
    region.world.clusters["metal-eu-1"].create(body, manager="stranger")
    await region.live(Power(), until=lambda _: False, within=timedelta(minutes=2))
    return [*await region.judge(reached=True), *await oracles.found(region)]


ENROLLED_BY_OTHERS = Trial("a stranger enrolled one of the machines", moments.BARE, _known_machine)

OPEN = ("openbao/mgmt", "openbao-auth/mgmt", "openbao-secrets/cp", "flux-source/mgmt")
OPENED = come_up(moments.UNSEALING, *OPEN)
GROWN = come_up(moments.ENROLLED, "cluster/mgmt", minutes=30)
HALF_MADE = crash(moments.UNSEALING, "inside", "make-secret openbao-secrets", *OPEN)
ONLY_CLAIMED = crash(moments.UNSEALING, "before", "initialise openbao", *OPEN, nth=2, minutes=5)
KEYS_LOST = crash(moments.UNSEALING, "inside", "initialise openbao", nth=2, minutes=5)
UNANNOUNCED = crash(moments.UNSEALING, "intent", "make-secret openbao-secrets", *OPEN)
CUT_OFF = crash(moments.UNSEALING, "inside", "write-policy openbao-policies", *OPEN)
STORMY = trials.stormy(moments.UNSEALING, 3, *OPEN)
