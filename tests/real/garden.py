"""
A garden on loopback: gardener-apiserver behind a kube-apiserver, as an aggregated API.

No gardenlet, no scheduler, no seed: objects are accepted or refused as in a real garden, and nobody
acts on them. The way there is the aggregator's own, with a Service that leads to loopback.
"""

import base64
import json
from pathlib import Path
from typing import Any

from tests.real import process
from tests.real.kube import MASTERS, READY, Kube

VERSIONS = (
    ("core.gardener.cloud", "v1"),
    ("core.gardener.cloud", "v1beta1"),
    ("settings.gardener.cloud", "v1alpha1"),
    ("seedmanagement.gardener.cloud", "v1alpha1"),
    ("operations.gardener.cloud", "v1alpha1"),
    ("security.gardener.cloud", "v1alpha1"),
)
NAMESPACE, SERVICE = "garden", "gardener-apiserver"
CORE = "/apis/core.gardener.cloud/v1beta1"
TYPES = (
    *((kind, "ironcore-metal") for kind in ("ControlPlane", "Infrastructure", "Worker")),
    ("Network", "calico"),
    ("OperatingSystemConfig", "gardenlinux"),
    ("DNSRecord", "designate"),
)
"""What somebody would bring who installs extensions. A garden refuses what nobody has brought."""


def programs() -> tuple[str, ...]:
    return ("etcd", "kube-apiserver", "gardener-apiserver")


def extensions() -> dict[str, Any]:
    """The spec of a registration of all types."""
    return {"resources": [{"kind": kind, "type": one} for kind, one in TYPES]}


class Garden(Kube):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, controllers=False)
        (self._garden_port,) = process.free_ports(1)

    def finish(self) -> None:
        super().finish()
        self._gardener()
        self._register()
        self.running[-1].until(self._served, READY)
        self._create(
            f"{CORE}/controllerregistrations",
            "core.gardener.cloud/v1beta1",
            "ControllerRegistration",
            "lab",
            extensions(),
        )

    def _gardener(self) -> None:
        # The aggregator checks this name, whatever address it dials.
        serving = self.authority.server(SERVICE, f"{SERVICE}.{NAMESPACE}.svc")
        config = self.write_kubeconfig("gardener", [MASTERS])
        self.run(
            SERVICE,
            *self.etcd_options(),
            "--bind-address=127.0.0.1",
            f"--secure-port={self._garden_port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--cluster-identity=lab",
            "--feature-gates=InPlaceNodeUpdates=true",
            "--log-level=error",
        )

    def _register(self) -> None:
        self._create("/api/v1/namespaces", "v1", "Namespace", NAMESPACE)
        # Endpoints on loopback are refused; a name that leads there is not.
        spec: dict[str, Any] = {"type": "ExternalName", "externalName": "localhost"}
        self._create(f"/api/v1/namespaces/{NAMESPACE}/services", "v1", "Service", SERVICE, spec)
        trusted = base64.b64encode(self.authority.certificate.read_bytes()).decode()
        for group, version in VERSIONS:
            spec = {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 9000,
                "versionPriority": 10 if version == "v1beta1" else 20,
                "caBundle": trusted,
                "service": {"namespace": NAMESPACE, "name": SERVICE, "port": self._garden_port},
            }
            path = "/apis/apiregistration.k8s.io/v1/apiservices"
            version_of = "apiregistration.k8s.io/v1"
            self._create(path, version_of, "APIService", f"{version}.{group}", spec)

    def _served(self) -> bool:
        """The aggregator finds out for each of them by itself that it is there."""
        pages = [f"/apis/{group}/{version}" for group, version in VERSIONS]
        return all(self.get(page)[0] == 200 for page in (*pages, f"{CORE}/shoots"))

    def _create(
        self, path: str, version: str, kind: str, name: str, spec: dict[str, Any] | None = None
    ) -> None:
        body: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
        if spec is not None:
            body["spec"] = spec
        status, answer = self.send("POST", path, body)
        if status != 201:
            said = json.loads(answer).get("message", "") if answer else "nobody answers"
            raise process.NotUp(f"{kind} {name} was refused with {status}: {said}")
