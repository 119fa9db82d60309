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
