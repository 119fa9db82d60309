"""
What must hold whatever happens, judged on the world's ground truth.

Numbers are those of the facts (I1, I2 ...). A `Judge` looks at what each write touched as soon as
it was done, and at what hurt somebody when it does; the first breach fails the run, with the seed,
the time, the request, the step and what happened before. `at_end` walks everything. Nothing here
knows what fleetd meant to do; only what it did, and what it had announced in its journal.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from fleetd.kube import facts
from fleetd.plan import budget
from fleetd.plan.policy import Policy
from fleetd.plan.table import Table
from fleetd.sim.kube.cluster import GK, Change, Cluster
from fleetd.sim.kube.store import ADDED, DELETED
from fleetd.sim.ledger import Deed, Ledger
from fleetd.sim.truth import Machine
from fleetd.sim.world import World
from fleetd.store.base import Entry, Intent
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import WRITES, Ending
from topology.resource import Ref, Resource, Topology

METAL: GK = ("metal.ironcore.dev", "Server")
SECRET: GK = ("", "Secret")
SHOOT: GK = ("core.gardener.cloud", "Shoot")
TOLD = 20
"""Lines of what happened before a breach."""
_KV_DATA = re.compile(r"/v1/[^/]+/data/")
_EXPIRES = "fleet.c5c3.io/expires"
MOVING: frozenset[GK] = frozenset(
    (
        *(("", "Event"), ("", "Secret"), ("", "Pod"), ("coordination.k8s.io", "Lease")),
        # Labels of a BMC are copied to its Server and on to the Node: marked, not made by fleetd.
        *(("", "Node"), METAL, ("kvm.cloud.sap", "Hypervisor")),
    )
)
"""Kinds that carry fleetd's mark, or move, without fleetd having made them."""


class Breach(Exception):
    """One sentence with its number first, and a story below it."""

    def __init__(self, words: str, where: str, before: Sequence[str]) -> None:
        super().__init__(
            f"{words}\n  {where}\n  before that:\n" + "\n".join(f"    {line}" for line in before)
        )
        self.words = words
        self.where = where
        self.before = tuple(before)


class Deeds(NamedTuple):
    """I8: how often each of fleetd's objects came and went, by cluster, kind and name."""

    made: Counter[str]
    gone: Counter[str]


