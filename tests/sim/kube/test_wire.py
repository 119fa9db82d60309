"""The wire face: many backends behind one port, and weather that breaks real connections."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

import aiohttp
import msgspec
import pytest

from fleetd.kube import config, errors
from fleetd.kube.http import HttpTransport
from fleetd.kube.transport import Request, Response
from fleetd.secrets import Secret
from fleetd.sim.faces import certificates
from fleetd.sim.faces.handler import Stream
from fleetd.sim.faces.weather import Calm, Fate, Passage
from fleetd.sim.faces.wire import Wire
from fleetd.sim.kube.cluster import Cluster
from tests.sim.kube.stage import config_map, uid_of
from tests.sim.kube.test_faces import MAPS, WATCH, LoopTime


class Echo:
    def handle(self, request: Request, headers: Mapping[str, str]) -> Response | Stream:
        said = {"path": request.path, "query": dict(request.query), "x": headers.get("x-test", "")}
        return Response(status=203, body=msgspec.json.encode(said), headers={"x-back": "yes"})


async def test_backends_by_prefix() -> None:
    """A request goes to the longest prefix that fits; path, query and headers arrive."""
    wire = Wire()
    wire.add("/svc/echo", Echo())
    address = await wire.start()
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{address}/svc/echo/v1/a%20b?c=d", headers={"X-Test": "1"}) as answer,
        ):
            said = await answer.json(content_type=None)
            status, back = answer.status, answer.headers["x-back"]
        async with aiohttp.ClientSession() as session, session.get(f"{address}/svc/no") as missing:
            nothing = missing.status
    finally:
        await wire.stop()

    assert said == {"path": "/v1/a%20b", "query": {"c": "d"}, "x": "1"}
    assert (status, back, nothing) == (203, "yes", 404)


async def test_otherwise() -> None:
    """What no prefix fits goes, with its whole path, to the handler for the rest."""
    wire = Wire()
    wire.otherwise = Echo()
    address = await wire.start()
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{address}/any/thing") as got:
            said = await got.json(content_type=None)
    finally:
        await wire.stop()

    assert said["path"] == "/any/thing"


class Storm(Calm):
    def before(self, backend: str, request: Request) -> Fate:
        return Fate(lost="reset") if request.method == "POST" else Fate()

    def line(self, backend: str, request: Request, line: bytes) -> Passage:
        return Passage(lines=(line[: len(line) // 2],), lost="reset")


async def test_storm_breaks_connections() -> None:
    """What is lost is a broken connection to the client, and half a line is none."""
    cluster = Cluster("w", LoopTime(), uid_of=uid_of)
    wire = Wire(weather=Storm())
    wire.add("/k8s/w", cluster)
    address = await wire.start()
    document = cluster.kubeconfig(f"{address}/k8s/w", cluster.admin_token())
    transport = HttpTransport(config.read(Secret(msgspec.json.encode(document).decode())))
    cluster.create(config_map("a"), manager="m")
    try:
        with pytest.raises(errors.Unreachable):
            await transport.send(Request(method="POST", path=MAPS, body=b"{}"))
        with pytest.raises(errors.Unreachable):
            await anext(transport.lines(WATCH))
    finally:
        await transport.close()
        await wire.stop()

    assert len(cluster.list(("", "ConfigMap"))) == 1


async def test_reader_that_leaves_ends_the_watch() -> None:
    """When a client goes, its watch is closed at the server."""
    cluster = Cluster("w", LoopTime(), uid_of=uid_of)
    wire = Wire()
    wire.add("/k8s/w", cluster)
    address = await wire.start()
    headers = {"Authorization": f"Bearer {cluster.admin_token()}"}
    watchers = cluster.table(("", "ConfigMap")).watchers
    try:
        async with aiohttp.ClientSession(headers=headers) as session:
            async with session.get(f"{address}/k8s/w{MAPS}?watch=1"):
                during = len(watchers)
            for _ in range(500):
                if watchers:
                    await asyncio.sleep(0.01)
    finally:
        await wire.stop()

    assert (during, len(watchers)) == (1, 0)


async def test_certificate_is_trusted_by_its_authority() -> None:
    """Over TLS a client that trusts the authority gets in; the name is checked as ever."""
    trust = certificates.loopback(datetime.now(UTC))
    cluster = Cluster("w", LoopTime(), uid_of=uid_of)
    wire = Wire(tls=trust.tls)
    wire.add("/k8s/w", cluster)
    address = await wire.start()
    document = cluster.kubeconfig(f"{address}/k8s/w", cluster.admin_token(), trust.authority)
    transport = HttpTransport(config.read(Secret(msgspec.json.encode(document).decode())))
    try:
        answer = await transport.send(Request(method="GET", path="/version"))
    finally:
        await transport.close()
        await wire.stop()

    assert answer.status == 200
