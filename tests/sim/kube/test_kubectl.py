"""The simulated server under the client that people use."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from fleetd.sim.faces import certificates
from fleetd.sim.faces.wire import Wire
from fleetd.sim.kube.cluster import Cluster
from tests.conformance.kube.api import Kind
from tests.conformance.kube.places import Hurried
from tests.real import lab
from tests.sim.kube.stage import config_map, uid_of

WIDGET = Kind("judged.example", "widgets", "Widget")

pytestmark = pytest.mark.real


class Kubectl:
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._program = lab.program("kubectl")
        self.cluster = cluster
        self._folder = folder

    def file(self, *objects: object) -> str:
        path = self._folder / "objects.json"
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        path.write_bytes(msgspec.json.encode(body))
        return str(path)

    async def __call__(self, *arguments: str, fails: bool = False) -> str:
        process = await asyncio.create_subprocess_exec(
            self._program,
            *("--kubeconfig", str(self._folder / "kubeconfig")),
            *("--cache-dir", str(self._folder / "cache")),
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={"HOME": str(self._folder), "PATH": "/usr/bin:/bin"},
        )
        said, _ = await asyncio.wait_for(process.communicate(), 60)
        text = said.decode()
        assert (process.returncode != 0) is fails, text
        return text


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    trust = certificates.loopback(datetime.now(UTC))
    cluster = Cluster("judged", Hurried(), uid_of=uid_of, rbac_enforced=True)
    wire = Wire(tls=trust.tls)
    wire.add("/k8s/judged", cluster)
    address = await wire.start()
    document = cluster.kubeconfig(f"{address}/k8s/judged", cluster.admin_token(), trust.authority)
    (tmp_path / "kubeconfig").write_bytes(msgspec.json.encode(document))
    yield Kubectl(cluster, tmp_path)
    cluster.end_watches()
    await wire.stop()


async def test_apply_get_describe_delete(kubectl: Kubectl) -> None:
    """The round of a plain object: applied, shown, described, deleted."""
    path = kubectl.file(config_map("settings", {"colour": "blue"}))
    created = await kubectl("apply", "-f", path)
    again = await kubectl("apply", "-f", path)
    table = await kubectl("get", "cm", "-n", "default")
    told = await kubectl("describe", "configmap", "settings")
    deleted = await kubectl("delete", "cm", "settings")

    assert created == "configmap/settings created\n"
    assert again == "configmap/settings unchanged\n"
    assert [line.split()[:2] for line in table.splitlines()] == [
        ["NAME", "DATA"],
        ["settings", "1"],
    ]
    assert "colour:\n----\nblue" in told
    assert deleted.startswith('configmap "settings" deleted')


async def test_change_by_apply(kubectl: Kubectl) -> None:
    """What is not in the file any more is removed by a second apply."""
    await kubectl("apply", "-f", kubectl.file(config_map("settings", {"a": "1", "b": "2"})))
    said = await kubectl("apply", "-f", kubectl.file(config_map("settings", {"a": "3"})))
    found = kubectl.cluster.get(("", "ConfigMap"), "settings", "default")

    assert said == "configmap/settings configured\n"
    assert found is not None
    assert found["data"] == {"a": "3"}


async def test_custom_resource(kubectl: Kubectl) -> None:
    """A definition is waited for, its objects applied by the server, explained and listed."""
    await kubectl("apply", "-f", kubectl.file(WIDGET.definition()))
    await kubectl("wait", "--for=condition=Established", f"crd/{WIDGET.name}", "--timeout=20s")
    made = WIDGET.make("w", {"size": 3}, namespace="default")
    applied = await kubectl("apply", "--server-side", "-f", kubectl.file(made))
    table = await kubectl("get", "wid", "-A")
    explained = await kubectl("explain", "widget.spec.size")
    await kubectl("delete", "crd", WIDGET.name)

    assert applied == "widget.judged.example/w serverside-applied\n"
    assert [line.split()[:3] for line in table.splitlines()] == [
        ["NAMESPACE", "NAME", "SIZE"],
        ["default", "w", "3"],
    ]
    assert "<integer>" in explained
    assert WIDGET.group not in [group for group, _ in kubectl.cluster.kinds()]


async def test_conflict_is_shown(kubectl: Kubectl) -> None:
    """A server-side apply over somebody else's field fails and names them."""
    kubectl.cluster.apply(config_map("settings", {"a": "1"}), manager="someone")
    path = kubectl.file(config_map("settings", {"a": "2"}))
    said = await kubectl("apply", "--server-side", "-f", path, fails=True)
    forced = await kubectl("apply", "--server-side", "--force-conflicts", "-f", path)

    assert 'conflict with "someone"' in said
    assert ".data.a" in said
    assert "serverside-applied" in forced


async def test_wait_for_a_change(kubectl: Kubectl) -> None:
    """`kubectl wait` sees a change that comes while it watches."""
    kubectl.cluster.create(config_map("settings", {"ready": "no"}), manager="m")

    def ready() -> None:
        kubectl.cluster.edit(
            ("", "ConfigMap"),
            "settings",
            "default",
            lambda obj: obj["data"].update(ready="yes"),
            manager="m",
        )

    kubectl.cluster.time.after(60.0, ready)
    said = await kubectl("wait", "--for=jsonpath={.data.ready}=yes", "cm/settings", "--timeout=30s")

    assert "condition met" in said


async def test_delete_waits_for_the_finalizer(kubectl: Kubectl) -> None:
    """`kubectl delete` returns when the object is gone, not when it is marked."""
    gk = ("", "ConfigMap")
    kubectl.cluster.create(config_map("held", finalizers=["example.com/hold"]), manager="m")

    def let_go() -> None:
        kubectl.cluster.remove_finalizer(gk, "held", "default", "example.com/hold")

    kubectl.cluster.time.after(60.0, let_go)
    await kubectl("delete", "cm", "held", "--timeout=30s")

    assert kubectl.cluster.get(gk, "held", "default") is None


async def test_unknown_field_is_refused(kubectl: Kubectl) -> None:
    """kubectl asks for strict validation, and a mistyped field is named."""
    await kubectl("apply", "-f", kubectl.file(WIDGET.definition()))
    await kubectl("wait", "--for=condition=Established", f"crd/{WIDGET.name}", "--timeout=20s")
    made = WIDGET.make("w", {"sise": 3}, namespace="default")
    said = await kubectl("apply", "--server-side", "-f", kubectl.file(made), fails=True)

    assert "spec.sise" in said
