"""
What sixty fleetds would serve that run a hundred regions of ten clusters each: as text, made by
hand from the declared metrics.

Every label has as many values as it would have there, and every state occurs. Nothing is simulated:
counters grow by the second.
"""

import itertools
import math
import re
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fleetd.clock import SystemClock
from fleetd.plan.incidents import Severity
from fleetd.surface import families as f
from fleetd.surface import ledger
from fleetd.surface.exposition import Declared, Sheet
from fleetd.surface.panel import Histogram
from fleetd.vocabulary import HoldReason

FLEETDS, REGIONS, CLUSTERS = 60, 100, 10
BOUNDS = (0.01, 0.1, 1.0, 10.0)
_time = SystemClock()
NUMBERS = {
    "kind": 80,
    "driver": 15,
    "pool": 4,
    "credential": 30,
    "class": 3,
    "zone": 3,
}
"""How many of a sort there are."""
STATES = {
    f.RESOURCES.name: tuple(f.STATES.values()),
    f.POOL.name: ("free", "used", "unavailable"),
    f.QUEUE.name: ("ready", "delayed", "working"),
    f.CREDENTIALS.name: ledger.STATES,
}
VALUES = {
    "reason": [one.value for one in HoldReason],
    "severity": [one.value for one in Severity],
    "outcome": f.OUTCOMES,
    "result": f.RESULTS,
    "route": [f"/api/v1/route{n}" for n in range(40)],
    "method": ("GET", "POST"),
    "code": ("200", "404", "503"),
    "version": ("0.1.0", "0.2.0"),
    "backend_kind": ("bmc", "cluster", "garden", "metal", "openbao", "openstack", ""),
    "driver": ("access", "eso", "ironcore", "ironic", "openbao", *(f"d{n}" for n in range(10))),
    "kind": ("cluster", "server", *(f"kind{n}" for n in range(78))),
}

SPENT = {("pool0", f"class{n}", "zone0", "free") for n in range(NUMBERS["class"])}
"""Without a free server, in every region."""


def text(number: int, seconds: float) -> bytes:
    """What one of them serves so long after its start."""
    sheet = Sheet(f.ALL)
    regions = [f"r{at:03d}" for at in range(number, REGIONS, FLEETDS)]
    for declared in f.ALL:
        samples = [
            (labels, 0 if labels[1:] in SPENT else _value(declared, at + number, seconds))
            for at, labels in enumerate(_labels(declared, number, regions))
        ]
        sheet.put(declared, None, 0, lambda samples=samples: samples)
    lines = [
        f"process_start_time_seconds {_time.now().timestamp() - seconds}",
        f"process_resident_memory_bytes {1e8 + number}",
        f"process_cpu_seconds_total {seconds / 2}",
        "process_open_fds 100",
        "process_max_fds 1000",
    ]
    return b"".join(sheet.pieces(openmetrics=False)) + "\n".join([*lines, ""]).encode()


def _labels(declared: Declared, number: int, regions: Sequence[str]) -> Iterator[tuple[str, ...]]:
    if "backend" in declared.labels:
        kinds = ("bmc", "metal", "garden", "openbao")
        for region in regions:
            yield from [(f"{kind}:{region}",) for kind in kinds]
            yield from [(f"cluster:{name}",) for name in _clusters(region)]
        return
    for region in regions if "region" in declared.labels else [""]:
        yield from itertools.product(
            *(_choice(declared, label, region, number) for label in declared.labels)
        )


def _clusters(region: str) -> list[str]:
    return [f"{region}-c{at}" for at in range(CLUSTERS)]


def _choice(declared: Declared, label: str, region: str, number: int) -> Sequence[str]:
    if label == "region":
        return [region]
    if label == "cluster":
        return _clusters(region)
    if label == "state":
        return STATES[declared.name]
    if label == "version":
        return [VALUES["version"][number % 2]]
    return VALUES.get(label) or [f"{label}{at}" for at in range(NUMBERS[label])]


def _value(declared: Declared, at: int, seconds: float) -> float | Histogram:
    rate = at % 7
    if declared.type == "histogram":
        counts = [math.floor(seconds * rate)] * (len(BOUNDS) + 1)
        return Histogram(BOUNDS, counts, seconds * rate)
    if declared.type == "counter":
        return seconds * rate
    if re.search(r"(expiry|rotation)_timestamp", declared.name):
        return _time.now().timestamp() + (at % 50 - 5) * 900
    if "timestamp" in declared.name:
        return 0 if at % 3 == 1 else _time.now().timestamp() - 3600 * (at + 1)
    return at % 2 if re.search(r"ready$|open$|info$", declared.name) else at % 5


@contextmanager
def served() -> Generator[list[object]]:
    """All of them, behind one server on loopback; what Prometheus has to scrape."""
    began = _time.monotonic()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text(int(self.path.strip("/")), _time.monotonic() - began)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its name there
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"127.0.0.1:{server.server_address[1]}"
    try:
        labels = [
            {"__metrics_path__": f"/{number}", "instance": f"fleetd-{number:02d}"}
            for number in range(FLEETDS)
        ]
        targets = [{"targets": [address], "labels": one} for one in labels]
        yield [{"job_name": "fleetd", "static_configs": targets}]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
