"""What somebody else has by now is neither written nor taken away, however late that is found."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fleetd.kube import facts
from fleetd.kube.client import KubeClient
from fleetd.kube.kinds import Kind
from fleetd.vocabulary import Done, Failed
from tests.drivers.flux.stage import Stage, retired
from tests.kube.test_objects import BOX, MAP, SPACE, body, data, run

CONTROLLER: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "above",
    "uid": "",
    "controller": True,
}


def label(value: str | None) -> Callable[[dict[str, Any]], None]:
    def edit(new: dict[str, Any]) -> None:
        new["metadata"]["labels"].pop(facts.OWNER)
        if value:
            new["metadata"]["labels"][facts.OWNER] = value

    return edit


def controlled(new: dict[str, Any]) -> None:
    new["metadata"]["ownerReferences"] = [CONTROLLER]


def change(stage: Stage, edit: Callable[[dict[str, Any]], None]) -> None:
    """By the way the owner is made as well: without one the object would be collected."""
    above = stage.cluster("cp").apply(body("above"), manager="somebody")
    CONTROLLER["uid"] = above["metadata"]["uid"]
    stage.cluster("cp").edit(MAP, "box", SPACE, edit, manager="somebody")


TAKEN = {"another thing": label("memcached.other"), "a controller": controlled}
WHO = {"another thing": "memcached.other", "a controller": "ConfigMap/above"}


@pytest.mark.parametrize("by", TAKEN)
def test_what_another_has_by_now_is_not_written(by: str) -> None:
    """Not even if it differs; who has it is told, with what to do."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        change(stage, TAKEN[by])
        change(stage, lambda new: new["data"].update(colour="blue"))
        await asyncio.sleep(1)
        seen = await stage.look(BOX)
        assert stage.driver(BOX).propose(BOX, seen) == ()
        told = stage.driver(BOX).judge(BOX, seen)[-1]
        assert told.reason == "OwnedByAnother"
        assert f"ConfigMap {SPACE}/box belongs to {WHO[by]} by now" in told.message
        assert "retire one of the two" in told.message
        assert data(stage)["colour"] == "blue"

    run(script)


@pytest.mark.parametrize("by", TAKEN)
def test_what_another_has_by_now_does_not_go_with_ours(by: str) -> None:
    """Nothing of it is left to retire."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        change(stage, TAKEN[by])
        await asyncio.sleep(1)
        assert [step.args["kind"] for step in await stage.proposed(retired(BOX))] == ["Namespace"]

    run(script)


LATE = {**TAKEN, "nobody": label(None)}


@pytest.mark.parametrize("by", LATE)
def test_what_changed_hands_since_the_look_is_not_deleted(by: str) -> None:
    """The approval was for ours; without any mark it is nobody's whom we know."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        step, _ = await stage.proposed(retired(BOX))
        change(stage, LATE[by])
        outcome = await stage.driver(BOX).apply(step)
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.retry) == ("OwnedByAnother", True)
        assert data(stage) is not None

    run(script)


def test_what_is_written_between_the_last_look_and_the_delete_is_not_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server is told which version was looked at; a refusal is a lost race."""
    look = KubeClient.get

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        step, _ = await stage.proposed(retired(BOX))

        async def beaten(self: KubeClient, kind: Kind, name: str, namespace: str = "") -> Any:
            found = await look(self, kind, name, namespace)
            change(stage, label("memcached.other"))
            return found

        monkeypatch.setattr(KubeClient, "get", beaten)
        outcome = await stage.driver(BOX).apply(step)
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.retry) == ("Conflict", True)
        assert data(stage) is not None

    run(script)


def test_another_of_the_same_name_is_not_deleted() -> None:
    """It was made anew since the look, with our marks."""

    async def script(stage: Stage) -> None:
        await stage.do(BOX)
        step, _ = await stage.proposed(retired(BOX))
        old = stage.cluster("cp").get(MAP, "box", SPACE)
        assert old is not None
        stage.cluster("cp").delete(MAP, "box", SPACE)
        made = body(colour="red")
        made["metadata"]["labels"] = old["metadata"]["labels"]
        stage.cluster("cp").create(made, manager="fleetd")
        outcome = await stage.driver(BOX).apply(step)
        assert isinstance(outcome, Failed)
        assert data(stage) == {"colour": "red"}
        stage.cluster("cp").delete(MAP, "box", SPACE)
        assert await stage.driver(BOX).apply(step) == Done()

    run(script)
