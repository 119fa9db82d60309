"""
What a region shows when something went wrong, beside the invariants of `fleetd.sim.invariants`.

Each looks at the world alone, never at what fleetd thinks of it, and says a sentence that begins
with the number of an invariant, or with D and the number of a danger in the facts. All of them
hold in every healthy region at rest; which trial asks for more says so itself.
"""

import base64
import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from fleetd.kube import facts
from fleetd.sim.controllers import fluxparts
from fleetd.sim.services.openbao.service import OpenBao
from fleetd.store.base import Entry
from fleetd.vocabulary import Done
from tests.twin.stage import Region
from topology.resource import Ref

SHOOT = ("core.gardener.cloud", "Shoot")
BMC = ("metal.ironcore.dev", "BMC")
RELEASE = ("helm.toolkit.fluxcd.io", "HelmRelease")
FOLDER = ("kustomize.toolkit.fluxcd.io", "Kustomization")
GIT = ("source.toolkit.fluxcd.io", "GitRepository")
SECRET = ("", "Secret")
OURS = {facts.MANAGED_BY: facts.MANAGER}
MADE = "fleetd-made"
"""Custom metadata of a path of OpenBao whose value fleetd made up."""
END = 24
"""Characters at the end of a secret that nothing else has. Beginnings of tokens are all alike."""
_TOKEN = re.compile(r'"token": ?"([^"]{32,})"')


async def found(region: Region, *, retired: bool = False) -> list[str]:
    """Everything that is broken at the end of a trial. `retired`: somebody had things deleted."""
    return [
        *_secrets_once(region),
        *_keys_kept(region),
        *_audiences(region),
        *_own_updates(region),
        *_machines_once(region),
        *_left_behind(region),
        *_unused_secrets(region),
        *(() if retired else _deleted(region)),
        *_leaked(region, [*await region.store.journal(limit=100_000)]),
    ]


async def repeated(region: Region) -> list[str]:
    """I9, where nothing undid what was done: no step is done twice."""
    done: set[str] = set()
    broken: list[str] = []
    for entry in await region.store.journal(limit=100_000):
        if isinstance(entry.ending, Done):
            if entry.intent.step in done:
                broken.append(f"I9: {entry.intent.verb} {entry.intent.ref} was done twice")
            done.add(entry.intent.step)
    return broken


async def unsettled(region: Region) -> list[str]:
    """I12: what fleetd calls Ready has heard of what was asked last."""
    called = {f"{ref.kind}.{ref.name}" for ref in _ready(region)}
    return [
        f"I12: {gk[1]} {obj['metadata']['name']} is called Ready before anybody has looked at it"
        for name in sorted(region.world.clusters)
        for gk in (SHOOT, RELEASE, FOLDER)
        for obj in region.world.clusters[name].list(gk, labels=OURS)
        if obj["metadata"]["labels"][facts.OWNER] in called
        if _part(obj, "status").get("observedGeneration") != obj["metadata"]["generation"]
    ]


def blind_of(backend: str) -> Callable[[Region], Coroutine[Any, Any, list[str]]]:
    """I12, while a backend cannot be reached: nothing on it is called Ready."""

    async def blind(region: Region) -> list[str]:
        there = (ref for ref in _ready(region) if region.topology.resources[ref].backend == backend)
        return [f"I12: {ref} is called Ready, and nobody can see it" for ref in there]

    return blind


async def ordered(region: Region) -> list[str]:
    """I12: nothing is done for a thing before all that it needs was Ready at least once."""
    became: dict[Ref, datetime] = {}
    for one in await region.store.events(limit=100_000):
        if one.event.reason == "Ready":
            became.setdefault(one.event.ref, one.event.at)
    broken: list[str] = []
    for entry in await region.store.journal(limit=100_000):
        want = region.topology.resources.get(entry.intent.ref)
        broken += [
            f"I12: {entry.intent.verb} {entry.intent.ref} came before {need}"
            for need in (sorted(want.needs) if want is not None else ())
            if need not in became or became[need] > entry.intent.at
        ]
    return broken


def _ready(region: Region) -> list[Ref]:
    twin = region.twin
    assert twin is not None
    return [
        ref
        for ref in region.topology.resources
        if (known := twin.ready(ref)) is not None and known.truth == "True"
    ]


async def sealed(region: Region) -> list[str]:
    """I6, where fleetd says that all is Ready: every member of OpenBao serves."""
    return [
        f"I6: member {member.number} of {bao.name} is called Ready and does not serve"
        for bao in _openbaos(region)
        for member in bao.members.all
        if member.running and not member.serves
    ]


def _secrets_once(region: Region) -> Iterator[str]:
    """I5: a value that fleetd made up is made once; I9 for those who got the first one."""
    for bao in _openbaos(region):
        for mount in bao.data.mounts.values():
            for path, entry in sorted(mount.entries.items()):
                if MADE in entry.custom and entry.current != 1:
                    yield f"I5: {path} was announced, and has {entry.current} versions"


