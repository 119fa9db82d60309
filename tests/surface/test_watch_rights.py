"""A stream that goes on for hours does not outlive the rights of its caller."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from fleetd.clock import SystemClock
from fleetd.daemon.access import tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.settings import Address
from fleetd.surface import http, watch
from tests.surface import panels, test_watch
from tests.surface.test_access import NOBODY, TOKEN, entry, file


@pytest.mark.parametrize("busy", [False, True])
async def test_a_watch_ends_with_the_right_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, busy: bool
) -> None:
    """A stream of a token that is revoked does not outlive it by more than a beat, also where
    something happens all the time."""
    monkeypatch.setattr(watch, "BEAT", 0.05)
    monkeypatch.setattr(watch, "POLL", 0.005)
    door = GuardedDoor(file(tmp_path, entry()), NOBODY, SystemClock())
    panel = panels.small()

    async def goes_on() -> None:
        while busy:
            test_watch.happen(panel, 1)
            await asyncio.sleep(0.005)

    async with (
        http.serving(panel, Address("127.0.0.1", 0), door=door) as server,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
        asyncio.timeout(60),
    ):
        events = asyncio.create_task(goes_on())
        answer = await session.get(f"{server.url}/api/v1/watch")
        first = await answer.content.readuntil(b"\ndata: " if busy else b"retry: ")
        file(tmp_path, entry(tokens.new()))
        await door.look()
        rest = await answer.content.read()
        assert first.startswith(b"retry: ")
        assert busy or b"data: " not in rest
        events.cancel()


async def test_a_watch_shows_what_its_caller_may_see_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that is limited to another region while it listens hears no more of this one."""
    monkeypatch.setattr(watch, "BEAT", 0.05)
    monkeypatch.setattr(watch, "POLL", 0.005)
    door = GuardedDoor(file(tmp_path, entry()), NOBODY, SystemClock())
    panel = panels.small()
    async with (
        http.serving(panel, Address("127.0.0.1", 0), door=door) as server,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
        asyncio.timeout(60),
    ):
        answer = await session.get(f"{server.url}/api/v1/watch")
        file(tmp_path, entry(more='regions = ["elsewhere"]'))
        await door.look()
        lines: list[bytes] = []
        while b": still here\n" not in lines[-4:]:
            lines.append(await answer.content.readline())
        test_watch.happen(panel, 3)
        while f"id: {panel.history[-1].seq}\n".encode() not in lines:
            lines.append(await answer.content.readline())
        assert not [one for one in lines if one.startswith(b"data")]
        answer.close()
