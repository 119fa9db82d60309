"""Ids come from contents: the same deed, the same id, on every machine."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

import pytest

from fleetd.plan import steps
from fleetd.vocabulary import Plan, make_step
from tests.plan import fleets
from tests.plan.fleets import NOW, World, ref, thing


def test_a_step_id_is_what_the_step_does() -> None:
    """The order and type of mappings do not matter; ref, verb, args and generation do."""
    base = steps.step_id(ref("agent/a"), "fix", {"x": 1, "y": [1, 2]}, 1)

    assert base == steps.step_id(ref("agent/a"), "fix", MappingProxyType({"y": [1, 2], "x": 1}), 1)
    others = [
        steps.step_id(ref("agent/b"), "fix", {"x": 1, "y": [1, 2]}, 1),
        steps.step_id(ref("agent/a"), "mend", {"x": 1, "y": [1, 2]}, 1),
        steps.step_id(ref("agent/a"), "fix", {"x": 1, "y": [2, 1]}, 1),
        steps.step_id(ref("agent/a"), "fix", {"x": 1, "y": [1, 2]}, 2),
    ]
    assert len({base, *others}) == 5


def test_an_argument_that_cannot_be_written_is_refused() -> None:
    """An id must not depend on where an object lies in memory."""
    with pytest.raises(TypeError, match="a step's arguments cannot hold a object"):
        steps.step_id(ref("agent/a"), "fix", {"x": object()}, 1)


def test_a_made_step_has_its_id() -> None:
    """Words and deadlines are not part of the deed."""
    want = thing("agent/a")
    one = make_step(want, "fix", {}, why="so", deadline=timedelta(1), disrupts=[want.ref])
    two = make_step(want, "fix", {}, why="thus", deadline=timedelta(2))

    assert one.id == two.id == steps.step_id(want.ref, "fix", {}, 1)


def test_what_is_destroyed_is_part_of_the_deed() -> None:
    """Whoever approved the loss of one key has not approved that of two."""
    want, keys = thing("agent/a"), [ref("key/a"), ref("key/b")]
    ids = {
        make_step(want, "fix", {}, why="so", deadline=timedelta(1), destroys=lost).id
        for lost in ([], keys[:1], keys[1:], keys, keys[::-1])
    }

    assert len(ids) == 4


def busy() -> Plan:
    world = World.of(
        *(thing(f"server/s{n}", domains=("rack:eu-1/r1",)) for n in range(9)),
        thing("agent/a", "server/s1"),
    )
    world.absent(*(f"server/s{n}" for n in range(5)), "agent/a")
    everything = [f"server/s{n}" for n in range(9)]
    world.up("server/s5", todo=[fleets.todo("reboot", disrupts=everything)])
    world.blind("server/s6")
    return world.plan()


def test_a_plan_id_covers_what_it_says() -> None:
    """Each part counts; the moment to plan again does not."""
    plan = busy()
    assert plan.id == steps.id_of(plan)
    assert steps.id_of(replace(plan, again=NOW)) == plan.id
    changed = [
        replace(plan, steps=plan.steps[1:]),
        replace(plan, steps=(replace(plan.steps[0], why="other"), *plan.steps[1:])),
        replace(plan, holds=plan.holds[1:]),
        replace(plan, holds=(replace(plan.holds[0], until=NOW), *plan.holds[1:])),
        replace(plan, waits=plan.waits[1:]),
        replace(plan, region="eu-9"),
        replace(plan, topology="other"),
    ]
    assert len({plan.id, *(steps.id_of(one) for one in changed)}) == len(changed) + 1


def test_ids_do_not_depend_on_the_hash_seed() -> None:
    """Another process with another seed makes the same plan."""
    code = "from tests.plan import test_ids; print(test_ids.busy())"
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("steps=")[0]
        for seed in ("1", "2", "3")
    }

    assert told == {str(busy()).split("steps=", maxsplit=1)[0]}
