"""
What a Prometheus beside the demo is told: scrape the daemon, judge the project's rules.

It starts nothing. Nothing of the demo depends on it. Durations in the rules are those of real life,
while the demo's time runs faster: what fails is pending for minutes before it fires.
"""

import json
import re
from pathlib import Path

_LISTENS = re.compile(r'Listening on"?.*\baddress=(127\.0\.0\.1:\d+)')


def config(url: str, root: Path) -> str:
    """Its configuration, for a daemon at an address and the rules of a clone."""
    return json.dumps(
        {
            "global": {
                "scrape_interval": "2s",
                "evaluation_interval": "2s",
                "external_labels": {"runbooks": (root / "docs" / "runbooks").as_uri()},
            },
            "rule_files": [str(root / "dashboards" / "rules" / "*.yaml")],
            "scrape_configs": [
                {
                    "job_name": "fleetd",
                    "static_configs": [{"targets": [url.partition("//")[2]]}],
                }
            ],
        }
    )


def arguments(folder: Path) -> list[str]:
    """A port that is free, and nothing kept when the folder goes."""
    return [
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        "--web.listen-address=127.0.0.1:0",
    ]


def address(log: str) -> str:
    """Where it listens, as its log says; empty if it does not yet."""
    found = _LISTENS.search(log)
    return f"http://{found[1]}" if found is not None else ""
