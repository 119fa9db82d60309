"""Requests that nobody thought of: what is answered is what OpenAPI says, and never a fault."""

from pathlib import Path

import pytest

from fleetd.daemon import audit
from fleetd.surface import http
from tests.surface import fuzzed

EXAMPLES = 300
REQUESTS = 10_000


@pytest.mark.slow
async def test_schemathesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand requests, good, bad and in sequences: no answer of 500 or more, none that is
    not described, nothing let in unproven; and the audit log of it all holds."""
    monkeypatch.setattr(http, "STRANGERS", fuzzed.FAST)
    code, report = await fuzzed.asked(tmp_path, EXAMPLES)
    assert code == 0, report[report.find("FAILURES") :][:6000]
    assert fuzzed.count(report) >= REQUESTS, report[-1000:]
    assert audit.verify(tmp_path / "audit").number > 100
