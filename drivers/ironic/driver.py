"""
Drives bare metal through Ironic: enrols a node for each server and brings it to `available`.

A server is enrolled only when its BMC answers fleetd with the password, and never twice. Nothing
here cleans, deploys, undeploys or switches power: a node that is in use, broken or in maintenance
is left as it is, for a person to look at. Ironic has no watch, so all nodes of a region are listed
at most every few seconds, however many servers are looked at in between.

Of `last_error` little is believed: it is empty after most failures. What failed is in the state;
only the answer of a BMC to a wrong password is read from its words, because that can be mended.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import requests

from drivers.ironic import client, nodes
from fleetd import objects, redfish, secrets
from fleetd.gate import GateClosed
from fleetd.tools import Tools
from fleetd.vocabulary import (
    Condition,
    Done,
    Failed,
    Observation,
    Outcome,
    Step,
    Waiting,
    make_step,
)
from topology.resource import Facts, Ref, Resource

T = TypeVar("T")

CREATE, UPDATE, PASSWORD, PROVISION, DELETE, REFUSE = (
    "create-node",
    "update-node",
    "set-bmc-password",
    "provision",
    "delete-node",
    "refuse",
)
DEADLINE = timedelta(seconds=30)
NODES = "nodes"
"""The key of the list of a region's nodes."""
FRESH = timedelta(seconds=3)
"""How long a list of nodes is used again."""
KEPT, FAILING = timedelta(minutes=2), timedelta(seconds=30)
"""How long the answer of a BMC is used again; one that did not answer is asked sooner."""
COOL = timedelta(minutes=5)
"""After a failed verification, until the next: each costs a conductor half a minute."""
LOCKED_AGAIN = timedelta(seconds=10)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class IronicDriver:
    kind = "ironic"

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self._machines = redfish.Machines()

    def check(self, want: Resource) -> Sequence[str]:
        if want.ref.kind != "server":
            return ()
        try:
            redfish.address(want.spec)
        except ValueError:
            return (f"the BMC's address {want.spec.get('bmc')!r} is not an IP address",)
        return ()

    # Looking.

    async def observe(self, want: Resource) -> Observation:
        at = self.tools.clock.now()
        try:
            found = await self._look(want)
        except (client.CannotLook, client.NoConductor, client.Denied, client.Refused) as cause:
            return Observation(ref=want.ref, at=at, facts=None, error=str(cause), blind=cause.blind)
        except secrets.SecretError as cause:
            return Observation(ref=want.ref, at=at, facts=None, error=str(cause), blind=cause.blind)
        return Observation(ref=want.ref, at=at, facts=found)

    async def _look(self, want: Resource) -> dict[str, Any]:
        if want.ref.kind == "ironic":
            return await self._api(want)
        everything = await self._nodes(want.region)
        node = everything.named.get(want.ref.name)
        if want.absent and node is None:
            return {}
        answer = await self._bmc(want)
        observed = answer.told(want.spec.get("uuid"))
        other = everything.same_machine(want)
        if node is None and not other:
            other = self._machines.twin(want.ref.name, self.tools.fleet.topology())
        if other:
            observed["sameMachineAs"] = other
        if node is None:
            good = answer.state == redfish.ANSWERS and observed.keys() == {"bmc"}
            return {} if good else {"observed": observed}
        found = nodes.seen(want, node)
        return {**found, "observed": observed | self._failure(found)}

    async def _api(self, want: Resource) -> dict[str, Any]:
        """Of the API itself. Something that answers in its place is not an answer of it."""
        try:
            found = await self._ask(want.region, lambda ironic: ironic.conductors())
        except client.NotWell as cause:
            return {"answers": False, "said": str(cause)}
        except client.Denied as cause:
            return {"answers": True, "authenticated": False, "said": str(cause)}
        alive = sum(1 for one in found if one.get("alive"))
        return {"answers": True, "authenticated": True, "conductors": {"alive": alive}}

    async def _nodes(self, region: str) -> nodes.Index:
        async def fetch() -> nodes.Index:
            return nodes.Index(await self._ask(region, lambda ironic: ironic.nodes()))

        return await self.tools.polls.get(f"metal:{region}", NODES, fetch, lambda _: FRESH)

    def forget(self, region: str) -> None:
        """The next look asks Ironic."""
        self.tools.polls.forget(f"metal:{region}", NODES)

    async def _bmc(self, want: Resource) -> redfish.Answer:
        where = f"bmc:{want.region}"

        async def fetch() -> redfish.Answer:
            who, base = await self._login(want), redfish.address(want.spec)
            answer = await self.tools.net.blocking(
                where, lambda session: redfish.ask(session, base, who), counted=False
            )
            self._machines.note(want.ref.name, answer.uuid)
            return answer

        return await self.tools.polls.get(where, want.ref.name, fetch, _kept)

    async def _login(self, want: Resource) -> redfish.Login:
        return redfish.login(
            await self.tools.secrets.read(want.spec["access"], want), str(want.owner)
        )

    def _failure(self, found: Facts) -> dict[str, Any]:
        """`refused`: Ironic's password is not the BMC's. `cooling`: something else failed so lately
        that it would fail again. What failed before the password was written counts no more."""
        now, node = self.tools.clock.now(), found["node"]
        said = str(found.get("last_error") or found.get("maintenance_reason") or "")
        written = _moment(node["written"]) or _LONG_AGO
        failed = _moment(node["updated"]) or _LONG_AGO
        if found.get("fault"):
            fresh = now - written > COOL  # Ironic looks again by itself, after some minutes
        else:
            fresh = found.get("provision_state") == "enroll" and failed >= written
        if not said or not fresh:
            return {}
        if "401" in said or "ncorrect username or password" in said:
            return {"refused": True}
        return {"cooling": True} if now - failed < COOL else {}

    async def _ask(self, region: str, call: Callable[[client.Ironic], T]) -> T:
        document = self.tools.fleet.everything().resources.get(Ref("region", region))
        if document is None:
            raise secrets.SecretError(f"no document describes region {region}; add it")
        metal: Facts = document.spec["metal"]
        access = await self.tools.secrets.read(metal["access"], document)
        who = client.Login(url=str(metal["url"]), access=access)

        def work(session: requests.Session) -> T:
            with client.session(session, who) as ironic:
                return call(ironic)

        try:
            return await self.tools.net.blocking(f"metal:{region}", work)
        except GateClosed as closed:
            raise client.CannotLook(str(closed)) from None

    # Deciding.

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if want.ref.kind != "server" or seen.facts is None:
            return ()
        found = seen.facts
        if want.absent:
            return _removal(want, found)
        observed: Facts = found.get("observed") or {}
        if observed.get("sameMachineAs") or observed.get("otherMachine"):
            return ()
        if "node" not in found:
            if observed:
                return ()  # its BMC does not answer: nothing to enrol yet
            name, wanted = want.ref.name, nodes.body(want)
            created = _step(want, CREATE, {"node": wanted}, f"enrol server {name} in Ironic")
            return [created, _password(want, "", after=created)]
        return _next(want, found, observed)

    # Doing.

    async def apply(self, step: Step) -> Outcome:
        if step.verb == REFUSE:
            return Failed("Refused", str(step.args["why"]), retry=False)
        self.forget(str(step.args["region"]))
        self.tools.polls.forget(f"bmc:{step.args['region']}", step.ref.name)
        try:
            return await self._carry_out(step)
        except client.Locked:
            return Waiting("Locked", LOCKED_AGAIN)
        except (client.CannotLook, client.NoConductor) as cause:
            return Failed(type(cause).__name__, str(cause), retry=True)
        except (client.Denied, client.Taken, client.Refused) as cause:
            return Failed(type(cause).__name__, str(cause), retry=isinstance(cause, client.Denied))
        except secrets.SecretError as cause:
            return Failed("NoSecret", str(cause), retry=True)

    async def _carry_out(self, step: Step) -> Outcome:
        region = str(step.args["region"])
        if step.verb == PASSWORD:
            want = self.tools.fleet.everything().resources.get(step.ref)
            if want is None:
                return Failed("NoDocument", f"no document names {step.ref} any more", retry=False)
            who = await self._login(want)
            now = self.tools.clock.now()
            return await self._ask(region, lambda ironic: _set_password(ironic, step, who, now))
        deed = _DEEDS.get(step.verb)
        if deed is None:
            return Failed("BadStep", f"{step.verb} is not known to the ironic driver", retry=False)
        return await self._ask(region, lambda ironic: deed(ironic, step))

    # Judging.

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        if not seen.facts:
            return ()
        verdict = self.tools.rules.reader(want.ref.kind).read(seen.facts, now=seen.at)
        return (objects.condition(want, verdict, seen),)


