"""
Which version of a flow's value each of its targets was seen with.

A Secret holds the version whose data hash External Secrets left on it: Ready and a moved version
of the object prove less. Where the document names what uses the Secret, its pods must all have
started after the Secret got that value; a pod that is on its way out still counts. No value leaves
this module, and neither does a hash of one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drivers.openbao.client import Kept
from fleetd.kube.facts import part as inside
from fleetd.kube.secretview import SecretView
from fleetd.secrets import Secret
from fleetd.tools import Tools
from topology.resource import Facts, Resource

DATA_HASH = "reconcile.external-secrets.io/data-hash"
VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One target, as it was seen."""

    who: str
    held: int
    """Version that its Secret holds; 0: none that is known."""
    waits: str = ""
    """What still runs with an older one, though the Secret has the newest; in words."""
    unseen: str = ""
    """Who should use it and is nowhere to be seen, in words: it may have another name, and use an
    older one. No fault of the flow, but no version goes while it is so."""


def name_of(target: Facts) -> str:
    return f"{target['cluster']}/{target['namespace']}/{target['secret']}"


async def seen(tools: Tools, want: Resource, values: Mapping[int, Kept]) -> list[Use]:
    """`values` is what OpenBao holds, by version, newest first."""
    found: list[Use] = []
    newest = next(iter(values), 0)
    for target in want.spec["targets"]:
        backend, space = f"cluster:{target['cluster']}", str(target["namespace"])
        secret = await tools.clusters.secret(backend, str(target["secret"]), space)
        held = _version(secret, str(target["key"]), values)
        waits = unseen = ""
        if secret is not None and held == newest and newest and target.get("reload"):
            pods = await _pods(tools, target)
            if pods is None:
                asked = target["reload"]
                unseen = f"{asked['kind']} {asked['name']} of {target['cluster']} is not there"
            else:
                waits = _older(target["reload"], pods, _changed(secret))
        found.append(Use(who=name_of(target), held=held, waits=waits, unseen=unseen))
    return found


def _version(secret: SecretView | None, key: str, values: Mapping[int, Kept]) -> int:
    noted = secret.annotations.get(DATA_HASH) if secret is not None else None
    for version, kept in values.items():
        if noted and VALUE in kept.values and noted == data_hash(key, kept.values[VALUE]):
            return version
    return 0


def _changed(secret: SecretView) -> datetime | None:
    """When its data last changed; None: nobody noted that."""
    entries: list[Facts] = secret.metadata.get("managedFields") or []
    times = [str(one["time"]) for one in entries if "f:data" in inside(one, "fieldsV1")]
    return max(datetime.fromisoformat(time) for time in times) if times else None


async def _pods(tools: Tools, target: Facts) -> list[Mapping[str, Any]] | None:
    """Those of the workload that uses the Secret; None: there is no such workload."""
    kube = tools.clusters.client(f"cluster:{target['cluster']}")
    asked, space = target["reload"], str(target["namespace"])
    workload = await kube.get(await kube.find("apps", asked["kind"]), asked["name"], space)
    if workload is None:
        return None
    labels = inside(workload, "spec", "selector", "matchLabels")
    chosen = ",".join(f"{key}={labels[key]}" for key in sorted(labels))
    pods = await kube.list(await kube.find("", "Pod"), space, labels=chosen)
    return [pod.object() for pod in pods.items]


def _older(asked: Facts, pods: Sequence[Mapping[str, Any]], since: datetime | None) -> str:
    older = [pod for pod in pods if since is None or _born(pod) <= since]
    if not older:
        return ""
    return f"{len(older)} of {len(pods)} pods of {asked['kind']} {asked['name']} are older"


def _born(pod: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(pod["metadata"]["creationTimestamp"]))


def data_hash(key: str, value: Secret) -> str:
    """As External Secrets notes it: the digest of how Go prints a map of bytes."""
    printed = f"map[{key}:[{' '.join(str(byte) for byte in value.reveal().encode())}]]"
    return hashlib.sha3_224(printed.encode()).hexdigest()
