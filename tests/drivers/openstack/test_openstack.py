"""The openstack driver: health by the APIs, traits before aggregates, the smoke test's parts."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from drivers.openstack.driver import OpenStackDriver
from fleetd.sim import loop
from fleetd.sim.controllers import osservices_exposed
from fleetd.vocabulary import Failed
from tests.conformance.driver import suite
from tests.drivers.openstack import stage
from tests.drivers.openstack.stage import SPACE, Stage

DEPLOYMENT = ("apps", "Deployment")


async def judged(on: Stage, kind: str) -> str:
    driver = OpenStackDriver(on.tools)
    want = stage.want(kind)
    seen = await driver.observe(want)
    found = driver.judge(want, seen)
    return found[0].reason if found else seen.error


def stop(on: Stage, name: str) -> None:
    on.cp.set_status(DEPLOYMENT, name, SPACE, {"readyReplicas": 0}, manager="t")


def run(act: Any) -> Any:
    async def whole() -> Any:
        async with stage.stage() as on:
            await on.control_plane()
            return await act(on)

    return loop.run(whole())


@pytest.mark.parametrize("kind", ["aggregates", "smoke-test"])
def test_the_openstack_driver_keeps_the_contract_of_drivers(kind: str) -> None:
    """For what it makes through the APIs and through K-ORC."""

    async def act(on: Stage) -> list[str]:
        want = stage.want(kind)
        driver = OpenStackDriver(on.tools)
        if kind == "aggregates":
            await on.road(driver, stage.want("smoke-test"))

        def state() -> object:
            nova = on.cloud.nova
            held = [(one.name, dict(one.metadata)) for one in nova.aggregates.values()]
            return held, list(on.cloud.traits), on.spec_of_everything(on.cp)

        bad = {**want.spec, "cloud": ""}
        return await suite.check(
            suite.Bench(
                driver=driver,
                want=want,
                bad=replace(want, spec=bad),
                settle=lambda: asyncio.sleep(60),
                cut=lambda: on.cut("cp"),
                writes=lambda: sum(on.cp.writes.values()),
                state=state,
            )
        )

    assert run(act) == []


@pytest.mark.parametrize("kind", ["nova", "neutron", "cinder"])
def test_a_service_is_registered_when_its_address_is_known(kind: str) -> None:
    """Not before its Service has one; then it is in the catalogue and Healthy."""

    async def whole() -> tuple[int, str]:
        async with stage.stage() as on:
            await on.control_plane(register=False)
            driver, want = OpenStackDriver(on.tools), stage.want(kind)
            before = len(driver.propose(want, await driver.observe(want)))
            on.install(on.cp, *osservices_exposed.CHARTS.values())
            return before, await on.road(driver, want)

    assert loop.run(whole()) == (0, "Ready")


def test_a_nova_that_does_not_answer_has_failed() -> None:
    """Its endpoint is in the catalogue, and nobody is behind it."""

    async def act(on: Stage) -> tuple[str, str]:
        good = await judged(on, "nova")
        stop(on, "nova-api")
        return good, await judged(on, "nova")

    assert run(act) == ("Healthy", "NotAnswering")


def test_a_part_that_is_down_is_told() -> None:
    """The API answers, the scheduler does not work."""

    async def act(on: Stage) -> str:
        stop(on, "nova-scheduler")
        return await judged(on, "nova")

    assert run(act) == "ServiceDown"


@pytest.mark.parametrize("kind", ["nova", "aggregates"])
def test_without_keystone_nothing_is_known(kind: str) -> None:
    """Which is not the same as absent: nothing is proposed."""

    async def act(on: Stage) -> tuple[bool, int]:
        driver, want = OpenStackDriver(on.tools), stage.want(kind)
        conditions = [{"type": "KeystoneAPIReady", "status": "False", "reason": "x"}]
        gk = ("keystone.openstack.c5c3.io", "Keystone")
        on.world.controllers[("cp", "keystone-operator")].stop()
        on.cp.set_status(gk, "prod-keystone", SPACE, {"conditions": conditions}, manager="t")
        await asyncio.sleep(1)
        seen = await driver.observe(want)
        return seen.facts is None and bool(seen.error), len(driver.propose(want, seen))

    assert run(act) == (True, 0)


def test_a_credential_that_is_not_accepted_is_unknown_and_never_quoted() -> None:
    """No secret is in the error, the facts or the steps."""

    async def act(on: Stage) -> tuple[bool, bool]:
        secret = next(on.cloud.secrets[key] for key in on.cloud.tables["ApplicationCredential"])
        driver, want = OpenStackDriver(on.tools), stage.want("aggregates")
        seen = await driver.observe(want)
        steps = driver.propose(want, seen)
        told = json.dumps([seen.facts, [dict(step.args) for step in steps]], default=str)
        on.cloud.secrets.clear()
        lost = await driver.observe(want)
        return secret in told + lost.error, lost.facts is None

    assert run(act) == (False, True)


def test_looks_share_a_login() -> None:
    """For some minutes; then Keystone is asked again."""

    async def act(on: Stage) -> list[int]:
        driver, found = OpenStackDriver(on.tools), list[int]()
        for pause in (0, 60, 60, 300):
            await asyncio.sleep(pause)
            for kind in ("nova", "aggregates"):
                assert (await driver.observe(stage.want(kind))).facts is not None
            found.append(len(on.cloud.tokens))
        return [count - found[0] for count in found]

    assert run(act) == [0, 0, 0, 1]


def test_an_old_catalogue_hides_nothing_new() -> None:
    """What is not in it is looked for in a new one before it counts as missing."""

    async def act(on: Stage) -> list[bool]:
        driver, want = OpenStackDriver(on.tools), stage.want("cinder")
        url = on.cloud.endpoints.pop("block-storage")
        found: list[bool] = []
        for pause in (300, 1):
            await asyncio.sleep(pause)
            seen = await driver.observe(want)
            assert seen.facts is not None
            found.append(seen.facts["endpoint"])
            on.cloud.endpoints["block-storage"] = url
        return found

    assert run(act) == [False, True]


def test_traits_are_made_before_anything_else() -> None:
    """Danger 21: every other step of the first look comes after them."""

    async def act(on: Stage) -> bool:
        driver, want = OpenStackDriver(on.tools), stage.want("aggregates")
        steps = driver.propose(want, await driver.observe(want))
        traits = frozenset(step.id for step in steps if step.verb == "make-trait")
        others = [step for step in steps if step.verb != "make-trait"]
        return bool(traits) and bool(others) and all(step.after == traits for step in others)

    assert run(act) is True


def test_a_trait_that_somebody_deleted_is_made_again() -> None:
    """Also long after: a host that names it would make the operator write without end."""

    async def act(on: Stage) -> tuple[str, list[str], bool]:
        await on.prerequisites()
        driver, want = OpenStackDriver(on.tools), stage.want("aggregates")
        del on.cloud.traits["CUSTOM_FLEETD"]
        seen = await driver.observe(want)
        reason = driver.judge(want, seen)[0].reason
        steps = driver.propose(want, seen)
        await on.carry_out(driver, steps)
        return reason, [step.verb for step in steps], "CUSTOM_FLEETD" in on.cloud.traits

    assert run(act) == ("TraitMissing", ["make-trait"], True)


def test_the_test_aggregate_lets_only_the_test_project_in() -> None:
    """Without the filter, machines would be moved onto hosts that are still tested."""

    async def act(on: Stage) -> tuple[str, str]:
        driver = OpenStackDriver(on.tools)
        early = await on.road(driver, stage.want("aggregates"), rounds=5)
        await on.prerequisites()
        found = on.cloud.nova.aggregate("tenant_filter_tests")
        domain = on.cloud.find("Domain", "cc3test")
        test = on.cloud.find("Project", "test", domain_id=domain.id if domain else "")
        same = found and test and found.metadata["filter_tenant_id"] == test.id
        return early, "filtered" if same else "open"

    assert run(act) == ("FilterMissing", "filtered")


def test_an_account_without_the_role_is_denied_and_asks_for_a_person() -> None:
    """A 403 is an answer, not a silence."""

    async def act(on: Stage) -> str:
        user, project = on.cloud.find("User", "admin"), on.cloud.find("Project", "admin")
        reader = on.cloud.find("Role", "reader")
        assert user is not None
        assert project is not None
        assert reader is not None
        on.cloud.roles.clear()
        on.cloud.roles[user.id, project.id, reader.id] = None
        return await judged(on, "aggregates")

    assert run(act) == "NotAllowed"


def test_only_empty_aggregates_of_our_own_are_deleted() -> None:
    """A person's aggregate and one with hosts stay."""

    async def act(on: Stage) -> tuple[list[str], list[str]]:
        await on.prerequisites()
        nova = on.cloud.nova
        nova.make_aggregate("by-hand", "")
        on.host("cmp-01")
        nova.register("cmp-01", "hv")
        nova.put_in("cmp-01", ["a"])
        driver = OpenStackDriver(on.tools)
        gone = replace(stage.want("aggregates"), absent=True)
        steps = driver.propose(gone, await driver.observe(gone))
        await on.carry_out(driver, steps)
        left = sorted(one.name for one in nova.aggregates.values())
        return [str(step.args["name"]) for step in steps], left

    assert run(act) == (["tenant_filter_tests"], ["a", "by-hand"])


