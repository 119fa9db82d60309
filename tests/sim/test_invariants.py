"""The invariants: each breach is found in a world that was prepared with it, and only there."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog

from fleetd.kube import facts
from fleetd.sim import build, invariants, loop
from fleetd.sim.controllers import hypervisor_onboarding
from fleetd.sim.controllers.hypervisor import HypervisorOperator
from fleetd.sim.invariants import METAL, Deeds, Judge
from fleetd.sim.ledger import Ledger
from fleetd.sim.services import openstack, redfish
from fleetd.sim.truth import Machine
from fleetd.sim.world import HttpRequest, HttpResponse, World
from fleetd.store.base import Entry, Intent
from fleetd.vocabulary import Done, Ending, PlanId, StepId
from tests.twin import stage
from topology.resource import Ref, Resource, Topology

MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass
class Bao:
    initialised: int = 1

    def handle(self, request: HttpRequest) -> HttpResponse:
        del request
        return HttpResponse(status=204)


@dataclass
class Scene:
    """The minimal region with one write that was announced and done."""

    world: World
    topology: Topology
    ledger: Ledger = field(default_factory=Ledger)
    journal: list[Entry] = field(default_factory=list[Entry])
    orphans: dict[Ref, Resource] = field(default_factory=dict[Ref, Resource])

    def announced(self, step: str, ending: Ending | None, writes: int = 1) -> None:
        intent = Intent(
            step=StepId(step),
            ref=Ref("cluster", "hv"),
            verb="create",
            args={"writes": writes},
            generation=1,
            plan=PlanId("p"),
            at=build.START,
        )
        number = len(self.journal) + 1
        self.journal.append(Entry(seq=number, intent=intent, ending=ending, ended_at=None))

    def wrote(self, step: str = "") -> None:
        with structlog.contextvars.bound_contextvars(step=step):
            self.ledger.note(1.0, "hv", "POST", MAPS, 201)

    def server(self, name: str, uuid: str, claim: str) -> None:
        self.world.clusters["metal-eu-1"].create(
            {
                "apiVersion": "metal.ironcore.dev/v1alpha1",
                "kind": "Server",
                "metadata": {"name": name},
                "spec": {
                    "systemUUID": uuid,
                    **({"serverClaimRef": {"name": claim, "namespace": "x"}} if claim else {}),
                },
            },
            manager="test",
        )

    def marked(self, name: str, owner: str | None) -> None:
        labels = {facts.MANAGED_BY: facts.MANAGER}
        if owner is not None:
            labels[facts.OWNER] = owner
        made: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
        made["metadata"] = {"name": name, "namespace": "default", "labels": labels}
        self.world.clusters["garden-eu-1"].create(made, manager="test")

    def breaches(self) -> list[str]:
        return invariants.at_end(self.world, self.ledger, self.journal, self.topology, self.orphans)


def found(prepare: Callable[[Scene], None]) -> list[str]:
    async def run() -> list[str]:
        topology = stage.reading().topology
        assert topology is not None
        scene = Scene(build.build(topology, 1), topology)
        scene.announced("s-1", Done())
        scene.wrote("s-1")
        prepare(scene)
        return scene.breaches()

    return loop.run(run())


def clean(scene: Scene) -> None:
    """Much that is allowed."""
    scene.server("one", "u-1", "claim-a")
    scene.server("two", "u-2", "claim-b")
    scene.server("free", "u-1", "")
    scene.marked("ours", "region.eu-1")
    scene.world.services["openbao-eu-1"] = Bao(1)
    machine = scene.world.truth.machines["metal-01"]
    machine.claimed = machine.deployed = 2


def test_a_clean_world_has_no_breach() -> None:
    """Claims of different machines, our own objects, a second deployment for a second owner."""
    assert found(clean) == []


def two_claims(scene: Scene) -> None:
    scene.server("one", "u-1", "claim-b")
    scene.server("other", "u-1", "claim-a")


def stray(scene: Scene) -> None:
    scene.marked("lost", "cluster.gone")


def nobodys(scene: Scene) -> None:
    scene.marked("lost", None)


def unannounced(scene: Scene) -> None:
    scene.wrote()


def not_in_the_journal(scene: Scene) -> None:
    scene.wrote("s-2")


def without_ending(scene: Scene) -> None:
    scene.announced("s-2", None)


def harm(scene: Scene) -> None:
    scene.world.truth.hurt("metal-01 was switched off with 3 VMs on it")


def deployed_twice(scene: Scene) -> None:
    machine = scene.world.truth.machines["metal-01"]
    machine.claimed, machine.deployed = 1, 2


def initialised_twice(scene: Scene) -> None:
    scene.world.services["openbao-eu-1"] = Bao(2)


@pytest.mark.parametrize(
    ("prepare", "breach"),
    [
        (two_claims, "I1: machine u-1 is claimed by claim-a, claim-b"),
        (harm, "I2: metal-01 was switched off with 3 VMs on it"),
        (deployed_twice, "I9: metal-01 was deployed 2 times for one owner"),
        (initialised_twice, "I9: openbao-eu-1 was initialised 2 times"),
        (stray, "I10: ConfigMap lost on garden-eu-1 is cluster.gone's"),
        (nobodys, "I10: ConfigMap lost on garden-eu-1 is 's"),
        (unannounced, f"I15: without an intent: 1.0 hv POST {MAPS} -> 201 []"),
        (
            not_in_the_journal,
            f"I15: its intent is not in the journal: 1.0 hv POST {MAPS} -> 201 [s-2]",
        ),
        (without_ending, "I15: create cluster/hv has no ending"),
    ],
)
def test_a_breach_is_found_and_is_the_only_one(
    prepare: Callable[[Scene], None], breach: str
) -> None:
    """One sentence, with its number first."""
    assert found(prepare) == [breach]


def test_what_was_retired_may_still_have_objects() -> None:
    """An orphan that fleetd knows of is no stray."""

    def prepare(scene: Scene) -> None:
        stray(scene)
        resource = next(iter(scene.topology.resources.values()))
        scene.orphans[Ref("cluster", "gone")] = resource

    assert found(prepare) == []


# At once.


KV = "/v1/kv-v2/data/database/password"
SECRETS = "/api/v1/namespaces/default/secrets/key"


@dataclass
class Court(Scene):
    """The same scene with a judge who watches it."""

    def __post_init__(self) -> None:
        self.open: dict[str, Intent] = {}
        self.judge = Judge(
            self.world,
            self.ledger,
            lambda: {*self.topology.resources, *self.orphans},
            self.open.get,
        )
        self.judge.limit(self.topology, stage.Region.of().policy)

    def opened(self, step: str, writes: int = 1) -> None:
        self.announced(step, None, writes)
        self.open[step] = self.journal[-1].intent

    def asks(self, where: str, method: str, path: str, step: str = "s-1") -> None:
        with structlog.contextvars.bound_contextvars(step=step):
            self.ledger.note(60.0, where, method, path, 200)

    def secret(self, value: str, step: str = "s-1") -> None:
        """Applied by fleetd, for this step."""
        made: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "data": {"key": value}}
        marks = {facts.MANAGED_BY: facts.MANAGER, facts.OWNER: "region.eu-1"}
        made["metadata"] = {"name": "key", "namespace": "default", "labels": marks}
        self.world.clusters["garden-eu-1"].apply(made, manager="fleetd")
        self.asks("garden-eu-1", "PATCH", SECRETS, step)

    def node(self, name: str) -> Machine:
        machine = self.world.truth.machines[name]
        machine.node, machine.on = f"hv/{name}", True
        return machine

    def off(self, name: str) -> None:
        redfish.switch(self.world, self.world.truth.machines[name], on=False, who="somebody")


def sentence(prepare: Callable[[Court], None]) -> list[str]:
    """What the judge says, without the story."""

    async def run() -> list[str]:
        topology = stage.reading().topology
        assert topology is not None
        court = Court(build.build(topology, 7), topology)
        court.opened("s-1")
        prepare(court)
        return [str(one).partition("\n")[0] for one in court.world.failures]

    return loop.run(run())


def fair(court: Court) -> None:
    """Much that is allowed, step by step."""
    court.opened("s-1", writes=4)
    court.asks("hv", "POST", MAPS)
    court.server("one", "u-1", "claim-a")
    court.server("two", "u-2", "claim-b")
    court.world.clusters["metal-eu-1"].delete(METAL, "one")
    court.server("again", "u-1", "claim-c")
    court.secret("YQ==")
    court.secret("YQ==")
    court.opened("s-2", writes=2)
    court.secret("Yg==", "s-2")
    court.asks("openbao-eu-1", "POST", KV)
    court.asks("openbao-eu-1", "POST", KV, "s-2")
    truth = court.world.truth
    truth.uses("kv/x", "nova", "1")
    truth.uses("kv/x", "nova", "2")
    truth.revoked("kv/x", "1", "fleetd")
    court.node("metal-01")
    court.off("metal-01")
    truth.power(court.node("metal-02"), on=False)


def test_a_fair_run_has_no_sentence() -> None:
    """One owner at a time, values that stay, an old version that nobody uses, one server away on
    purpose and one more by the grid."""
    assert sentence(fair) == []


def claimed_twice(court: Court) -> None:
    court.server("one", "u-1", "claim-b")
    court.server("other", "u-1", "claim-a")


def hurt(court: Court) -> None:
    court.node("metal-01").vms.add("vm-1")
    court.off("metal-01")


def revoked_in_use(court: Court) -> None:
    court.world.truth.uses("kv/x", "nova", "1")
    court.world.truth.revoked("kv/x", "1", "fleetd")


def another_secret(court: Court) -> None:
    court.secret("YQ==")
    court.opened("s-1")
    court.secret("Yg==")


def another_version(court: Court) -> None:
    court.asks("openbao-eu-1", "POST", KV)
    court.opened("s-1")
    court.asks("openbao-eu-1", "POST", KV)


def deployed_again(court: Court) -> None:
    machine = court.world.truth.machines["metal-01"]
    machine.claimed, machine.deployed = 1, 2
    court.asks("hv", "POST", MAPS)


def a_stray(court: Court) -> None:
    court.marked("lost", "cluster.gone")
    court.asks("garden-eu-1", "PATCH", f"{MAPS}/lost")


def two_away(court: Court) -> None:
    for name in ("metal-01", "metal-02"):
        court.node(name)
        court.off(name)


def no_network(court: Court) -> None:
    cloud = openstack.of_hypervisors(court.world, "hv")
    assert cloud is not None
    court.world.add_cluster("hv")
    operator = HypervisorOperator(court.world, court.world.clusters["hv"])
    hypervisor_onboarding.admitted(operator, "hv-1", cloud)


def closed_intent(court: Court) -> None:
    del court.open["s-1"]
    court.asks("hv", "POST", MAPS)


def one_more(court: Court) -> None:
    court.opened("s-1", writes=2)
    for _ in range(3):
        court.asks("hv", "POST", MAPS)


def nobody_said(court: Court) -> None:
    court.asks("hv", "POST", MAPS, "")


@pytest.mark.parametrize(
    ("prepare", "breach"),
    [
        (claimed_twice, "I1: machine u-1 is claimed by claim-a, claim-b"),
        (hurt, "I2: somebody switched off metal-01 with 1 virtual machines on it"),
        (revoked_in_use, "I5: fleetd took away version 1 of kv/x while it is used by nova"),
        (another_secret, "I5: the same step wrote another value: "),
        (another_version, "I5: the same step wrote another value: "),
        (deployed_again, "I9: metal-01 was deployed 2 times for one owner"),
        (a_stray, "I10: ConfigMap lost on garden-eu-1 is cluster.gone's"),
        (two_away, "I11: somebody took metal-02: of "),
        (no_network, "I12: hv-1 was opened for virtual machines without nova-compute"),
        (closed_intent, "I15: its intent is not open in the journal: "),
        (nobody_said, "I15: without an intent: "),
        (one_more, "I15: write 3 of create cluster/hv, which does not say so: "),
    ],
)
def test_a_breach_is_judged_at_once(prepare: Callable[[Court], None], breach: str) -> None:
    """By the write that makes it, with its number first."""
    said = sentence(prepare)

    assert said
    assert all(one.startswith(breach) for one in said)


def test_a_breach_tells_its_story() -> None:
    """The seed, the time, the request, the step, and what happened before."""

    async def run() -> str:
        topology = stage.reading().topology
        assert topology is not None
        court = Court(build.build(topology, 7), topology)
        court.opened("s-1")
        court.world.tell("on", "machine metal-01", "by somebody")
        court.asks("hv", "POST", MAPS)
        court.world.truth.hurt("ouch")
        return str(court.world.failures[0])

    assert loop.run(run()).splitlines() == [
        "I2: ouch",
        f"  seed 7, at 0:00:00, last request POST {MAPS} to hv for step s-1 (create cluster/hv)",
        "  before that:",
        "    0:00:00 machine metal-01: on by somebody",
        f"    asked: 60.0 hv POST {MAPS} -> 200 [s-1]",
    ]


def test_other_deeds_than_in_a_fair_run_are_a_breach() -> None:
    """Made twice, or removed, but for what a stranger took away."""
    once, twice, none = Counter({"a": 1, "b": 1}), Counter({"a": 2, "b": 1}), Counter[str]()
    good = Deeds(once, none)

    assert invariants.same_deeds(good, good, ()) == []
    assert invariants.same_deeds(Deeds(twice, Counter({"b": 1})), good, ()) == [
        "I8: a was made 2 times instead of 1",
        "I8: b was removed 1 times instead of 0",
    ]
    assert invariants.same_deeds(Deeds(twice, Counter({"a": 1})), good, {"a"}) == []
