"""
How Flux reaches a cluster that believes the tokens of the management cluster: a ConfigMap that says
where it is, and no secret at all.

Flux makes the tokens itself, of an account that is there for this only, each for one cluster. That
the cluster believes them is tried before anything relies on it, with a token of our own asking. The
kubeconfig that Flux had before is deleted once nothing of Flux's names it.
"""

import asyncio
import base64
import json
from typing import Any

from drivers.flux import manifests
from fleetd import objects
from fleetd.kube import errors, facts, kubeconfig, lifetime, tokens, trust
from fleetd.objects import APPLY, WRITE_DEADLINE, ObjectDriver
from fleetd.secrets import Secret
from fleetd.vocabulary import Step, make_step
from topology.resource import Facts, Resource

CONFIG = ("", "ConfigMap")
INSTANCE = ("fluxcd.controlplane.io", "FluxInstance")
LIFE = 600
"""Seconds; the shortest that an API server grants."""
PATIENCE = 8.0
PROOF = "/api/v1/namespaces/kube-system"
OLDEST = (2, 7)
"""The first Flux that goes into other clusters with tokens."""


def too_old(version: str) -> str:
    """Why a pinned Flux cannot do it; empty if it can. `2.x` is the newest there is."""
    given = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if len(given) < 2 or given >= OLDEST:
        return ""
    return (
        f"Flux {version} cannot go into other clusters with tokens, which the Region's trust asks "
        f"for: have version {OLDEST[0]}.{OLDEST[1]} or newer, or remove trust from the Region"
    )


async def read(driver: ObjectDriver, want: Resource) -> dict[str, Any] | None:
    """The ConfigMap. By its name: nobody follows all of a cluster's."""
    there = driver.tools.clusters.client(want.backend)
    name = str(want.spec["object"]["name"])
    return await there.get(await there.find(*CONFIG), name, manifests.NAMESPACE)


async def state(driver: ObjectDriver, want: Resource, live: Facts | None) -> dict[str, Any]:
    """`where`: what Flux is to be told; whether it is `current`; whether Flux is `believed`."""
    clusters, cluster = driver.tools.clusters, str(want.spec["cluster"])
    found: dict[str, Any] = {"inline": True}
    if want.absent and not clusters.has(f"cluster:{cluster}"):
        return found
    held = kubeconfig.read(clusters.kubeconfig(f"cluster:{cluster}"))
    found["where"] = {
        "provider": "generic",
        "address": held.server,
        "audiences": trust.audience(cluster),
        "serviceAccountName": trust.ACCOUNT,
    }
    if held.authority:
        found["where"]["ca.crt"] = base64.b64decode(held.authority).decode()
    found["current"] = live is not None and live.get("data") == found["where"]
    return found


async def believed(driver: ObjectDriver, want: Resource, issuer: str) -> dict[str, Any]:
    """`tokens`: whether Flux makes any; `believed`: whether the cluster lets in who comes with one,
    in the server's words if not. Silence says nothing."""
    if not await _makes_tokens(driver, want):
        return {"tokens": False}
    clusters, backend = driver.tools.clusters, f"cluster:{want.spec['cluster']}"
    hub, audiences = clusters.client(want.backend), [trust.audience(str(want.spec["cluster"]))]
    try:
        async with asyncio.timeout(PATIENCE):
            token = await tokens.of_account(hub, trust.NAMESPACE, trust.ACCOUNT, LIFE, audiences)
            told = lifetime.issuer(token.secret)
            if told != issuer:
                said = (
                    f"tokens of the management cluster are issued by {told}, and trust.issuer of "
                    f"the Region is {issuer}; write the first there"
                )
                return {"believed": False, "said": said}
            async with clusters.trial(backend, _login(driver, backend, token.secret)) as there:
                await there.raw(PROOF)
    except (errors.Unauthorized, errors.Forbidden) as cause:
        said = f"{cause}; can its API server read the keys of {issuer}?"
        return {"believed": False, "said": said}
    except (TimeoutError, errors.KubeError):
        return {}
    return {"believed": True}


async def _makes_tokens(driver: ObjectDriver, want: Resource) -> bool:
    """Flux works with what its instance says when that is Ready for what it says now."""
    instance = await driver.read(want, want.backend, INSTANCE, "flux", manifests.NAMESPACE)
    ready = facts.condition(instance or {}, "Ready")
    generation = facts.part(instance, "metadata").get("generation")
    return (
        facts.part(instance, "spec", "cluster").get("objectLevelWorkloadIdentity") is True
        and ready.get("status") == "True"
        and ready.get("observedGeneration") == generation
    )


def _login(driver: ObjectDriver, backend: str, token: Secret) -> Secret:
    held = kubeconfig.read(driver.tools.clusters.kubeconfig(backend))
    cluster = {"server": held.server}
    if held.authority:
        cluster["certificate-authority-data"] = held.authority
    return Secret(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "it", "cluster": cluster}],
                "users": [{"name": "it", "user": {"token": token.reveal()}}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "current-context": "it",
            }
        )
    )


def steps(want: Resource, seen: Facts) -> list[Step]:
    observed: Facts = seen.get("observed", {})
    labels: Facts = seen.get("metadata", {}).get("labels", {})
    if "where" not in observed or (
        observed.get("current") and labels.get(manifests.WATCH) == "Enabled"
    ):
        return []
    name, cluster = str(want.spec["object"]["name"]), str(want.spec["cluster"])
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": manifests.NAMESPACE,
            "labels": {manifests.WATCH: "Enabled"},
        },
        "data": dict(observed["where"]),
    }
    args = {"backend": want.backend, "manifest": objects.marked(body, want), "force": True}
    why = f"tell Flux where {cluster} is, which it enters with tokens"
    return [make_step(want, APPLY, args, why=why, deadline=WRITE_DEADLINE)]
