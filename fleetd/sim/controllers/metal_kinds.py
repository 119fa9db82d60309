"""The kinds that a metal API serves, in the generation of metal-operator 0.3, and their names."""

from fleetd.sim.kube.cluster import GK
from fleetd.sim.kube.definitions import Column, Definition

GROUP = "metal.ironcore.dev"
BMC: GK = (GROUP, "BMC")
BMC_SECRET: GK = (GROUP, "BMCSecret")
SERVER: GK = (GROUP, "Server")
CLAIM: GK = (GROUP, "ServerClaim")
BOOT: GK = (GROUP, "ServerBootConfiguration")
MAINTENANCE: GK = (GROUP, "ServerMaintenance")
OPERATION = "metal.ironcore.dev/operation"
FINALIZER = "metal.ironcore.dev/server"
MANAGER_NAMESPACE = "metal-operator-system"
BOOT_NAMESPACE = "boot-operator-system"

_CONDITIONS = {"status.conditions": ("type",)}


def _kind(kind: str, plural: str, **more: object) -> Definition:
    return Definition(
        group=GROUP,
        kind=kind,
        plural=plural,
        versions=("v1alpha1",),
        **more,  # pyright: ignore[reportArgumentType]
    )


DEFINITIONS = (
    _kind(
        "BMC",
        "bmcs",
        namespaced=False,
        lists=_CONDITIONS,
        immutable=("spec.access", "spec.endpointRef"),
        columns=(
            Column("IP", "status.ip"),
            Column("Model", "status.model"),
            Column("State", "status.state"),
        ),
    ),
    _kind("BMCSecret", "bmcsecrets", namespaced=False, status=False),
    _kind(
        "Server",
        "servers",
        namespaced=False,
        lists=_CONDITIONS,
        columns=(
            Column("SystemUUID", "spec.systemUUID"),
            Column("PowerState", "status.powerState"),
            Column("State", "status.state"),
        ),
    ),
    _kind(
        "ServerClaim",
        "serverclaims",
        columns=(Column("Server", "spec.serverRef.name"), Column("Phase", "status.phase")),
    ),
    _kind(
        "ServerBootConfiguration",
        "serverbootconfigurations",
        lists=_CONDITIONS,
        columns=(Column("ServerRef", "spec.serverRef.name"), Column("State", "status.state")),
    ),
    _kind(
        "ServerMaintenance",
        "servermaintenances",
        columns=(Column("ServerRef", "spec.serverRef.name"), Column("State", "status.state")),
    ),
    *(
        _kind(kind, plural, namespaced=False)
        for kind, plural in (
            ("BIOSSettings", "biossettings"),
            ("BIOSVersion", "biosversions"),
            ("BMCSettings", "bmcsettings"),
            ("BMCVersion", "bmcversions"),
            ("BMCUser", "bmcusers"),
            ("Endpoint", "endpoints"),
        )
    ),
    *(
        Definition(group="boot.ironcore.dev", kind=kind, plural=plural, versions=("v1alpha1",))
        for kind, plural in (
            ("HTTPBootConfig", "httpbootconfigs"),
            ("IPXEBootConfig", "ipxebootconfigs"),
        )
    ),
)
