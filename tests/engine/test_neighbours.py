"""What a driver proposes may hang on its neighbours and on the catalogue; then it is asked anew."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from drivers.flux.driver import FluxDriver
from fleetd.daemon import outlook, sealed
from fleetd.engine.state import State
from fleetd.kube import facts
from fleetd.objects import marked
from fleetd.plan.policy import Policy
from fleetd.tools import Rules
from fleetd.vocabulary import READY, Condition, Observation, Truth
from tests.twin.stage import reading
from topology.resource import EMPTY, Ref, Resource, Topology

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
READING = reading()
FLUX = Ref("flux", "mgmt")
RELEASE = Ref("cert-manager", "mgmt")
assert READING.topology is not None
OLD: Topology = READING.topology


@dataclass
class Fleet:
    """As the daemon has it: the drivers' topology is that of the state."""

    rules: Rules
    state: State | None = None

    def topology(self) -> Topology:
        self.rules.reads.note()
        return self.state.view.topology if self.state is not None else EMPTY

    def everything(self) -> Topology:
        return self.topology()

    def ready(self, ref: Ref) -> Condition | None:
        del ref


def changed(topology: Topology, ref: Ref, **different: Any) -> Topology:
    """Another topology in which one thing is otherwise."""
    resources = dict(topology.resources)
    resources[ref] = replace(resources[ref], **different)
    return Topology(digest="other", resources=resources, edges=topology.edges)


def moved(topology: Topology) -> Topology:
    """The chart of one component comes from another place."""
    spec = topology.resources[RELEASE].spec
    install = {**spec["install"], "repository": "oci://charts.new.example"}
    return changed(topology, RELEASE, spec={**spec, "install": install}, generation=7)


def content(driver: FluxDriver, want: Resource) -> Observation:
    """Just what it should be."""
    parts: dict[str, Any] = {
        one.key: {
            "made": facts.made_from(marked(one.body, want)),
            "differs": [],
            "deleting": False,
        }
        for one in driver.manifests(want)
    }
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    observed = {"operator": True}
    seen: dict[str, Any] = {
        "metadata": {"name": "flux"},
        "status": ready,
        "observed": observed,
        "parts": parts,
    }
    return Observation(ref=want.ref, at=NOW, facts=seen, digest=4711)


def ready(want: Resource) -> Condition:
    return Condition(
        type=READY,
        truth=Truth.TRUE,
        reason="Ready",
        message="",
        generation=want.generation,
        since=NOW,
        reason_since=NOW,
    )


def running() -> tuple[State, Rules]:
    """A daemon that has seen its Flux, which is as it should be."""
    tools = sealed.tools(OLD, READING.catalogue, {}, NOW)
    fleet = Fleet(tools.rules)
    driver = FluxDriver(replace(tools, fleet=fleet))
    fleet.state = State({"flux": driver}, Policy(), tools.rules.reads)
    fleet.state.accept(OLD, {})
    want = OLD.resources[FLUX]
    for ref in [FLUX, *want.needs]:
        fleet.state.saw(
            content(driver, want) if ref == FLUX else blank(ref), ready(OLD.resources[ref])
        )
    return fleet.state, tools.rules


def blank(ref: Ref) -> Observation:
    return Observation(ref=ref, at=NOW, facts={"there": True}, digest=1)


def planned(state: State) -> list[str]:
    want = state.view.topology.resources[FLUX]
    plan = state.planner.plan(state.view, state.policy, region=want.region, now=NOW)
    return [step.why for step in plan.steps if step.ref == FLUX]


def test_a_change_of_a_neighbour_reaches_a_driver_whose_own_thing_did_not_change() -> None:
    """Flux installs the chart repositories of all: a new one is installed though neither the spec
    nor the facts of Flux moved."""
    state, _ = running()
    assert planned(state) == []

    state.accept(moved(OLD), {})

    assert planned(state) == ["install Flux: HelmRepository charts-new-example"]


def test_what_hangs_on_nothing_else_is_not_asked_again() -> None:
    """A hundred thousand servers are not asked anew because a chart moved."""
    state, rules = running()
    asked: list[Ref] = []
    driver = state.drivers["flux"]

    class Alone:
        kind = "alone"

        def propose(self, want: Resource, seen: Observation) -> tuple[()]:
            del seen
            asked.append(want.ref)
            return ()

        def __getattr__(self, name: str) -> Any:
            return getattr(driver, name)

    del rules
    state.drivers["flux"] = Alone()  # pyright: ignore[reportIndexIssue]
    planned(state)
    state.accept(moved(OLD), {})
    planned(state)

    assert asked == [FLUX]


def test_an_outlook_is_made_with_the_topology_of_the_new_documents() -> None:
    """`fleetctl plan FILE` tells what the neighbours' change does, and asks no driver at work."""
    state, rules = running()
    before = rules.reads.count
    world = outlook.World(
        view=state.view,
        policy=Policy(),
        now=NOW,
        make=lambda tools: {"flux": FluxDriver(tools)},
    )

    found = outlook.waves(world, moved(OLD), READING.catalogue, ["eu-1"])

    told = [step.why for wave in found for step in wave.steps if step.ref == FLUX]
    assert told == ["install Flux: HelmRepository charts-new-example"]
    assert rules.reads.count == before


def test_an_outlook_is_made_with_the_catalogue_of_the_new_documents() -> None:
    """A release that needs a component which only the new catalogue knows waits for it."""
    state, _ = running()
    new = Ref("new-operator", "mgmt")
    made = replace(OLD.resources[RELEASE], ref=new, needs=frozenset())
    topology = Topology(digest="n", resources={new: made, **OLD.resources}, edges=())
    needs = OLD.resources[RELEASE].needs | {new}
    topology = changed(topology, RELEASE, needs=needs, generation=8)
    old = content(FluxDriver(sealed.tools(OLD, READING.catalogue, {}, NOW)), OLD.resources[RELEASE])
    state.saw(old, ready(OLD.resources[RELEASE]))
    catalogue = {**READING.catalogue, "new-operator": READING.catalogue["cert-manager"]}
    world = outlook.World(
        view=state.view,
        policy=Policy(),
        now=NOW,
        make=lambda tools: {"flux": FluxDriver(tools)},
    )

    found = outlook.waves(world, topology, catalogue, ["eu-1"])

    holds = [hold for wave in found for hold in wave.holds if hold.ref == RELEASE]
    acts = [step for wave in found for step in wave.steps if step.ref == RELEASE]
    told = [step for hold in holds for step in hold.steps] + acts
    assert told[0].args["manifest"]["spec"]["dependsOn"][-1] == {"name": "mgmt-new-operator"}
