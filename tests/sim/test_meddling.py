"""Strangers at fleetd's objects: one who changes them, one who makes them again."""

from typing import Any

from fleetd.kube import facts
from tests.sim.test_mishaps import Place, at, change, played


def _made_by_fleetd(place: Place) -> dict[str, Any]:
    marks = {facts.MANAGED_BY: facts.MANAGER}
    metadata = {"name": "x", "namespace": "default", "labels": marks}
    metadata |= {"annotations": {facts.GENERATION: "abc"}}
    made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    return place.hv.create(made, manager="fleetd")


def _account(place: Place) -> dict[str, Any]:
    found = place.hv.get(("", "ServiceAccount"), "x", "default")
    assert found is not None
    return found["metadata"]


def test_a_stranger_changes_what_fleetd_made_again_and_again() -> None:
    """Until it is over; nothing else is touched, and it counts only where there was something."""

    async def story(place: Place) -> None:
        place.plan("at 1m: objects cp meddled", "at 2m: objects hv meddled for 5m")
        change(place, "not-ours")
        _made_by_fleetd(place)
        await at(place, 121)
        changed: list[bool] = []
        for moment in (250, 400, 600):
            place.hv.edit(("", "ServiceAccount"), "x", "default", _put_right, manager="fleetd")
            await at(place, moment)
            changed.append(_account(place)["annotations"][facts.GENERATION] != "abc")
        assert changed == [True, True, False]
        assert place.mishaps.hits == {("objects", "meddled"): 1}

    played(story)


def _put_right(obj: dict[str, Any]) -> None:
    obj["metadata"]["annotations"][facts.GENERATION] = "abc"


def test_a_stranger_makes_it_again_under_the_same_name() -> None:
    """The same words, another identity; and it is known whom not to blame for that."""

    async def story(place: Place) -> None:
        old = _made_by_fleetd(place)["metadata"]
        place.plan("at 1m: objects hv recreated")
        await at(place, 61)
        new = _account(place)
        assert new["uid"] != old["uid"]
        assert (new["labels"], new["annotations"]) == (old["labels"], old["annotations"])
        assert place.mishaps.undone == {"hv ServiceAccount default/x"}

    played(story)