def _keys_kept(region: Region) -> Iterator[str]:
    """I5: the keys of an OpenBao that is open lie where a restarted fleetd finds them."""
    for bao in _openbaos(region):
        if not bao.initialised or not bao.cluster or all(one.sealed for one in bao.members.all):
            continue
        kept = region.world.clusters[bao.cluster].get(
            SECRET, "openbao-init-keys", "shared-services"
        )
        if not _part(kept, "data"):
            yield f"I5: {bao.name} is open, and its keys are nowhere but in memory"


def _audiences(region: Region) -> Iterator[str]:
    for bao in _openbaos(region):
        for path, mount in sorted(bao.data.mounts.items()):
            for name, role in sorted(mount.settings.items()):
                login = mount.type == "kubernetes" and name.startswith("role/")
                if login and not role.get("audience"):
                    yield f"D15: {path}{name} takes a token of any audience"


def _own_updates(region: Region) -> Iterator[str]:
    for name in sorted(region.world.clusters):
        for shoot in region.world.clusters[name].list(SHOOT, labels=OURS):
            allowed = _part(shoot, "spec", "maintenance", "autoUpdate")
            if allowed.get("kubernetesVersion") or allowed.get("machineImageVersion"):
                yield f"D10: the garden may update Shoot {shoot['metadata']['name']} by itself"


def _machines_once(region: Region) -> Iterator[str]:
    for name in sorted(region.world.clusters):
        known: dict[str, str] = {}
        for bmc in region.world.clusters[name].list(BMC):
            address, mine = str(_part(bmc, "spec", "access").get("ip")), bmc["metadata"]["name"]
            if address in known:
                yield f"D2: BMCs {known[address]} and {mine} are one machine"
            known[address] = mine


def _deleted(region: Region) -> Iterator[str]:
    """I2: fleetd deletes only what a person retired or approved, and in a trial nobody does
    but by retiring orphans."""
    for deed in region.ledger.deeds:
        if deed.method == "DELETE" and not region.unnamed():
            yield f"I2: deleted, and nobody asked for it: {deed}"


def _left_behind(region: Region) -> Iterator[str]:
    """I10: what fleetd put on hold for a while is not left so."""
    for name in sorted(region.world.clusters):
        cluster = region.world.clusters[name]
        for gk in (BMC, RELEASE, FOLDER):
            for obj in cluster.list(gk, labels=OURS):
                notes = _part(obj, "metadata", "annotations")
                if "fleet.c5c3.io/quarantine" in notes or "fleet.c5c3.io/suspended" in notes:
                    yield f"I10: {gk[1]} {obj['metadata']['name']} was left on hold"


def _unused_secrets(region: Region) -> Iterator[str]:
    """I10: a password that fleetd gave to Flux is used by something of Flux."""
    for name in sorted(region.world.clusters):
        cluster = region.world.clusters[name]
        used = {
            str(_part(obj, "spec", *path).get("name"))
            for gk, path in (
                (GIT, ("secretRef",)),
                (RELEASE, ("kubeConfig", "secretRef")),
                (FOLDER, ("kubeConfig", "secretRef")),
            )
            for obj in cluster.list(gk)
        }
        for secret in cluster.list(SECRET, "flux-system", labels=OURS):
            if used and secret["metadata"]["name"] not in used:
                yield f"I10: nobody uses Secret {secret['metadata']['name']} on {name}"


async def shut_out(region: Region) -> list[str]:
    """I6: every kubeconfig that fleetd gave to Flux opens its cluster."""
    refused: list[str] = []
    for obj in region.world.clusters["mgmt"].list(FOLDER, labels=OURS):
        try:
            if "kubeConfig" in obj["spec"]:
                fluxparts.reach(region.world, region.world.clusters["mgmt"], obj)
        except fluxparts.Unusable as cause:
            refused.append(f"I6: Flux cannot reach {obj['metadata']['name']}: {cause.why}")
    return refused


def _leaked(region: Region, journal: list[Entry]) -> Iterator[str]:
    """I5: nothing that lies in a Secret stands in the journal, whole or in part."""
    text = json.dumps([dict(entry.intent.args) for entry in journal], default=str)
    for name in sorted(region.world.clusters):
        for secret in region.world.clusters[name].list(SECRET):
            for key, value in _part(secret, "data").items():
                plain = base64.b64decode(value).decode("utf-8", "replace")
                ends = [word[-END:] for word in (value, *_TOKEN.findall(plain)) if len(word) > 31]
                if any(end in text for end in ends):
                    yield f"I5: {key} of Secret {secret['metadata']['name']} is in the journal"


def _openbaos(region: Region) -> list[OpenBao]:
    services = region.world.services
    return [one for name in sorted(services) if isinstance(one := services[name], OpenBao)]


def _part(obj: Any, *path: str) -> Mapping[str, Any]:
    value: Any = obj
    for name in path:
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
