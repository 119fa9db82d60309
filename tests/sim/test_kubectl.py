"""A simulated world on the wire, asked by the real kubectl."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from fleetd.sim import demo
from tests.real import lab

ROOT = Path(demo.__file__).parents[2]
CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "t"},
    "data": {"x": "1"},
}
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}}

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """The kubeconfig of a simulated garden."""
    folder = tmp_path_factory.mktemp("world")
    command = [sys.executable, "-m", "fleetd.sim.serve", "--folder", str(folder)]
    command += ["--documents", str(demo.EXAMPLE), "--pace", "60"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield folder / "kubeconfigs" / "garden-eu-1.kubeconfig"
        process.terminate()


def kubectl(there: Path, *words: str, given: object = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [lab.program("kubectl"), "--kubeconfig", str(there), *words],
        input=json.dumps(given),
        env={**os.environ, "HOME": str(there.parent)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("page", ["healthz", "livez", "readyz", "livez/ping"])
def test_it_says_that_it_is_alive(garden: Path, page: str) -> None:
    """kubectl asks for such a page at the root of the server, without the cluster in the path."""
    ran = kubectl(garden, "get", "--raw", f"/{page}")

    assert (ran.returncode, ran.stdout) == (0, "ok")


def test_apply_wait_and_delete(garden: Path) -> None:
    """What kubectl applies is there, is unchanged the second time, and is gone with its space."""
    assert kubectl(garden, "apply", "-f", "-", given=SPACE).returncode == 0
    told = [kubectl(garden, "apply", "-f", "-", given=CONFIG).stdout for _ in range(2)]
    met = kubectl(garden, "wait", "--for=jsonpath={.data.x}=1", "cm/a", "-n", "t", "--timeout=9s")
    gone = kubectl(garden, "delete", "namespace", "t", "--timeout=30s")
    left = kubectl(garden, "get", "cm", "a", "-n", "t")

    assert told == ["configmap/a created\n", "configmap/a unchanged\n"]
    assert met.stdout == "configmap/a condition met\n"
    assert (gone.returncode, gone.stdout) == (0, 'namespace "t" deleted\n')
    assert "not found" in left.stderr
