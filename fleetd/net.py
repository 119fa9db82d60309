"""
The ways out of the process: to API servers, and through a `requests` session to everything else.

There are two networks: the real one here, and the simulated world's. What stands above this file
does not know which one it has. The one rule: a library that blocks is called through
`Ways.blocking`, never on the event loop, with the session that it is given there: the gate of its
backend counts what goes through it.
"""

import asyncio
import contextvars
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.cookies import RequestsCookieJar, merge_cookies
from requests.hooks import default_hooks
from requests.structures import CaseInsensitiveDict

from fleetd.clock import Clock
from fleetd.gate import Gate, Gates, Turn
from fleetd.kube import config, http
from fleetd.kube.transport import Transport
from fleetd.patient import Patient
from fleetd.secrets import Secret

T = TypeVar("T")

WITHIN = 15.0
"""Seconds for all requests of one blocking call. A look has 20, and wants some for the rest."""


class Network(Protocol):
    def kube(self, kubeconfig: Secret) -> Transport:
        """Raises `errors.KubeError` if the kubeconfig is no good. Asks nobody yet."""
        ...

    def adapter(self, within: float) -> BaseAdapter:
        """What a `requests` session sends through; after so many seconds it sends no more."""
        ...

    def start(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Begin it now, while the event loop goes on. The future ends when the call does; to cancel
        it does not end the call."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """How sessions get out. All of it comes from the settings, and nothing from the environment."""

    proxy: str | None = None
    direct: tuple[str, ...] = ()
    """Hosts and domains without a proxy."""
    authorities: Path | None = None
    """Instead of those that the library trusts."""

    def proxies(self, url: str) -> dict[str, str]:
        host = urlsplit(url).hostname or ""
        near = any(host == one or host.endswith(f".{one}") for one in self.direct)
        return {} if self.proxy is None or near else {"http": self.proxy, "https": self.proxy}

    def verify(self, given: Any) -> Any:  # noqa: ANN401 -- as requests has it
        """Libraries say True where they have nothing to say, which would hide a session's own."""
        return str(self.authorities) if given is True and self.authorities is not None else given


class RealNetwork:
    def __init__(self, passage: Passage | None = None, *, plugins: bool = False) -> None:
        """`plugins`: whether a kubeconfig may have a program run to log in."""
        self._passage = passage or Passage()
        self._plugins = plugins
        self._numbers = itertools.count(1)

    def kube(self, kubeconfig: Secret) -> Transport:
        return http.HttpTransport(config.read(kubeconfig, plugins=self._plugins))

    def adapter(self, within: float) -> BaseAdapter:
        return _Patient(within, self._passage)

    def start(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """In a thread of its own: one that hangs takes nothing from the others, and the process
        ends without it. A gate's slots bound how many there are; a request costs more."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                result = context.run(call)
            except BaseException as cause:  # noqa: BLE001 - it is the caller's, as if it had called
                _tell(loop, ended, lambda cause=cause: ended.set_exception(cause))
            else:
                _tell(loop, ended, lambda: ended.set_result(result))

        name = f"fleetd-blocking-{next(self._numbers)}"
        threading.Thread(target=run, name=name, daemon=True).start()
        return ended

    async def close(self) -> None:
        """Does not wait for calls under way: their answers interest nobody any more."""


def _tell(
    loop: asyncio.AbstractEventLoop, ended: "asyncio.Future[Any]", deed: Callable[[], None]
) -> None:
    def tell() -> None:
        if not ended.done():
            deed()

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the loop has ended, and with it whoever waited


class _Patient(Patient):
    def __init__(self, within: float, passage: Passage) -> None:
        super().__init__(within)
        self._passage = passage

    def send(  # noqa: PLR0917 -- as requests has it
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
        timeout: Any = None,  # noqa: ANN401
        verify: Any = True,  # noqa: ANN401, FBT002
        cert: Any = None,  # noqa: ANN401
        proxies: Any = None,  # noqa: ANN401
    ) -> requests.Response:
        del proxies
        return super().send(
            request,
            stream=stream,
            timeout=timeout,
            verify=self._passage.verify(verify),
            cert=cert,
            proxies=self._passage.proxies(request.url or ""),
        )


@lru_cache(4096)
def _spelled(url: str) -> str:
    """As `requests` sends it; the same few are asked again and again."""
    made = requests.PreparedRequest()
    made.prepare_url(url, None)
    return made.url or ""


class _Prepared(requests.PreparedRequest):
    def prepare_url(self, url: Any, params: Any) -> None:  # noqa: ANN401 -- as requests has it
        if params or not isinstance(url, str):
            super().prepare_url(url, params)
        else:
            self.url = _spelled(url)

    def prepare_cookies(self, cookies: Any) -> None:  # noqa: ANN401 -- as requests has it
        # Where there is none, requests asks its jar at length for nothing.
        if cookies:
            super().prepare_cookies(cookies)
        else:
            self._cookies = cookies


_USUAL = dict(vars(requests.Session()))


class _Session(requests.Session):
    """For one blocking call; remembers whether it was answered."""

    def __init__(self, adapter: BaseAdapter) -> None:
        # As requests begins one, but for the ways out that it would make, with their pools.
        state = _USUAL | {"headers": _USUAL["headers"].copy(), "cookies": RequestsCookieJar()}
        ways = {"https://": adapter, "http://": adapter}
        state |= {"proxies": {}, "params": {}, "hooks": default_hooks(), "adapters": ways}
        for name, value in state.items():
            setattr(self, name, value)
        self.trust_env = False
        self.answer: requests.Response | None = None
        """The newest, unless a silence came after it."""
        self.silent = False

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        """As `requests` does it for a session without parameters, login and hooks of its own, which
        is half of the work of a small request. Libraries give headers, and a None is not sent."""
        made = _Prepared()
        headers: Any = CaseInsensitiveDict({**self.headers, **(request.headers or {})})
        made.prepare(
            method=(request.method or "GET").upper(),
            url=request.url,
            files=request.files,
            data=request.data,
            json=request.json,
            headers={name: value for name, value in headers.items() if value is not None},
            params=request.params,
            auth=request.auth,
            # A jar that is empty may be shared: what comes into it comes into the session's.
            cookies=merge_cookies(self.cookies.copy(), request.cookies or {})
            if self.cookies or request.cookies
            else self.cookies,
            hooks=request.hooks,
        )
        return made

    def merge_environment_settings(
        self, url: object, proxies: object, stream: object, verify: object, cert: object
    ) -> dict[str, Any]:
        """There is nothing to merge: proxies are the adapter's, and the rest is as it was asked."""
        del url, proxies
        return {
            "proxies": {},
            "stream": bool(stream),
            "verify": self.verify if verify is None else verify,
            "cert": self.cert if cert is None else cert,
        }

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # noqa: ANN401 -- as requests has it
        try:
            answer = super().send(request, **options)
        except (requests.ConnectionError, requests.Timeout):
            self.answer, self.silent = None, True
            raise
        self.answer, self.silent = answer, False
        return answer


class Ways:
    """What a driver has of the network beside `Clusters`. Every call passes its backend's gate."""

    def __init__(self, net: Network, gates: Gates, clock: Clock) -> None:
        self._net = net
        self._gates = gates
        self._clock = clock

    async def blocking(
        self,
        backend: str,
        call: Callable[[requests.Session], T],
        *,
        within: float = WITHIN,
        counted: bool = True,
    ) -> T:
        """The result of `call`, which has a session for itself; raises `GateClosed` if the backend
        does not answer anybody. `counted`: False where silence is a finding and not a fault, as of
        one BMC among many; then it is never refused.

        A call that is given up keeps its slot until its thread has ended."""
        gate = self._gates.of(backend)
        turn = await gate.enter()
        sent = self._clock.monotonic()
        session = _Session(self._net.adapter(within))

        def work() -> T:
            with session:
                return call(session)

        running = self._net.start(work)
        running.add_done_callback(lambda _: _ended(running, gate, turn, session, counted=counted))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if counted and not running.done():
                gate.given_up(sent)
            raise


def _ended(
    running: "asyncio.Future[Any]", gate: Gate, turn: Turn, session: _Session, *, counted: bool
) -> None:
    turn.end()
    if not running.cancelled():
        running.exception()  # whoever was given up has nobody left to complain to
    if counted and session.silent:
        gate.silent()
    elif counted and session.answer is not None:
        answer = session.answer
        gate.heard(
            answer.status_code, {name.lower(): value for name, value in answer.headers.items()}
        )
