"""
Files that try to be slow or large to read. Run as a program, so that memory and CPU time are
measured in a process of their own, with a limit on its address space.

Prints for each file the CPU seconds, how far the peak of memory rose above the start, and what
came of it. Each runs in a child, because the peak of a process never falls.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping

from topology import load, yamlevents, yamltree
from topology.checks import run

SIZE = yamlevents.BYTES_MAX
VALUES = yamltree.VALUES_MAX
ADDRESS_SPACE = 1024**3
"""The interpreter with its libraries maps about 300 MB; the rest is for the file."""


def head(kind: str) -> bytes:
    return b"apiVersion: fleet.c5c3.io/v1alpha1\nkind: %s\nmetadata: {name: a}\nspec:\n" % (
        kind.encode()
    )


def full(start: bytes, part: bytes, end: bytes = b"") -> bytes:
    """As many bytes as are accepted."""
    return start + part * ((SIZE - len(start) - len(end)) // len(part)) + end


def most(start: bytes, part: Callable[[int], bytes], cost: int, end: bytes = b"") -> bytes:
    """As many values as are accepted, so that all of them reach validation."""
    return start + b"".join(part(number) for number in range((VALUES - 60) // cost)) + end


def same(part: bytes) -> Callable[[int], bytes]:
    return lambda _: part


CLUSTER, REGION, POOL = head("Cluster"), head("Region"), head("ServerPool")
FLOW, ROLLOUT, CLOUD = head("CredentialFlow"), head("Rollout"), head("Cloud")

BYTES: Mapping[str, Callable[[], bytes]] = {
    "one flow list": lambda: full(b"[", b"a,"),
    "list of empty lists": lambda: full(b"[", b"[],"),
    "list of empty mappings": lambda: full(b"[", b"{},"),
    "open brackets": lambda: full(b"", b"["),
    "open braces": lambda: full(b"", b"{"),
    "nested mappings": lambda: full(b"", b"{a: "),
    "nested dashes": lambda: full(b"", b"- "),
    "nested question marks": lambda: full(b"", b"? "),
    "indentation": lambda: b"".join(b" " * n + b"a:\n" for n in range(3000)),
    "deep and wide": lambda: b"[" * 64 + b"a," * 2_000_000,
    "documents": lambda: full(b"", b"---\n"),
    "documents of one value": lambda: full(b"", b"--- {}\n"),
    "anchors": lambda: full(b"", b"- &a x\n"),
    "different anchors": lambda: b"".join(b"- &a%d x\n" % n for n in range(300_000)),
    "aliases": lambda: b"- &a x\n" + b"- *a\n" * 1_000_000,
    "tag directives": lambda: full(b"", b"%TAG !a! b\n"),
    "different tag directives": lambda: b"".join(b"%%TAG !a%d! b\n" % n for n in range(300_000)),
    "percent lines": lambda: full(b"a: 'x", b"\n%", b"'"),
    "tags": lambda: full(b"", b"- !x a\n"),
    "core tags": lambda: full(b"", b"- !!str a\n"),
    "long tag": lambda: full(b"a: !!", b"x"),
    "long anchor": lambda: full(b"a: &", b"x", b" y"),
    "duplicate keys": lambda: full(b"", b"a: 1\n"),
    "number keys": lambda: b"".join(b"%d: 1\n" % n for n in range(300_000)),
    "quoted keys": lambda: b"".join(b'"k%d": 1\n' % n for n in range(300_000)),
    "empty lines": lambda: full(b"a: 1", b"\n"),
    "comments": lambda: full(b"a: 1\n", b"# \n"),
    "carriage returns": lambda: full(b"a: 1", b"\r"),
    "spaces": lambda: full(b"a:", b" ", b"b"),
    "long text": lambda: full(CLUSTER + b"  region: ", b"a"),
    "long words": lambda: full(CLUSTER + b"  region: ", b"a ", b"-"),
    "long folded text": lambda: full(CLUSTER + b"  region: >\n", b"   a\n\n"),
    "long literal": lambda: full(b"a: |", b"\n", b" x"),
    "long key": lambda: full(b'{"', b"a", b'": 1}'),
    "long escapes": lambda: full(b'a: "', b"\\u263A", b'"'),
    "escaped controls": lambda: full(b'a: "', b"\\e", b'"'),
    "open quote": lambda: full(b'a: "', b"x\n"),
    "long number": lambda: full(b"a: ", b"9"),
    "long fraction": lambda: full(b"a: 1.", b"9"),
    "long exponent": lambda: full(b"a: 1e", b"9"),
    "long hex": lambda: full(b"a: 0x", b"f"),
    "bad byte at the end": lambda: full(b"a: ", b"x\n ", b"\xff"),
    "control at the end": lambda: full(b"a: ", b"x\n ", b"\x01"),
    "four-byte signs": lambda: full(b"a: ", "💥".encode()),
    "line separators": lambda: full(b'a: "', "\u2028".encode(), b'"'),
    "all bytes": lambda: full(b"", bytes(range(256))),
    "colons": lambda: full(b"", b":"),
    "unfinished merges": lambda: full(b"", b"<<<<<<<\n"),
    "order marks": lambda: full(b"a: ", b"\xef\xbb\xbf"),
    "tab at the end": lambda: full(b"", b"# x\n", b"a:\n\tx: 1\n"),
    "documents without a separator": lambda: full(b"", b"apiVersion: a\nkind: b\n"),
    "dashes": lambda: full(b"", b"-"),
    "bangs": lambda: full(b"", b"!"),
    "too large": lambda: b"a" * (SIZE + 1),
}
FIELDS: Mapping[str, Callable[[], bytes]] = {
    "unknown fields": lambda: most(CLUSTER, lambda n: b"  k%d: 1\n" % n, 2),
    "unknown fields of servers": lambda: most(
        POOL + b"  servers:\n",
        same(b"  - {" + b"".join(b"k%d: ," % n for n in range(16)) + b"}\n"),
        34,
    ),
    "labels of servers": lambda: most(
        POOL + b"  servers:\n",
        same(b"  - {labels: {" + b"".join(b"k%d: ," % n for n in range(95)) + b"}}\n"),
        195,
    ),
    "too many labels": lambda: most(
        CLUSTER + b"  workers: [{labels: {", lambda n: b"k%d: 1," % n, 2, b"}}]\n"
    ),
    "too many good servers": lambda: most(
        POOL + b"  servers:\n",
        lambda n: b"  - {name: r%d, bmc: 192.0.2.1, zone: a, rack: a}\n" % n,
        10,
    ),
    "good documents": lambda: most(
        b"",
        lambda n: b"---\n" + head("Maintenance") + b"  {region: a, host: h%d, reason: r}\n" % n,
        22,
    ),
    "bad documents": lambda: most(b"", same(b"---\na: 1\n"), 6),
    "numbers as zones": lambda: most(REGION + b"  zones: [", same(b"1,"), 1, b"]\n"),
    "words as days": lambda: most(REGION + b"  windows: [{days: [", same(b"A,"), 1, b"]}]\n"),
    "words as traits": lambda: most(CLUSTER + b"  hypervisor: {traits: [", same(b"a,"), 1, b"]}\n"),
    "bad names": lambda: most(CLOUD + b"  hypervisors: [", same(b"A,"), 1, b"]\n"),
    "lists as servers": lambda: most(POOL + b"  servers:\n", same(b"  - []\n"), 2),
    "empty waves": lambda: most(ROLLOUT + b"  waves:\n", same(b"  - {}\n"), 2),
    "half targets": lambda: most(FLOW + b"  targets:\n", same(b"  - {cluster: a}\n"), 4),
    "a list as budgets": lambda: most(REGION + b"  budgets: {rack: [", same(b"1,"), 1, b"]}\n"),
    "an alias bomb": lambda: b"".join(
        [
            b"a0: &a0 [" + b"1," * 9 + b"]\n",
            *(b"a%d: &a%d [" % (n, n) + b"*a%d," % (n - 1) * 9 + b"]\n" for n in range(1, 10)),
        ]
    ),
    "aliases written out": lambda: (
        POOL
        + b"  range: &a ["
        + b"{}," * ((VALUES - 400) // 200)
        + b"]\n  servers: ["
        + b"*a," * 99
        + b"]\n"
    ),
    "aliased unknown fields": lambda: (
        b"x: &a {"
        + b"".join(b"k%d: ," % n for n in range((VALUES - 400) // 200))
        + b"}\n"
        + POOL
        + b"  servers: ["
        + b"*a," * 99
        + b"]\n"
    ),
    "bad documents with a rest": lambda: most(
        b"",
        lambda n: (
            b"---\n" + head("Maintenance") + b"  {region: a, host: h%d, reason: r, more: 1}\n" % n
        ),
        24,
    ),
    "a rest of many servers": lambda: most(
        POOL + b"  {more: 1, region: a, class: c, access: {file: f}, servers: [",
        lambda n: b"{name: r%d, bmc: 192.0.2.1, zone: a}," % n if n < 4090 else b"",
        8,
        b"]}\n",
    ),
    "names of nobody": lambda: most(
        b"",
        lambda n: (
            b"---\n"
            + head("Cloud").replace(b"name: a", b"name: c%d" % n)
            + b"  {region: r%d, release: '2025.2', controlPlane: p%d, " % (n, n)
            + b"hypervisors: [h%d], storage: [s%d]}\n" % (n, n)
        ),
        34,
    ),
    "bad labels": lambda: most(
        b"",
        same(
            b"---\n"
            + head("Maintenance").replace(
                b"{name: a}",
                b"{name: a, labels: {%b}}" % b",".join(b"'a b%d': -" % n for n in range(90)),
            )
            + b"  {region: a, host: h, reason: r}\n"
        ),
        204,
    ),
    "long address": lambda: full(POOL + b"  servers: [{bmc: ", b"1.", b"}]"),
    "long IPv6 address": lambda: full(POOL + b"  servers: [{bmc: '", b"1:", b"'}]"),
    "long uuid": lambda: full(POOL + b"  servers: [{uuid: '", b"1-", b"'}]"),
    "long share": lambda: full(REGION + b"  budgets: {rack: '", b"0", b"%'}"),
    "long trait": lambda: full(CLUSTER + b"  hypervisor: {traits: [CUSTOM_", b"A", b"a]}"),
    "long version": lambda: full(CLUSTER + b"  kubernetes: '", b"1", b".1'"),
    "long duration": lambda: full(FLOW + b"  rotation: {every: ", b"1d", b"}"),
    "long path": lambda: full(FLOW + b"  path: ", b"a/"),
    "long kind": lambda: full(b"kind: ", b"a"),
    "long name": lambda: full(b"kind: Cluster\nmetadata: {name: ", b"a-", b"}"),
}


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results = {name: in_child(make(), start) for name, make in {**BYTES, **FIELDS}.items()}
    sys.stdout.write(json.dumps(results))
    return 0


def in_child(data: bytes, rss_start: int) -> dict[str, float]:
    """Load the bytes in a child process; a crash there is a crash here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        result = measured(data, rss_start)
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    if status or not answer:
        raise SystemExit(f"the child ended with status {status}")
    return json.loads(answer)


def measured(data: bytes, rss_start: int) -> dict[str, float]:
    """Memory is counted from before the first file was made, so the bytes themselves are in it."""
    start = time.process_time()
    bundle = load.load_bytes({"f.yaml": data})
    problems = [*bundle.problems, *run.check(bundle)]
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": round(seconds, 3),
        "megabytes": (after - rss_start) // 1024,
        "items": len(bundle.items),
        "problems": len(problems),
    }


if __name__ == "__main__":
    sys.exit(main())
