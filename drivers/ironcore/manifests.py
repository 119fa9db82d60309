"""
What fleetd writes into a metal API: for each server a BMC, named after it.

Pure, and free of secrets: the BMCSecret is written by a verb of the driver. It has the name of the
BMC, because metal-operator looks again at a BMC only when the secret of the same name changes. The
labels are what claims select by; metal-operator copies them to the Server, and from there they
come to the Node.
"""

from ipaddress import ip_address

from fleetd.objects import Manifest
from topology.resource import Facts, Resource

GROUP = "metal.ironcore.dev"
BMC = (GROUP, "BMC")
SERVER = (GROUP, "Server")
CLASS = "fleet.c5c3.io/class"
POOL = "fleet.c5c3.io/pool"
RACK = "fleet.c5c3.io/rack"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def server_name(want: Resource) -> str:
    """Of the Server that metal-operator makes for the BMC."""
    return name_of_server(want.ref.name)


def name_of_server(bmc: str) -> str:
    return f"{bmc}-system-0"


def bmc(want: Resource) -> Manifest:
    spec = want.spec
    labels = {
        **spec.get("labels", {}),
        CLASS: str(spec["class"]),
        POOL: str(spec["pool"]),
        ZONE: str(spec["zone"]),
        REGION: want.region,
    }
    if spec.get("rack"):
        labels[RACK] = str(spec["rack"])
    redfish: Facts = spec["redfish"]
    body: Facts = {
        "apiVersion": GROUP,
        "kind": "BMC",
        "metadata": {"name": want.ref.name, "labels": labels},
        "spec": {
            "access": {"ip": str(spec["bmc"])},
            "bmcSecretRef": {"name": want.ref.name},
            "protocol": {
                "name": "Redfish",
                "port": redfish["port"],
                "scheme": redfish["scheme"],
            },
        },
    }
    return Manifest(
        backend=want.backend, body=body, why=f"enrol {want.ref.name} by its BMC {spec['bmc']}"
    )


def readable(ip: str) -> bool:
    """Whether it is an address. One object with another text stops metal-operator for all."""
    try:
        ip_address(ip)
    except ValueError:
        return False
    return True
