"""Mishaps: refused if they name nothing, begun at their time, over after their span."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fleetd.kube import errors
from fleetd.kube.transport import Request
from fleetd.sim import build, loop, mishaps
from fleetd.sim.faces.inprocess import InProcess
from fleetd.sim.faults import Climate, Plight
from fleetd.sim.kube.access import BadToken
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.server import Server
from fleetd.sim.ledger import Ledger
from fleetd.sim.mishaps import Mishaps
from fleetd.sim.script import ScriptError
from fleetd.sim.truth import Machine
from fleetd.sim.twin import WallClock
from fleetd.sim.world import HttpRequest, HttpResponse, World

PATH = "/api/v1/namespaces/default/configmaps"
SERVICES = (
    *("ironic-eu-3", "openbao-eu-1", "openbao-eu-1-0", "openbao-eu-1-1", "openbao-eu-10"),
    *("keystone-prod", "nova-prod", "placement-prod", "glance-prod", "keystone-lab"),
)


class Silent:
    def handle(self, request: HttpRequest) -> HttpResponse:
        del request
        return HttpResponse(status=204)


class Place:
    """Four machines in two racks and two regions, three clusters, and one cluster to come."""

    def __init__(self) -> None:
        self.world = World(1, build.START)
        for number, (rack, region) in enumerate(
            (("a1", "eu-1"), ("a1", "eu-1"), ("b1", "eu-1"), ("", "eu-3")), 1
        ):
            machine = _machine(f"s{number}", rack, region)
            self.world.truth.machines[machine.name] = machine
        for name in ("garden-eu-1", "metal-eu-1", "hv"):
            self.world.add_cluster(name)
        for name in SERVICES:
            self.world.services[name] = Silent()
        self.climate = Climate(self.world, Ledger())
        self.mishaps = Mishaps(self.world, self.climate, ["cp"])

    def machine(self, name: str) -> Machine:
        return self.world.truth.machines[name]

    def plan(self, *lines: str) -> None:
        self.mishaps.plan(mishaps.read_all(lines))

    def wire(self) -> InProcess:
        hv = self.hv
        token = hv.admin_token()
        return InProcess(Server(hv), token=token, backend="hv", weather=self.climate)

    @property
    def hv(self) -> Cluster:
        return self.world.clusters["hv"]


def _machine(name: str, rack: str, region: str) -> Machine:
    return Machine(
        name=name,
        address=f"192.0.2.{name[1:]}",
        uuid=name,
        user="u",
        password="p",
        region=region,
        zone="a",
        rack=rack,
        size="std",
        on=True,
    )


def played(story: Callable[[Place], Awaitable[None]]) -> None:
    async def run() -> None:
        place = Place()
        await story(place)
        assert place.world.failures == []

    loop.run(run())


async def at(place: Place, seconds: float) -> None:
    await asyncio.sleep(seconds - place.world.elapsed())


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("bmc s9 hangs", "there is no bmc s9; there are s1, s2, s3, s4"),
        ("server moon dark", "there is no server moon; there are s1, s2, s3, s4"),
        ("rack zz dark", "there is no rack zz; there are a1, b1"),
        ("cluster metal-eu1 frozen", "there is no cluster metal-eu1; did you mean metal-eu-1?"),
        ("watch zz dropped", "there is no watch zz; there are cp, garden-eu-1, hv, metal-eu-1"),
        ("shoot zz stuck", "there is no shoot zz; there are cp"),
        ("garden eu-2 busy", "there is no garden eu-2; did you mean eu-"),
        ("metal mars slow", "there is no metal mars; there are eu-1, eu-3"),
        ("openbao mars sealed", "there is no openbao mars; there are eu-1, eu-3"),
        ("openstack prd unreachable", "there is no openstack prd; did you mean prod?"),
        ("ironic eu-1 locked", "there is no ironic eu-1; did you mean eu-3?"),
        ("token garden-eu-1 expired", "there is no token garden-eu-1; there are cp, hv"),
        ("partition openbao-eu-1-0 full", "there is no partition openbao-eu-1-0; did you mean"),
        ("objects zz meddled", "there is no objects zz; there are cp, garden-eu-1, hv"),
        ("clock world ahead", "there is no clock world; there are daemon"),
        ("image hv bad", "an image is named <cluster>/<component>"),
        ("image zz/nova bad", "clusters: cp, garden-eu-1, hv, metal-eu-1"),
    ],
)
def test_what_is_not_there_is_refused_before_the_run(line: str, complaint: str) -> None:
    """With what there is; and the good lines beside it are not begun either."""

    async def story(place: Place) -> None:
        with pytest.raises(ScriptError) as told:
            place.plan("at 1m: rack a1 dark", f"at 2m: {line}")
        assert str(told.value).startswith(f"'at 2m: {line}': ")
        assert complaint in str(told.value)
        await asyncio.sleep(600)
        assert place.mishaps.begun == []
        assert place.machine("s1").on

    played(story)


def test_a_cluster_that_is_to_come_can_be_named() -> None:
    """Clusters of the documents are known before they exist."""

    async def story(place: Place) -> None:
        place.plan("at 1m: cluster cp unreachable", "at 1m: image cp/nova bad")
        await at(place, 61)
        assert place.climate.plights == {"cp": Plight.UNREACHABLE}

    played(story)


def test_a_bmc_fails_at_its_time_and_answers_after_its_span() -> None:
    """Not a moment before or after, and the trace tells of both."""

    async def story(place: Place) -> None:
        place.plan("at 10m: bmc s1 hangs for 5m")
        seen: list[str] = []
        for moment in (599, 601, 899, 901):
            await at(place, moment)
            seen.append(place.machine("s1").bmc)
        assert seen == ["answers", "hangs", "hangs", "answers"]
        assert place.machine("s2").bmc == "answers"
        assert [(one.at, one.what, one.where, one.detail) for one in place.world.trace] == [
            (600, "fault", "s1", "bmc hangs"),
            (900, "mended", "s1", "bmc is no longer hangs"),
        ]
        assert [one.line.whom for one in place.mishaps.begun] == ["s1"]

    played(story)


def test_without_a_span_it_stays() -> None:
    """Until somebody mends it."""

    async def story(place: Place) -> None:
        place.plan("at 0: bmc s1 lies")
        await at(place, 86_400)
        assert place.machine("s1").bmc == "lies"

    played(story)


def test_what_lasts_can_be_mended() -> None:
    """All of it at once, and only what has no end of its own; a second time there is nothing."""

    async def story(place: Place) -> None:
        place.plan("at 0: bmc s1 lies", "at 0: rack b1 dark", "at 0: bmc s2 hangs for 1h")
        await at(place, 60)
        assert [line.whom for line in place.mishaps.mend()] == ["s1", "b1"]
        states = [place.machine(name).bmc for name in ("s1", "s2", "s3")]
        assert states == ["answers", "hangs", "answers"]
        assert place.machine("s3").on
        assert place.mishaps.mend() == []

    played(story)


def test_a_dark_rack_takes_its_machines_and_nothing_else() -> None:
    """Power and BMC of each; who was off before stays off after; listeners hear of each change."""

    async def story(place: Place) -> None:
        place.machine("s2").on = False
        heard: list[tuple[str, bool]] = []
        place.world.truth.listeners.append(lambda one: heard.append((one.name, one.on)))
        place.plan("at 1m: rack a1 dark for 10m")
        await at(place, 61)
        dark = {one.name for one in place.world.truth.machines.values() if not one.on}
        assert dark == {"s1", "s2"}
        assert [place.machine(name).bmc for name in ("s1", "s2", "s3")] == [
            *("unreachable", "unreachable", "answers")
        ]
        await at(place, 661)
        assert (place.machine("s1").on, place.machine("s2").on) == (True, False)
        assert place.machine("s1").bmc == place.machine("s2").bmc == "answers"
        assert heard == [("s1", False), ("s1", True)]

    played(story)


def test_a_dark_server_comes_back() -> None:
    """Alone."""

    async def story(place: Place) -> None:
        place.plan("at 1m: server s1 dark for 1m")
        await at(place, 61)
        assert [one.on for one in place.world.truth.machines.values()] == [False, True, True, True]
        await at(place, 121)
        assert place.machine("s1").on

    played(story)


def test_mishaps_that_overlap_end_in_any_order() -> None:
    """What lasts longer holds, and when all are over everything is as it was."""

    async def story(place: Place) -> None:
        place.plan(
            "at 1m: rack a1 dark for 10m",
            "at 2m: server s1 dark for 20m",
            "at 3m: bmc s2 hangs for 20m",
            "at 1m: cluster hv unreachable for 10m",
            "at 2m: cluster hv busy for 20m",
            "at 1m: eso hv lagging for 10m",
            "at 2m: eso hv lagging for 20m",
        )
        await at(place, 700)
        assert (place.machine("s1").on, place.machine("s1").bmc) == (False, "unreachable")
        assert (place.machine("s2").on, place.machine("s2").bmc) == (True, "hangs")
        assert place.climate.plights == {"hv": Plight.BUSY}
        assert ("eso", "hv", "lagging") in place.world.mishaps
        await at(place, 1500)
        assert (place.machine("s1").on, place.machine("s1").bmc) == (True, "answers")
        assert place.machine("s2").bmc == "answers"
        assert place.climate.plights == {}
        assert place.world.mishaps == set()

    played(story)


@pytest.mark.parametrize(
    ("line", "backends"),
    [
        ("cluster hv frozen", ["hv"]),
        ("garden eu-1 failing", ["garden-eu-1"]),
        ("metal eu-1 slow", ["metal-eu-1"]),
        ("metal eu-3 busy", ["ironic-eu-3"]),
        ("openbao eu-1 unreachable", ["openbao-eu-1", "openbao-eu-1-0", "openbao-eu-1-1"]),
        ("openbao eu-1 standby", ["openbao-eu-1", "openbao-eu-1-0", "openbao-eu-1-1"]),
        ("openbao eu-1 audit-blocked", ["openbao-eu-1", "openbao-eu-1-0", "openbao-eu-1-1"]),
        ("ironic eu-3 locked", ["ironic-eu-3"]),
        ("partition hv one-way", ["hv"]),
        ("token hv expired", ["hv"]),
    ],
)
def test_a_plight_is_that_of_the_backend_that_is_asked(line: str, backends: list[str]) -> None:
    """Metal is a cluster or an Ironic, and an OpenBao is all of its members."""

    async def story(place: Place) -> None:
        place.plan(f"at 1m: {line} for 1m")
        await at(place, 61)
        assert place.climate.plights == dict.fromkeys(backends, Plight(line.rpartition(" ")[2]))
        await at(place, 121)
        assert place.climate.plights == {}

    played(story)


def test_revoked_kubeconfigs_open_nothing_and_others_do() -> None:
    """Those that a garden has given out so far, and no ServiceAccount's."""

    async def story(place: Place) -> None:
        tokens = place.hv.tokens
        groups = ("gardener.cloud:system:admins", "system:masters")
        old, other = tokens.issue("a:fleetd", groups), tokens.issue("s", ("system:masters",))
        place.plan("at 1m: token hv revoked", "at 2m: token hv revoked")
        await at(place, 61)
        with pytest.raises(BadToken):
            tokens.user(old)
        assert tokens.user(other).master
        await at(place, 121)
        assert place.mishaps.hits["token", "revoked"] == 1

    played(story)


