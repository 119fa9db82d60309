"""
cert-manager: issuers become Ready, certificates become Secrets.

No certificate here is a real one; its Secret holds text that looks like it. A Certificate whose
issuer is missing stays `DoesNotExist`, as people know it.
"""

from collections.abc import Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.workloads_settle import Settling
from fleetd.sim.kube.cluster import GK
from fleetd.sim.kube.definitions import Definition

GROUP = "cert-manager.io"
ISSUER: GK = (GROUP, "Issuer")
CLUSTER_ISSUER: GK = (GROUP, "ClusterIssuer")
CERTIFICATE: GK = (GROUP, "Certificate")
DEFINITIONS = (
    Definition(group=GROUP, kind="Issuer", plural="issuers"),
    Definition(group=GROUP, kind="ClusterIssuer", plural="clusterissuers", namespaced=False),
    Definition(group=GROUP, kind="Certificate", plural="certificates", short_names=("cert",)),
    Definition(group=GROUP, kind="CertificateRequest", plural="certificaterequests"),
)


class _Issuers(Settling):
    seconds = (1.0, 4.0)

    def starting(self, obj: Obj) -> dict[str, Any]:
        del obj
        return {"conditions": [self.condition("Ready", "False", "Pending", "Verifying")]}

    def ready(self, obj: Obj) -> dict[str, Any]:
        generation = obj["metadata"]["generation"]
        said = "Signing CA verified"
        made = self.condition("Ready", "True", "KeyPairVerified", said, generation=generation)
        return {"conditions": [made]}


class Issuers(_Issuers):
    name = "cert-manager-issuers"
    watches = (ISSUER,)
    kind = ISSUER


class ClusterIssuers(_Issuers):
    name = "cert-manager-clusterissuers"
    watches = (CLUSTER_ISSUER,)
    kind = CLUSTER_ISSUER


class Certificates(Settling):
    name = "cert-manager"
    watches = (CERTIFICATE,)
    kind = CERTIFICATE
    awaits = (ISSUER, CLUSTER_ISSUER)
    seconds = (2.0, 8.0)

    def lacks(self, obj: Obj) -> dict[str, Any] | None:
        ref: Obj = obj["spec"]["issuerRef"]
        kind = str(ref.get("kind", "Issuer"))
        space = "" if kind == "ClusterIssuer" else obj["metadata"]["namespace"]
        if self.cluster.get((GROUP, kind), ref["name"], space) is not None:
            return None
        said = f'Issuing certificate as Secret does not exist; {kind} "{ref["name"]}" not found'
        return {"conditions": [self.condition("Ready", "False", "DoesNotExist", said)]}

    def starting(self, obj: Obj) -> dict[str, Any]:
        del obj
        said = "Issuing certificate as Secret does not exist"
        return {
            "conditions": [
                self.condition("Ready", "False", "DoesNotExist", said),
                self.condition("Issuing", "True", "DoesNotExist", said),
            ]
        }

    def ready(self, obj: Obj) -> dict[str, Any]:
        generation = obj["metadata"]["generation"]
        said = "Certificate is up to date and has not expired"
        return {
            "conditions": [
                self.condition("Ready", "True", "Ready", said, generation=generation),
                self.condition("Issuing", "False", "Issued", "The certificate has been issued"),
            ],
            "revision": 1,
        }

    def finished(self, obj: Obj) -> None:
        name, space = obj["spec"]["secretName"], obj["metadata"]["namespace"]
        if self.secret(name, space) is None:
            word = self.world.token("certificate", self.cluster.name, space, name)
            self.cluster.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "type": "kubernetes.io/tls",
                    "metadata": {"name": name, "namespace": space},
                    "stringData": {
                        "tls.crt": f"cert-{word}",
                        "tls.key": f"key-{word}",
                        "ca.crt": "ca",
                    },
                },
                manager=self.name,
            )


CHARTS: Mapping[str, Chart] = {
    "cert-manager": Chart(
        definitions=DEFINITIONS,
        controllers=(Issuers, ClusterIssuers, Certificates),
        deployments=("cert-manager", "cert-manager-webhook", "cert-manager-cainjector"),
    )
}
