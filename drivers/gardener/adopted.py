"""
A cluster that others made: it is looked at and never changed.

Its kubeconfig is the document's. Whether it answers is asked of the API server itself; a refusal is
an answer about the kubeconfig, silence is no answer at all. Until its document says that fleetd may
manage it, the cluster is not Ready, so nothing is installed on it; what was found there meanwhile,
and how it differs from what fleetd would make, is told in words (`observed.report`).
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from drivers.gardener import offers, rights, warnings
from fleetd.kube import errors, facts, lifetime
from fleetd.kube.client import KubeClient, Object
from fleetd.objects import ObjectDriver
from fleetd.vocabulary import Condition, Observation
from topology.checks import versions
from topology.resource import Facts, Resource

CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
NODE = ("", "Node")
ZONE = "topology.kubernetes.io/zone"


class AdoptedDriver(ObjectDriver):
    kind = "adopted"

    def check(self, want: Resource) -> Sequence[str]:
        return () if want.spec.get("adopted", {}).get("access") else ("it has no access",)

    def polls(self, want: Resource) -> bool:
        del want
        return True

    async def _look(self, want: Resource) -> dict[str, Any]:
        given: Facts = want.spec["adopted"]
        kubeconfig = await self.tools.secrets.read(given["access"], want)
        self.tools.clusters.put(want.backend, kubeconfig, expires=lifetime.ends(kubeconfig))
        there = self.tools.clusters.client(want.backend)
        observed: dict[str, Any] = {"adopted": True, "answers": True}
        try:
            version = str(dict(json.loads(await there.raw("/version"))).get("gitVersion", ""))
        except (errors.Unauthorized, errors.Forbidden) as cause:
            return {"observed": {**observed, "answers": False, "said": str(cause)}}
        except (ValueError, TypeError, RecursionError):
            raise errors.not_an_api_server("/version answers what is no version") from None
        deaf = self.tools.clusters.deaf(want.backend)
        observed |= {"deaf": deaf} if deaf else {}
        observed["managed"] = bool(given.get("manage"))
        until, now = self.tools.clusters.ends(want.backend), self.tools.clock.now()
        ending = warnings.ending("its kubeconfig", until, now)
        observed |= {"expiring": ending} if ending else {}
        if not observed["managed"]:
            report = await self._report(want, there, version.removeprefix("v"))
            observed |= {"report": report, "summary": "; ".join(report)}
        return {"observed": observed}

    async def _report(self, want: Resource, there: KubeClient, version: str) -> list[str]:
        return [
            _version(version),
            *await self._nodes(want, there),
            *await self._installed(want, there),
        ]

    async def _nodes(self, want: Resource, there: KubeClient) -> list[str]:
        nodes = await _all(there, NODE)
        if nodes is None:
            return ["its kubeconfig may not list nodes"]
        zones: Sequence[str] = want.spec.get("zones") or ()
        return list(_of_nodes(nodes, zones))

    async def _installed(self, want: Resource, there: KubeClient) -> list[str]:
        """What fleetd would install and somebody has installed already."""
        crds = await _all(there, CRD)
        if crds is None:
            return ["its kubeconfig may not list CustomResourceDefinitions"]
        rules = rights.of(str(want.spec["role"]), self.tools.rules.catalogue())
        mine = {group for rule in rules for group in rule["apiGroups"] if "." in group}
        found = sorted({str(facts.part(one, "spec").get("group")) for one in crds} & mine)
        return [
            f"{group} is installed already; fleetd would go on from what is there"
            for group in found
        ]

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        return (*super().judge(want, seen), *warnings.judged(want, seen))


async def _all(there: KubeClient, gk: tuple[str, str]) -> list[Object] | None:
    """None: it may not be asked. Read each time, for few look at such a cluster for long."""
    try:
        found = await there.list(await there.find(*gk))
        return [one.object() for one in found.items]
    except (errors.Unauthorized, errors.Forbidden):
        return None


def _version(found: str) -> str:
    if versions.OLDEST <= offers.minor(found) <= versions.NEWEST:
        return f"Kubernetes {found}"
    oldest, newest = (".".join(map(str, one)) for one in (versions.OLDEST, versions.NEWEST))
    return f"Kubernetes {found}, outside of {oldest} to {newest}, with which fleetd's parts work"


def _of_nodes(nodes: Sequence[Object], zones: Sequence[str]) -> Iterator[str]:
    bad = [
        str(node["metadata"]["name"])
        for node in nodes
        if facts.condition(node, "Ready").get("status") != "True"
    ]
    said = f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"
    yield f"{said}, not Ready: {', '.join(bad[:5])}" if bad else said
    seen = {str(facts.part(node, "metadata", "labels").get(ZONE) or "") for node in nodes}
    if "" in seen:
        yield f"there are nodes without the label {ZONE}; their zone is not known"
    missing, more = set(zones) - seen, seen - {"", *zones}
    if missing:
        yield f"no node is in zone {', '.join(sorted(missing))}, which the document names"
    if zones and more:
        yield f"nodes are in zone {', '.join(sorted(more))}, which the document does not name"
