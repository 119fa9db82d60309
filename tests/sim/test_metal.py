"""The simulated metal operator does what the real one was seen to do, dangers included."""

import asyncio
import base64
from typing import Any

import pytest

from fleetd.sim import loop
from fleetd.sim.world import HttpRequest
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region

GROUP = "metal.ironcore.dev"
BMC, SERVER, CLAIM = (GROUP, "BMC"), (GROUP, "Server"), (GROUP, "ServerClaim")
KEPT = (GROUP, "ServerMaintenance")
API = f"{GROUP}/v1alpha1"


def _text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _enrol(region: Region, name: str, ip: str = "", password: str = "") -> None:
    machine = region.world.truth.machines["metal-01" if ip else name]
    data = {"username": _text(machine.user), "password": _text(password or machine.password)}
    region.metal.create(
        {"apiVersion": API, "kind": "BMCSecret", "metadata": {"name": name}, "data": data},
        manager="t",
    )
    region.metal.create(
        {
            "apiVersion": API,
            "kind": "BMC",
            "metadata": {"name": name, "labels": {"class": "a"}},
            "spec": {
                "access": {"ip": ip or machine.address},
                "bmcSecretRef": {"name": name},
                "protocol": {"name": "Redfish", "port": 443, "scheme": "https"},
            },
        },
        manager="t",
    )


def _claim(region: Region, name: str = "c", **spec: Any) -> None:
    given = {"power": "On", "image": "os:1", **spec}
    region.metal.create(
        {
            "apiVersion": API,
            "kind": "ServerClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": given,
        },
        manager="t",
    )


def _maintain(region: Region, name: str, policy: str, **spec: Any) -> None:
    region.metal.create(
        {
            "apiVersion": API,
            "kind": "ServerMaintenance",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"serverRef": {"name": "metal-01-system-0"}, "policy": policy, **spec},
        },
        manager="t",
    )


def _state(region: Region, name: str = "metal-01-system-0") -> str:
    server = region.metal.get(SERVER, name)
    return "" if server is None else str(server.get("status", {}).get("state"))


def _phase(region: Region, name: str = "c") -> str:
    claim = region.metal.get(CLAIM, name, "default")
    return "" if claim is None else str(claim.get("status", {}).get("phase"))


def _ready(region: Region, name: str) -> tuple[str, str, str]:
    bmc = region.metal.get(BMC, name)
    assert bmc is not None
    one = bmc["status"]["conditions"][0]
    return one["status"], one["reason"], bmc["status"]["state"]


def test_from_bmc_to_available() -> None:
    """Minutes, through Discovery; off at the end."""

    async def act(region: Region) -> None:
        _enrol(region, "metal-01")
        await asyncio.sleep(30)
        assert _state(region) == "Discovery"
        assert region.world.truth.machines["metal-01"].on
        await asyncio.sleep(600)
        assert _state(region) == "Available"
        assert not region.world.truth.machines["metal-01"].on

    loop.run(place.play(act))


def test_a_server_found_on_is_left_on() -> None:
    """Nothing boots from the network, nobody reports: Discovery again and again."""

    async def act(region: Region) -> None:
        region.world.truth.machines["metal-01"].on = True
        _enrol(region, "metal-01")
        await asyncio.sleep(1700)
        assert _state(region) == "Discovery"
        assert region.world.truth.machines["metal-01"].on

    loop.run(place.play(act))


def test_one_unreadable_address_stops_all() -> None:
    """Danger 1; it heals when the object is gone."""

    async def act(region: Region) -> None:
        _enrol(region, "stray", ip="bmc-7.example")
        _enrol(region, "metal-01")
        await asyncio.sleep(600)
        assert "status" not in (region.metal.get(BMC, "metal-01") or {})
        region.metal.delete(BMC, "stray")
        await asyncio.sleep(30)
        assert _ready(region, "metal-01") == ("True", "BMCConnected", "Enabled")

    loop.run(place.play(act))


def test_two_objects_for_one_machine_are_both_claimed() -> None:
    """Danger 2: the truth has the harm."""

    async def act(region: Region) -> None:
        _enrol(region, "metal-01")
        _enrol(region, "twin", ip="192.0.2.11")
        await asyncio.sleep(5400)
        assert (_state(region), _state(region, "twin-system-0")) == ("Available", "Available")
        _claim(region, "c", serverRef={"name": "metal-01-system-0"}, power="Off")
        _claim(region, "d", serverRef={"name": "twin-system-0"}, power="Off")
        await asyncio.sleep(10)
        assert (_phase(region, "c"), _phase(region, "d")) == ("Bound", "Bound")
        assert "is held by" in region.world.truth.harm[0]

    loop.run(place.play(act))


