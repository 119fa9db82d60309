"""A browser as far as logging in goes: it keeps cookies, follows where it is sent, and looks."""

import re
from http.cookies import SimpleCookie
from typing import Any

import aiohttp


class Browser:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.cookies: dict[str, str] = {}
        self.set: dict[str, str] = {}
        """Set-Cookie as it came last, by the name of the cookie."""

    async def ask(
        self, method: str, url: str, headers: dict[str, str] | None = None, **more: Any
    ) -> tuple[int, Any, bytes]:
        sent = {**(headers or {})}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        async with self._session.request(
            method, url, headers=sent, allow_redirects=False, **more
        ) as answer:
            for line in answer.headers.getall("Set-Cookie", ()):
                for name, one in SimpleCookie(line).items():
                    self.set[name] = line
                    self.cookies[name] = one.value
                    if one["max-age"] == "0":
                        del self.cookies[name]
            return answer.status, answer.headers, await answer.read()

    async def leave(self, url: str, then: str = "") -> str:
        """Begins to log in; where the issuer sends the browser back to."""
        query = f"?next={then}" if then else ""
        status, headers, body = await self.ask("GET", f"{url}/login{query}")
        assert status == 303, body
        async with self._session.get(headers["Location"], allow_redirects=False) as answer:
            return answer.headers["Location"]

    async def log_in(self, url: str, then: str = "") -> str:
        """Where the browser is in the end."""
        status, headers, body = await self.ask("GET", await self.leave(url, then))
        assert status == 303, body
        return headers["Location"]

    async def mark(self, url: str) -> str:
        """What must be sent with a write."""
        _, _, body = await self.ask("GET", f"{url}/api/v1/whoami")
        found = re.search(rb'"csrf":"([^"]+)"', body)
        assert found, body
        return found[1].decode()
