"""
What a changed field does to the running thing: stays in place, rolls nodes, replaces it, or is
refused by the far side.

The first table is data: what Gardener, the metal provider, OpenStack and Ceph do with a change of
each field. A field that no row names is changed in place. The functions below the table are for
answers that depend on both values: versions and node counts.
"""

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from topology.resource import Facts

HIDDEN = "(hidden)"
"""Stands for a value below `access`. It is only a name, but names of secrets are nobody's news."""


class Effect(enum.Enum):
    """How a change happens; the later, the harder."""

    IN_PLACE = ("in place", 0)
    ROLLS = ("rolls", 1)
    """Nodes are drained and come back new, or go away."""
    REPLACES = ("replaces", 2)
    """What is there now goes away and something else takes its name."""

    def __init__(self, words: str, weight: int) -> None:
        self.words = words
        self.weight = weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One difference. `path` is dotted; members of a list go by their name: `workers[hv].pool`.
    None means it is not given."""

    path: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    kind: str
    """Of which things it speaks; empty for all."""
    path: re.Pattern[str]
    effect: Effect
    words: str
    """What happens, after "this ..."."""
    refused: str = ""
    """Why the far side refuses it, if it does."""
    when_added: bool = True
    """False: giving a field that was not given before has no such effect."""


def _row(kind: str, path: str, effect: Effect, words: str, **more: Any) -> Row:  # noqa: ANN401
    return Row(kind=kind, path=re.compile(path), effect=effect, words=words, **more)


TABLE: tuple[Row, ...] = (
    _row("server", r"bmc", Effect.REPLACES, "is another machine under the same name"),
    _row("server", r"uuid", Effect.REPLACES, "is another machine", when_added=False),
    _row("server", r"region|pool", Effect.REPLACES, "takes the server from its clusters"),
    _row("server", r"driver", Effect.REPLACES, "enrols it anew with another provider"),
    _row("server", r"zone", Effect.ROLLS, "empties it first, as its machines stay in their zone"),
    _row(
        "cluster",
        r"region",
        Effect.REPLACES,
        "needs a new cluster",
        refused="Gardener cannot move a cluster; make one with a new name",
    ),
    _row("cluster", r"role", Effect.REPLACES, "needs a new cluster for another job"),
    _row(
        "cluster",
        r"networking\.(pods|services|type)",
        Effect.REPLACES,
        "needs a new cluster",
        refused="Gardener never changes the networks of a cluster; make one with a new name",
    ),
    _row(
        "cluster",
        r"failureTolerance",
        Effect.REPLACES,
        "needs a new cluster",
        refused="Gardener lets it be set once, and neither changed nor removed",
        when_added=False,
    ),
    _row(
        "cluster",
        r"garden\.(project|region|cloudProfile)",
        Effect.REPLACES,
        "needs a new cluster",
        refused="a shoot stays in its project, its garden region and with its CloudProfile",
    ),
    _row(
        "cluster",
        r"dns(\.domain)?|exposureClass",
        Effect.REPLACES,
        "needs a new cluster",
        refused="Gardener lets it be set when a cluster is made, and never changed",
    ),
    _row("cluster", r"hibernation\.enabled", Effect.ROLLS, "shuts all nodes down, or starts them"),
    _row(
        "cluster",
        r"rotation(\.since)?",
        Effect.ROLLS,
        "replaces the nodes pool by pool, for they hold the old authority",
    ),
    _row(
        "cluster",
        r"provider",
        Effect.REPLACES,
        "needs a new cluster",
        refused="Gardener never changes the provider of a cluster",
    ),
    _row(
        "cluster",
        r"ceph\.stretch(\.zones)?",
        Effect.IN_PLACE,
        "changes where Ceph keeps its copies",
        refused="Ceph is stretched, or not, and over the same zones, from its first day; "
        "make a new storage cluster and move the data",
    ),
    _row("cluster", r"hypervisor\.libvirt", Effect.ROLLS, "empties each host once"),
    _row(
        "cluster",
        r"workers\[[^\]]+\]\.taints",
        Effect.IN_PLACE,
        "drives pods out that do not tolerate it, if it is NoExecute",
    ),
    _row("cephpool", r"pool\.deviceClass", Effect.IN_PLACE, "moves all of its data to other disks"),
    _row("cloud", r"controlPlane", Effect.REPLACES, "leaves the databases of the cloud behind"),
    _row("cloud", r"region", Effect.REPLACES, "needs a new cloud"),
    _row("", r"cluster", Effect.REPLACES, "leaves what is on the old one behind"),
    _row("", r"cloud", Effect.REPLACES, "takes it out of the old one, with all that runs on it"),
    _row("garden-project", r"garden\.project", Effect.REPLACES, "is another project"),
    _row(
        "openbao-engines",
        r"secrets\.(address|mount)",
        Effect.REPLACES,
        "is an empty store; what lies in the old one does not move",
    ),
    _row("flux-source", r"git\.(url|branch)", Effect.IN_PLACE, "prunes what the new place lacks"),
    _row("flux-sync", r"parameters\.path", Effect.IN_PLACE, "prunes what the new place lacks"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    effect: Effect = Effect.IN_PLACE
    nodes: int = 0
    """How many nodes are drained: replaced, updated or taken away."""
    notes: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


def judge(kind: str, fields: Iterable[Field], old: Facts, new: Facts) -> Verdict:
    """What the changed fields of one resource do, all together."""
    if kind == "cluster" and ("adopted" in old) is not ("adopted" in new):
        # All other fields follow from this one; nobody wants to read them.
        note = "an existing cluster takes its place" if "adopted" in new else "a new one is made"
        return Verdict(effect=Effect.REPLACES, notes=(note,))
    hardest = Effect.IN_PLACE
    notes: list[str] = []
    refusals: list[str] = []
    for field in fields:
        for row in TABLE:
            if row.kind not in ("", kind) or not row.path.fullmatch(field.path):
                continue
            if field.old is None and not row.when_added:
                continue
            hardest = max(hardest, row.effect, key=lambda effect: effect.weight)
            notes.append(f"{field.path} {row.words}")
            if row.refused:
                refusals.append(f"{field.path} {_arrow(field)}: {row.refused}")
    nodes = 0
    if kind == "cluster":
        rolled = _workers(old, new, notes, refusals)
        nodes = rolled.nodes
        hardest = max(hardest, rolled.effect, key=lambda effect: effect.weight)
        _kubernetes("kubernetes", old.get("kubernetes"), new.get("kubernetes"), refusals)
    if kind == "cloud":
        _release(old, new, refusals)
    return Verdict(effect=hardest, nodes=nodes, notes=tuple(notes), refusals=tuple(refusals))


def shown(value: Any) -> str:  # noqa: ANN401
    """A value in a sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return ", ".join(shown(member) for member in value) or "nothing"  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Mapping):
        pairs = (f"{key} {shown(inner)}" for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
        return ", ".join(pairs) or "nothing"
    return str(value)


def _arrow(field: Field) -> str:
    return f"{shown(field.old)} -> {shown(field.new)}"


def _workers(old: Facts, new: Facts, notes: list[str], refusals: list[str]) -> Verdict:
    """Which pools of nodes roll. A pool is known by its name."""
    before = {worker["name"]: worker for worker in old.get("workers", ())}
    after = {worker["name"]: worker for worker in new.get("workers", ())}
    nodes = 0
    effect = Effect.IN_PLACE
    for name in sorted(before):
        was = _effective(old, before[name])
        if name not in after:
            nodes += was["maximum"]
            effect = Effect.ROLLS
            notes.append(f"{_nodes(was['maximum'], name)} {_go(was['maximum'])} away")
            continue
        now = _effective(new, after[name])
        if "kubernetes" in before[name] or "kubernetes" in after[name]:
            # Without a version of its own it follows the cluster's, which is judged already.
            path = f"workers[{name}].kubernetes"
            _kubernetes(path, was["kubernetes"], now["kubernetes"], refusals)
        _strategy(name, was, now, refusals)
        found = _pool(name, was, now, notes)
        nodes += found.nodes
        effect = max(effect, found.effect, key=lambda one: one.weight)
    return Verdict(effect=effect, nodes=nodes)


def _pool(name: str, was: Facts, now: Facts, notes: list[str]) -> Verdict:
    """What happens to the nodes of one pool that stays."""
    nodes: int = was["maximum"]
    if not nodes:
        return Verdict(effect=Effect.IN_PLACE)
    if _rolls(was, now):
        are = "is" if nodes == 1 else "are"
        if was["updateStrategy"] == "AutoRollingUpdate":
            notes.append(f"{_nodes(nodes, name)} {are} replaced")
            return Verdict(effect=Effect.ROLLS, nodes=nodes)
        notes.append(f"{_nodes(nodes, name)} {are} updated where they are")
        return Verdict(effect=Effect.IN_PLACE, nodes=nodes)
    left = [zone for zone in was["zones"] if zone not in now["zones"]]
    if left:
        gone = -(-nodes * len(left) // len(was["zones"]))
        notes.append(f"about {gone} of {_nodes(nodes, name)} leave zone {', '.join(left)}")
        return Verdict(effect=Effect.ROLLS, nodes=gone)
    gone = nodes - now["maximum"]
    if gone > 0:
        notes.append(f"{gone} of {_nodes(nodes, name)} {_go(gone)} away")
        return Verdict(effect=Effect.ROLLS, nodes=gone)
    return Verdict(effect=Effect.IN_PLACE)


def _nodes(count: int, pool: str) -> str:
    return f"the {count} node{'' if count == 1 else 's'} of pool {pool}"


def _go(count: int) -> str:
    return "goes" if count == 1 else "go"


def _effective(cluster: Facts, worker: Facts) -> dict[str, Any]:
    """A worker as its nodes see it: with the cluster's version and image where it has no own."""
    found = {"kubernetes": cluster.get("kubernetes"), "image": cluster.get("image"), "zones": ()}
    return found | {key: value for key, value in worker.items() if value is not None}


_ROLLING: tuple[Callable[[Facts], Any], ...] = (
    lambda worker: minor(worker["kubernetes"]),
    lambda worker: worker["image"],
    lambda worker: worker.get("machineType"),
    lambda worker: worker.get("pool"),
)
"""What makes Gardener replace every node of a pool. A Kubernetes patch only restarts kubelet."""


def _rolls(was: Facts, now: Facts) -> bool:
    return any(value(was) != value(now) for value in _ROLLING)


def _strategy(name: str, was: Facts, now: Facts, refusals: list[str]) -> None:
    """Pools whose nodes are updated in place refuse what only new machines can bring."""
    rolling = [worker["updateStrategy"] == "AutoRollingUpdate" for worker in (was, now)]
    if rolling[0] is not rolling[1]:
        refusals.append(
            f"workers[{name}].updateStrategy {was['updateStrategy']} -> {now['updateStrategy']}: "
            "Gardener does not switch a pool between rolling and in-place; make another pool"
        )
    if rolling[0] or rolling[1]:
        return
    old_image: Facts = was["image"] or {}
    new_image: Facts = now["image"] or {}
    versions = (str(old_image.get("version", "")), str(new_image.get("version", "")))
    if old_image.get("name") != new_image.get("name"):
        refusals.append(
            f"workers[{name}].image.name: a pool that updates in place keeps its image; "
            "make another pool"
        )
    elif _numbers(versions[1]) < _numbers(versions[0]):
        refusals.append(
            f"workers[{name}].image.version {versions[0]} -> {versions[1]}: "
            "a pool that updates in place never goes back"
        )
    changed = [key for key in ("pool", "machineType") if was.get(key) != now.get(key)]
    if changed:
        refusals.append(
            f"workers[{name}].{changed[0]}: a pool that updates in place keeps its machines; "
            "make another pool"
        )


def _kubernetes(path: str, was: str | None, now: str | None, refusals: list[str]) -> None:
    if was is None or now is None or was == now:
        return
    text = f"{path} {was} -> {now}"
    if _numbers(now) < _numbers(was):
        refusals.append(f"{text}: Kubernetes never goes back; Gardener refuses a downgrade")
    elif minor(now)[0] != minor(was)[0] or minor(now)[1] > minor(was)[1] + 1:
        step = f"{minor(was)[0]}.{minor(was)[1] + 1}"
        refusals.append(f"{text}: minors go one at a time; go to {step} first")


def _release(old: Facts, new: Facts, refusals: list[str]) -> None:
    was, now = old.get("release"), new.get("release")
    if was is None or now is None or was == now:
        return
    if now < was:
        refusals.append(f"release {was} -> {now}: databases are migrated and never go back")
    elif now != (follows := next_release(was)):
        refusals.append(f"release {was} -> {now}: releases go one at a time; go to {follows} first")


def next_release(release: str) -> str:
    """2025.1, 2025.2, 2026.1 and so on."""
    year, half = release.split(".")
    return f"{year}.2" if half == "1" else f"{int(year) + 1}.1"


def minor(version: str | None) -> tuple[int, int]:
    major, second = (*_numbers(version), 0, 0)[:2]
    return (major, second)


def _numbers(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version or ""))
