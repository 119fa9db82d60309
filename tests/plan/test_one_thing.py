"""What is said of one thing: each situation, and the words an operator gets."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleetd import conditions
from fleetd.plan.policy import Pause, Policy
from fleetd.vocabulary import Done, Failed, HoldReason, Lost, Truth, Waiting
from tests.plan import fleets
from tests.plan.fleets import NOW, World, ref, thing, todo, told
from topology.resource import Limit

MINUTE = timedelta(minutes=1)
A = "agent/a"


def one(*, limits: dict[str, timedelta] | None = None, driver: str = "data") -> World:
    return World.of(thing(A, limits=limits, driver=driver))


def chain() -> World:
    """c needs b, b needs a."""
    return World.of(thing("agent/a"), thing("agent/b", "agent/a"), thing("agent/c", "agent/b"))


def create(world: World, name: str = A) -> str:
    return fleets.step(world.want(name), "create").id


def test_absent_things_are_created() -> None:
    """A thing that was looked for and is not there gets its driver's step."""
    world = one()
    world.absent(A)

    plan = world.plan()

    assert told(plan) == {A: ["+create"]}
    assert plan.steps[0].id == create(world)


def test_ready_things_are_quiet() -> None:
    """Ready and nothing proposed: nothing is said."""
    world = one()
    world.up(A)

    assert told(world.plan()) == {}


def test_drift_of_a_ready_thing_is_repaired() -> None:
    """Ready with proposals: the steps are planned."""
    world = one()
    world.up(A, todo=[todo("fix")])

    assert told(world.plan()) == {A: ["+fix"]}


def test_a_thing_without_a_driver_is_held() -> None:
    """No driver: held, with the name that is missing."""
    world = one(driver="nobody")

    plan = world.plan()

    assert told(plan) == {A: ["NoDriver"]}
    assert "'nobody'" in plan.holds[0].message


def test_a_thing_never_looked_at_waits() -> None:
    """Never observed is not absent: nothing is created."""
    assert told(one().plan()) == {A: ["~NotObserved"]}


def test_a_thing_that_cannot_be_looked_at_is_held() -> None:
    """facts None: no step, and the error and since when."""
    world = one()
    world.blind(A, error="BMC timed out", since=NOW - 4 * MINUTE)

    plan = world.plan()

    assert told(plan) == {A: ["StaleObservation"]}
    assert plan.holds[0].message == (
        "it cannot be looked at since 2026-03-04 11:56 UTC: BMC timed out"
    )


@pytest.mark.parametrize(
    ("age", "expected"),
    [(299, {A: ["+create"]}), (300, {A: ["StaleObservation"]}), (9000, {A: ["StaleObservation"]})],
)
def test_an_old_observation_is_not_a_fact(age: int, expected: dict[str, list[str]]) -> None:
    """From the age of stale_after on nothing is decided from it."""
    world = one()
    world.absent(A, at=NOW - timedelta(seconds=age))

    assert told(world.plan()) == expected


def test_a_ready_thing_nobody_looks_at_is_not_quiet() -> None:
    """Even what was Ready is told once the last look is too old."""
    world = one()
    world.up(A, at=NOW - 6 * MINUTE)

    assert told(world.plan()) == {A: ["StaleObservation"]}


def test_a_step_in_flight_is_not_repeated() -> None:
    """In flight: wait, naming verb and beginning."""
    world = one()
    world.absent(A)
    world.tried(A, create(world), None, at=NOW - MINUTE, count=2)

    plan = world.plan()

    assert told(plan) == {A: ["~InFlight"]}
    assert plan.waits[0].message == "create is in flight since 2026-03-04 11:59 UTC, try 2"


@pytest.mark.parametrize("ending", [Done(), Lost("it died"), Failed("No", "no", retry=True)])
def test_after_an_attempt_the_thing_is_looked_at_first(ending: Done | Lost | Failed) -> None:
    """An observation from before the end of the attempt decides nothing."""
    world = one()
    world.absent(A, at=NOW - MINUTE)
    world.tried(A, create(world), ending, at=NOW - 2 * MINUTE, ended_at=NOW)

    assert told(world.plan()) == {A: ["~LookingAgain"]}


