"""Checks across documents: what is good passes, what is refused is told once, and in time."""

import random
import re
import time
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology import fleet, load, yamlplace
from topology.checks import (
    addresses,
    cycles,
    hosts,
    index,
    machines,
    placing,
    run,
    spelling,
    windows,
)
from topology.documents.pool import ServerPool
from topology.problem import Problem

HEAD = "apiVersion: fleet.c5c3.io/v1alpha1\n"
GOOD = (Path(__file__).parent / "good.yaml").read_text("utf-8")
DOCUMENTS = GOOD.split("---\n")


def problems_of(*texts: str) -> list[Problem]:
    """Complaints about documents, each in a file of its own."""
    bundle = load.load_bytes({f"{n:03}.yaml": text.encode() for n, text in enumerate(texts)})
    return sorted([*bundle.problems, *run.check(bundle)])


def pool(name: str, body: str) -> str:
    return (
        f"{HEAD}kind: ServerPool\nmetadata: {{name: {name}}}\nspec:\n  region: eu-1\n"
        f"  class: hv-96c\n  access: {{file: bmc.yaml}}\n  {body}\n"
    )


def document(text: str) -> ServerPool:
    (item,) = load.load_bytes({"pool.yaml": text.encode()}).items
    assert isinstance(item.document, ServerPool)
    return item.document


def test_a_good_fleet_has_no_problems() -> None:
    """All kinds together, with a stretched Ceph, two clouds and two regions, pass."""
    assert problems_of(*DOCUMENTS) == []
    assert {
        type(item.document).__name__ for item in load.load_bytes({"a": GOOD.encode()}).items
    } == {
        "Region",
        "ServerPool",
        "Cluster",
        "Cloud",
        "CredentialFlow",
        "Rollout",
        "Maintenance",
    }


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_documents_does_not_matter(seed: int) -> None:
    """A good fleet is good in whatever order its files are read."""
    shuffled = random.Random(seed).sample(DOCUMENTS, len(DOCUMENTS))

    assert problems_of(*shuffled) == []


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_a_refused_document_has_no_consequences(number: int) -> None:
    """When one document is refused, nothing else is complained about for its sake."""
    broken = [*DOCUMENTS]
    broken[number] = broken[number].replace("spec:", "spec:\n  nonsense: 1", 1)

    found = problems_of(*broken)

    assert [(problem.file, problem.code) for problem in found] == [
        (f"{number:03}.yaml", "unknown-field")
    ]


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_an_unreadable_file_has_no_consequences(number: int) -> None:
    """When one file is not even YAML, nothing else is complained about for its sake."""
    broken = [*DOCUMENTS]
    broken[number] = "spec: [\n"

    assert {problem.file for problem in problems_of(*broken)} == {f"{number:03}.yaml"}


VALUE = re.compile(r"(?<=: )[^\s\[\]{},]+|(?<=[\[ ])[a-z0-9-]+(?=[,\]])")
PLACES = [(found.start(), found.end()) for found in VALUE.finditer(GOOD)]
SWAPS = st.lists(st.tuples(*[st.sampled_from(PLACES)] * 2), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(swaps=SWAPS)
def test_no_mix_of_values_breaks_the_checks(swaps: list[tuple[tuple[int, int], ...]]) -> None:
    """Documents with values from other fields give problems with hints, never a traceback."""
    text = GOOD
    for (start, end), (other, other_end) in sorted(swaps, reverse=True):
        text = text[:start] + GOOD[other:other_end] + text[end:]

    found = problems_of(text)

    assert all(problem.hint and problem.code for problem in found)


@given(names=st.lists(st.text("ab1-", min_size=1, max_size=6), unique=True, max_size=12))
def test_names_inside_names_are_all_found(names: list[str]) -> None:
    """The quick search finds what comparing every pair finds."""
    found = {name: set(others) for name, others in hosts.contained(names)}

    slow = {name: {o for o in names if name in o and o != name} for name in names}
    assert found == {name: others for name, others in slow.items() if others}


SPANS = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 8)), max_size=8)


@settings(max_examples=100, deadline=None)
@given(spans=SPANS)
def test_every_overlap_of_addresses_is_found(spans: list[tuple[int, int]]) -> None:
    """There is a complaint exactly when two entries have an address in common."""
    texts: list[str] = []
    for number, (first, more) in enumerate(spans):
        start, end = IPv4Address("192.0.2.0") + first, IPv4Address("192.0.2.0") + first + more
        single = f"servers: [{{name: s{number}, bmc: {start}, zone: a}}]"
        several = f"range: {{first: {start}, last: {end}, zone: a, prefix: p{number}-}}"
        texts.append(pool(f"p{number}", several if more else single))
    bundle = load.load_bytes({f"{n}.yaml": text.encode() for n, text in enumerate(texts)})

    found = list(addresses.unique(index.index(bundle)))

    ordered = sorted((first, first + more) for first, more in spans)
    assert bool(found) == any(a[1] >= b[0] for a, b in pairwise(ordered))


