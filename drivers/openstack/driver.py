"""
What is made and read through OpenStack's own APIs: Nova, Neutron, Cinder; aggregates and traits;
the smoke test's project, image, network and flavor.

Services without an operator are judged by their API: is there an endpoint in the catalogue, does
it answer, what does it say of its parts. The workloads themselves come from the cluster's folder
in Git; fleetd registers them when their Service has an address. Hosts have an entry of their own
(`hypervisors`) and are left out here. The one rule: a trait is made before anything names it,
for a hypervisor with an unknown trait makes its operator write without end.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from drivers.openstack import manifests
from fleetd import desired, objects, secrets
from fleetd.clouds import client
from fleetd.kube import errors, facts
from fleetd.objects import Manifest, ObjectDriver
from fleetd.tools import unseen
from fleetd.vocabulary import Done, Failed, Observation, Outcome, Step, make_step
from topology.resource import Facts, Resource

TESTS = "tenant_filter_tests"
FILTER = "filter_tenant_id"
OWNER = "fleetd:owner"
"""Metadata of an aggregate that fleetd made; Nova allows no slash in a key."""
DEADLINE = timedelta(seconds=30)
TERMINAL = ("InvalidConfiguration", "UnrecoverableError")

Look = Callable[[Resource], Awaitable[Facts]]


class OpenStackDriver(ObjectDriver):
    kind = "openstack"

    def check(self, want: Resource) -> Sequence[str]:
        wrong = [
            f"the spec of {want.ref} does not say its {part}"
            for part in ("cloud", "cluster")
            if not want.spec.get(part)
        ]
        parameters = facts.part(want.spec, "parameters")
        wrong += [
            f"{trait} is no custom trait; its name begins with CUSTOM_"
            for trait in parameters.get("traits", ())
            if not str(trait).startswith("CUSTOM_")
        ]
        return wrong

    def manifests(self, want: Resource) -> Sequence[Manifest]:
        return manifests.smoke_test(want) if want.ref.kind == "smoke-test" else ()

    async def observe(self, want: Resource) -> Observation:
        at = self.tools.clock.now()
        look: Look = self._service
        if want.ref.kind == "aggregates":
            look = self._aggregates
        elif want.ref.kind == "smoke-test":
            look = self._smoke_test
        try:
            return Observation(ref=want.ref, at=at, facts=await look(want))
        except client.Denied as cause:
            return Observation(ref=want.ref, at=at, facts={"denied": True, "said": str(cause)})
        except (
            errors.KubeError,
            secrets.SecretError,
            client.CannotLook,
            client.Refused,
            client.NotThere,
        ) as cause:
            return unseen(want, at, cause)

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None or seen.facts.get("denied"):
            return ()
        match want.ref.kind:
            case "smoke-test":
                return super().propose(want, seen)
            case "aggregates":
                return _aggregate_steps(want, seen.facts)
            case _:
                return self._registration(want, seen.facts)

    async def act(self, step: Step) -> Outcome:
        args = step.args
        if step.verb not in ("make-trait", "make-aggregate", "set-filter", "drop-aggregate"):
            return await super().act(step)
        try:
            who = await client.login(self.tools, args["backend"], args["namespace"], args["cloud"])
            await client.ask(self.tools, who, lambda cloud: _do(cloud, step.verb, args))
        except client.Denied as cause:
            return Failed("NotAllowed", str(cause), retry=False)
        except client.Refused as cause:
            return Failed("Refused", str(cause), retry=True)
        except (client.CannotLook, client.NotThere) as cause:
            return Failed("NotAnswering", str(cause), retry=True)
        return Done()

    async def _cloud(
        self, want: Resource, call: Callable[[client.Cloud], dict[str, Any]]
    ) -> dict[str, Any]:
        namespace, cloud = manifests.namespace_of(want), str(want.spec["cloud"])
        who = await client.login(self.tools, manifests.backend_of(want), namespace, cloud)
        return await client.ask(self.tools, who, call)

    # Nova, Neutron, Cinder.

    async def _service(self, want: Resource) -> Facts:
        backend, namespace = manifests.backend_of(want), manifests.namespace_of(want)
        service = manifests.REGISTERED[want.ref.kind]
        live = await self.read(want, backend, ("", "Service"), service.api, namespace)
        address = _address(live)
        name = f"{want.spec['cloud']}-{want.ref.kind}"
        held = await self.read(want, backend, ("c5c3.io", "KeystoneService"), name, namespace)
        parts = {} if held is None else {"registration": _part(want, held, address)}
        if not parts and (want.absent or not address):
            return {}  # the API itself comes from a folder of the region's repository
        found = await self._cloud(want, lambda cloud: _health(cloud, want.ref.kind))
        return {"address": address, "parts": parts, **found}

    def _registration(self, want: Resource, seen: Facts) -> Sequence[Step]:
        part = facts.part(seen, "parts", "registration")
        if want.absent:
            return _unregister(want, part)
        address = str(seen.get("address") or "")
        if not address or part.get("deleting") or part.get("taken"):
            return ()
        manifest = manifests.registration(want, address)
        body = objects.marked(manifest.body, want)
        if part and part["made"] == facts.made_from(body) and not part["differs"]:
            return ()
        args = {"backend": manifest.backend, "manifest": body, "force": False}
        return (make_step(want, objects.APPLY, args, why=manifest.why, deadline=DEADLINE),)

    # Aggregates and traits.

    async def _aggregates(self, want: Resource) -> Facts:
        wanted: Facts = want.spec["parameters"]
        found = await self._cloud(want, _everything)
        traits: list[str] = found["traits"]
        held: Mapping[str, Facts] = {one["name"]: one for one in found["aggregates"]}
        names = [*wanted["zones"], TESTS, *wanted["aggregates"]]
        absent = [name for name in names if name not in held]
        unknown = [name for name in wanted["traits"] if name not in traits]
        if len(absent) == len(names) and len(unknown) == len(wanted["traits"]):
            return {}
        tests = held.get(TESTS)
        filtered = tests is not None and bool(facts.part(tests, "metadata").get(FILTER))
        mine = [
            {"id": one["id"], "name": name, "hosts": len(one["hosts"])}
            for name, one in held.items()
            if facts.part(one, "metadata").get(OWNER) == objects.owner(want)
        ]
        if want.absent and not mine:
            return {}
        return {
            "denied": False,
            "traits": {"missing": len(unknown), "names": unknown},
            "aggregates": {
                "missing": len(absent),
                "names": absent,
                "unfiltered": 0 if filtered else 1,
                "mine": mine,
            },
            "project": found["project"],
        }

    # The smoke test.

    async def _smoke_test(self, want: Resource) -> Facts:
        parts: dict[str, Any] = {}
        missing = refused = 0
        denied = False
        for manifest in self.manifests(want):
            live = await self.read(
                want, manifest.backend, manifest.gk, manifest.name, manifest.namespace
            )
            if live is None:
                missing += 1
                continue
            available, progressing = (
                facts.condition(live, "Available"),
                facts.condition(live, "Progressing"),
            )
            missing += available.get("status") != "True"
            refused += (
                progressing.get("status") == "False" and progressing.get("reason") in TERMINAL
            )
            denied = denied or "403" in str(progressing.get("message", ""))
            reason = progressing.get("reason", "")
            parts[manifest.key] = {**desired.part(manifest, live, want), "reason": reason}
        if not parts:
            return {}
        return {"parts": {**parts, "missing": missing, "refused": refused}, "denied": denied}


def _address(live: Mapping[str, Any] | None) -> str:
    """URL of a Service of type LoadBalancer; empty until it has one."""
    if live is None:
        return ""
    ingress = facts.members(live, "status", "loadBalancer", "ingress")
    ports = facts.members(live, "spec", "ports")
    if not ingress or not ports:
        return ""
    host = ingress[0].get("hostname") or ingress[0].get("ip")
    number = int(ports[0]["port"])
    scheme = "http" if ports[0].get("name") == "http" else "https"
    usual = number == (80 if scheme == "http" else 443)
    return f"{scheme}://{host}" if usual else f"{scheme}://{host}:{number}"


def _part(want: Resource, live: Mapping[str, Any], address: str) -> Facts:
    return desired.part(manifests.registration(want, address), live, want)


def _unregister(want: Resource, part: Facts) -> Sequence[Step]:
    if not part.get("made") or part["deleting"] or part.get("taken"):
        return ()
    args = {
        "owner": objects.owner(want),
        "uid": part["uid"],
        "backend": manifests.backend_of(want),
        "group": "c5c3.io",
        "kind": "KeystoneService",
        "name": f"{want.spec['cloud']}-{want.ref.kind}",
        "namespace": manifests.namespace_of(want),
    }
    why = f"take {want.ref.kind} out of the catalogue: it was retired"
    return (make_step(want, objects.DELETE, args, why=why, deadline=DEADLINE, destroys=[want.ref]),)


def _health(cloud: client.Cloud, kind: str) -> dict[str, Any]:
    """What the API says of itself. Not answering is an answer: Keystone did."""
    service = manifests.REGISTERED[kind]
    if not cloud.registered(service.kind):
        return {"endpoint": False}
    try:
        found = _LISTS[kind](cloud)
    except Exception as cause:  # noqa: BLE001 - the library's errors are many; told, not hidden
        cloud.enter()
        return {"endpoint": True, "answers": False, "said": type(cause).__name__}
    return {"endpoint": True, "answers": True, "services": found}


def _nova(cloud: client.Cloud) -> list[Facts]:
    return [
        {"name": f"{one['binary']} on {one['host']}", "state": one["state"]}
        for one in cloud.nova_services()
        if one["binary"] != "nova-compute"
    ]


def _neutron(cloud: client.Cloud) -> list[Facts]:
    """With OVN the server may be all there is: it answered, so it is up."""
    agents = [
        {"name": f"{one['agent_type']} on {one['host']}", "state": "up" if one["alive"] else "down"}
        for one in cloud.neutron_agents()
        if one["agent_type"] not in ("OVN Controller agent", "OVN Metadata agent")
    ]
    return [{"name": "neutron-server", "state": "up"}, *agents]


def _cinder(cloud: client.Cloud) -> list[Facts]:
    return [
        {"name": f"{one['binary']} on {one['host']}", "state": one["state"]}
        for one in cloud.cinder_services()
    ]


_LISTS: Mapping[str, Callable[[client.Cloud], list[Facts]]] = {
    "nova": _nova,
    "neutron": _neutron,
    "cinder": _cinder,
}


def _everything(cloud: client.Cloud) -> dict[str, Any]:
    return {
        "traits": cloud.traits(),
        "aggregates": cloud.aggregates(),
        "project": cloud.project(manifests.PROJECT, manifests.DOMAIN),
    }


def _aggregate_steps(want: Resource, seen: Facts) -> Sequence[Step]:
    """Traits first, then aggregates, then the filter. Steps of one look do not depend on another
    look: what has to wait is proposed next time."""
    if want.absent:
        return _removal(want, seen)
    wanted: Facts = want.spec["parameters"]
    unknown = seen["traits"]["names"] if seen else wanted["traits"]
    absent = seen["aggregates"]["names"] if seen else [*wanted["zones"], TESTS]
    if not seen:
        absent += wanted["aggregates"]
    steps = [
        _step(want, "make-trait", {"name": name}, f"make trait {name} in Placement")
        for name in unknown
    ]
    before = [step.id for step in steps]
    for name in absent:
        zone = name if name in wanted["zones"] else ""
        args = {"name": name, "zone": zone, "owner": objects.owner(want)}
        steps.append(_step(want, "make-aggregate", args, f"make aggregate {name}", after=before))
    project = str(seen.get("project") or "")
    if not absent and project and seen["aggregates"]["unfiltered"]:
        why = f"let only the test project into {TESTS}"
        steps.append(_step(want, "set-filter", {"name": TESTS, "project": project}, why))
    return steps


def _removal(want: Resource, seen: Facts) -> Sequence[Step]:
    """Empty aggregates that fleetd made. Traits stay: they are names, and others may use them."""
    if not seen:
        return ()
    return [
        _step(
            want,
            "drop-aggregate",
            {"name": one["name"], "id": one["id"], "owner": objects.owner(want)},
            f"delete aggregate {one['name']}: it was retired",
            destroys=True,
        )
        for one in seen["aggregates"]["mine"]
        if not one["hosts"]
    ]


def _step(
    want: Resource,
    verb: str,
    args: Facts,
    why: str,
    *,
    after: Sequence[Any] = (),
    destroys: bool = False,
) -> Step:
    whole = {
        "backend": manifests.backend_of(want),
        "namespace": manifests.namespace_of(want),
        "cloud": want.spec["cloud"],
        **args,
    }
    lost = [want.ref] if destroys else []
    # An aggregate is made, and then told whose it is.
    writes = 2 if verb == "make-aggregate" else 1
    return make_step(
        want, verb, whole, why=why, deadline=DEADLINE, after=after, destroys=lost, writes=writes
    )


def _do(cloud: client.Cloud, verb: str, args: Facts) -> None:
    """Each looks first, so that doing it twice is doing it once."""
    name = str(args["name"])
    if verb == "make-trait":
        cloud.make_trait(name)
        return
    known = next((one for one in cloud.aggregates() if one["name"] == name), None)
    if verb == "make-aggregate" and known is None:
        cloud.set_metadata(cloud.make_aggregate(name, str(args["zone"])), {OWNER: args["owner"]})
    elif verb == "set-filter" and known is not None:
        cloud.set_metadata(int(known["id"]), {FILTER: str(args["project"])})
    elif verb == "drop-aggregate" and known is not None and known["id"] == args["id"]:
        ours = facts.part(known, "metadata").get(OWNER) == args["owner"]
        if known["hosts"] or not ours:
            said = "has hosts by now" if known["hosts"] else "is somebody else's by now"
            raise client.Refused(f"aggregate {name} {said}; it is left alone")
        cloud.drop_aggregate(int(known["id"]))