class WatchedStore(MemoryStore):
    """Knows which steps are announced and have not ended."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: dict[int, Intent] = {}

    def under_way(self, step: str) -> Intent | None:
        return next((one for one in self.opened.values() if one.step == step), None)

    async def intend(self, intent: Intent) -> int:
        seq = await super().intend(intent)
        self.opened[seq] = intent
        return seq

    async def conclude(self, seq: int, ending: Ending, at: datetime) -> None:
        self.opened.pop(seq, None)
        await super().conclude(seq, ending, at)


class Judge:
    """Of one world. A breach becomes the world's first failure, and the run ends with it."""

    def __init__(
        self,
        world: World,
        ledger: Ledger,
        known: Callable[[], Iterable[Ref]],
        under_way: Callable[[str], Intent | None],
    ) -> None:
        """`known`: what fleetd has in hand, and has not let go. `under_way`: the intent of a step
        that is open in the journal."""
        self._world = world
        self._ledger = ledger
        self._known = known
        self._under_way = under_way
        self._budgets: tuple[Table, Policy] | None = None
        self._owners: dict[str, dict[str, str]] = {}
        self._values: dict[tuple[str, str, str], Mapping[str, str]] = {}
        """What each step wrote where."""
        self._written: dict[str, tuple[Intent, int]] = {}
        """How often each step has written since it was announced last."""
        self._inits = [name for name in world.services if hasattr(world.services[name], "members")]
        self.deeds = Deeds(Counter(), Counter())
        ledger.judge = self.wrote
        world.truth.judge = self._broken
        world.truth.took = self._took
        world.newcomers.append(self._join)
        for cluster in world.clusters.values():
            self._join(cluster)

    def limit(self, topology: Topology, policy: Policy) -> None:
        """I11 is judged by these budgets from now on."""
        self._budgets = Table(topology), policy

    # After every write.

    def wrote(self, deed: Deed) -> None:
        for words in (
            *self._announced(deed),
            *self._touched(deed),
            *once(self._world, self._inits),
            *self._value_kept(deed),
        ):
            rule, _, said = words.partition(": ")
            self._broken(rule, said)

    def _announced(self, deed: Deed) -> Iterable[str]:
        """I15: its step is open in the journal, and says that there is one more write to it."""
        if not deed.step:
            yield f"I15: without an intent: {deed}"
            return
        intent = self._under_way(deed.step)
        if intent is None:
            yield f"I15: its intent is not open in the journal: {deed}"
            return
        of, count = self._written.get(deed.step, (intent, 0))
        count = count + 1 if of is intent else 1
        self._written[deed.step] = intent, count
        if count > int(intent.args.get(WRITES, 1)):
            yield f"I15: write {count} of {intent.verb} {intent.ref}, which does not say so: {deed}"

    def _touched(self, deed: Deed) -> Iterable[str]:
        """I10 and I5, of the object that was just written."""
        cluster = self._world.clusters.get(deed.where)
        found = _target(cluster, deed.path) if cluster is not None else None
        if found is None:
            return
        gk, obj = found
        yield from stray(deed.where, gk, obj, _names(self._known()))
        if gk == SECRET:
            yield from self._secret_kept(deed, obj)

    def _secret_kept(self, deed: Deed, obj: Mapping[str, Any]) -> Iterable[str]:
        """I5: what fleetd wrote stays as it is when its step is repeated. A token that is minted
        anew says when it ends, and is another one each time."""
        if _EXPIRES in _notes(obj):
            return
        data: Mapping[str, str] = obj.get("data") or {}
        key = (deed.where, deed.path, deed.step)
        before = self._values.get(key, data)
        self._values[key] = data
        if any(data.get(name) != value for name, value in before.items()):
            yield f"I5: the same step wrote another value: {deed}"

    def _value_kept(self, deed: Deed) -> Iterable[str]:
        """I5, of what lies in OpenBao: every write of data makes another version."""
        if _KV_DATA.match(deed.path) is None or deed.method == "DELETE":
            return
        key = (deed.where, deed.path, deed.step)
        if key in self._values:
            yield f"I5: the same step wrote another value: {deed}"
        self._values[key] = {}

    # After every change, whoever made it.

    def _join(self, cluster: Cluster) -> None:
        cluster.subscribe(lambda change: self._changed(cluster, change))

    def _changed(self, cluster: Cluster, change: Change) -> None:
        if change.gk == METAL:
            self._claimed(change)
        if change.type in (ADDED, DELETED) and change.gk not in MOVING and _ours(change.object):
            metadata = change.object["metadata"]
            name = (
                f"{cluster.name} {change.gk[1]} {metadata.get('namespace', '')}/{metadata['name']}"
            )
            (self.deeds.made if change.type == ADDED else self.deeds.gone)[name] += 1

    def _claimed(self, change: Change) -> None:
        """I1: a machine has at most one owner, however many objects stand for it."""
        metadata = change.object["metadata"]
        spec: Mapping[str, Any] = change.object.get("spec") or {}
        claim: Mapping[str, Any] = spec.get("serverClaimRef") or {}
        holders = self._owners.setdefault(str(spec.get("systemUUID")), {})
        if change.type == DELETED or not claim:
            holders.pop(metadata["name"], None)
            return
        holders[metadata["name"]] = str(claim.get("name"))
        if len(holders) > 1:
            self._broken("I1", claimed(str(spec.get("systemUUID")), holders.values()))

    def _took(self, machine: Machine, who: str) -> None:
        """I11: no domain has more servers away than its budget allows, after a deed of somebody's
        and not of the grid's."""
        if self._budgets is None or not machine.node or self._going(machine):
            return
        table, policy = self._budgets
        row = table.index.get(Ref("server", machine.name))
        if row is None:
            return
        for domain in table.domains[row]:
            share = policy.region(machine.region).budgets.of_level(domain.split(":", 1)[0])
            if share is None:
                continue
            away = [
                one.name
                for one in self._world.truth.machines.values()
                if one.node
                and not one.on
                and not self._going(one)
                and domain in table.domains[table.index[Ref("server", one.name)]]
            ]
            most = budget.allowed(share, table.members[domain])
            if len(away) > most:
                names = ", ".join(sorted(away))
                self._broken("I11", f"{who} took {machine.name}: of {domain} {names} are away")

    def _going(self, machine: Machine) -> bool:
        """Whether its whole cluster is being deleted, which a person has asked for: then it is not
        away, it is given back."""
        name = machine.node.partition("/")[0]
        return any(
            shoot["metadata"]["name"] == name and shoot["metadata"].get("deletionTimestamp")
            for place, garden in self._world.clusters.items()
            if place.startswith("garden-")
            for shoot in garden.list(SHOOT)
        )

    # Telling.

    def _broken(self, rule: str, words: str) -> None:
        world, deeds = self._world, self._ledger.deeds
        last = deeds[-1] if deeds else None
        where = f"seed {world.luck}, at {timedelta(seconds=round(world.elapsed()))}"
        if last is not None:
            intent = self._under_way(last.step)
            step = f" ({intent.verb} {intent.ref})" if intent is not None else ""
            where += f", last request {last.method} {last.path} to {last.where}"
            where += f" for step {last.step or 'none'}{step}"
        lines = [(one.at, str(one)) for one in world.trace[-TOLD:]]
        lines += [(deed.at, f"asked: {deed}") for deed in deeds[-TOLD:]]
        before = [text for _, text in sorted(lines, key=lambda line: line[0])[-TOLD:]]
        world.failures.append(Breach(f"{rule}: {words}", where, before))


