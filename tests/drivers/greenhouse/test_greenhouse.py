"""Clusters are registered with Greenhouse, and what it then says of them is believed with care."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleetd.secrets import Secret
from fleetd.sim import charts, loop
from fleetd.sim.sites import git
from fleetd.vocabulary import Failed, Truth
from tests.conformance.driver import suite
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import SECRET, Stage, retired, want

ONE = want("greenhouse-cluster", "hv")
CLUSTER = ("greenhouse.sap", "Cluster")
SPACE = "greenhouse"


def run(script: Callable[[Stage], Awaitable[Any]]) -> Any:
    """With Greenhouse running on mgmt."""

    async def main() -> Any:
        async with stages.opened("mgmt", "hv") as stage:
            chart = charts.find("greenhouse")
            assert chart is not None
            stage.mgmt.create(git.namespace(SPACE), manager="t")
            for definition in chart.definitions:
                stage.mgmt.serve(definition)
            for make in chart.controllers:
                make(stage.world, stage.mgmt).start()
            return await script(stage)

    return loop.run(main())


def test_the_greenhouse_driver_keeps_the_contract() -> None:
    """From nothing to Ready and to a far side that is gone."""
    bad = replace(ONE, spec={**ONE.spec, "object": {}})

    async def script(stage: Stage) -> list[str]:
        return await suite.check(stages.bench(stage, ONE, bad))

    assert run(script) == []


def test_a_kubeconfig_is_handed_over_once() -> None:
    """A newer one of ours changes nothing while Greenhouse gets in with its own token."""

    async def script(stage: Stage) -> None:
        await stage.follow(ONE)
        stage.admit("hv")
        await asyncio.sleep(30)
        assert await stage.proposed(ONE) == ()
        await asyncio.sleep(timedelta(days=5).total_seconds())
        stage.admit("mgmt")
        judged = await stage.ready(ONE)
        assert judged is not None
        assert judged.truth is Truth.TRUE

    run(script)


def test_a_kubeconfig_that_no_longer_opens_is_replaced() -> None:
    """Greenhouse says so; the next one of ours is handed over."""

    async def script(stage: Stage) -> None:
        await stage.follow(ONE)
        there = stage.cluster("hv")
        for token in list(there.tokens.passes):
            there.tokens.revoke(token)
        await asyncio.sleep(4000)
        judged = await stage.ready(ONE)
        assert judged is not None
        assert judged.reason == "KubeconfigInvalid"
        assert await stage.proposed(ONE) == ()

        stage.admit("hv")
        assert [step.verb for step in await stage.proposed(ONE)] == ["register"]
        await stage.follow(ONE)

    run(script)


def test_a_token_that_is_not_renewed_is_told_in_time() -> None:
    """Greenhouse stands still: twelve hours before the end it is a failure with an action."""

    async def script(stage: Stage) -> None:
        await stage.follow(ONE)
        stage.world.controllers[("mgmt", "greenhouse")].stop()
        await asyncio.sleep(timedelta(hours=59).total_seconds())
        stage.admit("mgmt")
        before = await stage.ready(ONE)
        await asyncio.sleep(timedelta(hours=2).total_seconds())
        after = await stage.ready(ONE)
        assert before is not None
        assert after is not None
        assert (before.truth, after.reason) == (Truth.TRUE, "TokenEnds")

    run(script)


def test_the_registration_goes_before_the_kubeconfig() -> None:
    """Greenhouse takes its plugins off with it."""

    async def script(stage: Stage) -> None:
        await stage.follow(ONE)
        kinds: list[str] = []
        for _ in range(2):
            kinds += [step.args["kind"] for step in await stage.do(retired(ONE))]
            await asyncio.sleep(30)
        assert kinds == ["Cluster", "Secret"]
        assert stage.mgmt.get(CLUSTER, "hv", SPACE) is None
        assert stage.mgmt.get(SECRET, "hv", SPACE) is None
        assert (await stage.look(retired(ONE))).facts == {}

    run(script)


@pytest.mark.parametrize(
    "user", [{"tokenFile": "/var/run/secrets/token"}, {"exec": {"command": "login"}}]
)
def test_only_inline_credentials_are_handed_over(user: dict[str, Any]) -> None:
    """One that names a file or a program would make Greenhouse send or run its own (danger 33)."""
    text = {
        "clusters": [{"name": "hv", "cluster": {"server": "https://hv.sim"}}],
        "users": [{"name": "hv", "user": user}],
        "contexts": [{"name": "hv", "context": {"cluster": "hv", "user": "hv"}}],
        "current-context": "hv",
    }

    async def script(stage: Stage) -> None:
        (step,) = await stage.proposed(ONE)
        stage.tools.clusters._backends["cluster:hv"].kubeconfig = Secret(json.dumps(text))  # pyright: ignore[reportPrivateUsage]
        refused = await stage.driver(ONE).apply(step)
        assert isinstance(refused, Failed)
        assert (refused.reason, refused.retry) == ("NotInline", False)
        assert stage.mgmt.get(SECRET, "hv", SPACE) is None

    run(script)