def _kept(answer: redfish.Answer) -> timedelta:
    return KEPT if answer.state == redfish.ANSWERS else FAILING


def _next(want: Resource, found: Facts, observed: Facts) -> Sequence[Step]:
    """For a node that is there: one thing, and only what cannot hurt."""
    node: Facts = found["node"]
    name, state = want.ref.name, str(found.get("provision_state"))
    if node["foreign"]:
        why = f"node {name} in Ironic was made for another server; rename one of them"
        return [_step(want, REFUSE, {"why": why}, why)]
    if not node["here"]:
        why = (
            f"node {name} in Ironic leads to {node['address'] or 'no BMC'}, not to the BMC of "
            f"{name}; rename it, or correct the address"
        )
        return [_step(want, REFUSE, {"why": why}, why)]
    if node["moving"] or node["locked"]:
        return ()
    if node["differs"]:
        told = ", ".join(node["differs"])
        why = f"bring node {name} to what the documents say: {told}"
        return [_step(want, UPDATE, {"node": nodes.body(want)}, why)]
    if observed.get("bmc") != redfish.ANSWERS:
        return ()
    refused = observed.get("refused")
    if not node["password"] or refused:
        return [_password(want, node["set"] if refused else "")]
    if found.get("maintenance") or observed.get("cooling"):
        return ()
    target = _target(state, inspected=bool(node["inspected"]))
    if not target:
        return ()
    args = {"from": state, "target": target}
    words = {
        "manage": f"have Ironic verify the BMC of {name}",
        "inspect": f"have Ironic look into {name} through its BMC",
        "provide": f"make {name} available, without cleaning its disks",
    }
    return [_step(want, PROVISION, args, words[target])]


