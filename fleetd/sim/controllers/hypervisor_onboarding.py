"""
How the hypervisor operator brings a host into service: Initial, Testing, Handover.

Imitates real-hypervisor.md 3 and 4. Every stage is a reason of the condition Onboarding, and every
way to be stuck there looks as it was seen: no zone label, no aggregate, no custom trait, an HA
service that is not there. A custom trait that Placement does not know is written again and again,
because each message carries another request id: the hot loop. It is kept for its first half
minute; after that the simulator writes one more message and slows down, so that a run ends.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fleetd.sim.controllers.base import Key, Obj
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import Cloud
from fleetd.sim.services.openstack_compute import TESTS, Host, Vm

if TYPE_CHECKING:
    from fleetd.sim.controllers.hypervisor import HypervisorOperator as Operator

ZONE = "topology.kubernetes.io/zone"
AGENTS = ("nova-compute", "ovn-controller", "kvm-node-agent")
RETRY = 15.0
POLL = 60.0
"""Seconds between looks at the test server's console."""
LOOP_MAX = 200
"""Writes of the hot loop, at 7 a second."""
NO_HA = "failed to send request to ha service due to dial tcp: lookup kvm-ha-service: no such host"


def step(op: "Operator", key: Key, obj: Obj, cloud: Cloud, host: Host) -> float | None:
    """One stage further, if it can. Answers when to look again."""
    held = shape.conditions(obj)
    reason = next((one["reason"] for one in held if one["type"] == "Onboarding"), "")
    match reason:
        case "Initial":
            return _initial(op, key, obj, cloud, host)
        case "Testing":
            return _testing(op, key, obj, cloud)
        case "Handover":
            return _handover(op, key, obj, cloud)
        case _:
            op.say(
                key,
                # An empty list equals an empty status, for a moment.
                ("AggregatesUpdated", "True", "Succeeded", ""),
                ("Ready", "False", "Onboarding", ""),
                ("Onboarding", "True", "Initial", "Initial onboarding"),
                ("HaEnabled", "Unknown", "Failed", NO_HA),
            )
            return op.span(0.5, 1.5, key, "initial")


def _initial(op: "Operator", key: Key, obj: Obj, cloud: Cloud, host: Host) -> float | None:
    zone = shape.part(obj, "metadata.labels").get(ZONE, "")
    missing = cloud.nova.put_in(key.name, [zone, TESTS])
    if missing:
        told = [name for name in missing if name]
        why = f"failed to apply aggregates: aggregates not found: [{' '.join(told)}]"
        op.say(key, ("AggregatesUpdated", "False", "Failed", why))
        return RETRY
    host.disabled, host.reason, host.forced_down = False, "", False
    op.say(
        key,
        ("AggregatesUpdated", "False", "TestAggregates", ""),
        ("Onboarding", "True", "Testing", "Running onboarding tests"),
    )
    return None


def _testing(op: "Operator", key: Key, obj: Obj, cloud: Cloud) -> float | None:
    server = _test_server(cloud, key.name)
    if not obj["spec"].get("skipTests"):
        if server is None:
            lacks = lacking(cloud)
            if lacks:
                op.world.tell("cannot test", key.name, lacks)
                return POLL
            project = cloud.find("Project", "test")
            name = f"ohooc--{key.name}-{cloud.nova.servers}"
            cloud.nova.boot(name, key.name, project=project.id if project else "", test=True)
            return POLL
        if server.console > op.world.elapsed() + 0.01:
            return POLL
    if server is not None:
        cloud.nova.remove(server)
    op.say(key, ("Onboarding", "True", "Handover", "Waiting for other controllers to take over"))
    return None


def _test_server(cloud: Cloud, host: str) -> Vm | None:
    return next((vm for vm in cloud.nova.on(host) if vm.name.startswith(f"ohooc--{host}")), None)


