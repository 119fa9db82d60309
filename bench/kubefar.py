"""
The far side of the Kubernetes benchmarks: API servers in a process of their own, and their objects.

`simulated` is the project's own server on the wire, over TLS, many clusters in one process; `real`
is a kube-apiserver with etcd, where `make parts` has built them. Both are filled over the wire or
from inside with the same nodes and ConfigMaps of some 3 KB. Run as a program it serves until its
standard input ends.
"""

import asyncio
import contextlib
import hashlib
import json
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fleetd.kube import config
from fleetd.kube.client import KubeClient
from fleetd.kube.http import HttpTransport
from fleetd.secrets import Secret
from fleetd.sim.faces import certificates
from fleetd.sim.faces.wire import Wire
from fleetd.sim.kube.cluster import Cluster
from tests.real import lab
from tests.real.kube import Kube

NAMESPACE = "default"
NODE, MAP = ("", "Node"), ("", "ConfigMap")
WORDS = "a condition as a kubelet words it, long enough to be one"


def node(number: int) -> dict[str, Any]:
    """About 3 KB with what a server adds."""
    labels = {f"label-{n:02}.example.com/of-a-node": f"value-{number}-{n}" for n in range(14)}
    now = "2030-01-01T00:00:00Z"
    kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
    conditions = [
        {
            "type": kind,
            "status": "False",
            "reason": f"KubeletHas{kind}",
            "message": WORDS,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind in kinds
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05}", "labels": labels},
        "spec": {"providerID": f"metal://{number}"},
        "status": {
            "conditions": conditions,
            "capacity": {"cpu": "128", "memory": "1056Gi", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": f"10.1.{number % 250}.1"}],
        },
    }


def config_map(number: int) -> dict[str, Any]:
    padding = {f"setting-{n:02}": f"{WORDS} {number}" for n in range(30)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"map-{number:04}", "namespace": NAMESPACE},
        "data": {"want": "0", "have": "0", **padding},
    }


@contextlib.contextmanager
def simulated(clusters: int, nodes: int, maps: int) -> Generator[list[Secret]]:
    """The kubeconfigs of so many clusters with so many objects each."""
    command = [sys.executable, "-m", "bench.kubefar", str(clusters), str(nodes), str(maps)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield [Secret(json.dumps(one)) for one in json.loads(process.stdout.readline())]
        finally:
            process.stdin.close()
            process.wait(30)


@contextlib.contextmanager
def real(nodes: int, maps: int) -> Generator[list[Secret]]:
    with tempfile.TemporaryDirectory() as folder, Kube(Path(folder), controllers=False) as kube:
        access = Secret(json.dumps(kube.kubeconfig(pair=kube.admin)))
        asyncio.run(_fill(access, nodes, maps))
        yield [access]


def real_is_there() -> bool:
    return not lab.missing("crds")


async def _fill(access: Secret, nodes: int, maps: int) -> None:
    transport = HttpTransport(config.read(access))
    client = KubeClient(transport)
    free = asyncio.Semaphore(16)

    async def put(gk: tuple[str, str], obj: dict[str, Any]) -> None:
        async with free:
            await client.create(await client.find(*gk), obj)

    todo = [put(NODE, node(n)) for n in range(nodes)] + [
        put(MAP, config_map(n)) for n in range(maps)
    ]
    await asyncio.gather(*todo)
    await transport.close()


class _Now:
    """Simulated time is ours."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, call)


def _uid_of(text: str) -> str:
    return str(uuid.UUID(bytes=hashlib.blake2b(text.encode(), digest_size=16).digest()))


async def _serve(clusters: int, nodes: int, maps: int) -> None:
    trust = certificates.loopback(datetime.now(UTC))
    wire = Wire(tls=trust.tls)
    address = await wire.start()
    configs: list[Any] = []
    for number in range(clusters):
        cluster = Cluster(f"c{number}", _Now(), uid_of=_uid_of)
        for one in range(nodes):
            cluster.create(node(one), manager="kubelet")
        for one in range(maps):
            cluster.create(config_map(one), manager="somebody")
        wire.add(f"/k8s/c{number}", cluster)
        where = f"{address}/k8s/c{number}"
        configs.append(cluster.kubeconfig(where, cluster.admin_token(), trust.authority))
    print(json.dumps(configs), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await wire.stop()


if __name__ == "__main__":
    asyncio.run(_serve(*(int(one) for one in sys.argv[1:4])))
