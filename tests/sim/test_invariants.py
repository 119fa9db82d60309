"""The invariants: each breach is found in a world that was prepared with it, and only there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog

from fleetd.kube import facts
from fleetd.sim import build, invariants, loop
from fleetd.sim.ledger import Ledger
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

    def announced(self, step: str, ending: Ending | None) -> None:
        intent = Intent(
            step=StepId(step),
            ref=Ref("cluster", "hv"),
            verb="create",
            args={},
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


def test_harm_is_seen_after_each_write() -> None:
    """The cheap question finds it at once."""

    async def run() -> list[str]:
        world = World(1, build.START)
        assert invariants.after_write(world) == []
        world.truth.hurt("ouch")
        return invariants.after_write(world)

    assert loop.run(run()) == ["I2: ouch"]
