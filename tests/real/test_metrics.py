"""Real Prometheus and promtool read what a daemon serves."""

import asyncio
import json
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetd.settings import Address
from fleetd.surface import http
from fleetd.surface.metrics import Metrics
from tests.real import build, lab, process
from tests.surface import panels

pytestmark = pytest.mark.real


def program(name: str) -> Path:
    """Where it is; skips the test where it is not built."""
    found = next(one.path for one in build.programs() if one.name == name)
    lab.need(*([] if found.is_file() else [name]))
    return found


def test_promtool_has_nothing_to_say() -> None:
    """About names, units, help and types of everything that is served."""
    found = Metrics(panels.small())
    found.requests.request("/api/v1/plan", "GET", 200, 0.1)
    done = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=found.render(),
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_prometheus_scrapes_both_formats(tmp_path: Path) -> None:
    """OpenMetrics and the old text, packed: the target is up, and figures can be asked for."""
    prometheus = program("prometheus")

    async def story() -> dict[str, Any]:
        async with http.serving(panels.small(), Address("127.0.0.1", 0)) as server:
            (port,) = process.free_ports(1)
            jobs = [
                {
                    "job_name": name,
                    "scrape_protocols": [protocol],
                    "static_configs": [{"targets": [str(server.address)]}],
                }
                for name, protocol in (
                    ("new", "OpenMetricsText1.0.0"),
                    ("old", "PrometheusText0.0.4"),
                )
            ]
            config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
            (tmp_path / "prometheus.yml").write_text(json.dumps(config))
            running = process.Running(
                "prometheus",
                prometheus,
                [
                    f"--config.file={tmp_path / 'prometheus.yml'}",
                    f"--storage.tsdb.path={tmp_path / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                tmp_path,
            )
            try:
                return await _until(lambda: _asked(port, "fleetd_cluster_ready"), 2, running)
            finally:
                running.stop()

    found = asyncio.run(story())

    assert {one["metric"]["job"] for one in found["data"]["result"]} == {"new", "old"}
    assert {one["value"][1] for one in found["data"]["result"]} == {"0"}


def _asked(port: int, query: str) -> dict[str, Any]:
    try:
        url = f"http://127.0.0.1:{port}/api/v1/query?query={query}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)
    except OSError:
        return {"data": {"result": []}}


async def _until(
    ask: Callable[[], dict[str, Any]], count: int, running: process.Running
) -> dict[str, Any]:
    """Asks in a thread until there are so many results; the loop serves meanwhile."""
    for _ in range(150):
        found = await asyncio.to_thread(ask)
        if len(found["data"]["result"]) >= count:
            return found
        await asyncio.sleep(0.2)
    pytest.fail(f"nothing was scraped:\n{running.tail()}")
