"""
The kinds every API server has, as far as a fleet uses them.

Data only; what the server fills in is in `defaults`. Fields nobody here reads are kept as they
come.
"""

from dataclasses import replace
from typing import Any

from fleetd.sim.kube import known
from fleetd.sim.kube.definitions import Column, Definition, Scale

_CONDITIONS = {"status.conditions": ("type",)}


def _pod(path: str) -> dict[str, tuple[str, ...]]:
    """The lists of a pod spec that merge item by item."""
    lists: dict[str, tuple[str, ...]] = {
        f"{path}.volumes": ("name",),
        f"{path}.imagePullSecrets": ("name",),
        f"{path}.hostAliases": ("ip",),
        f"{path}.topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    }
    for containers in ("containers", "initContainers", "ephemeralContainers"):
        here = f"{path}.{containers}"
        lists |= {
            here: ("name",),
            f"{here}.env": ("name",),
            f"{here}.ports": ("containerPort", "protocol"),
            f"{here}.volumeMounts": ("mountPath",),
            f"{here}.volumeDevices": ("devicePath",),
        }
    return lists


def _core(kind: str, plural: str, **more: Any) -> Definition:  # noqa: ANN401
    settings: dict[str, Any] = {
        "status": False,
        "generation": False,
        "unconditional": True,
        **more,
    }
    return Definition(group="", kind=kind, plural=plural, **settings)


def _workload(kind: str, plural: str, short: str, **more: Any) -> Definition:  # noqa: ANN401
    return Definition(
        group="apps",
        kind=kind,
        plural=plural,
        short_names=(short,),
        categories=("all",),
        lists=_pod("spec.template.spec") | _CONDITIONS,
        atomic=frozenset({"spec.selector"}),
        immutable=("spec.selector",),
        unconditional=True,
        scale=None if kind == "DaemonSet" else Scale(),
        **more,
    )


_CORE = (
    _core(
        "Namespace",
        "namespaces",
        namespaced=False,
        status=True,
        short_names=("ns",),
        subresources=("finalize",),
        selectable=("status.phase",),
        columns=(Column("Status", "status.phase"),),
    ),
    _core(
        "Node",
        "nodes",
        namespaced=False,
        status=True,
        keeps_status=True,
        short_names=("no",),
        selectable=("spec.unschedulable",),
        lists=_CONDITIONS
        | {
            "status.addresses": ("type",),
            "spec.taints": ("key", "effect"),
            "spec.podCIDRs": (),
        },
        columns=(
            Column("Ready", "status.conditions[Ready]"),
            Column("Version", "status.nodeInfo.kubeletVersion"),
        ),
    ),
    _core(
        "Secret",
        "secrets",
        immutable=("type",),
        selectable=("type",),
        columns=(Column("Type", "type"), Column("Data", "data", "count")),
    ),
    _core(
        "ConfigMap", "configmaps", short_names=("cm",), columns=(Column("Data", "data", "count"),)
    ),
    _core(
        "Service",
        "services",
        status=True,
        short_names=("svc",),
        categories=("all",),
        lists={"spec.ports": ("port", "protocol")} | _CONDITIONS,
        atomic=frozenset({"spec.selector"}),
        columns=(Column("Type", "spec.type"), Column("Cluster-IP", "spec.clusterIP")),
    ),
    _core(
        "ServiceAccount",
        "serviceaccounts",
        short_names=("sa",),
        subresources=("token",),
        lists={"secrets": ("name",)},
    ),
    _core(
        "Pod",
        "pods",
        status=True,
        generation=True,
        short_names=("po",),
        categories=("all",),
        subresources=("eviction",),
        lists=_pod("spec") | _CONDITIONS | {"status.podIPs": ("ip",)},
        selectable=("spec.nodeName", "status.phase", "spec.serviceAccountName", "status.podIP"),
        columns=(
            Column("Ready", "status.conditions[Ready]"),
            Column("Status", "status.phase"),
            Column("Node", "spec.nodeName", priority=1),
        ),
    ),
    _core(
        "Event",
        "events",
        short_names=("ev",),
        selectable=(
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.uid",
            "reason",
            "type",
        ),
        columns=(
            Column("Type", "type"),
            Column("Reason", "reason"),
            Column("Message", "message"),
        ),
    ),
    _core("Endpoints", "endpoints", short_names=("ep",)),
    _core(
        "PersistentVolume",
        "persistentvolumes",
        namespaced=False,
        status=True,
        short_names=("pv",),
        columns=(Column("Status", "status.phase"),),
    ),
    _core(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        status=True,
        short_names=("pvc",),
        lists=_CONDITIONS,
        columns=(Column("Status", "status.phase"), Column("Volume", "spec.volumeName")),
    ),
    _core("ResourceQuota", "resourcequotas", status=True, short_names=("quota",)),
    _core("LimitRange", "limitranges", short_names=("limits",)),
)

_OTHERS = (
    _workload(
        "Deployment",
        "deployments",
        "deploy",
        columns=(
            Column("Ready", "status.readyReplicas", "integer"),
            Column("Up-To-Date", "status.updatedReplicas", "integer"),
            Column("Available", "status.availableReplicas", "integer"),
        ),
    ),
    _workload(
        "StatefulSet",
        "statefulsets",
        "sts",
        columns=(Column("Ready", "status.readyReplicas", "integer"),),
    ),
    _workload(
        "DaemonSet",
        "daemonsets",
        "ds",
        columns=(
            Column("Desired", "status.desiredNumberScheduled", "integer"),
            Column("Ready", "status.numberReady", "integer"),
        ),
    ),
    _workload("ReplicaSet", "replicasets", "rs"),
    Definition(
        group="batch",
        kind="Job",
        plural="jobs",
        lists=_pod("spec.template.spec") | _CONDITIONS,
        unconditional=True,
        columns=(Column("Completions", "status.succeeded", "integer"),),
    ),
    Definition(
        group="batch",
        kind="CronJob",
        plural="cronjobs",
        short_names=("cj",),
        lists=_pod("spec.jobTemplate.spec.template.spec"),
        unconditional=True,
    ),
    *(
        Definition(
            group="rbac.authorization.k8s.io",
            kind=kind,
            plural=plural,
            namespaced=namespaced,
            status=False,
            unconditional=True,
            free_names=True,
            immutable=("roleRef",) if "Binding" in kind else (),
        )
        for kind, plural, namespaced in (
            ("ClusterRole", "clusterroles", False),
            ("ClusterRoleBinding", "clusterrolebindings", False),
            ("Role", "roles", True),
            ("RoleBinding", "rolebindings", True),
        )
    ),
    Definition(
        group="policy",
        kind="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        short_names=("pdb",),
        lists=_CONDITIONS,
        unconditional=True,
    ),
    Definition(
        group="coordination.k8s.io", kind="Lease", plural="leases", status=False, unconditional=True
    ),
    Definition(
        group="apiextensions.k8s.io",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
        short_names=("crd", "crds"),
        lists=_CONDITIONS | {"spec.versions": ("name",)},
        unconditional=True,
        columns=(Column("Scope", "spec.scope"),),
    ),
    Definition(
        group="storage.k8s.io",
        kind="StorageClass",
        plural="storageclasses",
        namespaced=False,
        status=False,
        short_names=("sc",),
        unconditional=True,
        columns=(Column("Provisioner", "provisioner"),),
    ),
    Definition(
        group="scheduling.k8s.io",
        kind="PriorityClass",
        plural="priorityclasses",
        namespaced=False,
        status=False,
        generation=True,
        short_names=("pc",),
        immutable=("value", "preemptionPolicy"),
        unconditional=True,
        columns=(Column("Value", "value", "integer"),),
    ),
    Definition(
        group="autoscaling",
        kind="HorizontalPodAutoscaler",
        plural="horizontalpodautoscalers",
        versions=("v2", "v1"),
        generation=False,
        short_names=("hpa",),
        categories=("all",),
        unconditional=True,
        columns=(
            Column("Reference", "spec.scaleTargetRef.name"),
            Column("MaxPods", "spec.maxReplicas", "integer"),
        ),
    ),
    Definition(
        group="networking.k8s.io",
        kind="NetworkPolicy",
        plural="networkpolicies",
        status=False,
        generation=True,
        short_names=("netpol",),
        unconditional=True,
    ),
    Definition(
        group="networking.k8s.io",
        kind="Ingress",
        plural="ingresses",
        short_names=("ing",),
        unconditional=True,
    ),
)

_REVIEWS = tuple(
    Definition(
        group=group,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        status=False,
        verbs=("create",),
    )
    for group, kind, plural, namespaced in (
        ("authentication.k8s.io", "TokenReview", "tokenreviews", False),
        ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", False),
        ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
        ("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False),
        ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", False),
        ("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
    )
)

_TEXT = {"type": "string"}
_MAP = {"type": "object"}
_TEXTS = {"type": "array", "items": _TEXT, "nullable": True}
_BINDING = {
    "required": ["roleRef"],
    "properties": {
        "roleRef": {**_MAP, "required": ["kind", "name"]},
        "subjects": {
            "type": "array",
            "items": {**_MAP, "required": ["kind", "name"]},
            "nullable": True,
        },
    },
}
_RULE_PARTS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
_RULE = {**_MAP, "properties": dict.fromkeys(_RULE_PARTS, _TEXTS)}
_ROLE = {"properties": {"rules": {"type": "array", "nullable": True, "items": _RULE}}}
_CUSTOM = {
    "required": ["spec"],
    "properties": {
        "spec": {
            **_MAP,
            "required": ["group", "names", "scope", "versions"],
            "properties": {
                "group": _TEXT,
                "scope": _TEXT,
                "names": {
                    **_MAP,
                    "required": ["kind", "plural"],
                    "properties": {"kind": _TEXT, "plural": _TEXT, "shortNames": _TEXTS},
                },
                "versions": {
                    "type": "array",
                    "minItems": 1,
                    "items": {**_MAP, "required": ["name"], "properties": {"name": _TEXT}},
                },
            },
        }
    },
}
_VALUES = {
    "properties": {
        name: {**_MAP, "nullable": True} for name in ("data", "stringData", "binaryData")
    }
}
_REVIEW = {
    "properties": {
        "spec": {
            **_MAP,
            "properties": {
                "token": _TEXT,
                "audiences": _TEXTS,
                "user": _TEXT,
                "groups": _TEXTS,
                "resourceAttributes": {**_MAP, "additionalProperties": _TEXT},
                "nonResourceAttributes": {**_MAP, "additionalProperties": _TEXT},
            },
        }
    }
}
_DECODES: dict[str, Any] = {
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "CustomResourceDefinition": _CUSTOM,
    "Secret": _VALUES,
    "ConfigMap": _VALUES,
    "TokenReview": _REVIEW,
    "SubjectAccessReview": _REVIEW,
    "LocalSubjectAccessReview": _REVIEW,
    "SelfSubjectAccessReview": _REVIEW,
}
"""Only what this server reads: fields nobody here looks at may be anything."""

DEFINITIONS: tuple[Definition, ...] = tuple(
    replace(
        definition,
        typed=True,
        decodes=_DECODES.get(definition.kind),
        known=known.schema(definition.kind),
    )
    for definition in (*_CORE, *_OTHERS, *_REVIEWS)
)
GROUPS = frozenset(definition.group for definition in DEFINITIONS)