@pytest.mark.parametrize(
    ("ending", "reason", "words"),
    [
        (Waiting("Installing", MINUTE), "Installing", "create was taken; Installing"),
        (
            Failed("Timeout", "no answer", retry=True),
            "Backoff",
            "try 3 of create failed: Timeout: no answer",
        ),
        (Done(), "Backoff", "create was done 3 times and is still to be done"),
        (Lost("it died"), "Backoff", "nobody knows how create ended: it died"),
    ],
)
def test_what_was_tried_is_not_hammered(
    ending: Done | Lost | Failed | Waiting, reason: str, words: str
) -> None:
    """Before not_before the step waits, with the reason and until when; at that moment it goes."""
    world = one()
    world.absent(A)
    until = NOW + MINUTE
    world.tried(A, create(world), ending, count=3, not_before=until)

    plan = world.plan()

    assert told(plan) == {A: [f"~{reason}"]}
    assert (plan.waits[0].message, plan.waits[0].until, plan.again) == (words, until, until)
    assert told(world.plan(now=until)) == {A: ["+create"]}


def test_what_failed_for_good_needs_a_person() -> None:
    """Failed without retry: held with the id to approve; approved, it is tried again."""
    world = one()
    world.absent(A)
    world.tried(A, create(world), Failed("Refused", "quota is used up", retry=False))

    plan = world.plan()

    assert told(plan) == {A: ["StepFailed"]}
    assert plan.holds[0].approval == create(world)
    assert "quota is used up" in plan.holds[0].message
    approved = world.plan(Policy(approvals=frozenset({create(world)})))
    assert told(approved) == {A: ["+create"]}
    assert approved.approved == {create(world)}


def test_another_step_than_the_failed_one_is_tried() -> None:
    """The failure of one step says nothing of a different one."""
    world = one()
    world.absent(A)
    world.tried(A, "another", Failed("Refused", "no", retry=False))

    assert told(world.plan()) == {A: ["+create"]}


def test_steps_before_a_failed_one_go_on() -> None:
    """Of several steps, those up to the failed one are planned; it and the rest are held."""
    world = one()
    world.up(A, todo=[todo("one"), todo("two"), todo("three")])
    world.tried(A, fleets.step(world.want(A), "two").id, Failed("No", "no", retry=False))

    plan = world.plan()

    assert told(plan) == {A: ["+one", "StepFailed"]}
    assert [step.verb for step in plan.holds[0].steps] == ["two", "three"]


@pytest.mark.parametrize("scope", ["all", "region:eu-1", "kind:agent", "agent/a"])
def test_pause_on_four_levels(scope: str) -> None:
    """Each level holds the step and says who and why."""
    world = one()
    world.absent(A)
    pause = Pause(scope=scope, who="ada", why="moving racks", since=NOW)

    plan = world.plan(Policy(pauses={scope: pause}))

    assert told(plan) == {A: ["Paused"]}
    assert plan.holds[0].message == (
        f"paused by ada since 2026-03-04 12:00 UTC: moving racks (pause on {scope})"
    )
    assert [step.verb for step in plan.holds[0].steps] == ["create"]


@pytest.mark.parametrize("scope", ["region:eu-2", "kind:server", "agent/b", "agent"])
def test_a_pause_elsewhere_holds_nothing(scope: str) -> None:
    """Only what a pause names is paused."""
    world = one()
    world.absent(A)
    pause = Pause(scope=scope, who="ada", why="moving", since=NOW)

    assert told(world.plan(Policy(pauses={scope: pause}))) == {A: ["+create"]}


