"""
The credentials with which Gardener reaches the metal API: a token in a Secret of the garden.

fleetd asks the metal API for a token of the ServiceAccount that it made there, and writes it.
The token is read to be tried, by a review at the metal API; it is in no fact, step or message.
"""

import base64
from datetime import datetime, timedelta
from typing import Any

from drivers.gardener import client, manifests
from fleetd import objects
from fleetd.kube import credentials as ledger
from fleetd.kube import errors, facts, tokens
from fleetd.kube.client import Object
from fleetd.kube.secretview import SecretView
from fleetd.tools import Tools
from fleetd.vocabulary import Done, Outcome, Step
from topology.resource import Facts, Resource

MINT = "write-credentials"
PRESENT = "present"
LIFE = timedelta(days=60)
RENEW = timedelta(days=30)
"""With so much left it is renewed: it is to be replaced every 30 days."""
EXPIRES = "fleet.c5c3.io/expires"
DEADLINE = timedelta(seconds=30)


def args(want: Resource, expires: str) -> dict[str, Any]:
    """Of the step. `replaces` tells one renewal from the next."""
    garden: Facts = want.spec["garden"]
    return {
        "backend": want.backend,
        "metal": f"metal:{want.region}",
        "namespace": manifests.namespace_of(str(garden["project"])),
        "secret": str(garden["credentialsBinding"]),
        "account": manifests.ACCOUNT,
        "owner": objects.owner(want),
        "region": want.region,
        "replaces": expires,
    }


async def look(tools: Tools, want: Resource) -> dict[str, Any]:
    """`secret`: present, missing or refused; and when its token ends, if fleetd wrote it."""
    garden: Facts = want.spec["garden"]
    found = await _secret(
        tools,
        want.backend,
        manifests.namespace_of(str(garden["project"])),
        str(garden["credentialsBinding"]),
    )
    if found is None:
        return {"secret": "missing", "ours": True, "expires": ""}
    seen: dict[str, Any] = {
        "secret": "refused",
        "ours": found.labels.get(facts.MANAGED_BY) == facts.MANAGER,
        "expires": found.annotations.get(EXPIRES, ""),
    }
    token = found.values.get("token")
    metal = tools.clusters.client(f"metal:{want.region}")
    if token is not None and await client.accepted(metal, token):
        seen["secret"] = PRESENT
    told = ledger.of_secret(found)
    seen["credentials"] = {"metal-token": told}
    if seen["secret"] == PRESENT and "version" in told:
        seen["uses"] = {"metal-token": told["version"]}
    return seen


def due(seen: Facts, now: datetime) -> bool:
    """Whether the token that fleetd wrote has to be renewed."""
    until = seen.get("expires")
    return bool(until) and datetime.fromisoformat(str(until)) - now < RENEW


async def write(tools: Tools, step: Step) -> Outcome:
    """A second call with the same step finds its own work and leaves it."""
    given = step.args
    found = await _secret(tools, given["backend"], given["namespace"], given["secret"])
    metal = tools.clusters.client(given["metal"])
    if found is not None:
        token = found.values.get("token")
        mine = found.annotations.get(facts.STEP) == step.id
        if mine and token is not None and await client.accepted(metal, token):
            return Done()
    seconds = int(LIFE.total_seconds())
    minted = await tokens.of_account(metal, given["namespace"], given["account"], seconds)
    garden = tools.clusters.client(given["backend"])
    kind = await garden.find("", "Secret")
    user = f"system:serviceaccount:{given['namespace']}:{given['account']}"
    data = {
        "namespace": given["namespace"],
        "username": user,
        "token": minted.secret.reveal(),
    }
    body: Object = {
        "metadata": {
            "name": given["secret"],
            "namespace": given["namespace"],
            "labels": {
                facts.MANAGED_BY: facts.MANAGER,
                facts.REGION: given["region"],
                facts.OWNER: given["owner"],
            },
            "annotations": {
                facts.STEP: step.id,
                EXPIRES: minted.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
        },
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }
    await garden.apply(kind, body)
    return Done()


async def _secret(tools: Tools, backend: str, namespace: str, name: str) -> SecretView | None:
    try:
        return await tools.clusters.secret(backend, name, namespace)
    except errors.NotFound:
        return None
