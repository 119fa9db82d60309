"""
What fleetd writes on a control-plane cluster, as manifests: the ControlPlane, the registration of
services without an operator, and the prerequisites of the smoke test.

Pure, and free of secrets: passwords are named by the Secret they lie in. The one rule: names
follow from the cloud and the cluster, so that the same document always means the same object.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fleetd.objects import Manifest
from topology.resource import Facts, Resource

C5C3 = "c5c3.io/v1alpha1"
KORC = "openstack.k-orc.cloud/v1alpha1"
CREDENTIALS = "k-orc-clouds-yaml"
"""The Secret with the clouds.yaml of the admin's application credential."""
CLOUD_NAME = "admin"
DOMAIN, PROJECT, IMAGE, VOLUME_TYPE = "cc3test", "test", "cirros-kvm", "premium"
"""The hypervisor operator has these names built in."""
CIRROS = "https://download.cirros-cloud.net/0.6.3/cirros-0.6.3-x86_64-disk.img"
TEST_NETWORK = "198.51.100.0/24"
"""From the range for documentation: nothing is routed there, and nothing has to be."""

REPLICAS: Mapping[str, int] = {"small": 1, "medium": 3, "large": 5}
"""Of each API, by the size of the cloud. Small has no standby, and says so by its name."""
OPERATED = ("keystone", "glance", "placement", "horizon", "barbican")


class Registered:
    """A service without an operator: its type, its API's Service, the path of its URL."""

    def __init__(self, kind: str, api: str, path: str) -> None:
        self.kind = kind
        self.api = api
        self.path = path


REGISTERED: Mapping[str, Registered] = {
    "nova": Registered("compute", "nova-api", "/v2.1"),
    "neutron": Registered("network", "neutron-server", ""),
    "cinder": Registered("block-storage", "cinder-api", "/v3"),
}


def backend_of(want: Resource) -> str:
    """The control-plane cluster; what `openstack` things are made through lies there."""
    return f"cluster:{want.spec['cluster']}"


def namespace_of(want: Resource) -> str:
    return f"openstack-{want.spec['cluster']}"


def control_plane(want: Resource) -> Manifest:
    spec = want.spec
    cloud, namespace = str(spec["cloud"]), namespace_of(want)
    wanted: Sequence[str] = spec["services"]
    replicas = REPLICAS[str(spec["size"])]
    services: dict[str, Any] = {
        name: _service(name, cloud, namespace, replicas) for name in OPERATED if name in wanted
    }
    body: Facts = {
        "apiVersion": C5C3,
        "kind": "ControlPlane",
        "metadata": {"name": cloud, "namespace": namespace},
        "spec": {
            "openStackRelease": str(spec["release"]),
            "region": want.region,
            "infrastructure": {
                "database": {
                    "clusterRef": {"name": "openstack-db"},
                    "database": "keystone",
                    "secretRef": {"name": f"{cloud}-keystone-db"},
                    "credentialsMode": "Dynamic",
                },
                "cache": {
                    "backend": "dogpile.cache.pymemcache",
                    "clusterRef": {"name": "openstack-memcached"},
                },
            },
            "services": services,
            "korc": {
                "adminCredential": {
                    "cloudCredentialsRef": {
                        "cloudName": CLOUD_NAME,
                        "secretName": CREDENTIALS,
                    },
                    "passwordSecretRef": {"name": f"{cloud}-keystone-admin", "key": "password"},
                    "applicationCredential": {
                        "restricted": True,
                        "rotation": {"mode": "PasswordDriven"},
                    },
                },
                "serviceRegistrations": {"allowedNamespaces": [namespace]},
            },
        },
    }
    why = f"write the ControlPlane of cloud {cloud}, release {spec['release']}"
    return Manifest(backend=backend_of(want), body=body, why=why)