def test_the_deepest_cause_is_named() -> None:
    """Whoever waits names what it waits for and the thing at the bottom of it."""
    world = chain()
    world.absent("agent/b", "agent/c")
    world.broken("agent/a", reason="Unreachable", since=NOW - 4 * MINUTE)

    holds = {str(hold.ref): hold for hold in world.plan().holds}

    assert holds["agent/c"].blocker == holds["agent/b"].blocker == ref("agent/a")
    assert holds["agent/c"].message == (
        "waits for agent/b; cause: agent/a Unreachable since 2026-03-04 11:56 UTC"
    )
    assert holds["agent/b"].message == (
        "waits for agent/a; agent/a Unreachable since 2026-03-04 11:56 UTC"
    )


def test_what_cannot_be_seen_because_of_its_need_names_the_need() -> None:
    """One cause, not forty: a thing on a dead cluster is held for the cluster, not as stale."""
    world = chain()
    world.up("agent/c")
    world.broken("agent/a")
    world.blind("agent/b")

    assert told(world.plan())["agent/b"] == ["DependencyNotReady"]


@pytest.mark.parametrize("case", ["older generation", "stale", "unknown", "missing"])
def test_ready_means_ready_now_and_for_what_is_wanted(case: str) -> None:
    """A need that is Ready for an older document, or was long not seen, is not Ready."""
    world = World.of(thing("agent/a"), thing("agent/b", "agent/a"))
    world.up("agent/a")
    world.absent("agent/b")
    assert told(world.plan()) == {"agent/b": ["+create"]}
    name = ref("agent/a")
    match case:
        case "older generation":
            world.view.ready[name] = replace(world.view.ready[name], generation=7)
        case "stale":
            world.view.seen[name] = replace(world.view.seen[name], at=NOW - timedelta(hours=1))
        case "unknown":
            world.judged("agent/a", Truth.UNKNOWN, "Silent")
        case _:
            del world.view.seen[name]

    assert told(world.plan())["agent/b"] == ["DependencyNotReady"]


def test_a_need_no_document_names_is_told() -> None:
    """A dangling need holds, and says what is missing."""
    world = World.of(thing("agent/b", "agent/nowhere"))
    world.absent("agent/b")

    plan = world.plan()

    assert plan.holds[0].message == (
        "waits for agent/nowhere; agent/nowhere is named by no document"
    )


LIMITS = {"Broken": 10 * MINUTE, "*": 60 * MINUTE}


@pytest.mark.parametrize(
    ("reason", "age", "expected"),
    [
        ("Broken", 9, ["~Broken"]),
        ("Broken", 10, ["Overdue"]),
        ("Slow", 59, ["~Slow"]),
        ("Slow", 60, ["Overdue"]),
    ],
)
def test_a_state_may_last_only_so_long(reason: str, age: int, expected: list[str]) -> None:
    """Its own limit first, `*` for the rest; the limit's action is in the hold."""
    world = one(limits=LIMITS)
    world.broken(A, reason=reason, since=NOW - age * MINUTE)

    plan = world.plan()

    assert told(plan) == {A: expected}
    if plan.holds:
        assert plan.holds[0].reason is HoldReason.OVERDUE
        assert "look after" in plan.holds[0].message
    else:
        assert plan.again == NOW + MINUTE


def test_what_to_do_names_the_thing() -> None:
    """The catalogue's `<name>`, `<region>`, `<cluster>` and `<pools>` are filled, so it can be
    copied."""
    limit = Limit(within=MINUTE, action="Run `x <name> <region> <cluster> <node> <pools>`.")
    workers = [{"pool": "b"}, {"pool": "a"}, {"pool": "b"}, {}]
    want = replace(thing(A, spec={"cluster": "hv", "workers": workers}), limits={"*": limit})
    world = World.of(want)
    world.broken(A, reason="Bad", since=NOW - 5 * MINUTE)

    action = world.plan().holds[0].message.partition("; ")[2]

    assert action == f"Run `x {want.ref.name} {want.region} hv <node> a, b`."


def test_overdue_is_told_beside_the_steps() -> None:
    """What lasts too long is told even though something is being done about it."""
    world = one(limits=LIMITS)
    world.broken(A, since=NOW - 20 * MINUTE, todo=[todo("fix")])

    assert told(world.plan()) == {A: ["+fix", "Overdue"]}


