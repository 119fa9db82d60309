"""
What do documents cost, from bytes to a topology?

Peers of loading: PyYAML's own safe loaders on the same bytes. They keep no positions, find no
duplicate keys, count no aliases and check no field; the one that also validates with the same
pydantic models does the nearest thing to our work. Peers of compiling: what nobody can avoid,
encoding and hashing each spec once, and a plain deep copy of the same specs.
"""

import copy
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml

from bench import fleets, measure
from bench.measure import Sizes
from bench.table import Peer, Row
from topology import catalogue_load, compile, load  # noqa: A004
from topology.checks import run as checks
from topology.documents import kinds

SHARE = 10
"""Peers read one file of ten, and we the same ones beside them: the run must end some day."""
SLOW_SHARE = 50
"""The same for the pure Python loader, which is ten times slower."""


def run(sizes: Sizes) -> list[Row]:
    with fleets.written(sizes.servers, sizes.clusters) as files:
        some, few = files[:: _step(files, SHARE)], files[:: _step(files, SLOW_SHARE)]
        loading = measure.in_turn(
            {
                "load some": lambda: load.load(some),
                "libyaml": lambda: _plain(some, yaml.CSafeLoader),
                "libyaml+pydantic": lambda: _validated(some),
                "load few": lambda: load.load(few),
                "python": lambda: _plain(few, yaml.SafeLoader),
            },
            sizes.rounds,
        )
        loading |= measure.in_turn({"load": lambda: load.load(files)}, sizes.whole)
        bundle = load.load(files)
        assert not bundle.problems
        size = sum(file.stat().st_size for file in files)
    components, _ = catalogue_load.load(())
    topology = compile.compile(bundle.items, components)
    specs = [resource.spec for resource in topology.resources.values()]
    compiling = measure.in_turn(
        {
            "catalogue": lambda: catalogue_load.load(()),
            "check": lambda: checks.check(bundle),
            "compile": lambda: compile.compile(bundle.items, components),
            "hash": lambda: [_hash(spec) for spec in specs],
            "copy": lambda: copy.deepcopy(specs),
        },
        sizes.whole,
    )
    median = {name: measure.median(found) for name, found in {**loading, **compiling}.items()}
    whole = sum(median[name] for name in ("load", "check", "compile", "catalogue"))
    return [
        Row(
            what=f"load {sizes.servers:,} servers, {len(bundle.items):,} documents",
            value=median["load"],
            unit="s",
            peers=(
                _peer(loading, "load some", "libyaml", "PyYAML CSafeLoader alone"),
                _peer(loading, "load some", "libyaml+pydantic", "CSafeLoader, then pydantic"),
                _peer(loading, "load few", "python", "PyYAML SafeLoader (pure Python) alone"),
            ),
            note=f"{size / 1e6:.1f} MB of YAML, {size / 1e6 / median['load']:.1f} MB/s",
            raw=loading,
        ),
        Row(
            what="check what documents say about each other",
            value=median["check"],
            unit="s",
            peers=(Peer(name="load", ratio=median["check"] / max(median["load"], 1e-9)),),
        ),
        Row(
            what=f"compile: {len(topology.resources):,} things",
            value=median["compile"],
            unit="s",
            peers=(
                _peer(compiling, "compile", "hash", "encode and hash each spec"),
                _peer(compiling, "compile", "copy", "deep copy of the specs"),
            ),
            note=f"{len(topology.edges):,} edges, "
            f"{median['compile'] / len(topology.resources) * 1e6:.0f} µs a thing",
            raw=compiling,
        ),
        Row(
            what="load, check and compile, all in",
            value=whole,
            unit="s",
            note=f"with {median['catalogue'] * 1000:.0f} ms for the catalogue",
        ),
    ]


def _step(files: Sequence[Path], share: int) -> int:
    return max(1, min(share, len(files)))


def _plain(files: Sequence[Path], loader: type[yaml.SafeLoader | yaml.CSafeLoader]) -> int:
    return sum(len(list(yaml.load_all(file.read_bytes(), Loader=loader))) for file in files)


def _validated(files: Sequence[Path]) -> list[object]:
    return [
        kinds.KINDS[value["kind"]].model_validate(value)
        for file in files
        for value in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader)
    ]


def _hash(spec: object) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(spec, order="deterministic")).digest()


def _peer(timings: measure.Timings, ours: str, theirs: str, name: str) -> Peer:
    return Peer(name=name, ratio=measure.ratio(timings, ours, theirs))
