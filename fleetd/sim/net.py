"""
The way into the simulated world, in-process: `fleetd.net.Network` without a network.

A Kubernetes request becomes a call of the cluster that its kubeconfig names; the blocking
libraries get a `requests` session whose adapter calls the world, and run inline, so that a seed
stays deterministic while the real client code is exercised. What goes wrong on the way is decided
by the `Climate`.
"""

import asyncio
import io
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec
import requests
import requests.adapters
from urllib3 import HTTPResponse as Urllib3Response

from fleetd.kube import errors
from fleetd.kube.transport import Transport
from fleetd.secrets import Secret
from fleetd.sim.faces.inprocess import InProcess
from fleetd.sim.faults import Climate
from fleetd.sim.kube.server import Server
from fleetd.sim.world import HttpRequest, World

T = TypeVar("T")
SUFFIX = ".sim"
BMC = "bmc"


_REAL = requests.adapters.HTTPAdapter()


class SimNetwork:
    """Implements `fleetd.net.Network`."""

    def __init__(self, world: World, climate: Climate) -> None:
        self._world = world
        self._climate = climate

    def kube(self, kubeconfig: Secret) -> Transport:
        config: Mapping[str, Any] = msgspec.json.decode(kubeconfig.reveal())
        host = urlsplit(str(config["clusters"][0]["cluster"]["server"])).hostname or ""
        cluster = self._world.clusters.get(host.removesuffix(SUFFIX))
        if cluster is None:
            raise errors.Unreachable(f"{host}: no such host")
        token = str(config["users"][0]["user"]["token"])
        return InProcess(Server(cluster), token=token, backend=cluster.name, weather=self._climate)

    def adapter(self, within: float) -> requests.adapters.BaseAdapter:
        del within  # nothing waits here: what never answers is a timeout at once
        return WorldAdapter(self._world, self._climate)

    def start(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            ended.set_result(call())
        except Exception as cause:  # noqa: BLE001 - it is the caller's, as if it had called
            ended.set_exception(cause)
        return ended

    async def close(self) -> None:
        return None


class WorldAdapter(requests.adapters.BaseAdapter):
    """Sends what a `requests` session sends to the world."""

    def __init__(self, world: World, climate: Climate) -> None:
        super().__init__()
        self._world = world
        self._climate = climate

    def send(  # noqa: PLR0917 - the signature is that of requests
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
        timeout: Any = None,  # noqa: ANN401
        verify: Any = True,  # noqa: ANN401, FBT002
        cert: Any = None,  # noqa: ANN401
        proxies: Any = None,  # noqa: ANN401
    ) -> requests.Response:
        del stream, timeout, verify, cert, proxies
        url = urlsplit(request.url or "")
        host = url.hostname or ""
        name = host.removesuffix(SUFFIX) if host.endswith(SUFFIX) else BMC
        name = self._world.hosts.get(host, name)
        service = self._world.services.get(name)
        if service is None:
            raise requests.ConnectionError(f"{host}: no such host")
        body: Any = request.body or b""
        asked = HttpRequest(
            method=request.method or "GET",
            path=url.path or "/",
            query=dict(parse_qsl(url.query, keep_blank_values=True)),
            headers={
                "host": host,
                **{key.lower(): str(value) for key, value in request.headers.items()},
            },
            body=body.encode() if isinstance(body, str) else bytes(body),
        )
        answer = self._climate.over(name, asked, service)
        return self._answer(request, answer.status, answer.headers, answer.body)

    def close(self) -> None:
        return None

    def _answer(
        self,
        request: requests.PreparedRequest,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
    ) -> requests.Response:
        raw = Urllib3Response(
            body=io.BytesIO(body),
            status=status,
            headers=dict(headers),
            preload_content=False,
        )
        # The real adapter builds the Response, so that headers are as ever. Its body is all there.
        response: Any = _REAL.build_response(request, raw)
        response._content, response._content_consumed = body, True  # noqa: SLF001 - as if read
        return response