def test_an_unreachable_cloud_has_no_api_left() -> None:
    """Every API of this cloud, none of the other."""

    async def story(place: Place) -> None:
        place.plan("at 1m: openstack prod unreachable for 1m")
        await at(place, 61)
        cut = {name for name in SERVICES if name in place.climate.plights}
        assert cut == {"keystone-prod", "nova-prod", "placement-prod", "glance-prod"}
        await at(place, 121)
        assert place.climate.plights == {}

    played(story)


async def watch(place: Place, version: str) -> tuple[list[bytes], Exception | None]:
    """Until it ends, for an hour at most."""
    got: list[bytes] = []
    query = {"watch": "true", "resourceVersion": version}
    try:
        async with asyncio.timeout(3600):
            async for some in place.wire().lines(Request(method="GET", path=PATH, query=query)):
                got += some
    except (TimeoutError, errors.KubeError) as fault:
        return got, fault
    return got, None


def change(place: Place, name: str) -> None:
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
    made["metadata"] = {"name": name, "namespace": "default"}
    place.hv.create(made, manager="test")


@pytest.mark.parametrize("line", ["watch hv dropped", "cluster hv unreachable", "watch hv expired"])
def test_open_watches_end_when_it_begins(line: str) -> None:
    """At that moment, not when the next line would come."""

    async def story(place: Place) -> None:
        place.plan(f"at 5m: {line}")
        await watch(place, str(place.hv.store.version))
        assert place.world.elapsed() == pytest.approx(300, abs=1)

    played(story)


