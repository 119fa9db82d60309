"""
A real OpenID issuer on loopback, of the part `issuer`, which can be started anew with other keys.

What it does is in `issuer.mjs`. People log in there by their name alone.
"""

import contextlib
import json
import shutil
import socket
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.real import lab
from tests.real.process import Running, free_ports

PROGRAM = Path(__file__).with_suffix(".mjs")
SECRET = "the-secret-of-a-client"
GROUPS = {"ada": ["ops"], "eve": ["guests"], "program": ["ops"]}
WITHIN = 30.0


@dataclass
class Issuer:
    port: int
    folder: Path
    page: str
    """Where the page is that people log in to."""
    _running: Running | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, key: str) -> None:
        """With keys that are new, by this name."""
        modules, node = lab.modules("issuer"), shutil.which("node")
        assert node is not None
        told = {"port": self.port, "page": self.page, "secret": SECRET}
        config = self.folder / "issuer.json"
        config.write_text(json.dumps({**told, "key": key, "groups": GROUPS}))
        self._running = Running(
            "issuer", Path(node), [str(PROGRAM), str(modules), str(config)], self.folder
        )
        self._running.until(self._answers, WITHIN)

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()
            self._running = None

    def _answers(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0


@contextlib.contextmanager
def running(folder: Path, page: str) -> Generator[Issuer]:
    issuer = Issuer(free_ports(1)[0], folder, page)
    try:
        issuer.start("first")
        yield issuer
    finally:
        issuer.stop()


async def token(issuer: Issuer, audience: str = "fleetd") -> str:
    """Of a program, by its own secret."""
    form = {"grant_type": "client_credentials", "resource": f"urn:{audience}"}
    headers = {"Authorization": aiohttp.encode_basic_auth("program", SECRET)}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{issuer.url}/token", data=form) as answer,
    ):
        told: dict[str, Any] = await answer.json()
        return told["access_token"]


async def person(session: aiohttp.ClientSession, where: str, name: str) -> str:
    """Logs somebody in at the issuer; where it sends the browser back to. The session keeps the
    issuer's cookies."""
    async with session.get(where) as answer:
        assert "<form" in await answer.text()
        form = str(answer.url)
    async with session.post(form, data={"name": name}, allow_redirects=False) as answer:
        where = answer.headers["Location"]
    async with session.get(where, allow_redirects=False) as answer:
        return answer.headers["Location"]
