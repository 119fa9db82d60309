"""
The simulated world as a process: `python -m fleetd.sim.serve --documents DIR --folder OUT`.

Builds the world that the documents stand in, serves it on loopback, and writes beside a copy of
the documents the files that they name (kubeconfigs, passwords). For clients of others there is a
kubeconfig per cluster, over TLS. Time runs `--pace` times as fast as life, and is shared with who
is told its file. Somebody who wants to see something fail posts a line of a script to `/faults`.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import requests
import yaml

from fleetd import clock
from fleetd.kube.transport import Request, Response
from fleetd.sim import build, keys, pace, script
from fleetd.sim.faces import certificates
from fleetd.sim.faces.handler import Stream
from fleetd.sim.faces.wire import Wire
from fleetd.sim.faults import Climate
from fleetd.sim.kube import access
from fleetd.sim.kube.server import Server
from fleetd.sim.mishaps import BMC, Mishaps
from fleetd.sim.world import HttpRequest, Service, World
from topology import read
from topology.documents import base
from topology.resource import Topology

BMC_PORT = 8000
DOCUMENTS = "documents"
KUBECONFIGS = "kubeconfigs"
TIME = "time"
MEND = "mend"
NONE = b"nothing is broken that waits to be mended\n"


class OverHttp:
    """A service of the world behind the wire face."""

    def __init__(self, name: str, service: Service, climate: Climate) -> None:
        self._name = name
        self._service = service
        self._climate = climate

    def handle(self, request: Request, headers: Mapping[str, str]) -> Response | Stream:
        # Through a proxy a request names its host in the path as well.
        path = urlsplit(request.path).path if request.path.startswith("http") else request.path
        host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
        asked = HttpRequest(
            method=request.method,
            path=path,
            query=request.query,
            headers={**headers, "host": host},
            body=request.body,
        )
        try:
            answer = self._climate.over(self._name, asked, self._service)
        except requests.Timeout as cause:
            return Response(status=504, body=f"{cause}\n".encode())
        except (requests.RequestException, OSError) as cause:
            # What a proxy says of a host that it does not reach.
            return Response(status=502, body=f"{cause}\n".encode())
        return Response(status=answer.status, body=answer.body, headers=answer.headers)


class ByToken:
    """Of requests that name no cluster in their path, as `kubectl get --raw /readyz` sends them:
    the cluster whose token the caller has."""

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}

    def handle(self, request: Request, headers: Mapping[str, str]) -> Response | Stream:
        for server in self.servers.values():
            if server.knows(headers):
                return server.handle(request, headers)
        return Response(status=401, body=b"this is a token of no cluster here\n")


class Faults:
    """`POST /faults` with a line: it begins now, or with `at 12m:` in twelve minutes of the world's
    time. `mend` ends what would last for ever."""

    def __init__(self, mishaps: Mishaps) -> None:
        self._mishaps = mishaps

    def handle(self, request: Request, headers: Mapping[str, str]) -> Response | Stream:
        del headers
        text = request.body.decode("utf-8", "replace").strip()
        if request.method != "POST" or not text:
            return Response(status=405, body=b"POST a line, e.g. 'bmc r1-s01 unreachable'\n")
        if text == MEND:
            over = "\n".join(str(line).partition(": ")[2] for line in self._mishaps.mend())
            return Response(status=200, body=f"no longer:\n{over}\n".encode() if over else NONE)
        try:
            line = script.read(text if text.startswith("at ") else f"at 0: {text}")
            if line.at:
                self._mishaps.plan_from_now([line])
                told = f"it begins in {base.show_duration(line.at)}"
            else:
                self._mishaps.begin(line)
                told = "it begins"
        except script.ScriptError as cause:
            return Response(status=400, body=f"{cause}\n".encode())
        return Response(status=200, body=f"{told}\n".encode())


class Site:
    """The world, its wires, and the files that lead to it."""

    def __init__(self, world: World, topology: Topology, folder: Path) -> None:
        self.world = world
        self.topology = topology
        self.folder = folder
        self.climate = build.lasting(world)
        self._trust = certificates.loopback(clock.SystemClock().now())
        self.plain = Wire(weather=self.climate)
        self.secure = Wire(weather=self.climate, tls=self._trust.tls)
        self._by_token = ByToken()
        self.secure.otherwise = self._by_token
        self.services: dict[str, Wire] = {}

    async def open(self) -> None:
        await self.plain.start()
        await self.secure.start()
        self.world.address = self._address
        for name in sorted(self.world.clusters):
            self._appeared(name)
        self.world.appeared = self._appeared
        for name, service in sorted(self.world.services.items()):
            await self._open_service(name, service)
        if BMC in self.world.services:
            self.plain.otherwise = OverHttp(BMC, self.world.services[BMC], self.climate)
        known = [ref.name for ref in self.topology.resources if ref.kind == "cluster"]
        faults = Faults(Mishaps(self.world, self.climate, known, clock=False))
        self.plain.add("/faults", faults, backend="faults")

    async def _open_service(self, name: str, service: Service) -> None:
        """At a port of its own: whoever finds it by a load balancer learns host and port only."""
        wire = Wire()
        wire.otherwise = OverHttp(name, service, self.climate)
        await wire.start()
        self.services[name] = wire

    async def close(self) -> None:
        for wire in (self.plain, self.secure, *self.services.values()):
            await wire.stop()

    def _address(self, name: str) -> str:
        if name in self.services:
            return self.services[name].address
        return f"{self.plain.address}/k8s/{name}"

    def _appeared(self, name: str) -> None:
        cluster = self.world.clusters[name]
        server = Server(cluster)
        self._by_token.servers[name] = server
        for wire in (self.plain, self.secure):
            wire.add(f"/k8s/{name}", server, backend=name)
        token = cluster.token("kubectl", ["system:masters"], expires=None)
        there = access.kubeconfig(
            name, f"{self.secure.address}/k8s/{name}", token, self._trust.authority
        )
        path = self.folder / KUBECONFIGS / f"{name}.kubeconfig"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(there), "utf-8")
        path.chmod(0o600)


def _copy(documents: Path, folder: Path) -> None:
    """The documents, with one difference: BMCs here speak plain HTTP, and are reached by proxy."""
    for source in sorted(documents.rglob("*.yaml")):
        parts: list[Any] = list(yaml.safe_load_all(source.read_text("utf-8")))
        for part in parts:
            if isinstance(part, dict) and part.get("kind") == "ServerPool":  # pyright: ignore[reportUnknownMemberType]
                part["spec"]["redfish"] = {"scheme": "http", "port": BMC_PORT}
        target = folder / source.relative_to(documents)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(yaml.safe_dump_all(parts, sort_keys=False), "utf-8")


async def _serve(given: argparse.Namespace, began: float) -> int:
    folder: Path = given.folder
    documents = folder / DOCUMENTS
    _copy(given.documents, documents)
    reading = read.read([documents])
    if reading.topology is None:
        for problem in reading.problems:
            click.echo(str(problem), err=True)
        return 1
    world = build.build(reading.topology, given.seed, clock.LoopClock.moment(began))
    site = Site(world, reading.topology, folder)
    await site.open()
    keys.write(world, reading.topology, documents)
    told = {"address": site.plain.address, "documents": str(documents), "time": str(folder / TIME)}
    click.echo(json.dumps(told))
    try:
        while not world.failures:  # noqa: ASYNC110 - controllers fail in callbacks, rarely
            await asyncio.sleep(1)
    finally:
        await site.close()
    click.echo(f"the simulator failed: {world.failures[0]!r}", err=True)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fleetd.sim.serve", description=__doc__)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where files are written")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", type=float, default=60.0, help="times as fast as life")
    given = parser.parse_args()
    course = pace.Shared(given.folder / TIME)
    with asyncio.Runner(loop_factory=lambda: pace.PacedLoop(given.pace, course)) as runner:
        try:
            return runner.run(_serve(given, course.began))
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main())
