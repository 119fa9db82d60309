"""Requests to API servers pass the gate of their backend, which hears who answers and who not."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube import errors
from fleetd.kube.gated import GatedTransport
from fleetd.kube.transport import Request, Response
from fleetd.sim import loop
from tests import defaults

START = datetime(2026, 3, 2, tzinfo=UTC)
ASK = Request(method="GET", path="/version")
LIMITS = replace(defaults.LIMITS, failures_max=3, open_for=timedelta(seconds=10))


@dataclass
class Far:
    """A server that takes so many seconds, and then answers with a status, or with silence."""

    seconds: float = 0.0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[float] = field(default_factory=list[float])

    async def send(self, request: Request) -> Response:
        del request
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        if not self.status:
            raise errors.Unreachable("connection refused")
        return Response(status=self.status, headers=self.headers)

    async def lines(self, request: Request) -> AsyncIterator[list[bytes]]:
        await self.send(request)
        yield [b"{}"]

    async def close(self) -> None:
        self.status = 0


class Scene:
    def __init__(self, far: Far) -> None:
        clock = LoopClock(START)
        self.far = far
        self.gates = Gates(LIMITS, clock)
        self.gate = self.gates.of("metal:eu-1")
        self.wire = GatedTransport(far, self.gate, clock)

    async def said(self) -> str:
        try:
            return str((await self.wire.send(ASK)).status)
        except errors.Unreachable as cause:
            return str(cause)


def test_a_silence_is_told_with_its_backend_and_counted_there() -> None:
    """Three of them close the gate; the fourth request is not sent, and says for how long."""

    async def main() -> tuple[list[str], int, errors.Closed]:
        scene = Scene(Far(status=0))
        said = [await scene.said() for _ in range(3)]
        with pytest.raises(errors.Closed) as refused:
            await scene.wire.send(ASK)
        return said, len(scene.far.asked), refused.value

    said, asked, refused = loop.run(main())
    assert said == ["metal:eu-1: connection refused"] * 3
    assert asked == 3
    assert (refused.backend, refused.again) == ("metal:eu-1", timedelta(seconds=10))
    assert str(refused).endswith("the last time: connection refused")


def test_a_closed_gate_tells_what_closed_it() -> None:
    """Who is not trusted is not told as silent because nobody asks any more."""

    class Stranger(Far):
        async def send(self, request: Request) -> Response:
            raise errors.Untrusted("its certificate is not trusted")

    async def main() -> list[str]:
        scene, reasons = Scene(Stranger()), list[str]()
        for _ in range(4):
            with pytest.raises(errors.Unreachable) as refused:
                await scene.wire.send(ASK)
            reasons.append(f"{type(refused.value).__name__} {refused.value.blind}")
        return reasons

    assert loop.run(main()) == ["Untrusted NotTrusted"] * 3 + ["Closed NotTrusted"]


def test_any_status_is_an_answer() -> None:
    """A server that says 500 a hundred times is there."""

    async def main() -> bool:
        scene = Scene(Far(status=500))
        for _ in range(100):
            await scene.said()
        return scene.gate.is_open

    assert not loop.run(main())


def test_who_is_given_up_after_a_while_was_silent() -> None:
    """Deadlines of readers count; being called off at once does not."""

    async def main(limit: float) -> int:
        scene = Scene(Far(seconds=1000))
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(limit):
                    await scene.wire.send(ASK)
        assert scene.gate.in_flight == 0
        return scene.gate.failures

    assert loop.run(main(10)) == 3
    assert loop.run(main(1)) == 0


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    """Short ones are waited for, long ones refused at once; then it is asked again."""

    async def main(wish: str) -> tuple[list[str], list[float]]:
        scene = Scene(Far(status=429, headers={"retry-after": wish}))
        said = [await scene.said()]
        scene.far.status = 200
        said.append(await scene.said())
        await asyncio.sleep(60)
        said.append(await scene.said())
        return said, scene.far.asked

    assert loop.run(main("3")) == (["429", "200", "200"], [0.0, 3.0, 63.0])
    said, asked = loop.run(main("30"))
    assert said == ["429", "metal:eu-1 asked for a pause; asked again in 30 s", "200"]
    assert asked == [0.0, 60.0]


def test_watches_take_no_place_and_are_not_sent_to_the_silent() -> None:
    """Ten watches at a gate of one; and none through a gate that waits for a probe."""

    async def main() -> tuple[int, int]:
        scene = Scene(Far())
        open_ones = [scene.wire.lines(ASK) for _ in range(10)]
        for one in open_ones:
            await anext(one)
        taken = scene.gate.in_flight
        for one in open_ones:
            await one.aclose()
        for _ in range(3):
            scene.gate.silent()
        await asyncio.sleep(11)
        before = len(scene.far.asked)
        with pytest.raises(errors.Closed):
            await anext(scene.wire.lines(ASK))
        return taken, len(scene.far.asked) - before

    assert loop.run(main()) == (0, 0)


def test_a_connection_that_we_closed_blames_nobody() -> None:
    """Old connections are closed while requests are under way on them."""

    async def main() -> int:
        scene = Scene(Far())
        await scene.wire.close()
        await scene.said()
        return scene.gate.failures

    assert loop.run(main()) == 0
