"""No secret value comes out of the two drivers: no fact, step, outcome or error holds one."""

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import requests

from drivers.openbao import client
from fleetd.sim import loop
from fleetd.sim.services.openbao import answers
from fleetd.sim.world import HttpRequest, HttpResponse
from tests.drivers.eso.test_eso import rook
from tests.drivers.openbao import stage
from tests.drivers.openbao.stage import Stage
from tests.drivers.openbao.test_conformance import mariadb
from tests.secrets import canary


def _values(there: Stage) -> Iterator[str]:
    """Everything secret that this world holds by now."""
    data = there.bao.data
    yield from data.shares
    yield from data.tokens
    for mount in data.mounts.values():
        for entry in mount.entries.values():
            for version in entry.versions.values():
                yield from (str(value) for value in version.data.values())
        for setting in mount.settings.values():
            yield from (str(setting[key]) for key in _SECRET if setting.get(key))
    for cluster in there.world.clusters.values():
        yield from cluster.tokens.passes
        for secret in cluster.list(("", "Secret")):
            for value in secret.get("data", {}).values():
                yield base64.b64decode(value).decode()


_SECRET = ("token_reviewer_jwt", "password")
_OPEN = ("prod-nova", "prod-cinder", "prod-glance")
"""User names that Rook puts beside the keys."""


def _leaks(text: str, values: set[str]) -> list[str]:
    """In any of the shapes that the canaries are looked for."""
    return [
        f"{value[:6]}... as {how}"
        for value in sorted(values)
        for how, encode in canary.ENCODINGS.items()
        if encode(value) in text
    ]


async def _whole(there: Stage) -> None:
    """All kinds, up and down: Ready, sealed, refused, unreachable."""
    await there.stored("mgmt", "st", "hv", "cp")
    rook(there)
    mariadb(there, "cp")
    await there.follow(
        there.want("openbao-secrets", "cp"),
        there.want("openbao-database", "prod"),
        there.want("ceph-push", "st.prod"),
        there.want("ceph-pull", "hv"),
        there.want("ceph-pull-services", "prod"),
    )
    mine = [one for one in there.fleet.known.resources.values() if one.driver in there.drivers]
    there.bao.data.policies["eso-hv"] = 'path "x" { capabilities = ["read"] }'
    await asyncio.sleep(3700)
    for one in mine:
        await there.ready(one)
    there.bao.seal()
    await asyncio.sleep(900)
    for one in mine:
        await there.ready(one)
        await there.proposed(one)
    there.cut()
    for one in mine:
        await there.ready(one)


def test_nothing_secret_is_given_away() -> None:
    """Whatever the drivers said in a whole life is searched for every value of the world."""

    async def story() -> tuple[int, list[str]]:
        async with stage.opened() as there:
            await _whole(there)
            values = {one for one in _values(there) if len(one) >= 8} - set(_OPEN)
            return len(values), _leaks(repr(there.said), values)

    count, leaks = loop.run(story())

    assert count > 50
    assert leaks == []


def test_an_error_that_repeats_what_it_was_sent_is_scrubbed() -> None:
    """A far side likes to quote; neither our exception nor its context holds the value."""

    class Parrot:
        def handle(self, request: HttpRequest) -> HttpResponse:
            return answers.Refused(400, f"bad request: {request.body.decode()}").response()

    async def story() -> list[str]:
        async with stage.opened() as there:
            there.world.services["parrot"] = Parrot()
            found: list[str] = []
            for name in ("password", "quotes", "jwt"):
                value = stage.Secret(canary.CANARIES[name])
                caught = await _raised(there, value)
                said = repr([caught, caught.__context__, caught.__cause__, caught.args])
                found += [leak.canary for leak in canary.found(said, [name])]
            return found

    assert loop.run(story()) == []


async def _raised(there: Stage, value: Any) -> client.BaoError:
    def login(session: requests.Session) -> None:
        client.Bao("https://parrot.sim", None, session).login("kubernetes/hv", "r", value)

    try:
        await there.tools.net.blocking("openbao:parrot", login)
    except client.BaoError as cause:
        return cause
    raise AssertionError("the parrot did not complain")
