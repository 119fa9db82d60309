"""
What must hold whatever happens, judged on the world's ground truth.

Numbers are those of the facts (I1, I2 ...). `after_write` is cheap and asked after every write;
`at_end` walks everything. A breach is a sentence that begins with the number, so that a seed that
breaks one names it. Nothing here knows what fleetd meant to do; only what it did, and what it had
announced in its journal.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleetd.kube import facts
from fleetd.sim.ledger import Ledger
from fleetd.sim.world import World
from fleetd.store.base import Entry
from topology.resource import Ref, Resource, Topology

_METAL = ("metal.ironcore.dev", "Server")


def after_write(world: World) -> list[str]:
    """I2 and I11: nobody was hurt. The world notes harm where it happens."""
    return [f"I2: {harm}" for harm in world.truth.harm]


def at_end(
    world: World,
    ledger: Ledger,
    journal: Sequence[Entry],
    topology: Topology,
    orphans: Mapping[Ref, Resource],
) -> list[str]:
    """Every breach that can be seen once the run is over."""
    return [
        *after_write(world),
        *_one_claim(world),
        *_once(world),
        *_no_strays(world, {*topology.resources, *orphans}),
        *_accounted(ledger, journal),
    ]


def _one_claim(world: World) -> list[str]:
    """I1: a machine has at most one owner, however many objects stand for it."""
    found: list[str] = []
    for name in sorted(world.clusters):
        if not name.startswith("metal-"):
            continue
        owners: dict[str, list[str]] = {}
        for server in world.clusters[name].list(_METAL):
            spec: Mapping[str, Any] = server.get("spec") or {}
            claim: Mapping[str, Any] = spec.get("serverClaimRef") or {}
            if claim:
                owners.setdefault(str(spec.get("systemUUID")), []).append(str(claim.get("name")))
        found.extend(
            f"I1: machine {uuid} is claimed by {', '.join(sorted(claims))}"
            for uuid, claims in sorted(owners.items())
            if len(claims) > 1
        )
    return found


def _once(world: World) -> list[str]:
    """I9: one deployment per claim of a machine, one initialisation of each OpenBao."""
    found = [
        f"I9: {machine.name} was deployed {machine.deployed} times for one owner"
        for machine in world.truth.machines.values()
        if machine.deployed > machine.claimed > 0
    ]
    for name in sorted(world.services):
        inits = getattr(world.services[name], "initialised", 0)
        if inits > 1:
            found.append(f"I9: {name} was initialised {inits} times")
    return found


def _no_strays(world: World, known: Iterable[Ref]) -> list[str]:
    """I10: what carries fleetd's mark belongs to something that fleetd knows of."""
    owners = {f"{ref.kind}.{ref.name}" for ref in known}
    found: list[str] = []
    for name in sorted(world.clusters):
        cluster = world.clusters[name]
        for gk in cluster.kinds():
            for obj in cluster.list(gk, labels={facts.MANAGED_BY: facts.MANAGER}):
                owner = obj["metadata"]["labels"].get(facts.OWNER, "")
                if owner not in owners:
                    found.append(f"I10: {gk[1]} {obj['metadata']['name']} on {name} is {owner}'s")
    return found


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
