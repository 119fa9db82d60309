"""What a Prometheus beside the demo is told, and where it says that it listens."""

import json
from pathlib import Path

import pytest

from fleetd.sim import watcher


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ('msg="Start listening for connections" component=web address=127.0.0.1:0', ""),
        (
            'msg="Start" address=127.0.0.1:0\nmsg="Listening on" address=127.0.0.1:29142',
            "http://127.0.0.1:29142",
        ),
    ],
    ids=["not yet", "listening"],
)
def test_its_log_says_where_it_listens(log: str, found: str) -> None:
    """Not where it was told to listen: that is any port."""
    assert watcher.address(log) == found


def test_it_scrapes_the_daemon_under_the_name_that_the_rules_expect() -> None:
    """With the rules and runbooks of the clone."""
    told = json.loads(watcher.config("http://127.0.0.1:8440", Path("/clone")))

    assert told["scrape_configs"] == [
        {"job_name": "fleetd", "static_configs": [{"targets": ["127.0.0.1:8440"]}]}
    ]
    assert told["rule_files"] == ["/clone/dashboards/rules/*.yaml"]
    assert told["global"]["external_labels"] == {"runbooks": "file:///clone/docs/runbooks"}
