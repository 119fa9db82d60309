"""Who wants more than they may: it is audited, and nothing of other regions is told to them."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from fleetd.cli import main
from fleetd.clock import SystemClock
from fleetd.daemon import audit
from fleetd.daemon.access import tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.daemon.audit import Log
from fleetd.plan.incidents import Report
from fleetd.plan.why import Answer, Link
from fleetd.settings import Address
from fleetd.surface import http, reach
from fleetd.surface.desk import Declined
from fleetd.vocabulary import Observation, Truth
from tests.surface import panels
from tests.surface.desks import FakeDesk
from tests.surface.panels import NOW, FakePanel
from tests.surface.test_access import NOBODY, TOKEN, Moving, entry, file
from tests.surface.test_audit import SAID
from tests.surface.test_matrix import GUESSES
from tests.surface.test_trouble import ONE
from topology.resource import Ref

THEIRS = Ref("cluster", "theirs")


def lines(folder: Path) -> list[Any]:
    return [json.loads(one) for one in (folder / audit.NEWEST).read_bytes().splitlines()]


async def test_refusals_by_role_are_audited(tmp_path: Path) -> None:
    """Who, what and why not, before the answer; `fleetctl audit list` shows them. What is allowed
    and only read leaves no line, and a broken log still refuses."""
    rules = file(tmp_path, entry().replace("operator", "viewer"))
    log = Log(tmp_path / "audit", SystemClock())
    async with (
        http.serving(
            panels.small(),
            Address("127.0.0.1", 0),
            desk=FakeDesk(),
            door=GuardedDoor(rules, NOBODY, SystemClock()),
            audit=log,
        ) as server,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
    ):
        url, sent = f"{server.url}/api/v1/pause", {"scope": "all", "reason": "x"}
        assert (await session.get(f"{server.url}/api/v1/regions")).status == 200
        assert (await session.post(url, json=sent)).status == 403
        (found,) = lines(tmp_path / "audit")
        log._broken = "the disk is full"  # pyright: ignore[reportPrivateUsage]
        assert (await session.post(url, json=sent)).status == 403
    told = [found[name] for name in ("kind", "who", "how", "what", "code")]
    assert told == ["refused", "token:ci", "token", "pause", "forbidden"]
    assert audit.verify(tmp_path / "audit").number == 1
    listed = CliRunner().invoke(main.fleetctl, ["audit", "list", str(tmp_path / "audit")])
    assert "forbidden" in listed.output


async def test_a_flood_of_refusals_fills_no_disk(tmp_path: Path) -> None:
    """One caller leaves ten lines and one a minute more, all callers together a hundred and six a
    minute; the next line says how many are missing, and nobody hides behind somebody else."""
    clock = Moving()
    log = Log(tmp_path, clock)
    for _ in range(1000):
        await log.refused(replace(SAID, path="/" + "x" * 50_000), "forbidden")
    assert len(lines(tmp_path)) == 10
    await log.refused(replace(SAID, who="bob"), "csrf")
    assert (lines(tmp_path)[-1]["who"], lines(tmp_path)[-1]["left"]) == ("bob", 990)
    for number in range(1000):
        await log.refused(replace(SAID, who=f"p{number}"), "forbidden")
    assert len(lines(tmp_path)) == 100
    clock.ahead += timedelta(minutes=1)
    for number in range(1000):
        await log.refused(replace(SAID, who=f"q{number}"), "forbidden")
    assert len(lines(tmp_path)) == 106
    assert (tmp_path / audit.NEWEST).stat().st_size < 106 * 1000


def two_regions() -> FakePanel:
    """A cluster of ours that waits for one of theirs, which is broken and told about."""
    panel = panels.small()
    panel.want = panels.topology(
        panels.resource("serverpool", "compute"),
        panels.resource("cluster", "hv", panels.POOL, THEIRS),
        panels.resource("flux", "hv", panels.CLUSTER),
        replace(panels.resource("cluster", "theirs"), region="eu-2"),
    )
    panel.judged[THEIRS] = panels.ready(Truth.FALSE, "Broken", "its secret trouble")
    panel.looked[THEIRS] = Observation(ref=THEIRS, at=NOW, facts={})
    return panel


@pytest.mark.parametrize("ref", [panels.CLUSTER, panels.FLUX])
def test_why_ends_where_the_regions_end(ref: Ref) -> None:
    """The chain to a cause in another region names neither it nor what ails it; who may see both
    is told both."""
    panel = two_regions()
    assert THEIRS in [link.ref for link in panel.why(ref).chain]
    found = reach.Views(panel).of(frozenset({"eu-1"})).why(ref)
    said = repr(found) + found.paragraph
    assert "theirs" not in said
    assert "secret trouble" not in said
    assert f"waits for {reach.ELSEWHERE}" in found.paragraph
    assert found.chain[-1].ref == panels.CLUSTER
    both = reach.Views(panel).of(frozenset({"eu-1", "eu-2"})).why(ref)
    assert both == panel.why(ref)


class Telling(FakePanel):
    """Whose reasons name the other region in every place there is."""

    def why(self, ref: Ref) -> Answer:
        text = f"{ref} waits, and {THEIRS} too"
        return Answer(
            ref=ref,
            ready=False,
            chain=(Link(ref=ref, text=text), *self.more),
            cause=THEIRS,
            advice=f"Look at {THEIRS}.",
            beside=f"Beside it {THEIRS} and {panels.POOL} fail.",
            also=(panels.POOL, THEIRS),
        )

    more: tuple[Link, ...] = ()


@pytest.mark.parametrize("more", [(), (Link(ref=THEIRS, text=f"{THEIRS} is broken"),)])
def test_no_part_of_an_answer_names_another_region(more: tuple[Link, ...]) -> None:
    """Neither cause, advice, what fails beside it, nor their sentences; what is one's own stays."""
    panel = Telling(want=two_regions().want)
    panel.more = more
    found = reach.Views(panel).of(frozenset({"eu-1"})).why(panels.CLUSTER)
    assert "theirs" not in repr(found) + found.paragraph
    assert found.also == (() if more else (panels.POOL,))
    assert found.cause is None