@pytest.mark.parametrize("size", [1, 9, 10, 100, 4096])
def test_servers_of_a_range_are_named_as_they_will_be(size: int) -> None:
    """The checks see the names under which the servers of a range are compiled."""
    last = IPv4Address("10.0.0.1") + size - 1
    found = document(pool("compute", f"range: {{first: 10.0.0.1, last: {last}, zone: a}}"))

    assert machines.names_of(found) == [server.name for server in fleet.servers(found)]


@given(count=st.integers(0, 50), zones=st.integers(1, 6))
def test_every_node_is_in_one_zone(count: int, zones: int) -> None:
    """Nodes are dealt out to zones without loss, the earlier zones first."""
    names = [f"z{number}" for number in range(zones)]

    shares = [index.share_of_zone(count, names, name) for name in names]

    assert sum(shares) == count
    assert shares == sorted(shares, reverse=True)
    assert shares[0] - shares[-1] <= 1


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+3"])
def test_time_zones_that_exist(name: str) -> None:
    """Names of the IANA database are time zones."""
    assert windows.known(name)


@pytest.mark.parametrize(
    "name", ["", "Europe", "localtime", "../UTC", "/etc/localtime", "Berlin", "ÜTC", "a\0b", "."]
)
def test_time_zones_that_do_not_exist(name: str) -> None:
    """What is no zone, or another one on each machine, is refused without a traceback."""
    assert not windows.known(name)


def test_a_guess_costs_no_more_than_its_budget() -> None:
    """A thousand wrong names among a thousand known ones do not take a thousand times a thousand
    comparisons; the first ones still get a guess."""
    known = [f"cluster-{number:04}" for number in range(1000)]
    speller = spelling.Speller()

    hints = [speller.hint(f"clustr-{number:04}", known, "add it") for number in range(1000)]

    assert hints[0] == "did you mean 'cluster-0000'? If not, add it"
    assert hints[-1] == "add it"
    assert speller.left >= 0


def test_very_many_problems_are_cut_and_counted() -> None:
    """Of a file with 300 wrong zones the first 100 are told, and that there are 200 more."""
    rows = [f"{{name: s{n:03}, bmc: 10.0.{n // 200}.{n % 200 + 1}, zone: x}}" for n in range(300)]
    body = "servers:\n" + "\n".join(f"    - {row}" for row in rows)

    found = problems_of(DOCUMENTS[0], pool("wrong", body))

    zones = [problem for problem in found if problem.code == "unknown-zone"]
    (rest,) = [problem for problem in found if problem.code == "more-problems"]
    assert len(zones) == placing.PROBLEMS_MAX
    assert rest.message == "200 more problems of this file are not shown"


def test_each_file_is_read_again_only_once() -> None:
    """Finding the lines of 80 problems between two files takes two readings, not 160."""
    rows = [f"{{name: NAME{n:03}, bmc: 10.9.0.{n + 1}, zone: a}}" for n in range(80)]
    body = "servers:\n" + "\n".join(f"    - {row}" for row in rows)
    bundle = load.load_bytes(
        {
            "0.yaml": DOCUMENTS[0].encode(),
            "1.yaml": pool("one", body.replace("NAME", "a")).encode(),
            "2.yaml": pool("two", body.replace("NAME", "b")).encode(),
        }
    )
    before = yamlplace._marks.cache_info().misses

    found = run.check(bundle)

    assert [problem.code for problem in found] == ["bmc-address-taken"] * 80
    assert found[7].message.startswith("10.9.0.8 is also the BMC of server 'a007'")
    assert "at 1.yaml:" in found[7].message
    assert yamlplace._marks.cache_info().misses - before <= 2


def test_a_long_circle_is_told_briefly() -> None:
    """Of 300 clusters whose kubeconfigs lie in each other some are told, each in a line."""
    ring = [
        f"{HEAD}kind: Cluster\nmetadata: {{name: c{n}}}\nspec:\n  region: eu-1\n"
        f"  role: control-plane\n  adopted: {{access: {{secret: {{cluster: c{(n + 1) % 300}, "
        "namespace: fleet, name: kubeconfig}}}\n"
        for n in range(300)
    ]

    found = [p for p in problems_of(*DOCUMENTS[:1], *ring) if p.code == "access-cycle"]

    assert 1 <= len(found) <= cycles.TOLD_MAX
    assert max(len(str(problem)) for problem in found) < 500


@pytest.mark.slow
def test_checking_grows_with_the_number_of_servers_only() -> None:
    """64,000 servers in 16 pools are checked in seconds; comparing pairs would take hours."""
    texts: list[bytes] = [DOCUMENTS[0].encode()]
    for number in range(16):
        rows = [
            f"    - {{name: p{number:02}-s{n:04}, bmc: 10.{number}.{n // 250}.{n % 250}, zone: a}}"
            for n in range(1, 4001)
        ]
        texts.append(pool(f"p{number:02}", "servers:\n" + "\n".join(rows)).encode())
    bundle = load.load_bytes({f"{n}.yaml": text for n, text in enumerate(texts)})
    assert sum(isinstance(item.document, ServerPool) for item in bundle.items) == 16

    begin = time.perf_counter()
    found = run.check(bundle)

    assert found == []
    assert time.perf_counter() - begin < 10