def test_a_wrong_password_shows_ready_and_no_server() -> None:
    """Danger 4: Ready is no proof."""

    async def act(region: Region) -> None:
        _enrol(region, "metal-01", password="wrong")
        await asyncio.sleep(600)
        assert _ready(region, "metal-01") == ("True", "BMCConnected", "Pending")
        assert region.metal.list(SERVER) == []

    loop.run(place.play(act))


def test_bmcs_are_not_polled() -> None:
    """A BMC that died later still says Ready; any annotation makes the operator look."""

    async def act(region: Region) -> None:
        _enrol(region, "metal-01")
        await asyncio.sleep(900)
        region.world.truth.machines["metal-01"].bmc = "unreachable"
        await asyncio.sleep(3600)
        assert _ready(region, "metal-01")[0] == "True"

        def touch(live: dict[str, Any]) -> None:
            live["metadata"]["annotations"] = {"look": "again"}

        region.metal.edit(BMC, "metal-01", "", touch, manager="t")
        await asyncio.sleep(1)
        status, reason, state = _ready(region, "metal-01")
        assert (status, reason, state) == ("False", "UnknownError", "Enabled")

    loop.run(place.play(act))


def test_one_that_never_answers_blocks_the_others() -> None:
    """Danger 5: there is one worker."""

    async def act(region: Region) -> None:
        machine = region.world.truth.machines["metal-01"]
        machine.bmc = "hangs"
        _enrol(region, "metal-01")
        await asyncio.sleep(1)
        _enrol(region, "metal-02")
        await asyncio.sleep(900)
        assert "status" not in (region.metal.get(BMC, "metal-02") or {})
        machine.bmc = "answers"
        await asyncio.sleep(60)
        assert _ready(region, "metal-02")[2] == "Enabled"

    loop.run(place.play(act))


def test_refused_passwords_hold_the_workers() -> None:
    """The other half of danger 5: a claim of a good server waits for minutes, not seconds."""

    async def act(region: Region) -> None:
        for number in range(1, 7):
            _enrol(region, f"metal-0{number}")
        await asyncio.sleep(1800)
        for number in range(2, 7):
            region.world.truth.machines[f"metal-0{number}"].bmc = "refuses"

            def touch(live: dict[str, Any]) -> None:
                live["metadata"]["annotations"] = {"look": "again"}

            region.metal.edit(SERVER, f"metal-0{number}-system-0", "", touch, manager="t")
        await asyncio.sleep(1)
        _claim(region, serverRef={"name": "metal-01-system-0"})
        await asyncio.sleep(90)
        assert (_phase(region), region.world.truth.machines["metal-01"].on) == ("Bound", False)
        await asyncio.sleep(60)
        assert region.world.truth.machines["metal-01"].on

    loop.run(place.play(act))


def test_several_systems_behind_one_bmc_swap_their_servers() -> None:
    """Danger 3: the claimed machine is switched off, and another one booted."""

    async def act(region: Region) -> None:
        machines = region.world.truth.machines
        machines["metal-01"].beside.append(machines["metal-02"])
        _enrol(region, "metal-01")
        await asyncio.sleep(1800)
        assert len(region.metal.list(SERVER)) == 2
        _claim(region, serverRef={"name": "metal-01-system-0"})
        await asyncio.sleep(60)
        uuids: set[str] = set()
        for number in range(12):

            def touch(live: dict[str, Any], number: int = number) -> None:
                live["metadata"]["annotations"] = {"look": str(number)}

            region.metal.edit(BMC, "metal-01", "", touch, manager="t")
            await asyncio.sleep(180)
            server = region.metal.get(SERVER, "metal-01-system-0") or {}
            uuids.add(server["spec"]["systemUUID"])
        assert len(uuids) == 2
        assert any("switched off" in harm for harm in region.world.truth.harm)

    loop.run(place.play(act))


async def _claimed(region: Region) -> None:
    _enrol(region, "metal-01")
    await asyncio.sleep(900)
    _claim(region)
    await asyncio.sleep(10)
    assert (_phase(region), _state(region)) == ("Bound", "Reserved")


def test_a_reserved_server_found_off_is_booted_again() -> None:
    """Danger 8: at the next resync, from the network."""

    async def act(region: Region) -> None:
        await _claimed(region)
        machine = region.world.truth.machines["metal-01"]
        region.world.truth.power(machine, on=False)
        await asyncio.sleep(180)
        assert machine.on
        assert machine.deployed == 1

    loop.run(place.play(act))


