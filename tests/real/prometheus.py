"""A real Prometheus that scrapes what it is told, and is asked by the test."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.dashboards.boards import RULES
from tests.real import lab, process

READY = 300.0
LONG = 300.0

Series = list[dict[str, Any]]
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Refused(Exception):
    """Prometheus does not take a query; says which, and why not."""


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self.began = time.time()

    def now(self, expr: str, at: float | None = None) -> Series:
        return self._asked("query", query=expr, time=at or time.time())["result"]

    def since_start(self, expr: str) -> Series:
        """As a graph asks for it that shows all there is, at every second."""
        return self._asked("query_range", query=expr, start=self.began, end=time.time(), step=1)[
            "result"
        ]

    def values(self, series: str, label: str) -> list[str]:
        """What Grafana asks for a variable by `label_values`."""
        return self._asked(f"label/{label}/values", **{"match[]": series})

    def is_ready(self) -> bool:
        try:
            _direct.open(f"{self._url}/-/ready", timeout=5).close()
        except OSError:
            return False
        return True

    def _asked(self, what: str, **asked: object) -> Any:
        url = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(asked)}"
        try:
            with _direct.open(url, timeout=LONG) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise Refused(f"{asked}: {json.load(error)['error']}") from None


@contextmanager
def running(folder: Path, scrapes: Sequence[Any], every: int = 1) -> Generator[Prometheus]:
    """One that asks every few seconds, and follows our rules as often."""
    found = lab.program("prometheus")
    folder.mkdir()
    often = ("scrape_interval", "scrape_timeout", "evaluation_interval")
    config = {
        "global": dict.fromkeys(often, f"{every}s"),
        "rule_files": [str(RULES / "*.yaml")],
        "scrape_configs": scrapes,
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), "utf-8")
    (port,) = process.free_ports(1)
    arguments = [f"--config.file={folder / 'prometheus.yml'}"]
    arguments += [
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    server = process.Running("prometheus", found, arguments, folder)
    try:
        made = Prometheus(port)
        server.until(made.is_ready, READY)
        yield made
    finally:
        server.stop()