def test_an_expired_watch_cannot_go_on_where_it_was() -> None:
    """The history is gone: 410, where a dropped watch would get what it missed."""

    async def story(place: Place) -> None:
        version = str(place.hv.store.version)
        place.plan("at 5m: watch hv dropped", "at 10m: watch hv expired")
        change(place, "missed")
        place.world.after(301, place.hv.end_watches)
        await at(place, 300.5)
        got, _ = await watch(place, version)
        assert [b"ADDED" in line for line in got] == [True]
        await at(place, 601)
        got, _ = await watch(place, version)
        assert [b'"code":410' in line.replace(b" ", b"") for line in got] == [True]

    played(story)


def test_a_stalled_watch_is_silent_and_a_new_one_is_not() -> None:
    """Nothing comes and nothing ends; after the span a new watch hears everything."""

    async def story(place: Place) -> None:
        version = str(place.hv.store.version)
        place.plan("at 1m: watch hv stalled for 10m")
        place.world.after(120, lambda: change(place, "unheard"))
        place.world.after(1800, place.hv.end_watches)
        got, fault = await watch(place, version)
        assert got == []
        assert isinstance(fault, TimeoutError)
        place.world.after(10, place.hv.end_watches)
        got, _ = await watch(place, version)
        assert [b"unheard" in line for line in got] == [True]

    played(story)


