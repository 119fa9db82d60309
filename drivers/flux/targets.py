"""
How Flux reaches a cluster: the kubeconfig that it holds for it, whether that is good, and handing
it another one; or tokens instead (`trusted`), where the cluster believes an issuer.

It is replaced when somebody else put it there, when it ends soon, and when the cluster refuses it:
a token can be revoked long before its end, and Flux does not ask for another. What fleetd uses
itself is proven by its own looks; an older one is tried. Nothing of it is in any fact or step.
"""

from collections.abc import Sequence
from typing import Any

from drivers.flux import manifests, trusted
from fleetd import objects
from fleetd.kube import errors, facts, kubeconfig
from fleetd.kube.secretview import SecretView
from fleetd.objects import DELETE, WRITE_DEADLINE, ObjectDriver
from fleetd.secrets import Secret
from fleetd.vocabulary import Done, Failed, Outcome, Step, make_step
from topology.resource import Facts, Resource

HAND_OVER = "hand-over"
KEY = "value"


USERS = ((manifests.KUSTOMIZE, "Kustomization"), (manifests.HELM, "HelmRelease"))
WAYS = ("secretRef", "configMapRef")
ASKED = 2
"""Times in a row that a refusal must come."""


async def look(driver: ObjectDriver, want: Resource, issuer: str) -> dict[str, Any]:
    """What is there, and whether it is good. Empty: nothing is."""
    name = str(want.spec["object"]["name"])
    secret = await driver.tools.clusters.secret(want.backend, name, manifests.NAMESPACE)
    config = await trusted.read(driver, want) if issuer else None
    if want.absent:
        # Only the way out asks: reading all would wake us at each change.
        kinds = [kind for kind, one in (("Secret", secret), ("ConfigMap", config)) if one]
        found = {"kinds": kinds, "users": await users(driver, want, WAYS)} if kinds else {}
        return found | await _state(driver, want, issuer, secret, config) if kinds else {}
    found = await _state(driver, want, issuer, secret, config)
    if issuer:
        found |= await trusted.believed(driver, want, issuer)
        if secret is not None and secret.labels.get(facts.MANAGED_BY) == facts.MANAGER:
            found["leftover"] = await users(driver, want, WAYS[:1])
    return found


async def _state(
    driver: ObjectDriver,
    want: Resource,
    issuer: str,
    secret: SecretView | None,
    config: Facts | None,
) -> dict[str, Any]:
    if issuer:
        return await trusted.state(driver, want, config)
    return await state(driver, want, secret) if secret is not None else {}


async def users(driver: ObjectDriver, want: Resource, ways: Sequence[str]) -> int:
    """How many of Flux's objects reach their cluster by what has this name."""
    name, found = str(want.spec["object"]["name"]), 0
    for gk in USERS:
        for one in await driver.read_all(want, want.backend, gk, manifests.NAMESPACE, name):
            kube: Facts = one["spec"].get("kubeConfig") or {}
            found += any(facts.part(kube, way).get("name") == name for way in ways)
    return found


async def state(driver: ObjectDriver, want: Resource, secret: SecretView) -> dict[str, Any]:
    """Whether the Secret holds what it should, without showing what that is."""
    clusters, backend = driver.tools.clusters, f"cluster:{want.spec['cluster']}"
    value = secret.values.get(KEY)
    held = kubeconfig.read(value)
    found: dict[str, Any] = {"inline": held.inline}
    if secret.annotations.get(kubeconfig.EXPIRES):
        found["uses"] = {"kubeconfig": secret.annotations[kubeconfig.EXPIRES]}
    if want.absent and not clusters.has(backend):
        return found
    ours = kubeconfig.read(clusters.kubeconfig(backend))
    found["current"] = kubeconfig.current(
        secret.annotations, held, ours, clusters.expires(backend), driver.tools.clock.now()
    )
    if found["current"] and value is not None and held.digest != ours.digest:
        found["refused"] = await _refused(driver, want, value)
    else:
        clusters.drop(_copy(want))
    return found


