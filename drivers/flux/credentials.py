"""
The password with which Flux reads the region's Git repository, from the document's access to the
Secret that the GitRepository names.

The access holds a token, or a mapping of what Flux knows (`username` and `password`, `identity` and
`known_hosts` for SSH, `bearerToken`, `ca.crt`), as YAML. It is read when it is compared and when
it is written, and goes nowhere else.
"""

import base64
from collections.abc import Mapping
from typing import Any, cast

from drivers.flux import manifests
from fleetd import plainyaml, secrets
from fleetd.kube import facts
from fleetd.objects import ObjectDriver
from fleetd.secrets import Secret
from fleetd.vocabulary import Done, Outcome, Step
from topology.resource import Resource

USER = "git"
"""What servers that take a token want to hear as the user's name."""
REQUESTED = "reconcile.fluxcd.io/requestedAt"
_KNOWN = {
    "username",
    "password",
    "identity",
    "identity.pub",
    "known_hosts",
    "bearerToken",
    "ca.crt",
}


def content(text: Secret) -> dict[str, str]:
    """The data of the Secret, not yet encoded."""
    plain = text.reveal()
    try:
        given: Any = plainyaml.load(plain)
    except plainyaml.Error:
        given = None
    if isinstance(given, dict):
        named = cast("dict[str, Any]", given)
        if named and named.keys() <= _KNOWN:
            return {key: str(value) for key, value in named.items()}
    return {"username": USER, "password": plain.strip()}


async def state(driver: ObjectDriver, want: Resource) -> str:
    """`same`, `other`, `missing`, `unread` (our own copy cannot be read now) or `none` wanted."""
    access = want.spec["git"].get("access")
    if not access:
        return "none"
    name = manifests.credentials_name(want.region)
    live = await driver.tools.clusters.secret(want.backend, name, manifests.NAMESPACE)
    if live is None:
        return "missing"
    try:
        wanted = content(await driver.tools.secrets.read(access, want))
    except secrets.SecretError:
        return "unread"
    same = all(key in live.values and live.values[key].matches(wanted[key]) for key in wanted)
    return "same" if same else "other"


async def write(driver: ObjectDriver, step: Step) -> Outcome:
    """The Secret, then a poke: a source that was refused waits up to a quarter of an hour."""
    topology = driver.tools.fleet.everything()
    want = topology.resources[step.ref]
    found = content(await driver.tools.secrets.read(step.args["access"], want))
    body = facts.copy(step.args["manifest"])
    body["metadata"]["annotations"][facts.STEP] = step.id
    body["data"] = {key: base64.b64encode(text.encode()).decode() for key, text in found.items()}
    client = driver.tools.clusters.client(step.args["backend"])
    live = await client.apply(await client.find("", "Secret"), body, force=True)
    await _poke(driver, step, str(live["metadata"].get("resourceVersion", "")))
    return Done()


async def _poke(driver: ObjectDriver, step: Step, token: str) -> None:
    client = driver.tools.clusters.client(step.args["backend"])
    kind = await client.find(manifests.SOURCE, "GitRepository")
    name = str(step.args["source"])
    live = await client.get(kind, name, manifests.NAMESPACE)
    if live is None:
        return
    annotations: Mapping[str, str] = live["metadata"].get("annotations") or {}
    if annotations.get(REQUESTED) != token:
        change = {"metadata": {"annotations": {REQUESTED: token}}}
        await client.patch(kind, name, change, manifests.NAMESPACE)