def _target(state: str, *, inspected: bool) -> str:
    """What comes next on the way to available; nothing for what is there, in use or broken."""
    if state == "enroll":
        return "manage"
    if state == "manageable":
        return "provide" if inspected else "inspect"
    return ""


def _removal(want: Resource, found: Facts) -> Sequence[Step]:
    node: Facts = found.get("node") or {}
    if not node or not node["ours"] or node["moving"] or node["locked"]:
        return ()
    state, name = str(found.get("provision_state")), want.ref.name
    if state not in nodes.REMOVABLE:
        why = f"{name} is {state} in Ironic; take it out of use there first"
        return [_step(want, REFUSE, {"why": why}, why)]
    if node["instance"]:
        why = f"{name} belongs to instance {node['instance']}; take it out of use there first"
        return [_step(want, REFUSE, {"why": why}, why)]
    why = f"delete node {name} from Ironic: it was retired"
    args = {"uuid": str(found["uuid"]), "state": state, "owner": objects.owner(want)}
    return [_step(want, DELETE, args, why, destroys=True)]


def _password(want: Resource, replaces: str, after: Step | None = None) -> Step:
    """`replaces` tells one writing from the next."""
    why = f"tell Ironic the BMC password of {want.ref.name}"
    if replaces:
        why += ": the BMC refuses the one it has"
    args = {"replaces": replaces, "address": redfish.address(want.spec)}
    return _step(want, PASSWORD, args, why, after=after)


