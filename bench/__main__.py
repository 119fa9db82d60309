"""
All benchmarks, or those named, in one run: `python -m bench [NAME...] [--quick]`.

Each runs in a process of its own, so that none pays for what another left in memory. Progress goes
to stderr, the table to stdout, every single measurement to `bench/results.json`. It judges figures
against their goals and says which are missed; the exit code only says whether it could measure.
"""

import argparse
import importlib
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench import measure, table
from bench.table import Row

NAMES = (
    *("documents", "plans", "growth", "daemon"),
    *("journal", "simulation", "page", "kube", "scrape", "readers"),
)
RESULTS = Path(__file__).parent / "results.json"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--alone", choices=NAMES, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.alone:
        sizes = measure.QUICK if given.quick else measure.FULL
        found: list[Row] = importlib.import_module(f"bench.{given.alone}").run(sizes)
        sys.stdout.buffer.write(msgspec.json.encode(found))
        return 0
    unknown = sorted(set(given.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    return _all(given.names or NAMES, given.output, quick=given.quick)


def _all(names: tuple[str, ...] | list[str], output: Path, *, quick: bool) -> int:
    results: dict[str, list[Row]] = {}
    failed: list[str] = []
    others = measure.Others()
    began = time.monotonic()
    print(table.head())
    for number, name in enumerate(names):
        print(f"[{number + 1}/{len(names)}] {name}", file=sys.stderr, flush=True)
        rows = _alone(name, quick=quick)
        if rows is None:
            failed.append(name)
            continue
        results[name] = rows
        # After each one: a run that is cut short keeps what it has.
        _write(output, results, quick=quick, load=others.share())
        print("\n".join(table.lines(name, rows)), flush=True)
    spent = time.monotonic() - began
    print("\n".join(table.summary([row for rows in results.values() for row in rows])))
    if quick:
        print("quick: sizes are far too small for these figures to mean anything")
    cpu = sum(os.times()[:4])
    print(f"{spent:.0f} s on {os.cpu_count()} cores, {cpu:.0f} s of CPU time")
    for name in failed:
        print(f"{name} could not be measured; see above", file=sys.stderr)
    return 1 if failed else 0


def _alone(name: str, *, quick: bool) -> list[Row] | None:
    command = [sys.executable, "-m", "bench", "--alone", name, *(["--quick"] if quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        return None
    return msgspec.json.decode(done.stdout, type=list[Row])


def _write(output: Path, results: dict[str, list[Row]], *, quick: bool, load: float) -> None:
    content = {
        "at": datetime.now(UTC),
        "quick": quick,
        "machine": measure.machine(),
        "busy": round(load, 3),
        "benchmarks": {
            name: [msgspec.to_builtins(row) | {"reached": row.reached} for row in rows]
            for name, rows in results.items()
        },
    }
    output.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
