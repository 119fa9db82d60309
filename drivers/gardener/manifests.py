"""
What fleetd writes into a garden, as manifests: project, credentials, Shoots.

Pure, and free of secrets: the token for the metal API is written by a verb of the driver. The one
rule of a Shoot: the block `maintenance` is always there, with both automatic updates off, for a
garden that finds none turns both on.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from drivers.gardener import offers
from fleetd.kube import trust
from fleetd.objects import Manifest
from topology.documents import base
from topology.resource import Facts, Resource

CORE = "core.gardener.cloud"
SECURITY = "security.gardener.cloud"
PROFILE = (CORE, "CloudProfile")
SEED = (CORE, "Seed")
RBAC = "rbac.authorization.k8s.io"
CLAIM = ("metal.ironcore.dev", "ServerClaim")
PROVIDER = "ironcore-metal"
CONFIGS = f"{PROVIDER}.provider.extensions.gardener.cloud/v1alpha1"

ACCOUNT = "gardener"
"""The ServiceAccount of the metal API with which Gardener claims servers."""
CREATION = timedelta(hours=1)
"""How long a machine may take to join. A server tests its memory for a quarter of an hour, boots
twice from the network, and may have to be tried again; Gardener's 20 minutes are for clouds."""
UNBOUND = timedelta(minutes=45)
"""A claim that waits so long will not find a server. Less than `CREATION`: then the machine is
given up, and its claim with it."""
HEALTH = timedelta(minutes=30)
"""How long a node may be silent before its machine is replaced. Replacing metal means another
server, so a reboot must fit in."""
CAREFUL = timedelta(days=1)
"""Whoever waits so long for a drain does not want a machine given up in half an hour."""


def namespace_of(project: str) -> str:
    return f"garden-{project}"


def technical_id(project: str, cluster: str) -> str:
    return f"shoot--{project}--{cluster}"


def project(want: Resource) -> tuple[Manifest, ...]:
    """The namespace by hand, for a Project without one gets a random name for it."""
    name = str(want.spec["garden"]["project"])
    namespace: Facts = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace_of(name),
            "labels": {"gardener.cloud/role": "project", "project.gardener.cloud/name": name},
        },
    }
    body: Facts = {
        "apiVersion": CORE,
        "kind": "Project",
        "metadata": {"name": name},
        "spec": {
            "namespace": namespace_of(name),
            "description": f"clusters of region {want.region}",
        },
    }
    return (
        Manifest(backend=want.backend, body=namespace, why=f"create namespace garden-{name}"),
        Manifest(backend=want.backend, body=body, why=f"create project {name}"),
    )


def binding(want: Resource) -> Manifest:
    garden: Facts = want.spec["garden"]
    namespace = namespace_of(str(garden["project"]))
    name = str(garden["credentialsBinding"])
    named = {"apiVersion": "v1", "kind": "Secret"}
    if garden.get("workloadIdentity"):
        named = {"apiVersion": f"{SECURITY}/v1alpha1", "kind": "WorkloadIdentity"}
    body: Facts = {
        "apiVersion": SECURITY,
        "kind": "CredentialsBinding",
        "metadata": {"name": name, "namespace": namespace},
        "provider": {"type": PROVIDER},
        "credentialsRef": {**named, "namespace": namespace, "name": name},
    }
    return Manifest(backend=want.backend, body=body, why=f"create CredentialsBinding {name}")


def identity(want: Resource) -> Manifest:
    """Who Gardener is at the metal API where it makes its tokens itself."""
    garden: Facts = want.spec["garden"]
    name = str(garden["credentialsBinding"])
    body: Facts = {
        "apiVersion": SECURITY,
        "kind": "WorkloadIdentity",
        "metadata": {"name": name, "namespace": namespace_of(str(garden["project"]))},
        "spec": {
            "audiences": list(garden["workloadIdentity"]["audiences"]),
            "targetSystem": {"type": PROVIDER},
        },
    }
    return Manifest(backend=want.backend, body=body, why=f"create WorkloadIdentity {name}")


def metal_account(want: Resource) -> tuple[Manifest, ...]:
    """Who Gardener is at the metal API, and what it may do there: claim servers in one namespace,
    and read which there are."""
    namespace = namespace_of(str(want.spec["garden"]["project"]))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _inside(want)}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    space, role, reading = _rights(want)
    bound, read = _bindings(want, subject)
    return tuple(_at_metal(want, one) for one in (space, account, role, bound, reading, read))


def metal_rights(want: Resource) -> tuple[Manifest, ...]:
    """The same rights, for a user whom only the garden knows (`grants`)."""
    return tuple(_at_metal(want, one) for one in _rights(want))


def grants(want: Resource, user: str) -> tuple[Manifest, ...]:
    subject = {"apiGroup": RBAC, "kind": "User", "name": user}
    return tuple(_at_metal(want, one) for one in _bindings(want, subject))


