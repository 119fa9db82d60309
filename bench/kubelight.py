"""
An API server that costs next to nothing: `python -m bench.kubelight MAPS`, a process of its own.

A real server on two cores makes some hundred changes a second, with the writes that answer them; at
a thousand, whoever measures latency measures its queue. This one has ConfigMaps in memory, over
TLS: list, watch, and a patch of `data`. It makes the changes itself, when `POST /changes` asks for
so many a second, and writes the moment into `want`, by the clock that all processes share.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import msgspec
import uvloop

from bench.kubefar import config_map
from fleetd.secrets import Secret
from fleetd.sim.faces import certificates
from fleetd.sim.kube import access

RESOURCES = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}],
}


@contextlib.contextmanager
def light(maps: int) -> Generator[Secret]:
    """The kubeconfig of one with so many ConfigMaps."""
    command = [sys.executable, "-m", "bench.kubelight", str(maps)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield Secret(process.stdout.readline().decode())
        finally:
            process.stdin.close()
            process.wait(30)


class _Objects:
    def __init__(self, count: int) -> None:
        self._version = 0
        self._objects = [config_map(number) for number in range(count)]
        self._watchers: list[asyncio.Transport] = []
        for number in range(count):
            self.change(number, {})

    def change(self, number: int, data: dict[str, str]) -> bytes:
        self._version += 1
        obj = self._objects[number]
        obj["data"].update(data)
        obj["metadata"].update(uid=f"uid-{number}", resourceVersion=str(self._version))
        obj["metadata"]["managedFields"] = _managed(obj["data"])
        body = msgspec.json.encode(obj)
        event = b'{"type":"MODIFIED","object":%b}\n' % body
        for watcher in self._watchers:
            watcher.write(b"%x\r\n%b\r\n" % (len(event), event))
        return body

    def all(self) -> bytes:
        meta = {"resourceVersion": str(self._version)}
        listed = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": meta}
        return msgspec.json.encode({**listed, "items": self._objects})

    def watch(self, transport: asyncio.Transport) -> None:
        transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        self._watchers.append(transport)

    async def change_all(self, pace: int, seconds: int) -> None:
        """Each in its turn, at its time; none is left out when it is late."""
        began = time.monotonic()
        for place in range(pace * seconds):
            await asyncio.sleep(max(0.0, began + place / pace - time.monotonic()))
            self.change(place % len(self._objects), {"want": str(time.monotonic_ns())})


def _managed(data: dict[str, str]) -> list[dict[str, Any]]:
    """As a server has it, of the size that it has there."""
    fields: dict[str, Any] = {"f:data": {".": {}, **{f"f:{name}": {} for name in data}}}
    one = {"apiVersion": "v1", "fieldsType": "FieldsV1", "time": "2030-01-01T00:00:00Z"}
    return [{**one, "manager": "bench", "operation": "Update", "fieldsV1": fields}]


class _Serving(asyncio.Protocol):
    def __init__(self, objects: _Objects) -> None:
        self._objects = objects
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._changing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            head = self._rest[:end].decode("ascii")
            _, _, said = head.lower().partition("content-length: ")
            whole = end + 4 + int(said.split("\r\n")[0] or "0")
            if len(self._rest) < whole:
                return
            body, self._rest = self._rest[end + 4 : whole], self._rest[whole:]
            method, url = head.split(" ", 2)[:2]
            self._serve(method, url, body)

    def _serve(self, method: str, url: str, body: bytes) -> None:
        assert self._transport is not None
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        if method == "POST":
            pace, seconds = int(query["pace"][0]), int(query["seconds"][0])
            made = self._objects.change_all(pace, seconds)
            self._changing = asyncio.get_running_loop().create_task(made, name="changes")
            answer = b"{}"
        elif method == "PATCH":
            number = int(parts.path.rpartition("-")[2])
            answer = self._objects.change(number, json.loads(body)["data"])
        elif "watch" in query:
            self._objects.watch(self._transport)
            return
        else:
            listed = parts.path.endswith("configmaps")
            answer = self._objects.all() if listed else json.dumps(RESOURCES).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % len(answer) + answer)


async def _main(maps: int) -> None:
    trust = certificates.loopback(datetime.now(UTC))
    objects = _Objects(maps)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Serving(objects), "127.0.0.1", 0, ssl=trust.tls)
    where = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    print(json.dumps(access.kubeconfig("light", where, "token", trust.authority)), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(int(sys.argv[1])))