def _service(name: str, cloud: str, namespace: str, replicas: int) -> dict[str, Any]:
    common: dict[str, Any] = {"replicas": replicas}
    match name:
        case "glance":
            store = {
                "endpoint": f"http://garage.{namespace}.svc:3900",
                "bucket": "glance-images",
                "region": "garage",
                "credentialsSecretRef": {"name": "garage-s3-credentials"},
            }
            return {
                **common,
                "backends": [{"name": "garage", "type": "S3", "isDefault": True, "s3": store}],
            }
        case "horizon":
            key = {"name": f"{cloud}-horizon-secret-key", "key": "secret-key"}
            return {**common, "secretKeyRef": key}
        case "barbican":
            return {**common, "secretStore": {"dedicated": {}}}
        case _:
            return common


def registration(want: Resource, address: str) -> Manifest:
    """The catalogue entry and the account of Nova, Neutron or Cinder. `address` is that of its
    API, as the cluster's load balancer has it."""
    service = REGISTERED[want.ref.kind]
    cloud = str(want.spec["cloud"])
    url = address + service.path
    body: Facts = {
        "apiVersion": C5C3,
        "kind": "KeystoneService",
        "metadata": {"name": f"{cloud}-{want.ref.kind}", "namespace": namespace_of(want)},
        "spec": {
            "controlPlaneRef": {"name": cloud},
            "catalog": {
                "serviceType": service.kind,
                "serviceName": want.ref.kind,
                "endpoints": [
                    {"interface": "public", "url": url},
                    {"interface": "internal", "url": url},
                ],
            },
            "account": {
                "userName": want.ref.kind,
                "project": {"name": "service"},
                "roles": ["service", "admin"],
                "rotation": {"mode": "Manual"},
            },
        },
    }
    return Manifest(
        backend=backend_of(want), body=body, why=f"register {want.ref.kind} in the catalogue"
    )


def smoke_test(want: Resource) -> list[Manifest]:
    """What the test of a new host needs, in the order in which it can be made. Of services that
    the cloud does not have, nothing; all of it where it is to go, for then it needs nothing."""
    every = {"nova", "neutron", "glance", "cinder"}
    has = every if want.absent else {need.kind for need in want.needs}
    parts: list[tuple[str, str, Facts]] = [
        ("Domain", "domain", {"resource": {"name": DOMAIN}}),
        ("Project", "project", {"resource": {"name": PROJECT, "domainRef": "smoke-test-domain"}}),
        ("Role", "role", _imported("admin")),
        ("User", "user", _imported("admin")),
        (
            "RoleAssignment",
            "assignment",
            {
                "resource": {
                    "roleRef": "smoke-test-role",
                    "userRef": "smoke-test-user",
                    "projectRef": "smoke-test-project",
                }
            },
        ),
    ]
    if "nova" in has:
        flavor = {"id": "1", "name": "smoke-test", "ram": 512, "vcpus": 1, "disk": 1}
        parts.append(("Flavor", "flavor", {"resource": flavor}))
    if "neutron" in has:
        network = {"name": "smoke-test", "projectRef": "smoke-test-project"}
        subnet = {
            "name": "smoke-test",
            "networkRef": "smoke-test-network",
            "ipVersion": 4,
            "cidr": TEST_NETWORK,
        }
        parts.append(("Network", "network", {"resource": network}))
        parts.append(("Subnet", "subnet", {"resource": subnet}))
    if "glance" in has:
        content = {"diskFormat": "qcow2", "download": {"url": CIRROS}}
        image = {"name": IMAGE, "visibility": "public", "content": content}
        parts.append(("Image", "image", {"resource": image}))
    if "cinder" in has:
        parts.append(("VolumeType", "volume-type", {"resource": {"name": VOLUME_TYPE}}))
    return [_korc(want, kind, f"smoke-test-{name}", spec) for kind, name, spec in parts]


def _imported(name: str) -> Facts:
    return {"managementPolicy": "unmanaged", "import": {"filter": {"name": name}}}


def _korc(want: Resource, kind: str, name: str, spec: Facts) -> Manifest:
    body: Facts = {
        "apiVersion": KORC,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace_of(want)},
        "spec": {
            "cloudCredentialsRef": {"cloudName": CLOUD_NAME, "secretName": CREDENTIALS},
            **({} if "managementPolicy" in spec else {"managementPolicy": "managed"}),
            **spec,
        },
    }
    return Manifest(backend=backend_of(want), body=body, why=f"make the {kind} of the smoke test")