def _at_metal(want: Resource, body: Facts) -> Manifest:
    why = f"let Gardener claim servers: {body['kind']}"
    return Manifest(backend=f"metal:{want.region}", body=body, why=why)


def _inside(want: Resource) -> dict[str, str]:
    return {"name": ACCOUNT, "namespace": namespace_of(str(want.spec["garden"]["project"]))}


def _outside(want: Resource) -> dict[str, str]:
    return {"name": f"{ACCOUNT}-{namespace_of(str(want.spec['garden']['project']))}"}


def _rights(want: Resource) -> tuple[Facts, Facts, Facts]:
    claims = {
        "apiGroups": ["metal.ironcore.dev"],
        "resources": ["serverclaims"],
        "verbs": ["*"],
    }
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}
    addresses = {
        "apiGroups": ["ipam.cluster.x-k8s.io"],
        "resources": ["ipaddressclaims", "ipaddresses"],
        "verbs": ["*"],
    }
    reading = {
        "apiGroups": ["metal.ironcore.dev"],
        "resources": ["servers", "bmcs"],
        "verbs": ["get", "list", "watch"],
    }
    inside = _inside(want)
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inside["namespace"]}},
        {
            "apiVersion": RBAC,
            "kind": "Role",
            "metadata": inside,
            "rules": [claims, secrets, addresses],
        },
        {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": _outside(want), "rules": [reading]},
    )


def _bindings(want: Resource, subject: Facts) -> tuple[Facts, Facts]:
    cluster = _outside(want)
    return (
        {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": _inside(want),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT},
            "subjects": [subject],
        },
        {
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": cluster,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": cluster["name"]},
            "subjects": [subject],
        },
    )


def shoot(want: Resource) -> Manifest:
    spec, garden = want.spec, want.spec["garden"]
    profile = "NamespacedCloudProfile" if garden.get("ownProfile") else "CloudProfile"
    body: dict[str, Any] = {
        "apiVersion": CORE,
        "kind": "Shoot",
        "metadata": {
            "name": str(spec["name"]),
            "namespace": namespace_of(str(garden["project"])),
            "labels": dict(spec.get("labels") or {}),
        },
        "spec": {
            "cloudProfile": {"kind": profile, "name": garden["cloudProfile"]},
            "credentialsBindingName": garden["credentialsBinding"],
            "region": garden["region"],
            "purpose": spec["purpose"],
            "kubernetes": {"version": spec["kubernetes"]},
            "networking": {key: value for key, value in spec["networking"].items() if value},
            "provider": {
                "type": PROVIDER,
                "controlPlaneConfig": {
                    "apiVersion": CONFIGS,
                    "kind": "ControlPlaneConfig",
                    # A node is called like its server, before and after it was installed anew.
                    "nodeNamePolicy": "BMCName",
                },
                "workers": [worker(one, spec) for one in spec["workers"]],
            },
            "maintenance": maintenance(spec["maintenance"]),
        },
    }
    body["spec"] |= options(spec)
    if spec.get("authentication") or spec.get("trust"):
        named = {"configMapName": authentication_name(spec)}
        body["spec"]["kubernetes"]["kubeAPIServer"] = {"structuredAuthentication": named}
    return Manifest(backend=want.backend, body=body, why=f"create shoot {spec['name']}")


def options(spec: Facts) -> dict[str, Any]:
    """What most clusters leave to the garden."""
    made: dict[str, Any] = {}
    if spec.get("failureTolerance"):
        tolerance = {"failureTolerance": {"type": spec["failureTolerance"]}}
        made["controlPlane"] = {"highAvailability": tolerance}
    if spec.get("dns"):
        made["dns"] = {"domain": spec["dns"]["domain"]}
    if spec.get("exposureClass"):
        made["exposureClassName"] = spec["exposureClass"]
    hibernation: Facts | None = spec.get("hibernation")
    if hibernation:
        made["hibernation"] = {
            "enabled": bool(hibernation["enabled"]),
            "schedules": [_sleep(one) for one in hibernation["schedules"]],
        }
    return made


def _sleep(given: Facts) -> dict[str, str]:
    times = {key: str(given[key]) for key in ("start", "end") if given.get(key)}
    return {**times, "location": str(given["zone"])}


def authentication_name(spec: Facts) -> str:
    return f"{spec['name']}-authentication"