def _copy(want: Resource) -> str:
    return f"flux:{want.spec['cluster']}"


async def _refused(driver: ObjectDriver, want: Resource, held: Secret) -> bool:
    """Whether the cluster says so itself, and not once only: an API server that cannot ask about a
    token just then refuses it as one that is no good. Silence says nothing."""
    clusters = driver.tools.clusters
    for _ in range(ASKED):
        try:
            clusters.put(_copy(want), held)
            await clusters.client(_copy(want)).raw("/version")
        except errors.Unauthorized:
            continue
        except errors.KubeError:
            return False
        return False
    return True


def proposed(want: Resource, seen: Facts, issuer: str) -> Sequence[Step]:
    if not issuer:
        return steps(want, seen)
    observed: Facts = seen.get("observed", {})
    made = trusted.steps(want, seen)
    if made or not observed.get("believed") or observed.get("leftover") != 0:
        return made
    return (delete(want, str(want.spec["object"]["name"])),)


def retired(want: Resource, seen: Facts, issuer: str) -> Sequence[Step]:
    observed: Facts = seen.get("observed", {})
    if observed.get("users"):
        # Flux is still cleaning up, and cannot with one that is no good any more.
        return proposed(want, seen, issuer) if "current" in observed else ()
    name = str(want.spec["object"]["name"])
    return [delete(want, name, kind) for kind in observed.get("kinds", ())]


def delete(want: Resource, name: str, kind: str = "Secret") -> Step:
    args = {
        "backend": want.backend,
        "group": "",
        "kind": kind,
        "name": name,
        "namespace": manifests.NAMESPACE,
        "owner": objects.owner(want),
    }
    return make_step(
        want,
        DELETE,
        args,
        why=f"delete {kind} {manifests.NAMESPACE}/{name}: "
        + ("it was retired" if want.absent else "Flux goes in with tokens now"),
        deadline=WRITE_DEADLINE,
        destroys=[want.ref] if want.absent else (),
    )


def steps(want: Resource, seen: Facts) -> Sequence[Step]:
    observed: Facts = seen.get("observed", {})
    labels: Facts = seen.get("metadata", {}).get("labels", {})
    good = observed.get("current") and observed.get("inline") and not observed.get("refused")
    if good and labels.get(manifests.WATCH) == "Enabled":
        return ()
    name, cluster = str(want.spec["object"]["name"]), str(want.spec["cluster"])
    args = {
        "backend": want.backend,
        "cluster": f"cluster:{cluster}",
        "manifest": objects.marked(manifests.secret(name, watched=True), want),
    }
    why = f"hand the kubeconfig of {cluster} to Flux"
    if seen and not observed.get("inline"):
        why += " (somebody put one there that names files or programs)"
    elif observed.get("refused"):
        why += f" ({cluster} refuses the one it has)"
    elif seen:
        why += " (the one there is another, or ends soon)"
    return (make_step(want, HAND_OVER, args, why=why, deadline=WRITE_DEADLINE),)


async def hand_over(driver: ObjectDriver, step: Step) -> Outcome:
    backend = str(step.args["cluster"])
    clusters = driver.tools.clusters
    ours = clusters.kubeconfig(backend)
    held = kubeconfig.read(ours)
    if not held.inline:
        said = f"the kubeconfig of {backend} names files or programs; Flux would run or send them"
        return Failed("NotInline", said, retry=False)
    body = facts.copy(step.args["manifest"])
    until = clusters.expires(backend)
    body["metadata"]["annotations"] |= {
        facts.STEP: step.id,
        kubeconfig.DIGEST: held.digest,
        kubeconfig.EXPIRES: until.isoformat() if until is not None else "",
    }
    body["data"] = {KEY: kubeconfig.encoded(ours)}
    client = clusters.client(step.args["backend"])
    # Whatever somebody else put there is replaced: it is our Secret by name.
    await client.apply(await client.find("", "Secret"), body, force=True)
    return Done()
