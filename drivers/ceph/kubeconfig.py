"""
The kubeconfig with which the arbiter operator reaches the arbiter cluster: where that is as fleetd
itself knows it, who as the account that fleetd made there.

An admin kubeconfig ends after a day and would break the arbiter every day; the account's token
lasts as long as the cluster gives, and is renewed at half of its life. The one rule: the token is
in the Secret and in nothing else, and what is handed over holds only what is written out.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import yaml

from drivers.ceph import manifests
from fleetd import objects, plainyaml
from fleetd.kube import credentials, facts, tokens
from fleetd.kube.client import Object
from fleetd.secrets import Secret
from fleetd.tools import Tools
from fleetd.vocabulary import Done, Outcome, Step
from topology.resource import Resource

WRITE = "write-kubeconfig"
LIFE = timedelta(days=60)
MADE = "fleet.c5c3.io/minted"
EXPIRES = "fleet.c5c3.io/expires"
WHERE = "fleet.c5c3.io/server"
"""Annotation: digest of the address and authority that were handed over."""
CURRENT, MISSING, DUE, MOVED = "current", "missing", "due", "moved"


@dataclass(frozen=True, slots=True)
class Place:
    server: str
    authority: str

    @property
    def digest(self) -> str:
        text = f"{self.server}\n{self.authority}"
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def args(want: Resource, state: str, expires: str) -> dict[str, Any]:
    """Of the step. `replaces` tells one renewal from the next."""
    return {
        "backend": want.backend,
        "arbiter": f"cluster:{manifests.arbiter_of(want)}",
        "secret": manifests.secret_of(want),
        "owner": objects.owner(want),
        "region": want.region,
        "state": state,
        "replaces": expires,
    }


async def look(tools: Tools, want: Resource) -> dict[str, Any]:
    """`kubeconfig`: current, missing, due (its time is half over) or moved (the arbiter's API has
    another address now); and when it ends."""
    notes = await _notes(tools, want.backend, manifests.secret_of(want))
    if notes is None:
        return {"kubeconfig": MISSING, "expires": ""}
    until = str(notes.get(EXPIRES) or "")
    seen = {"kubeconfig": CURRENT, "expires": until}
    backend = f"cluster:{manifests.arbiter_of(want)}"
    place = _place(tools, backend) if tools.clusters.has(backend) else None
    if place is not None and notes.get(WHERE) != place.digest:
        seen["kubeconfig"] = MOVED
    elif _half_over(str(notes.get(MADE) or ""), until, tools.clock.now()):
        seen["kubeconfig"] = DUE
    return seen


def _half_over(made: str, until: str, now: datetime) -> bool:
    try:
        begin, end = datetime.fromisoformat(made), datetime.fromisoformat(until)
    except ValueError:
        return True  # not written by us, or by an older fleetd: nobody knows when it ends
    return now - begin > (end - begin) / 2


async def write(tools: Tools, step: Step) -> Outcome:
    """A second call with the same step finds its own work and leaves it."""
    given = step.args
    notes = await _notes(tools, given["backend"], given["secret"])
    if notes is not None and notes.get(facts.STEP) == step.id:
        return Done()
    place = _place(tools, given["arbiter"])
    now = tools.clock.now()
    arbiter = tools.clusters.client(given["arbiter"])
    account = (manifests.ARBITER_NAMESPACE, manifests.ACCOUNT)
    token = await tokens.of_account(arbiter, *account, int(LIFE.total_seconds()))
    body: Object = {
        "metadata": {
            "name": given["secret"],
            "namespace": manifests.NAMESPACE,
            "labels": {
                facts.MANAGED_BY: facts.MANAGER,
                facts.REGION: given["region"],
                facts.OWNER: given["owner"],
            },
            "annotations": {
                facts.STEP: step.id,
                MADE: now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                EXPIRES: credentials.moment(token.expires),
                WHERE: place.digest,
            },
        },
        "type": "Opaque",
        "data": {manifests.KEY: base64.b64encode(_text(place, token.secret).encode()).decode()},
    }
    storage = tools.clusters.client(given["backend"])
    await storage.apply(await storage.find("", "Secret"), body)
    return Done()


def _place(tools: Tools, backend: str) -> Place:
    """Address and authority, from the kubeconfig that fleetd uses itself."""
    config: Any = plainyaml.load(tools.clusters.kubeconfig(backend).reveal())
    cluster = cast("dict[str, Any]", config["clusters"][0]["cluster"])
    return Place(str(cluster["server"]), str(cluster.get("certificate-authority-data") or ""))


def _text(place: Place, token: Secret) -> str:
    cluster: dict[str, str] = {"server": place.server}
    if place.authority:
        cluster["certificate-authority-data"] = place.authority
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "arbiter", "cluster": cluster}],
            "users": [{"name": manifests.ACCOUNT, "user": {"token": token.reveal()}}],
            "contexts": [
                {
                    "name": "arbiter",
                    "context": {
                        "cluster": "arbiter",
                        "user": manifests.ACCOUNT,
                        "namespace": manifests.ARBITER_NAMESPACE,
                    },
                }
            ],
            "current-context": "arbiter",
        }
    )


async def _notes(tools: Tools, backend: str, name: str) -> Mapping[str, str] | None:
    """What is noted on the Secret; None if there is none."""
    found = await tools.clusters.secret(backend, name, manifests.NAMESPACE)
    return found.annotations if found is not None else None
