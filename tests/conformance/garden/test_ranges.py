"""Which kubelets an image carries: every way to write it, as the real garden reads it."""

import copy

import pytest

from drivers.gardener import ranges
from tests.conformance.garden.gardens import VERSIONS, Plot
from tests.conformance.kube.api import Answer, Obj, eventually

pytestmark = pytest.mark.real

RANGES = (
    ">= 1.33",
    ">=1.33.4",
    "=> 1.33.4",
    "> 1.33",
    ">1.33.3",
    "< 1.34",
    "<1.34.2",
    "<= 1.33",
    "<=1.33.4",
    "=< 1.33.4",
    "= 1.33",
    "=1.33.4",
    "1.33.4",
    "1.33",
    "1.33.x",
    "1.33.X",
    "1.33.*",
    "1.x",
    "1",
    "*",
    "!= 1.33",
    "!=1.33.4",
    "~1.33",
    "~1.33.4",
    "~> 1.33.4",
    "~1",
    "^1.33",
    "^1.33.4",
    "^1",
    "^2",
    ">= 1.32, < 1.34",
    ">=1.32 <1.34",
    "1.32 - 1.33",
    "1.32.7 - 1.33.4",
    "1.32.6 || >=1.34",
    "<1.33.3 || 1.35.x",
    "v1.33.4",
    ">=v1.33",
    "<1.34.0-0",
    ">=1.34.0-alpha.1",
    ">1.33.4-0",
    "<=1.33.4-0",
)


def _numbered(number: int) -> str:
    return f"3000.{number}.0"


async def _offered(plot: Plot) -> None:
    images = [
        {
            "version": _numbered(number),
            "architectures": ["amd64"],
            "cri": [{"name": "containerd"}],
            "kubeletVersionConstraint": one,
        }
        for number, one in enumerate(RANGES)
    ]

    profile = (await plot.api.get(plot.profile)).json
    profile["spec"]["machineImages"][0]["versions"] += images
    answer = await plot.api.put(plot.profile, profile)
    assert answer.status == 200, answer.message


def _shoot(plot: Plot, number: int, version: str) -> Obj:
    body = copy.deepcopy(plot.body())
    body["spec"]["kubernetes"]["version"] = version
    (pool, _) = body["spec"]["provider"]["workers"]
    pool["machine"]["image"] = {"name": "gardenlinux", "version": _numbered(number)}
    body["spec"]["provider"]["workers"] = [pool]
    return body


@pytest.mark.parametrize("bare", ["real"], indirect=True)
async def test_every_way_to_write_a_range_is_read_as_the_garden_does(plot: Plot) -> None:
    """What we hold back the garden refuses, and nothing else."""
    await _offered(plot)

    async def seen() -> Answer:
        last = RANGES.index("*")
        return await plot.plant(_shoot(plot, last, VERSIONS[0]), dryRun="All")

    ready = await eventually(seen, 201)
    assert ready.status == 201, ready.message
    wrong: list[str] = []
    for number, one in enumerate(RANGES):
        for version in ("1.32.6", "1.33.3", "1.33.4", "1.33.5", "1.34.2"):
            answer = await plot.plant(_shoot(plot, number, version), dryRun="All")
            ours = ranges.holds(one, version)
            if ours is None or (answer.status == 201) != ours:
                wrong.append(f"{one!r} {version}: {ours}, but {answer.status} {answer.message}")
    assert wrong == []