async def test_describe_names_nothing_of_other_regions(tmp_path: Path) -> None:
    """Nor does all that is told of one thing, over HTTP: why, needs, neighbours."""
    panel = two_regions()
    token = tokens.new()
    mine = entry(token, "near", 'regions = ["eu-1"]') + entry()
    door = GuardedDoor(file(tmp_path, mine), NOBODY, SystemClock())
    async with (
        http.serving(panel, Address("127.0.0.1", 0), door=door, rate=GUESSES) as server,
        aiohttp.ClientSession() as session,
    ):
        for sent, told in ((TOKEN, True), (token, False)):
            headers = {"Authorization": f"Bearer {sent}"}
            for path in ("resources/cluster/hv", "resources/flux/hv", "search?q=theirs"):
                url = f"{server.url}/api/v1/{path}"
                async with session.get(url, headers=headers) as answer:
                    assert answer.status == 200
                    assert ("theirs" in await answer.text()) == told, path


async def test_events_do_not_tell_whether_something_elsewhere_exists() -> None:
    """To ask for the events of a thing of another region is to ask for those of nothing: no page
    goes on after an empty one."""
    panel = two_regions()
    first = panel.history[0]
    panel.history[0] = replace(first, event=replace(first.event, ref=THEIRS))
    narrow = reach.Views(panel).of(frozenset({"eu-1"}))
    assert len(await panel.events(ref=THEIRS, limit=1)) == 1
    assert not await narrow.events(ref=THEIRS, limit=1)
    assert len(await narrow.events(ref=panels.FLUX, limit=1)) == 1


def test_incidents_name_nothing_of_other_regions() -> None:
    """Nor does what is told of a cause of ours."""
    panel = two_regions()
    panel.failures = Report(
        items=(replace(ONE, cause=replace(ONE.cause, message=f"as {THEIRS}"), advice=f"{THEIRS}"),)
    )
    (found,) = reach.Views(panel).of(frozenset({"eu-1"})).incidents().items
    assert (found.cause.message, found.advice) == (f"as {reach.ELSEWHERE}", reach.ELSEWHERE)
    assert reach.Views(panel).of(frozenset({"eu-1", "eu-2"})).incidents().items[0].advice != ""


class Forgetful(FakeDesk):
    """Says what is paused when asked for what is not."""

    async def resume(self, scope: str, *, who: str) -> None:
        raise Declined("refused", f"there is no pause on {scope}; paused: {', '.join(self.pauses)}")


async def test_a_pause_of_another_region_is_not_told(tmp_path: Path) -> None:
    """Who is limited and ends a pause that is none learns nothing of those that are."""
    token = tokens.new()
    mine = entry(token, "near", 'regions = ["eu-1"]') + entry()
    desk = Forgetful()
    await desk.pause("region:eu-2", who="ada", why="x")
    async with (
        http.serving(
            panels.small(),
            Address("127.0.0.1", 0),
            desk=desk,
            door=GuardedDoor(file(tmp_path, mine), NOBODY, SystemClock()),
        ) as server,
        aiohttp.ClientSession() as session,
    ):
        for sent, told in ((TOKEN, True), (token, False)):
            async with session.post(
                f"{server.url}/api/v1/resume",
                json={"scope": "region:eu-1"},
                headers={"Authorization": f"Bearer {sent}"},
            ) as answer:
                assert answer.status == 409
                assert ("eu-2" in await answer.text()) == told
