"""promtool reads the alert rules, their tests, and the configuration that goes with them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.real import lab
from tests.tidy import alerts, files

pytestmark = pytest.mark.real
DEPLOYED = files.ROOT / "deploy" / "prometheus"


def said(*words: object) -> tuple[int, str]:
    """How promtool ended, and all that it said."""
    done = subprocess.run(
        [lab.program("promtool"), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_rules_are_rules() -> None:
    """Also by the stricter checks: no rule is there twice."""
    code, told = said("check", "rules", "--lint=all", "--lint-fatal", *alerts.RULES.glob("*.yaml"))

    assert code == 0, told


@pytest.mark.parametrize("path", sorted(alerts.TESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_alerts_fire_when_they_should_and_only_then(path: Path) -> None:
    """With the labels and the words that are expected."""
    code, told = said("test", "rules", path)

    assert code == 0, told


def test_a_case_that_is_wrong_is_found(tmp_path: Path) -> None:
    """An alert that should fire and does not."""
    shutil.copytree(alerts.RULES, tmp_path / "rules")
    rules = tmp_path / "rules" / "fleet.yaml"
    text = rules.read_text("utf-8")
    rules.write_text(text.replace("fleetd_cluster_ready == 0", "fleetd_cluster_ready == 2"))
    code, told = said("test", "rules", tmp_path / "rules" / "tests" / "fleet.yaml")

    assert code != 0
    assert "FleetdClusterNotReady" in told


def test_the_configuration_fits(tmp_path: Path) -> None:
    """As it is deployed: the rules beside it, a token and an authority where it says."""
    shutil.copy(DEPLOYED / "prometheus.yml", tmp_path)
    (tmp_path / "rules").mkdir()
    for path in alerts.RULES.glob("*.yaml"):
        shutil.copy(path, tmp_path / "rules")
    (tmp_path / "fleetd.token").write_text("not one")
    (tmp_path / "fleetd-ca.pem").write_text("")
    code, told = said("check", "config", tmp_path / "prometheus.yml")

    assert code == 0, told
    assert "4 rule files found" in told