def test_a_limit_counts_from_when_work_could_begin() -> None:
    """Time spent waiting for others is not held against it."""
    world = World.of(thing("agent/a"), thing("agent/b", "agent/a", limits={"*": 10 * MINUTE}))
    world.saw("agent/a", {"there": 1})
    world.judged("agent/a", Truth.TRUE, "Ready", since=NOW - 9 * MINUTE)
    world.broken("agent/b", since=NOW - 50 * MINUTE)

    assert told(world.plan()) == {"agent/b": ["~Broken"]}
    world.judged("agent/a", Truth.TRUE, "Ready", since=NOW - 10 * MINUTE)
    assert told(world.plan()) == {"agent/b": ["Overdue"]}


@pytest.mark.parametrize(("truth", "reason"), [(Truth.TRUE, "Ready"), (Truth.FALSE, "Broken")])
def test_what_was_thought_of_an_older_document_is_not_overdue(truth: Truth, reason: str) -> None:
    """A thing that was Ready for days is not late because its document changed just now."""
    world = World.of(thing(A, limits=LIMITS, generation=2))
    world.saw(A, {"there": 1, "todo": [todo("upgrade")]})
    world.view.ready[ref(A)] = fleets.condition(
        truth, reason, generation=1, since=NOW - timedelta(days=3)
    )

    assert told(world.plan()) == {A: ["+upgrade"]}


def test_other_words_do_not_restart_the_limit() -> None:
    """Each look may say it differently; the state began when it began."""
    world = one(limits=LIMITS)
    old = fleets.condition(Truth.FALSE, "Broken", since=NOW - 11 * MINUTE)
    world.saw(A, {"there": 1})
    new = fleets.condition(Truth.FALSE, "Broken", message="48 of 50 done")
    world.view.ready[ref(A)] = conditions.settle(old, new)

    assert told(world.plan()) == {A: ["Overdue"]}
    assert world.plan().holds[0].message == (
        "Broken since 2026-03-04 11:49 UTC, longer than 10m; look after Broken"
    )


def test_a_far_side_that_gives_no_reason_is_waited_for_in_words() -> None:
    """Nothing is silent, also if a driver is."""
    world = one()
    world.absent(A)
    world.tried(A, create(world), Waiting("", MINUTE), not_before=NOW + MINUTE)

    waits = world.plan().waits

    assert [(wait.reason, wait.message) for wait in waits] == [
        ("Working", "create was taken; Working")
    ]


def test_without_a_limit_nothing_to_do_is_said() -> None:
    """Not Ready, nothing proposed, no limit: held, never forgotten."""
    world = one()
    world.broken(A)

    assert told(world.plan()) == {A: ["NothingToDo"]}


def test_a_driver_that_breaks_holds_only_its_own() -> None:
    """An exception while proposing is a hold of that thing; the others go on."""
    world = World.of(thing("agent/a"), thing("agent/b"))
    world.saw("agent/a", {"todo": [{"nonsense": 1}]})
    world.absent("agent/b")

    plan = world.plan()

    assert told(plan) == {"agent/a": ["NothingToDo"], "agent/b": ["+create"]}
    assert "TypeError" in plan.holds[0].message


def test_an_orphan_is_never_touched() -> None:
    """It is told, with both ways out, and has no step."""
    world = one()
    world.up(A)
    world.view.orphans[ref("cluster/old")] = thing("cluster/old")

    plan = world.plan()

    assert told(plan) == {"cluster/old": ["Orphaned"]}
    assert "fleetctl retire cluster old" in plan.holds[0].message
    assert told(world.plan(region="eu-2")) == {}


def test_a_plan_changes_when_an_observation_grows_stale() -> None:
    """The moment to plan again is the earliest at which a fact stops being one."""
    world = chain()
    world.up("agent/a", at=NOW - MINUTE)
    world.up("agent/b", "agent/c")

    assert world.plan().again == NOW + 4 * MINUTE
