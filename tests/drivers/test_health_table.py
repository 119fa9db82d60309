"""The facts' health decision table, row by row: what catalogue and driver together think."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetd import settings
from fleetd.engine import loading
from fleetd.sim import loop
from fleetd.vocabulary import Observation
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region
from tests.topology.test_health_builtin import NOW, written_out

TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("health_table.yaml").read_text())
KNOWN = place.topology("two-zones")
AROUND = {"hypervisors": {"nova": {"asked": True, "said": "", "hosts": ["h"]}, "clashes": {}}}
"""What a driver gives beside the object and the catalogue does not read."""


def cases(row: dict[Any, Any]) -> Iterator[tuple[bool, str, Any]]:
    for healthy in (True, False):
        for sample in row[healthy]:
            for reason, seen in sample.items():
                yield healthy, reason, seen


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_a_row_is_judged_as_the_table_says(row: str) -> None:
    """Each sample of the row gives the truth and the reason written beside it."""
    kind = TABLE[row]["kind"]

    async def act(region: Region) -> None:
        drivers = loading.load(settings.Settings().drivers, region.tools)
        found = next(one for one in KNOWN.resources.values() if one.ref.kind == kind)
        want = replace(found, spec={**found.spec, "hosts": 1})
        for healthy, reason, sample in cases(TABLE[row]):
            facts = {**AROUND.get(kind, {}), **written_out(sample)}
            seen = Observation(ref=want.ref, at=NOW, facts=facts)
            (judged,) = drivers[want.driver].judge(want, seen)
            assert (str(judged.truth), judged.reason) == (str(healthy), reason), judged.message

    loop.run(place.play(act, KNOWN))


NOTHING: tuple[Any, ...] = (None, {}, [], "")
GARBAGE: tuple[Any, ...] = (*NOTHING, [None], ["x"], [{}], [{"type": "Ready"}])


def changed(seen: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a far side may answer instead of a healthy object."""
    if isinstance(seen.get("objects"), list):
        for number, one in enumerate(seen["objects"]):
            for name, other in changed(one):
                objects = [*seen["objects"][:number], other, *seen["objects"][number + 1 :]]
                yield name, {**seen, "objects": objects}
        return
    status: Any = seen.get("status")
    metadata: Any = seen.get("metadata")
    if not status or not metadata:
        return
    going = {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    yield "deleting", {**seen, "metadata": going}
    for value in NOTHING:
        yield f"status {value!r}", {**seen, "status": value}
    if "conditions" in status:
        for value in GARBAGE:
            yield f"conditions {value!r}", {**seen, "status": {**status, "conditions": value}}
    if status.get("observedGeneration") is not None and "generation" in metadata:
        yield "behind", {**seen, "metadata": {**metadata, "generation": 10**6}}


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_half_an_object_is_never_healthy(row: str) -> None:
    """Without a status, with conditions that are none, of an older generation, on its way out:
    judged, and not Ready."""
    kind = TABLE[row]["kind"]

    async def act(region: Region) -> None:
        drivers = loading.load(settings.Settings().drivers, region.tools)
        found = next(one for one in KNOWN.resources.values() if one.ref.kind == kind)
        want = replace(found, spec={**found.spec, "hosts": 1})
        for healthy, _, sample in cases(TABLE[row]):
            whole = {**AROUND.get(kind, {}), **written_out(sample)}
            for name, facts in changed(whole) if healthy else ():
                seen = Observation(ref=want.ref, at=NOW, facts=facts)
                judged = drivers[want.driver].judge(want, seen)
                assert not [one for one in judged if str(one.truth) == "True"], (name, judged)

    loop.run(place.play(act, KNOWN))
