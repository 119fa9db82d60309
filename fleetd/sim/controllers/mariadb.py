"""
mariadb-operator: a Galera cluster comes up in two to five minutes, if its root password is there.

Imitates cobaltcore 12 and 22: Ready with the reasons people know, GaleraReady and Updated beside
it, `currentPrimary`. Databases, users and grants are Ready while their MariaDB is.
"""

from collections.abc import Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.workloads_look import condition, part
from fleetd.sim.controllers.workloads_settle import Settling
from fleetd.sim.kube.cluster import GK
from fleetd.sim.kube.definitions import Definition

GROUP = "k8s.mariadb.com"
MARIADB: GK = (GROUP, "MariaDB")
SECRET: GK = ("", "Secret")
_PLURALS = {
    "MariaDB": "mariadbs",
    "Database": "databases",
    "User": "users",
    "Grant": "grants",
    "Connection": "connections",
    "Backup": "backups",
    "PhysicalBackup": "physicalbackups",
    "Restore": "restores",
    "SqlJob": "sqljobs",
    "MaxScale": "maxscales",
    "ExternalMariaDB": "externalmariadbs",
    "PointInTimeRecovery": "pointintimerecoveries",
}
DEFINITIONS = tuple(
    Definition(group=GROUP, kind=kind, plural=plural, versions=("v1alpha1",))
    for kind, plural in _PLURALS.items()
)


class MariaDBs(Settling):
    name = "mariadb-operator"
    watches = (MARIADB,)
    kind = MARIADB
    awaits = (SECRET,)
    seconds = (120.0, 300.0)

    def lacks(self, obj: Obj) -> dict[str, Any] | None:
        ref = part(obj["spec"], "rootPasswordSecretKeyRef")
        name, key = ref.get("name"), ref.get("key", "password")
        if not name or ref.get("generate"):
            return None
        secret = self.secret(name, obj["metadata"]["namespace"])
        if secret is not None and key in part(secret, "data"):
            return None
        said = f'Error reconciling Secret: secrets "{name}" not found'
        return {"conditions": [self.condition("Ready", "False", "Initializing", said)]}

    def starting(self, obj: Obj) -> dict[str, Any]:
        if condition(obj, "Ready") == "True":
            said = self.condition("Ready", "False", "Updating", "Updating")
            return {"conditions": [said, self.condition("Updated", "False", "Updating", "")]}
        galera = part(obj["spec"], "galera").get("enabled")
        reason = "GaleraInitializing" if galera else "Initializing"
        made = [self.condition("Ready", "False", reason, "Initializing MariaDB")]
        if galera:
            made.append(self.condition("GaleraReady", "False", "GaleraNotReady", "Not ready"))
        return {"conditions": made}

    def ready(self, obj: Obj) -> dict[str, Any]:
        spec = obj["spec"]
        made = [
            self.condition("Ready", "True", "StatefulSetReady", "Running"),
            self.condition("Updated", "True", "Updated", "Updated"),
        ]
        if part(spec, "galera").get("enabled"):
            made.append(self.condition("GaleraConfigured", "True", "GaleraConfigured", ""))
            made.append(self.condition("GaleraReady", "True", "GaleraReady", "Galera ready"))
        return {
            "conditions": made,
            "replicas": spec.get("replicas", 1),
            "currentPrimary": f"{obj['metadata']['name']}-0",
            "currentPrimaryPodIndex": 0,
        }

    def lost(self, obj: Obj) -> dict[str, Any]:
        del obj
        said = self.condition("Ready", "False", "StatefulSetNotReady", "Not ready")
        return {"conditions": [said], "currentPrimary": None}


class _Member(Settling):
    """What lies in a MariaDB: made in seconds once that is Ready."""

    awaits = (MARIADB,)
    seconds = (2.0, 8.0)

    def lacks(self, obj: Obj) -> dict[str, Any] | None:
        ref = part(obj["spec"], "mariaDbRef")
        space = ref.get("namespace") or obj["metadata"]["namespace"]
        live = self.cluster.get(MARIADB, str(ref.get("name", "")), space)
        if live is not None and condition(live, "Ready") == "True":
            return None
        return {"conditions": [self.condition("Ready", "False", "Failed", "MariaDB not healthy")]}

    def starting(self, obj: Obj) -> dict[str, Any]:
        del obj
        return {"conditions": [self.condition("Ready", "False", "Creating", "Creating")]}

    def ready(self, obj: Obj) -> dict[str, Any]:
        del obj
        return {"conditions": [self.condition("Ready", "True", "Created", "Created")]}


class Databases(_Member):
    name = "mariadb-databases"
    watches = ((GROUP, "Database"),)
    kind = (GROUP, "Database")


class Users(_Member):
    name = "mariadb-users"
    watches = ((GROUP, "User"),)
    kind = (GROUP, "User")


class Grants(_Member):
    name = "mariadb-grants"
    watches = ((GROUP, "Grant"),)
    kind = (GROUP, "Grant")


CHARTS: Mapping[str, Chart] = {
    "mariadb-operator-crds": Chart(definitions=DEFINITIONS),
    "mariadb-operator": Chart(
        controllers=(MariaDBs, Databases, Users, Grants),
        deployments=("mariadb-operator", "mariadb-operator-webhook"),
    ),
    "prometheus-operator-crds": Chart(
        definitions=tuple(
            Definition(group="monitoring.coreos.com", kind=kind, plural=plural, versions=("v1",))
            for kind, plural in (
                ("ServiceMonitor", "servicemonitors"),
                ("PodMonitor", "podmonitors"),
                ("PrometheusRule", "prometheusrules"),
            )
        )
    ),
}