def authentication(want: Resource) -> tuple[Manifest, ...]:
    """The ConfigMap from which the API server learns whom to believe. It has to be there before
    the Shoot names it."""
    given: Facts = want.spec.get("authentication") or {}
    issuers = [_issuer(one) for one in given.get("issuers") or ()]
    if want.spec.get("trust"):
        issuers.append(_trusted(want))
    if not issuers:
        return ()
    version = "v1" if offers.minor(str(want.spec["kubernetes"])) >= (1, 34) else "v1beta1"
    config = {
        "apiVersion": f"apiserver.config.k8s.io/{version}",
        "kind": "AuthenticationConfiguration",
        "jwt": issuers,
    }
    body: Facts = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": authentication_name(want.spec),
            "namespace": namespace_of(str(want.spec["garden"]["project"])),
        },
        "data": {"config.yaml": json.dumps(config, indent=2, sort_keys=True)},
    }
    name = want.spec["name"]
    return (Manifest(backend=want.backend, body=body, why=f"say whom {name} believes"),)


def _issuer(given: Facts) -> dict[str, Any]:
    issuer = {"url": given["url"], "audiences": list(given["audiences"])}
    if len(issuer["audiences"]) > 1:
        issuer["audienceMatchPolicy"] = "MatchAny"
    claims: dict[str, Any] = {
        "username": {"claim": given["userClaim"], "prefix": given["prefix"]},
    }
    if given.get("groupsClaim"):
        claims["groups"] = {"claim": given["groupsClaim"], "prefix": given["prefix"]}
    return {"issuer": issuer, "claimMappings": claims}


def _trusted(want: Resource) -> dict[str, Any]:
    """The management cluster, for its account of Flux and for this cluster alone: a token that was
    made for another is refused."""
    given: Facts = want.spec["trust"]
    issuer = {"url": given["issuer"], "audiences": [trust.audience(str(want.spec["name"]))]}
    if given.get("authority"):
        issuer["certificateAuthority"] = given["authority"]
    claims = {"username": {"claim": "sub", "prefix": trust.PREFIX}}
    return {"issuer": issuer, "claimMappings": claims}


def maintenance(given: Facts) -> dict[str, Any]:
    return {
        "autoUpdate": {
            "kubernetesVersion": bool(given["autoUpdateKubernetes"]),
            "machineImageVersion": bool(given["autoUpdateImage"]),
        },
        "timeWindow": {
            "begin": _clock(given["window"]["from"]),
            "end": _clock(given["window"]["to"]),
        },
    }


def _clock(text: str) -> str:
    """`22:00` as a garden writes it; the end of the day is the next one's beginning."""
    hours, minutes = text.split(":")
    return f"{int(hours) % 24:02d}{minutes}00+0000"


def worker(given: Facts, spec: Facts) -> dict[str, Any]:
    image = given.get("image") or spec["image"]
    strategy = str(given["updateStrategy"])
    made: dict[str, Any] = {
        "name": given["name"],
        "machine": {
            "type": given["machineType"],
            "image": {"name": image["name"], "version": image["version"]},
        },
        "minimum": given["minimum"],
        "maximum": given["maximum"],
        "zones": list(given["zones"]),
        "updateStrategy": strategy,
        "machineControllerManager": settings(given, strategy),
    }
    if strategy != "ManualInPlaceUpdate":
        # No spare server is needed this way; with a surge, a full pool would wait for one.
        made |= {"maxSurge": 0, "maxUnavailable": 1}
    if given.get("kubernetes"):
        made["kubernetes"] = {"version": given["kubernetes"]}
    if given.get("labels"):
        made["labels"] = dict(given["labels"])
    if given.get("taints"):
        made["taints"] = [taint(text) for text in given["taints"]]
    if given.get("sysctls"):
        made["sysctls"] = dict(given["sysctls"])
    return made


def settings(given: Facts, strategy: str) -> dict[str, Any]:
    """Of the machine controller. When the drain timeout is over it deletes a machine with all
    that still runs on it."""
    drain = base.parse_duration(str(given["drainTimeout"])) or timedelta(hours=2)
    made: dict[str, Any] = {
        "machineDrainTimeout": duration(drain),
        "machineCreationTimeout": duration(CREATION),
        # A pool that may be drained for days holds data or virtual machines: a rack without power
        # must not cost it its servers.
        "machineHealthTimeout": duration(drain if drain >= CAREFUL else HEALTH),
    }
    if strategy != "AutoRollingUpdate":
        made["inPlaceUpdateTimeout"] = duration(CREATION)
        # The garden sets it for such pools; a machine under update is silent for long.
        made["disableHealthTimeout"] = True
    return made


def taint(text: str) -> dict[str, str]:
    """`key=value:Effect`, or without a value."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def duration(given: timedelta) -> str:
    """As Go writes it, so that what comes back is what was sent."""
    minutes, seconds = divmod(int(given.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}s"


def claims_of(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """What the names of this cluster's ServerClaims begin with: a claim is called like its
    machine, and that like its pool and zone. The cluster's name alone would also match those of
    another whose name begins with it."""
    head = technical_id(str(spec["garden"]["project"]), str(spec["name"]))
    return tuple(f"{head}-{one['name']}-z" for one in spec.get("workers", ()))