def _step(
    want: Resource,
    verb: str,
    args: Facts,
    why: str,
    *,
    after: Step | None = None,
    destroys: bool = False,
) -> Step:
    return make_step(
        want,
        verb,
        {"region": want.region, "name": want.ref.name, **args},
        why=why,
        deadline=DEADLINE,
        after=[after.id] if after else (),
        destroys=[want.ref] if destroys else (),
    )


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


# Deeds: each looks first, so that doing it twice is doing it once.


def _create(ironic: client.Ironic, step: Step) -> Outcome:
    wanted: Facts = step.args["node"]
    there = ironic.node(str(step.args["name"]))
    if there is not None:
        mine = nodes.mark_of(there).get("owner") == nodes.mark_of(wanted).get("owner")
        said = f"there is a node {step.args['name']} that fleetd did not make"
        return Done() if mine else Failed("Taken", said, retry=True)
    mark = {**wanted["extra"][nodes.MARK], "step": step.id}
    ironic.create({**wanted, "extra": {nodes.MARK: mark}})
    return Done()


def _update(ironic: client.Ironic, step: Step) -> Outcome:
    wanted: Facts = step.args["node"]
    there = ironic.node(str(step.args["name"]))
    if there is None:
        return Failed("Gone", f"there is no node {step.args['name']} any more", retry=True)
    if nodes.differences(wanted, there):
        ironic.update(str(there["uuid"]), nodes.patch(wanted, there, step.id))
    return Done()


def _set_password(ironic: client.Ironic, step: Step, who: redfish.Login, now: datetime) -> Outcome:
    there = ironic.node(str(step.args["name"]))
    if there is None:
        return Failed("Gone", f"there is no node {step.args['name']} any more", retry=True)
    if not nodes.leads_to(there, str(step.args["address"])):
        said = f"node {step.args['name']} leads to another BMC now; it does not get the password"
        return Failed("Moved", said, retry=True)
    mark = nodes.mark_of(there)
    if mark.get("password") == step.id:
        return Done()
    info = {
        "redfish_username": who.user,
        "redfish_password": who.password.reveal(),
    }
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": f"/driver_info/{key}", "value": value} for key, value in info.items()
    ]
    marked = {**mark, "password": step.id, "written": now.isoformat()}
    patch.append({"op": "add", "path": f"/extra/{nodes.MARK}", "value": marked})
    ironic.update(str(there["uuid"]), patch)
    return Done()


def _provision(ironic: client.Ironic, step: Step) -> Outcome:
    there = ironic.node(str(step.args["name"]))
    if there is None:
        return Failed("Gone", f"there is no node {step.args['name']} any more", retry=True)
    moved = there.get("provision_state") != step.args["from"]
    if moved or there.get("target_provision_state"):
        return Done()  # it was done before, or somebody else was quicker; the next look tells
    if step.args["target"] == "inspect" and there.get("inspection_finished_at"):
        return Done()
    if step.args["target"] == "provide" and there.get("automated_clean") is not False:
        said = f"{step.args['name']} would be cleaned: automated_clean is on"
        return Failed("WouldClean", said, retry=True)
    ironic.provision(str(there["uuid"]), str(step.args["target"]))
    return Done()


def _delete(ironic: client.Ironic, step: Step) -> Outcome:
    there = ironic.node(str(step.args["name"]))
    if there is None or there.get("uuid") != step.args["uuid"]:
        return Done()
    same = nodes.is_ours(there, str(step.args["owner"])) and nodes.is_idle(there)
    state = there.get("provision_state")
    if not same or state != step.args["state"] or there.get("instance_uuid"):
        said = f"node {step.args['name']} is not as it was looked at: it is {state} now"
        return Failed("Changed", said, retry=True)
    ironic.delete(str(there["uuid"]))
    return Done()


_DEEDS: dict[str, Callable[[client.Ironic, Step], Outcome]] = {
    CREATE: _create,
    UPDATE: _update,
    PROVISION: _provision,
    DELETE: _delete,
}
