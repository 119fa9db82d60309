"""What is said to those who did not prove who they are, beside that they should."""

from pathlib import Path

import aiohttp

from fleetd.clock import SystemClock
from fleetd.daemon.access import tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.settings import Address
from fleetd.surface import http
from fleetd.surface.panel import Unready
from tests.surface import panels, test_access


async def test_strangers_hear_that_it_is_not_ready_and_not_why(tmp_path: Path) -> None:
    """Words about files and regions are for those who may see all regions."""
    limited = tokens.new()
    path = test_access.file(
        tmp_path, test_access.entry() + test_access.entry(limited, "b", 'regions = ["eu-2"]\n')
    )
    panel = panels.small()
    panel.missing = [Unready("documents", "eu-1.yaml:3: Cluster/hv is bad")]
    door = GuardedDoor(path, test_access.NOBODY, SystemClock())
    told: list[tuple[int, bool]] = []
    async with (
        http.serving(panel, Address("127.0.0.1", 0), door=door) as server,
        aiohttp.ClientSession() as session,
    ):
        for token in ("", tokens.new(), limited, test_access.TOKEN):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = await session.get(f"{server.url}/readyz", headers=headers)
            text = await answer.text()
            assert "documents" in text
            told.append((answer.status, "Cluster/hv" in text))
    assert told == [(503, False), (503, False), (503, False), (503, True)]