def lacking(cloud: Cloud) -> str:
    """What the test of a host cannot do without and is not there; empty if it has all."""
    if not cloud.up("cinder") or cloud.find("VolumeType", "premium") is None:
        return "failed to create or get test instance: got 500: EndpointNotFound"
    if not cloud.up("glance") or cloud.find("Image", "cirros-kvm") is None:
        return "failed to create or get test instance: image cirros-kvm not found"
    networks = cloud.tables.get("Network", {}).values()
    if not any(not network.more.get("shared") for network in networks):
        return "failed to create or get test instance: no network found"
    if not cloud.tables.get("Flavor"):
        return "failed to create or get test instance: no flavor found"
    return ""


def _handover(op: "Operator", key: Key, obj: Obj, cloud: Cloud) -> float | None:
    if not obj["spec"].get("customTraits"):
        # The traits controller has nothing to do, and so never says that it has done it.
        op.say(key, ("AggregatesUpdated", "False", "WaitingForTraits", ""))
        return None
    again = keep(op, key, obj, cloud)
    obj = op.get(key) or obj
    if again is not None or shape.condition(obj, "AggregatesUpdated") != "True":
        return again
    if obj["spec"].get("highAvailability") and shape.condition(obj, "HaEnabled") != "True":
        return None
    op.say(
        key,
        ("Onboarding", "False", "Succeeded", ""),
        ("HypervisorDisabled", "False", "Succeeded", ""),
        ("Ready", "True", "Ready", ""),
    )
    op.world.tell("onboarded", op.cluster.name, key.name)
    admitted(op, key.name, cloud)
    return None


def admitted(op: "Operator", host: str, cloud: Cloud) -> None:
    """I12: Nova may place virtual machines there from now on, so all that they need must be
    there: the network, the agents, the storage."""
    world, cluster = op.world, op.cluster.name
    missing = [one for one in AGENTS if (cluster, one) not in world.controllers]
    lacks = lacking(cloud)
    if missing or lacks:
        why = f"without {', '.join(missing)}" if missing else f"though {lacks}"
        world.truth.hurt(f"{host} was opened for virtual machines {why}", rule="I12")


def keep(op: "Operator", key: Key, obj: Obj, cloud: Cloud) -> float | None:
    """Traits and aggregates as the spec says, also long after onboarding."""
    spec: Mapping[str, Any] = obj["spec"]
    traits: list[str] = spec.get("customTraits") or []
    unknown = [name for name in traits if name not in cloud.traits]
    if unknown:
        return _loop(op, key, unknown[0])
    op.loops.pop(key.name, None)
    host = cloud.nova.hosts.get(key.name)
    if host is None or not cloud.up("placement"):
        return RETRY
    if traits:
        standard = [name for name in host.traits if not name.startswith("CUSTOM_")]
        host.traits = [*standard, *traits]
        if shape.part(obj, "status").get("traits") != host.traits:
            op.status(key, {"traits": list(host.traits)})
        op.say(key, ("TraitsUpdated", "True", "Succeeded", ""))
    zone = shape.part(obj, "metadata.labels").get(ZONE, "")
    names: list[str] = list(spec.get("aggregates") or [zone])
    missing = cloud.nova.put_in(key.name, names)
    if missing:
        why = f"failed to apply aggregates: aggregates not found: [{' '.join(missing)}]"
        op.say(key, ("AggregatesUpdated", "False", "Failed", why))
        return RETRY
    held = [{"name": one.name, "uuid": one.uuid} for one in cloud.nova.of_host(key.name)]
    if shape.part(obj, "status").get("aggregates") != held:
        op.status(key, {"aggregates": held})
    op.say(key, ("AggregatesUpdated", "True", "Succeeded", ""))
    return None


def _loop(op: "Operator", key: Key, trait: str) -> float:
    """Each write differs and wakes the controller again."""
    count = op.loops.get(key.name, 0) + 1
    op.loops[key.name] = min(count, LOOP_MAX)
    if count == 1:
        op.world.tell("hot loop", key.name, f"{trait} is missing in Placement")
    request = op.world.uid(f"request/{key.name}/{min(count, LOOP_MAX)}")
    why = f"Expected HTTP response code [200], but got 400: No such trait {trait} (req-{request})"
    op.say(key, ("TraitsUpdated", "False", "Failed", why))
    return 0.14 if count < LOOP_MAX else 30.0