def test_a_korc_object_that_gave_up_is_told() -> None:
    """It is not tried again by itself."""

    async def act(on: Stage) -> str:
        await on.prerequisites()
        gk = ("openstack.k-orc.cloud", "Image")
        said = [
            {"type": "Available", "status": "False", "reason": "InvalidConfiguration"},
            {"type": "Progressing", "status": "False", "reason": "InvalidConfiguration"},
        ]
        on.world.controllers[("cp", "k-orc")].stop()
        on.cp.set_status(gk, "smoke-test-image", SPACE, {"conditions": said}, manager="t")
        await asyncio.sleep(1)
        return await judged(on, "smoke-test")

    assert run(act) == "PartRefused"


def test_a_cloud_without_volumes_asks_for_no_volume_type() -> None:
    """Of services that are not there, nothing is wanted."""

    async def act(on: Stage) -> list[str]:
        want = stage.want("smoke-test")
        less = replace(want, needs=frozenset(one for one in want.needs if one.kind != "cinder"))
        driver = OpenStackDriver(on.tools)
        return [one.kind for one in driver.manifests(less) if one.kind == "VolumeType"]

    assert run(act) == []


def test_a_write_that_nova_cannot_take_is_tried_again() -> None:
    """The step fails with a reason that says so."""

    async def act(on: Stage) -> tuple[str, bool]:
        driver, want = OpenStackDriver(on.tools), stage.want("aggregates")
        steps = driver.propose(want, await driver.observe(want))
        stop(on, "nova-api")
        outcome = await driver.apply(next(one for one in steps if one.verb == "make-aggregate"))
        assert isinstance(outcome, Failed)
        return outcome.reason, outcome.retry

    assert run(act) == ("NotAnswering", True)
