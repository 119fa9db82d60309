"""`fleetctl rehearse` as a user runs it: its result, its end, and that it repeats itself."""

import re
from pathlib import Path

import pytest

from fleetd.sim import script
from tests.cli import programs

LAST = re.compile(r"converged: \d+ steps, \d+h(\d+m)? simulated, \d+ disruptions")


def test_the_minimal_region_converges_and_the_same_seed_says_the_same() -> None:
    """Ends with 0 and the verdict as its last line; byte for byte the same in another process."""
    first, second = (
        programs.fleetctl("rehearse", programs.MINIMAL, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "4711")
    )

    assert first.code == 0, first.err
    assert LAST.fullmatch(first.out.splitlines()[-1]), first.out[-300:]
    assert re.search(r"^ +\d:\d\d:\d\d  Ready +region/eu-1$", first.out, re.MULTILINE)
    assert "[info" not in first.out
    assert first.err in ("", "rehearsing ...\n")
    assert (second.code, second.out) == (first.code, first.out)


def test_json_is_one_document() -> None:
    """With the faults that were asked for in its timeline, in order of time, from the beginning
    of the run."""
    fault = "at 12m: bmc metal-03 unreachable for 20m"
    ran = programs.fleetctl("rehearse", programs.MINIMAL, "-o", "json", "--fault", fault)

    assert ran.code == 0, ran.err
    told = ran.json
    assert told["converged"] is True
    assert told["why"] == ""
    assert told["steps"] > 100
    assert told["writes"] < told["requests"]
    assert told["faultsMet"] == {"bmc unreachable": 1}
    times = [moment["atSeconds"] for moment in told["timeline"]]
    assert times == sorted(times)
    faults = [one for one in told["timeline"] if one["what"] in ("fault", "mended")]
    assert [(one["atSeconds"], one["about"], one["what"]) for one in faults] == [
        (720, "metal-03", "fault"),
        (1920, "metal-03", "mended"),
    ]


def test_what_needs_an_approval_is_not_done_by_silence(tmp_path: Path) -> None:
    """New images for every cluster at once: without an approval nothing is rolled, and that is not
    called converged."""
    newer = Path(programs.MINIMAL, "region.yaml").read_text().replace("1877.4.0", "1877.5.0")
    (tmp_path / "region.yaml").write_text(newer)
    ran = programs.fleetctl("rehearse", str(tmp_path), "--from", programs.MINIMAL, "--no-approvals")

    assert ran.code == 1
    last = ran.out.splitlines()[-1]
    assert last.startswith("not converged: 4 held, first cluster/cp (NeedsApproval: "), last


def test_all_faults_are_listed_with_their_meaning() -> None:
    """What can be written behind --fault, each with what it does; needs no documents."""
    ran = programs.fleetctl("rehearse", "--list-faults")

    assert ran.code == 0, ran.err
    listed = {tuple(line.split()[:3]) for line in ran.out.splitlines()[2:]}
    assert ("rack", "NAME", "dark") in listed
    assert len(listed) == sum(len(hows) for hows in script.VOCABULARY.values())
    assert all(len(line.split()) > 4 for line in ran.out.splitlines()[2:])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "bmc metal-03 dead",
            "is not a fault; write e.g. 'at 12m: bmc r1-s03 unreachable for 20m'",
        ),
        ("at 1m: bmc metal-03 dead", "a bmc cannot be dead; known: unreachable, refuses"),
        ("at 1m: bmc metal-99 hangs", "there is no bmc metal-99; did you mean metal-"),
        ("at 1m: openstack prd unreachable", "there is no openstack prd; did you mean prod?"),
        ("at 1m: rack r1 dark", "there is no rack r1; there are none"),
    ],
)
def test_a_bad_fault_is_refused(fault: str, said: str) -> None:
    """Ends with 2 and a sentence; nothing is rehearsed and nothing printed as a result."""
    ran = programs.fleetctl("rehearse", programs.MINIMAL, "--fault", fault)

    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
    assert ran.out == ""
