"""
Asks the daemon and tells it things, one request at a time, with a deadline.

Whatever goes wrong ends the program with the exit code for it and words that say what to try.
"""

import getpass
import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from fleetd import secrets
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import TOKEN, Frame
from fleetd.settings import Address
from topology.documents.base import Access

TIMEOUT = 10.0
"""Seconds. The daemon answers from memory; ten seconds of nothing is nobody there."""
PLANNING = 120.0
"""Seconds for a plan of documents, which the daemon compiles first."""
ANSWER_MAX = 256 * 1024 * 1024


def _is_address(server: str) -> bool:
    if not server.isprintable() or " " in server:
        return False
    try:
        parts = urllib.parse.urlsplit(server)
        (parts.hostname or "").encode("idna")
        return (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.query or parts.fragment)
        )
    except ValueError:
        return False


class Refusal(Stop):
    """The daemon said no. `told` is its problem document."""

    def __init__(self, code: Exit, message: str, told: dict[str, Any]) -> None:
        super().__init__(code, message)
        self.told = told

    @property
    def problem(self) -> str:
        """The stable code of the problem."""
        return str(self.told.get("code", ""))

    @property
    def word(self) -> str:
        return self.problem


def user() -> str:
    """Who is at the keyboard, as this machine knows them, in signs that every machine knows."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = ""
    return re.sub(r"[^A-Za-z0-9_.@+-]", "_", name)[:64] or "unknown"


def of(frame: Frame) -> "Client":
    """As the options and the environment say."""
    token = os.environ.get(TOKEN, "")
    try:
        if frame.token_file is not None:
            token = secrets.resolve(Access(file=str(frame.token_file)), Path.cwd(), {}).reveal()
        trust = ssl.create_default_context(cafile=frame.ca_file) if frame.ca_file else None
    except secrets.SecretError as wrong:
        raise Stop(Exit.USAGE, f"--token-file: {wrong}") from None
    except OSError as wrong:
        raise Stop(Exit.USAGE, f"--ca-file {frame.ca_file}: {wrong.strerror or wrong}") from None
    return Client(frame.server, token=token.strip(), trust=trust)


class Client:
    def __init__(
        self, server: str, *, token: str = "", trust: ssl.SSLContext | None = None
    ) -> None:
        if "@" in server:
            # Not shown: what stands before the sign may be a password.
            raise Stop(Exit.USAGE, "--server has a user in it; leave out what stands before '@'")
        if not _is_address(server):
            raise Stop(
                Exit.USAGE, f"{server!a} is not an address; write e.g. http://127.0.0.1:8440"
            )
        parts = urllib.parse.urlsplit(server)
        if token and parts.scheme == "http" and not Address(parts.hostname or "", 1).loopback:
            raise Stop(Exit.USAGE, f"{server} is not encrypted; a token is sent over https only")
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise Stop(Exit.USAGE, "the token has characters that no token has")
        self._server = server.rstrip("/")
        self._token = token
        # No redirects: they would carry the token elsewhere.
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(context=trust),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            self._opener.add_handler(handler)

    def get(self, path: str, **query: str | int | None) -> Any:  # noqa: ANN401 -- JSON
        given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
        tail = f"?{urllib.parse.urlencode(given)}" if given else ""
        return self._send(f"{path}{tail}", None, TIMEOUT)

    def post(self, path: str, timeout: float = TIMEOUT, **body: object) -> Any:  # noqa: ANN401
        """Tell it something; who says it is added."""
        data = json.dumps({"who": user(), **body}).encode()
        return self._send(path, data, timeout)

    def _send(self, path: str, data: bytes | None, timeout: float) -> Any:  # noqa: ANN401 -- JSON
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(  # noqa: S310 -- the scheme was checked
            f"{self._server}/api/v1{path}", data=data, headers=headers
        )
        try:
            with self._opener.open(request, timeout=timeout) as response:
                return self._decode(response.read(ANSWER_MAX))
        except urllib.error.HTTPError as refused:
            raise self._refused(refused) from None
        except (OSError, http.client.HTTPException) as cause:
            raise self._unreachable(cause) from None

    def pages(self, path: str, **query: str | int | None) -> Iterator[Any]:
        """The items of all pages."""
        for page in self.whole_pages(path, **query):
            yield from page["items"]

    def whole_pages(self, path: str, **query: str | int | None) -> Iterator[Any]:
        """All pages, each as it was answered; there is at least one."""
        token: str | None = None
        while True:
            page = self.get(path, **query, continue_=token)
            yield page
            token = page["continue"]
            if token is None:
                return

    def _decode(self, body: bytes) -> Any:  # noqa: ANN401 -- JSON
        try:
            return json.loads(body)
        except ValueError:
            raise Stop(
                Exit.UNREACHABLE, f"{self._server} answers, but it is not a fleetd; check --server"
            ) from None

    def _refused(self, refused: urllib.error.HTTPError) -> Stop:
        try:
            problem: object = json.loads(refused.read(ANSWER_MAX))
        except (ValueError, OSError):
            problem = {}
        told = cast("dict[str, Any]", problem) if isinstance(problem, dict) else {}
        if "code" not in told:
            return Stop(
                Exit.UNREACHABLE,
                f"{self._server} answers {refused.code}, but it is not a fleetd; check --server",
            )
        code = Exit.FORBIDDEN if refused.code in {401, 403} else Exit.BAD
        return Refusal(code, str(told.get("detail") or told.get("title")), told)

    def _unreachable(self, cause: Exception) -> Stop:
        reason = getattr(cause, "reason", cause)
        why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        return Stop(
            Exit.UNREACHABLE,
            f"cannot reach the daemon at {self._server}: {why}\n"
            "start it with `fleetd serve`, name another with --server, or work from files with "
            "--offline --documents DIR",
        )
