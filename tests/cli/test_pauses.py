"""A pause is seen wherever somebody looks, also where all is Ready: who, why, and how it ends."""

from dataclasses import replace

import pytest

from fleetd.plan.policy import Pause, pausing, touching
from fleetd.surface.reach import Narrow
from fleetd.vocabulary import Truth
from tests.cli import programs
from tests.cli.programs import fleetctl
from tests.surface import panels
from topology.resource import Ref

WHY = "network change in rack r2"


def pause(scope: str) -> Pause:
    return Pause(scope=scope, who="ada", why=WHY, since=panels.NOW)


def resting(*scopes: str) -> panels.FakePanel:
    """All is Ready and nothing is to be done."""
    panel = panels.small()
    panel.judged = {ref: panels.ready(Truth.TRUE) for ref in panel.want.resources}
    panel.plans["eu-1"] = replace(panel.plans["eu-1"], steps=(), holds=(), waits=())
    panel.resting = {scope: pause(scope) for scope in scopes}
    return panel


@pytest.mark.parametrize("scope", ["all", "region:eu-1", "kind:cluster", "cluster/hv"])
@pytest.mark.parametrize("args", [("plan",), ("tree",), ("get", "cluster")])
def test_a_pause_of_what_is_ready_is_told(scope: str, args: tuple[str, ...]) -> None:
    """By each command that says how it is, for each scope, once."""
    with programs.daemon(resting(scope)) as url:
        ran = fleetctl("--server", url, *args)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count(f"{WHY} (pause on {scope})") == 1
    assert "paused by ada" in ran.out


def test_a_plan_says_how_a_pause_ends() -> None:
    """And that there is nothing to do is not all it says."""
    with programs.daemon(resting("region:eu-1")) as url:
        first, *rest = fleetctl("--server", url, "plan").out.splitlines()
    assert first.startswith("! paused by ada since 2026-03-01 12:00 UTC")
    assert first.endswith("to go on: fleetctl resume region:eu-1")
    assert rest[-1].strip() == "nothing to do"


@pytest.mark.parametrize("args", [("tree",), ("get", "cluster"), ("plan",)])
def test_programs_read_it_too(args: tuple[str, ...]) -> None:
    """As data, with its scope and reason."""
    with programs.daemon(resting("all")) as url:
        ran = fleetctl("--server", url, *args, "-o", "json")
        regions = fleetctl("--server", url, "get", "region", "eu-1", "-o", "json")
    assert f'"reason": "{WHY}"' in ran.out
    assert regions.json["pause"]["scope"] == "all"


def test_whose_pauses_a_region_shows() -> None:
    """Those of everything, of kinds, of itself and of what is in it; the widest first."""
    panel = resting("cluster/hv", "server/elsewhere", "region:eu-9", "region:eu-1", "all", "kind:x")
    known = panel.want.resources
    found = [one.scope for one in touching(panel.resting, "eu-1", known)]
    assert found == ["all", "kind:x", "region:eu-1", "cluster/hv"]
    nearest = pausing(panel.resting, Ref("cluster", "hv"), "eu-1")
    assert nearest is not None
    assert nearest.scope == "cluster/hv"


def test_who_is_limited_to_a_region_sees_its_pauses_only() -> None:
    """A pause of another region, or of a thing in it, is not told."""
    panel = resting("cluster/hv", "region:eu-1", "all")
    assert set(Narrow(panel, frozenset({"eu-1"}), panel.want).pauses()) == {*panel.resting}
    nothing = panels.FakePanel().want
    assert set(Narrow(panel, frozenset({"eu-9"}), nothing).pauses()) == {"all"}
