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
    others = ("at 2m: watch hv torn for 1m", "at 13m: requests garden-eu-1  409")
    given = [word for one in (fault, *others) for word in ("--fault", one)]
    ran = programs.fleetctl("rehearse", programs.MINIMAL, "-o", "json", *given)

    assert ran.code == 0, ran.err
    told = ran.json
    assert told["converged"] is True
    assert told["why"] == ""
    assert told["steps"] > 100
    assert told["writes"] < told["requests"]
    assert told["faultsMet"] == {"bmc unreachable": 1, "requests 409": 1}
    met = {one["fault"]: one["met"] for one in told["faults"] if one["begun"]}
    assert met.pop(fault) > 1
    assert met == {others[0]: 0, "at 13m: requests garden-eu-1 409": 1}
    times = [moment["atSeconds"] for moment in told["timeline"]]
    assert times == sorted(times)
    faults = [one for one in told["timeline"] if one["what"] in ("fault", "mended")]
    assert [
        (one["atSeconds"], one["about"], one["what"])
        for one in faults
        if one["about"] == "metal-03"
    ] == [
        (720, "metal-03", "fault"),
        (1920, "metal-03", "mended"),
    ]


def test_each_fault_is_told_in_its_own_words() -> None:
    """Also one that met nobody; two of one kind are told apart."""
    faults = ("at 12m: requests garden-eu-1 429", "at 14m: requests metal-eu-1 429")
    faults = (*faults, "at 1m: requests nova-prod 5xx for 1s")
    given = [word for one in faults for word in ("--fault", one)]
    ran = programs.fleetctl("rehearse", programs.MINIMAL, *given)

    assert ran.code == 0, ran.err
    assert f"fault '{faults[0]}' was met once\n" in ran.out
    assert f"fault '{faults[1]}' was met once\n" in ran.out
    assert f"fault '{faults[2]}' met nobody: it proves nothing\n" in ran.out


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
    lines = [line for line in ran.out.splitlines() if line[11:16] == "NAME "]
    listed = {tuple(line.split()[:3]) for line in lines}
    assert ("rack", "NAME", "dark") in listed
    assert len(listed) == sum(len(hows) for hows in script.VOCABULARY.values())
    assert all(len(line.split()) > 4 for line in lines)
    assert "the next one that it fits" in ran.out


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
        ("at 1m: requests garden-eu-1 locked", "garden-eu-1 never meets locked; it can meet 429"),
        ("at 2d: watch cp torn", "a rehearsal lasts 1d at most"),
        ("at 23h: bmc metal-03 hangs for 1h", "let it be over before that"),
    ],
)
def test_a_bad_fault_is_refused(fault: str, said: str) -> None:
    """Ends with 2 and a sentence; nothing is rehearsed and nothing printed as a result."""
    ran = programs.fleetctl("rehearse", programs.MINIMAL, "--fault", fault)

    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
    assert ran.out == ""