def test_a_claimed_server_that_is_deleted_is_made_again_and_booted() -> None:
    """The other half of danger 8: the claim says Bound all the time."""

    async def act(region: Region) -> None:
        await _claimed(region)
        machine = region.world.truth.machines["metal-01"]
        region.world.truth.power(machine, on=False)
        region.metal.delete(SERVER, "metal-01-system-0")
        await asyncio.sleep(1800)
        assert (_phase(region), _state(region), machine.on) == ("Bound", "Reserved", True)

    loop.run(place.play(act))


def test_release_cleans_nothing() -> None:
    """Danger 9: the next owner gets the old disks."""

    async def act(region: Region) -> None:
        await _claimed(region)
        region.metal.delete(CLAIM, "c", "default")
        await asyncio.sleep(10)
        machine = region.world.truth.machines["metal-01"]
        assert (_state(region), machine.on, machine.owner) == ("Available", False, "")
        assert machine.image == "os:1"

    loop.run(place.play(act))


def test_a_claim_that_nothing_fits_waits_without_a_word() -> None:
    """Unbound for ever; a server that becomes free is taken."""

    async def act(region: Region) -> None:
        _claim(region, serverSelector={"matchLabels": {"class": "a"}})
        await asyncio.sleep(60)
        assert _phase(region) == "Unbound"
        _enrol(region, "metal-01")
        await asyncio.sleep(900)
        assert _phase(region) == "Bound"

    loop.run(place.play(act))


@pytest.mark.parametrize("value", ["true", "false"])
def test_approval_counts_by_presence(value: str) -> None:
    """Danger 7: "false" approves as well."""

    async def act(region: Region) -> None:
        await _claimed(region)
        _maintain(region, "m", "OwnerApproval")
        await asyncio.sleep(10)
        assert _state(region) == "Reserved"

        def approve(live: dict[str, Any]) -> None:
            assert live["metadata"]["labels"]["metal.ironcore.dev/maintenance-needed"] == "true"
            live["metadata"]["annotations"]["metal.ironcore.dev/maintenance-approval"] = value

        region.metal.edit(CLAIM, "c", "default", approve, manager="t")
        await asyncio.sleep(10)
        assert _state(region) == "Maintenance"

    loop.run(place.play(act))


def test_deleting_any_maintenance_ends_the_active_one() -> None:
    """Danger 6: the object still says InMaintenance."""

    async def act(region: Region) -> None:
        await _claimed(region)
        _maintain(region, "m", "Enforced")
        await asyncio.sleep(10)
        _maintain(region, "n", "OwnerApproval")
        await asyncio.sleep(10)
        assert _state(region) == "Maintenance"
        region.metal.delete(KEPT, "n", "default")
        await asyncio.sleep(0.15)
        server = region.metal.get(SERVER, "metal-01-system-0") or {}
        assert "serverMaintenanceRef" not in server["spec"]
        kept = region.metal.get(KEPT, "m", "default") or {}
        assert kept["status"]["state"] == "InMaintenance"

    loop.run(place.play(act))


def test_power_off_under_virtual_machines_is_harm() -> None:
    """Whoever does it: here a maintenance that asks for it."""

    async def act(region: Region) -> None:
        await _claimed(region)
        region.world.truth.machines["metal-01"].vms.add("vm-1")
        _maintain(region, "m", "Enforced", serverPower="Off")
        await asyncio.sleep(10)
        assert not region.world.truth.machines["metal-01"].on
        assert "1 virtual machines" in region.world.truth.harm[0]

    loop.run(place.play(act))


def test_the_root_of_a_bmc_is_open_and_the_rest_is_not() -> None:
    """So a connection proves nothing about the password."""

    async def act(region: Region) -> None:
        bmcs = region.world.services["bmc"]

        def get(path: str, login: str = "") -> int:
            headers = {"host": "192.0.2.11"}
            if login:
                headers["authorization"] = f"Basic {_text(login)}"
            request = HttpRequest(method="GET", path=path, query={}, headers=headers, body=b"")
            return bmcs.handle(request).status

        machine = region.world.truth.machines["metal-01"]
        good = f"{machine.user}:{machine.password}"
        assert get("/redfish/v1/") == 200
        assert get("/redfish/v1/Systems") == 401
        assert get("/redfish/v1/Systems", "fleet:wrong") == 401
        assert get("/redfish/v1/Systems", good) == 200

    loop.run(place.play(act))
