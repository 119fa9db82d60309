"""One bad server among good ones: it is told in one clear sentence, and the others go on."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from fleetd.clock import SystemClock
from fleetd.gate import Gates
from fleetd.kube import config, errors, http
from fleetd.kube.cache import Cache
from fleetd.kube.client import KubeClient
from fleetd.kube.clusters import Clusters
from fleetd.kube.http import HttpTransport
from fleetd.secrets import Secret
from fleetd.sim.faces.wire import Wire
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.definitions import Definition
from tests import defaults
from tests.conformance.kube.places import Hurried, uid_of
from tests.kube import wire

GOOD, BAD = "cluster:good", "cluster:bad"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
BYTES = {
    "announced": [b"HTTP/1.1 100 Continue\r\n\r\n"] * 100,
    "garbage": [b"SSH-2.0-OpenSSH_9.6\r\n"],
    "nothing": [],
    "without end": [CHUNKED, *[ENDLESS] * 40],
}
"""What servers say that hang up never."""


@contextlib.asynccontextmanager
async def good() -> AsyncGenerator[tuple[Cluster, str]]:
    cluster = Cluster("good", Hurried(), uid_of=uid_of, rbac_enforced=True)
    server = Wire()
    server.add("/k8s/good", cluster)
    address = await server.start()
    try:
        yield cluster, f"{address}/k8s/good"
    finally:
        cluster.end_watches()
        await server.stop()


def _access(cluster: Cluster, address: str, token: str) -> Secret:
    return Secret(msgspec.json.encode(cluster.kubeconfig(address, token)).decode())


@contextlib.asynccontextmanager
async def bad(
    which: str, cluster: Cluster, address: str, folder: Path
) -> AsyncGenerator[tuple[Secret, tuple[str, str]]]:
    """A kubeconfig that leads astray, and the kind to be asked for there."""
    asked = ("", "ConfigMap")
    async with contextlib.AsyncExitStack() as stack:
        match which:
            case "unreachable":
                access = wire.kubeconfig(stack.enter_context(wire.nobody()))
            case "wrong authority":
                ours, theirs = wire.Authority(), wire.Authority("another")
                tls = wire.server_tls(theirs.sign("127.0.0.1"), folder)
                server = await stack.enter_async_context(wire.serving(_page, tls))
                trusted = {"certificate-authority-data": wire.b64(ours.pem)}
                access = wire.kubeconfig(server, trusted)
            case "expired token":
                over = datetime(2029, 1, 1, tzinfo=UTC)
                token = cluster.token("fleetd", expires=over - timedelta(days=1))
                access = _access(cluster, address, token)
            case "forbidden":
                access = _access(cluster, address, cluster.token("nobody"))
            case "missing kind":
                access = _access(cluster, address, cluster.admin_token())
                asked = ("core.gardener.cloud", "Shoot")
            case "other version":
                access = _access(cluster, address, cluster.admin_token())
                cluster.serve(definition(version="v1alpha9"))
                asked = ("rabbitmq.com", "RabbitmqCluster")
            case "a page" | "elsewhere":
                made = wire.serving(_page if which == "a page" else _elsewhere)
                access = wire.kubeconfig(await stack.enter_async_context(made))
            case _:
                said = wire.saying(*BYTES[which], hold=True)
                access = wire.kubeconfig(await stack.enter_async_context(said))
        yield access, asked


def definition(version: str) -> Definition:
    """Of a kind that our drivers write."""
    return Definition(
        group="rabbitmq.com",
        kind="RabbitmqCluster",
        plural="rabbitmqclusters",
        versions=(version,),
    )


async def _page(_request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>welcome</html>", content_type="text/html")


async def _elsewhere(_request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("https://login.example/?to=here")


WORDS = {
    "unreachable": r"cluster:bad: 127\.0\.0\.1:\d+: Connection refused",
    "wrong authority": r"cluster:bad: .*certificate is not trusted: .*; is the authority",
    "expired token": r"Unauthorized: the server does not take the credentials; renew",
    "forbidden": r'"nobody" cannot list .*configmaps.*: if a right is missing, grant it',
    "missing kind": r"does not serve Shoot of group core.gardener.cloud; what brings it",
    "other version": (
        r"serves RabbitmqCluster of group rabbitmq\.com in v1alpha9 only, "
        "and fleetd speaks v1beta1: install a release of what brings it"
    ),
    "a page": r"as no API server does; is the address .* right\?",
    "elsewhere": r"answers 302 and sends us to login\.example, .* is the address .* right\?",
    "announced": r"announces an answer that never comes, .* is the address .* right\?",
    "garbage": r"cluster:bad: what answers there does not speak HTTP .* right\?",
    "without end": r"cluster:bad: .* more than 1000000 bytes; is it an API server\?",
}


async def written_and_seen(access: Secret, followed: Cache) -> dict[str, str]:
    """What the cache of the good cluster shows of an object that somebody else makes now: only its
    watch can have told it."""
    body = {"metadata": {"name": "new", "namespace": "default"}, "data": {"a": "b"}}
    transport = HttpTransport(config.read(access))
    await KubeClient(transport).create(followed.kind, body)
    await transport.close()
    seen = None
    async with asyncio.timeout(60):
        while seen is None:
            await asyncio.sleep(0.01)
            seen = followed.get("new", "default")
    followed.check()
    return dict(seen["data"])


@pytest.mark.parametrize("which", WORDS)
async def test_a_bad_server_is_told_by_name_and_the_others_go_on(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence with what is wrong and what to do; a good cluster is followed all the while."""
    monkeypatch.setattr(http, "BODY_MAX", 1_000_000)
    clock = SystemClock()
    async with (
        good() as (cluster, address),
        bad(which, cluster, address, tmp_path) as (access, asked),
    ):
        clusters = Clusters(
            lambda given: HttpTransport(config.read(given)),
            gates=Gates(defaults.LIMITS, clock),
            clock=clock,
            rng=random.Random(1),
            wake=lambda _: None,
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(clusters.run(), name="clusters")
            await asyncio.sleep(0)
            mine = _access(cluster, address, cluster.admin_token())
            clusters.put(GOOD, mine)
            clusters.put(BAD, access)
            followed = await clusters.cache(GOOD, "", "ConfigMap")
            for _ in range(2):
                with pytest.raises(errors.KubeError, match=WORDS[which]):
                    await clusters.cache(BAD, *asked, within=5)
            seen = await written_and_seen(mine, followed)
            running.cancel()

    assert seen == {"a": "b"}


async def test_a_conflict_names_whose_fields_they_are() -> None:
    """All of the others, before the server's own words, which may be cut short."""
    async with good() as (cluster, address):
        transport = HttpTransport(config.read(_access(cluster, address, cluster.admin_token())))
        names = ("kubectl", "argocd-controller")
        kind = await KubeClient(transport).find("", "ConfigMap")
        meta = {"name": "m", "namespace": "default"}
        for number, manager in enumerate(names):
            client = KubeClient(transport, manager=manager)
            await client.apply(kind, {"metadata": meta, "data": {f"k{number}": "theirs"}})
        body = {"metadata": meta, "data": {"k0": "ours", "k1": "ours"}}
        with pytest.raises(errors.Conflict, match=r"^owned by ") as raised:
            await KubeClient(transport).apply(kind, body)
        await transport.close()

    assert sorted(raised.value.managers) == sorted(names)
    assert all(name in str(raised.value) for name in names)