def at_end(
    world: World,
    ledger: Ledger,
    journal: Sequence[Entry],
    topology: Topology,
    orphans: Mapping[Ref, Resource],
) -> list[str]:
    """Every breach that can be seen once the run is over."""
    services = sorted(world.services)
    return [
        *(f"{rule}: {words}" for rule, words in world.truth.breaches),
        *_one_claim(world),
        *once(world, services),
        *_no_strays(world, {*topology.resources, *orphans}),
        *_accounted(ledger, journal),
    ]


def same_deeds(mine: Deeds, fair: Deeds, undone: Iterable[str]) -> list[str]:
    """I8: fleetd made and removed each object as often as in the run without a fault, but for
    those that somebody else took away."""
    excused = set(undone)
    found: list[str] = []
    for what, one, other in (
        ("made", mine.made, fair.made),
        ("removed", mine.gone, fair.gone),
    ):
        found.extend(
            f"I8: {name} was {what} {one[name]} times instead of {other[name]}"
            for name in sorted({*one, *other})
            if one[name] != other[name] and name not in excused
        )
    return found


def _one_claim(world: World) -> list[str]:
    """I1, over all there is."""
    found: list[str] = []
    for name in sorted(world.clusters):
        owners: dict[str, list[str]] = {}
        for server in world.clusters[name].list(METAL):
            spec: Mapping[str, Any] = server.get("spec") or {}
            claim: Mapping[str, Any] = spec.get("serverClaimRef") or {}
            if claim:
                owners.setdefault(str(spec.get("systemUUID")), []).append(str(claim.get("name")))
        found.extend(
            f"I1: {claimed(uuid, claims)}"
            for uuid, claims in sorted(owners.items())
            if len(claims) > 1
        )
    return found


def claimed(uuid: str, claims: Iterable[str]) -> str:
    return f"machine {uuid} is claimed by {', '.join(sorted(claims))}"


def once(world: World, services: Iterable[str]) -> list[str]:
    """I9: one deployment per claim of a machine, one initialisation of each OpenBao."""
    found = [
        f"I9: {machine.name} was deployed {machine.deployed} times for one owner"
        for machine in world.truth.machines.values()
        if machine.deployed > machine.claimed > 0
    ]
    for name in services:
        inits = getattr(world.services[name], "initialised", 0)
        if inits > 1:
            found.append(f"I9: {name} was initialised {inits} times")
    return found


def _no_strays(world: World, known: Iterable[Ref]) -> list[str]:
    """I10: what carries fleetd's mark belongs to something that fleetd knows of."""
    owners = _names(known)
    found: list[str] = []
    for name in sorted(world.clusters):
        cluster = world.clusters[name]
        for gk in cluster.kinds():
            for obj in cluster.list(gk, labels={facts.MANAGED_BY: facts.MANAGER}):
                found.extend(stray(name, gk, obj, owners))
    return found


def stray(where: str, gk: GK, obj: Mapping[str, Any], owners: set[str]) -> Iterable[str]:
    owner = _labels(obj).get(facts.OWNER, "")
    if _ours(obj) and owner not in owners:
        yield f"I10: {gk[1]} {obj['metadata']['name']} on {where} is {owner}'s"


def _accounted(ledger: Ledger, journal: Sequence[Entry]) -> list[str]:
    """I15: each write has an intent before it, and each intent an ending after it."""
    intents: dict[str, list[Entry]] = {}
    for entry in journal:
        intents.setdefault(entry.intent.step, []).append(entry)
    found = [f"I15: without an intent: {deed}" for deed in ledger.unannounced()]
    found += [
        f"I15: its intent is not in the journal: {deed}"
        for deed in ledger.deeds
        if deed.step and deed.step not in intents
    ]
    found += [
        f"I15: {entry.intent.verb} {entry.intent.ref} has no ending"
        for entry in journal
        if entry.ending is None
    ]
    return found


def _names(known: Iterable[Ref]) -> set[str]:
    return {f"{ref.kind}.{ref.name}" for ref in known}


def _ours(obj: Mapping[str, Any]) -> bool:
    return _labels(obj).get(facts.MANAGED_BY) == facts.MANAGER


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def _notes(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def _target(cluster: Cluster, path: str) -> tuple[GK, Mapping[str, Any]] | None:
    """The object that a path names, if it is there."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    group = "" if path.startswith("/api/") else path.strip("/").split("/")[1]
    namespace = ""
    if len(parts) > 3 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    if len(parts) < 2:
        return None
    table = cluster.plurals.get((group, parts[0]))
    row = table.rows.get((namespace, parts[1])) if table is not None else None
    return (table.definition.gk, row.obj) if table is not None and row is not None else None
