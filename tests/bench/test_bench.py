"""The benchmarks run, and what they answer is well formed. How fast anything is, is not tested."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import table
from bench.__main__ import NAMES
from bench.table import Goal, Peer, Row

ROOT = Path(__file__).parents[2]


def _bench(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "bench", *args],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=1800,
        check=False,
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What a quick run of all of them prints and writes."""
    output = tmp_path_factory.mktemp("bench") / "results.json"
    done = _bench("--quick", "--output", str(output))
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(output.read_bytes())


def test_every_benchmark_gives_figures(quick: tuple[str, dict[str, Any]]) -> None:
    """Each names what it measured, how much of what unit, and what came out round by round."""
    _, results = quick

    assert list(results["benchmarks"]) == list(NAMES)
    for name, rows in results["benchmarks"].items():
        assert rows, name
        assert any(row["raw"] for row in rows), name
        for row in rows:
            assert row["what"], name
            assert row["unit"] in {"s", "ms", "KB", "MB", "×"}, row
            assert math.isfinite(row["value"]), row
            # A hundred nodes weigh less than the noise of what the system says a process holds.
            assert row["value"] >= 0 or row["unit"] == "KB", row
            assert (row["reached"] is None) == (row["goal"] is None), row


def test_every_goal_of_the_first_release_is_judged(quick: tuple[str, dict[str, Any]]) -> None:
    """First plan, plan after a change, memory, growth and both goals of the journal."""
    _, results = quick
    goals = {
        (row["what"].split(":")[0].split(",")[0], row["goal"]["least"], row["goal"]["most"])
        for rows in results["benchmarks"].values()
        for row in rows
        if row["goal"]
    }

    for wanted in (
        ("first full plan", None, 5),
        ("plan after one server changed", None, 5),
        ("memory of a node", None, 12),
        ("load", 1.8, 2.2),
        ("first plan", 1.8, 2.2),
        ("one durable intent / raw fdatasync of 4 KB", 0.7, None),
        ("intents with 32 in flight / one at a time", 10, None),
    ):
        assert wanted in goals


def test_the_results_name_the_machine_in_general_terms(quick: tuple[str, dict[str, Any]]) -> None:
    """Enough to compare two runs, and no host or user name."""
    _, results = quick

    assert set(results["machine"]) == {"cores", "memory_gib", "system", "architecture", "python"}
    assert 0 <= results["busy"] <= 1
    assert results["quick"] is True


def test_the_table_shows_every_figure_and_what_was_missed(
    quick: tuple[str, dict[str, Any]],
) -> None:
    """Answers on stdout, with the missed goals by name at the end."""
    shown, results = quick
    rows = [row for rows in results["benchmarks"].values() for row in rows]

    for row in rows:
        assert row["what"] in shown
        for peer in row["peers"]:
            assert peer["name"] in shown
        assert (f"not reached: {row['what']}:" in shown) == (row["reached"] is False)


def test_an_unknown_benchmark_is_refused() -> None:
    """With the names that there are."""
    done = _bench("speed")

    assert done.returncode == 2
    assert "there is no benchmark 'speed'; there are documents, plans," in done.stderr


def test_a_benchmark_that_fails_is_no_result(tmp_path: Path) -> None:
    """One that cannot write its results does not end well."""
    done = _bench("journal", "--quick", "--output", str(tmp_path / "no" / "results.json"))

    assert done.returncode != 0


@pytest.mark.parametrize(
    ("goal", "good", "bad", "shown"),
    [
        (Goal(most=5), 5.0, 5.01, "≤ 5 s"),
        (Goal(least=0.7), 0.7, 0.69, "≥ 0.7 s"),
        (Goal(least=1.8, most=2.2), 2.2, 1.79, "1.8 to 2.2 s"),
    ],
)
def test_a_goal_is_reached_or_not(goal: Goal, good: float, bad: float, shown: str) -> None:
    """Both ends count as reached."""
    assert goal.reached(good)
    assert not goal.reached(bad)
    assert goal.show("s") == shown


def test_a_row_is_one_line_a_peer_and_a_note() -> None:
    """Peers stand below each other in their own column."""
    row = Row(
        what="load",
        value=1234.5,
        unit="ms",
        goal=Goal(most=5),
        peers=(Peer(name="one", ratio=0.125), Peer(name="two", ratio=0.0005)),
        note="words",
    )

    first, second, note = list(table.lines("all", [row]))[1:]

    assert first.split() == ["load", "1,234", "ms", "≤", "5", "ms", "NO", "0.12", "×", "one"]
    assert second.strip() == "1/2,000 × two"
    assert first.index("0.12") == second.index("1/2,000")
    assert note.strip() == "words"