@pytest.mark.parametrize(
    "told",
    [
        ("shoot", "cp", "stuck"),
        ("eso", "hv", "lagging"),
        ("ceph", "hv", "degraded"),
        ("openbao", "eu-1", "sealed"),
        ("image", "hv/nova", "bad"),
        ("cluster", "hv", "frozen"),
    ],
)
def test_controllers_are_told_of_the_beginning_and_the_end(told: tuple[str, str, str]) -> None:
    """What they ask is set while it lasts, and who listens hears both."""

    async def story(place: Place) -> None:
        heard: list[tuple[float, bool]] = []
        world = place.world
        world.listeners.append(lambda one: heard.append((world.elapsed(), one in world.mishaps)))
        place.plan(f"at 1m: {' '.join(told)} for 2m")
        await at(place, 61)
        assert world.mishaps == {told}
        await at(place, 181)
        assert world.mishaps == set()
        assert heard == [(60, True), (180, False)]

    played(story)


def test_the_same_again_is_told_again() -> None:
    """What was sealed, unsealed by somebody, and is sealed once more, is sealed."""

    async def story(place: Place) -> None:
        heard: list[float] = []
        place.world.listeners.append(lambda _: heard.append(place.world.elapsed()))
        place.plan("at 1m: openbao eu-1 sealed", "at 2m: openbao eu-1 sealed")
        await at(place, 200)
        assert heard == [60, 120]

    played(story)


def test_a_partition_is_between_fleetd_and_one_backend() -> None:
    """Nobody answers fleetd; the controllers of other clusters are not told."""

    async def story(place: Place) -> None:
        place.plan("at 1m: partition hv full for 1m")
        await at(place, 61)
        assert place.climate.plights == {"hv": Plight.FROZEN}
        assert place.world.mishaps == set()
        await at(place, 121)
        assert place.climate.plights == {}

    played(story)


def test_a_hibernated_shoot_does_not_answer() -> None:
    """And Gardener is told to say so."""

    async def story(place: Place) -> None:
        place.plan("at 1m: shoot hv hibernated for 1m")
        await at(place, 61)
        assert place.climate.plights == {"hv": Plight.UNREACHABLE}
        assert place.world.mishaps == {("shoot", "hv", "hibernated")}
        await at(place, 121)
        assert (place.climate.plights, place.world.mishaps) == ({}, set())

    played(story)


def test_the_clock_of_the_daemon_jumps_and_time_goes_on() -> None:
    """An hour ahead, an hour behind, and right again; the monotonic one notices nothing."""

    async def story(place: Place) -> None:
        clock = WallClock(place.world)
        place.plan("at 1m: clock daemon ahead for 1m", "at 5m: clock daemon behind for 1m")
        seen: list[tuple[float, float]] = []
        for moment in (30, 90, 150, 330, 400):
            await at(place, moment)
            off = (clock.now() - place.world.now()).total_seconds()
            seen.append((clock.monotonic(), off))
        assert seen == [(30, 0), (90, 3600), (150, 0), (330, -3600), (400, 0)]

    played(story)


def test_the_clock_of_another_process_is_not_ours_to_move() -> None:
    """Said before anything happens, with what to do instead."""

    async def story(place: Place) -> None:
        wire = Mishaps(place.world, place.climate, [], clock=False)
        with pytest.raises(ScriptError, match=r"another process .* fleetctl rehearse"):
            wire.plan(mishaps.read_all(["at 1m: clock daemon ahead"]))

    played(story)


def test_what_controllers_are_told_counts_when_one_of_them_asks() -> None:
    """A mishap that nobody asks about did nothing."""

    async def story(place: Place) -> None:
        place.plan("at 1m: eso hv lagging", "at 1m: shoot cp stuck")
        await at(place, 61)
        assert ("eso", "hv", "lagging") in place.world.mishaps
        assert place.mishaps.hits == {("eso", "lagging"): 1}

    played(story)
