"""A real API server that does not let us in, beside one that does."""

import asyncio
import copy
import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from fleetd.clock import SystemClock
from fleetd.gate import Gates
from fleetd.kube import config, errors
from fleetd.kube.clusters import Clusters
from fleetd.kube.http import HttpTransport
from tests import defaults
from tests.kube.test_bad_servers import WORDS, written_and_seen
from tests.real import lab
from tests.real.certs import Authority
from tests.real.kube import READY, Kube
from tests.real.reach import text

pytestmark = pytest.mark.real

ASKED = {
    "missing kind": ("core.gardener.cloud", "Shoot"),
    "other version": ("rabbitmq.com", "RabbitmqCluster"),
}
GOOD, BAD = "cluster:good", "cluster:bad"


def _astray(which: str, folder: Path, cluster: Kube) -> dict[str, Any]:
    """The administrator's kubeconfig, with one thing wrong."""
    document = copy.deepcopy(cluster.kubeconfig(pair=cluster.admin))
    match which:
        case "wrong authority":
            stranger = Authority(folder, "stranger").certificate.read_bytes()
            trusted = {"certificate-authority-data": b64encode(stranger).decode()}
            document["clusters"][0]["cluster"] |= trusted
        case "expired token":
            document = cluster.kubeconfig(token="over")
        case "forbidden":
            document = cluster.kubeconfig(pair=cluster.authority.client("nobody"))
        case "unreachable":
            document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        case _:
            pass
    return document


def _define(cluster: Kube) -> None:
    """A kind that our drivers write, in a version that they do not speak."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1alpha9", "served": True, "storage": True, "schema": schema}
    spec = {
        "group": "rabbitmq.com",
        "names": {"kind": "RabbitmqCluster", "plural": "rabbitmqclusters"},
        "scope": "Namespaced",
        "versions": [version],
    }
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rabbitmqclusters.rabbitmq.com"},
        "spec": spec,
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert cluster.send("POST", path, body)[0] == 201
    listed = "/apis/rabbitmq.com/v1alpha9/rabbitmqclusters"
    cluster.running[1].until(lambda: cluster.get(listed)[0] == 200, READY)


async def test_who_is_not_let_in_is_told_why(tmp_path: Path) -> None:
    """Each wrong thing in a sentence of its own, with what to do; the good cluster is followed all
    the while. The words are those that the simulated servers are held to."""
    lab.need(*lab.missing("crds"))
    clock = SystemClock()
    with Kube(tmp_path / "kube", controllers=False) as cluster:
        clusters = Clusters(
            lambda given: HttpTransport(config.read(given)),
            gates=Gates(defaults.LIMITS, clock),
            clock=clock,
            rng=random.Random(1),
            wake=lambda _: None,
        )
        cases = (
            *("unreachable", "wrong authority", "expired token", "forbidden", "missing kind"),
            "other version",
        )
        _define(cluster)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(clusters.run(), name="clusters")
            await asyncio.sleep(0)
            mine = text(cluster.kubeconfig(pair=cluster.admin))
            clusters.put(GOOD, mine)
            followed = await clusters.cache(GOOD, "", "ConfigMap")
            for which in cases:
                clusters.drop(BAD)
                clusters.put(BAD, text(_astray(which, tmp_path, cluster)))
                asked = ASKED.get(which, ("", "ConfigMap"))
                with pytest.raises(errors.KubeError, match=WORDS[which]):
                    await clusters.cache(BAD, *asked, within=10)
            seen = await written_and_seen(mine, followed)
            running.cancel()

    assert seen == {"a": "b"}
