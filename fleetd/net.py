"""
The ways out of the process: to API servers, and through a `requests` session to everything else.

There are two networks: the real one here, and the simulated world's. What stands above this file
does not know which one it has. The one rule: a library that blocks is called through `blocking`,
never on the event loop.
"""

import asyncio
import contextvars
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import requests
from requests.adapters import HTTPAdapter

from fleetd.kube import config, http
from fleetd.kube.transport import Transport
from fleetd.secrets import Secret

T = TypeVar("T")

THREADS = 16
"""At once. Each backend's gate lets 16 through, but one that hangs must not have them all for
long: see `ANSWER`."""
CONNECT = 10.0
ANSWER = 60.0
"""Seconds. A thread cannot be cancelled: what waits longer than this is ended by its socket."""


class Network(Protocol):
    def kube(self, kubeconfig: Secret) -> Transport:
        """Raises `errors.KubeError` if the kubeconfig is no good. Asks nobody yet."""
        ...

    def session(self) -> requests.Session:
        """A new one, for one far side. To be used inside of `blocking` only."""
        ...

    async def blocking(self, call: Callable[[], T]) -> T:
        """The result of `call`, while the event loop goes on."""
        ...

    async def close(self) -> None: ...


class RealNetwork:
    def __init__(self, *, threads: int = THREADS, plugins: bool = False) -> None:
        """`plugins`: whether a kubeconfig may have a program run to log in."""
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="fleetd-blocking")
        self._plugins = plugins
        self._sessions: weakref.WeakSet[requests.Session] = weakref.WeakSet()

    def kube(self, kubeconfig: Secret) -> Transport:
        return http.HttpTransport(config.read(kubeconfig, plugins=self._plugins))

    def session(self) -> requests.Session:
        session = requests.Session()
        for scheme in ("https://", "http://"):
            session.mount(scheme, _Patient())
        self._sessions.add(session)
        return session

    async def blocking(self, call: Callable[[], T]) -> T:
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: context.run(call))

    async def close(self) -> None:
        """Does not wait for calls under way: their answers interest nobody any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for session in list(self._sessions):
            session.close()


class _Patient(HTTPAdapter):
    """Waits, but not for ever, also where the caller did not say how long."""

    def send(  # noqa: PLR0917 -- as requests has it
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
        timeout: Any = None,  # noqa: ANN401
        verify: Any = True,  # noqa: ANN401, FBT002
        cert: Any = None,  # noqa: ANN401
        proxies: Any = None,  # noqa: ANN401
    ) -> requests.Response:
        limits = timeout if timeout is not None else (CONNECT, ANSWER)
        return super().send(
            request, stream=stream, timeout=limits, verify=verify, cert=cert, proxies=proxies
        )
