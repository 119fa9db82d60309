"""
Gardener at the metal API without a Secret: a WorkloadIdentity of the garden, believed there.

The garden makes the tokens; the metal API must believe its issuer, which is for who runs it. fleetd
makes the identity and gives its user rights at the metal API. Whether it is let in is found out by
a token that is minted, shown to the metal API for a review, and forgotten. Nothing secret is kept.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from drivers.gardener import client, manifests
from fleetd import objects
from fleetd.kube import errors, facts, tokens
from fleetd.objects import APPLY, DELETE, WRITE_DEADLINE, ObjectDriver
from fleetd.vocabulary import Step, make_step
from topology.resource import Facts, Resource

KIND = (manifests.SECURITY, "WorkloadIdentity")
SHORTEST = 3600
"""Seconds that a garden's token is good at least."""


def wanted(want: Resource) -> Facts | None:
    return want.spec["garden"].get("workloadIdentity")


async def look(driver: ObjectDriver, want: Resource) -> dict[str, Any]:
    """`secret`: present, missing or refused, as where there is one; `user`: who Gardener is at the
    metal API; `granted`: whether he has his rights there."""
    given, garden = wanted(want) or {}, want.spec["garden"]
    name, space = str(garden["credentialsBinding"]), manifests.namespace_of(str(garden["project"]))
    live = await driver.read(want, want.backend, KIND, name, space)
    sub = str(facts.part(live, "status").get("sub") or "")
    if not sub:
        return {"secret": "missing", "ours": True}
    user = f"{given.get('prefix', '')}{sub}"
    metal = driver.tools.clusters.client(f"metal:{want.region}")
    granted = True
    for one in manifests.grants(want, user):
        there = await metal.get(await metal.find(*one.gk), one.name, one.namespace)
        granted = granted and there is not None and not facts.differences(one.body, there)
    token = await tokens.of_identity(
        driver.tools.clusters.client(want.backend), space, name, SHORTEST
    )
    try:
        known = await client.reviewed(metal, token.secret)
    except errors.Forbidden:
        known = ""
    state = "present" if known == user else "refused"
    return {"secret": state, "ours": True, "user": user, "granted": granted}


def steps(want: Resource, seen: Facts, made: Sequence[Step]) -> list[Step]:
    """The rights come when the garden has said who the user is."""
    observed: Mapping[str, Any] = seen.get("observed") or {}
    if made or not observed.get("user") or observed.get("granted"):
        return list(made)
    found: list[Step] = []
    for one in manifests.grants(want, str(observed["user"])):
        args = {"backend": one.backend, "manifest": objects.marked(one.body, want), "force": False}
        after = [found[-1].id] if found else ()
        found.append(
            make_step(want, APPLY, args, why=one.why, deadline=WRITE_DEADLINE, after=after)
        )
    return found


def removal(want: Resource, seen: Facts, made: Sequence[Step]) -> list[Step]:
    observed: Mapping[str, Any] = seen.get("observed") or {}
    if not observed.get("granted"):
        return list(made)
    found = list(made)
    for one in manifests.grants(want, str(observed["user"])):
        named = {
            "backend": one.backend,
            "group": one.group,
            "kind": one.kind,
            "name": one.name,
            "namespace": one.namespace,
        }
        why = f"delete {one.key}: it was retired"
        after = [found[-1].id] if found else ()
        found.append(
            make_step(
                want,
                DELETE,
                named,
                why=why,
                deadline=WRITE_DEADLINE,
                destroys=[want.ref],
                after=after,
            )
        )
    return found
