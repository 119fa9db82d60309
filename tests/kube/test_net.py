"""The real network: a thread for each call, as many as a backend may have, none that waits long."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from fleetd import net
from fleetd.clock import SystemClock
from fleetd.gate import GateClosed, GateLimits, Gates
from fleetd.kube import config, http
from tests import defaults
from tests.kube import wire

DEAD = ("openbao:dead", "metal:dead")
REFUSAL = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
NOT_SENT: Any = {"accept": None}
TIGHT = replace(defaults.LIMITS, concurrency=2, failures_max=3, open_for=timedelta(minutes=1))


class Real:
    def __init__(self, limits: GateLimits = TIGHT) -> None:
        self.gates = Gates(limits, SystemClock())
        self.ways = net.Ways(net.RealNetwork(), self.gates, SystemClock())


@asynccontextmanager
async def hanging(there: Real, count: int) -> AsyncGenerator[None]:
    """So many calls to each of two backends whose threads nothing ends, and nobody waits for."""
    over = threading.Event()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                there.ways.blocking(backend, lambda _: over.wait(60)), name=f"{backend} {number}"
            )
            for backend in DEAD
            for number in range(count)
        ]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
    try:
        yield
    finally:
        over.set()


async def test_calls_run_beside_the_loop_and_are_few() -> None:
    """The loop goes on, answers come back, and never more run at once than the backend may have."""
    there = Real()
    lock, both = threading.Lock(), threading.Barrier(2, timeout=60)
    now, most, names = 0, 0, set[str]()

    def call(_: requests.Session) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            names.add(threading.current_thread().name.rpartition("-")[0])
        both.wait()
        with lock:
            now -= 1
        return 7

    answers = await asyncio.gather(*(there.ways.blocking("metal:a", call) for _ in range(6)))

    assert answers == [7] * 6
    assert most == 2
    assert names == {"fleetd-blocking"}


async def test_what_a_call_raises_arrives() -> None:
    """An error is the caller's, as if it had called itself."""

    def call(_: requests.Session) -> None:
        raise requests.ConnectionError("no route")

    with pytest.raises(requests.ConnectionError, match="no route"):
        await Real().ways.blocking("metal:a", call)


async def test_two_dead_backends_do_not_slow_a_third() -> None:
    """However many threads hang on them, all of which were given up: another's call goes at once,
    and they themselves get no more threads than they may have."""
    there = Real()
    before = threading.active_count()

    async with hanging(there, 40):
        async with asyncio.timeout(60):
            assert await there.ways.blocking("garden:alive", lambda _: "well") == "well"
        assert [there.gates.of(backend).in_flight for backend in DEAD] == [2, 2]
        assert threading.active_count() - before <= 2 * 2 + 1


async def test_a_thread_that_ends_gives_its_place_back() -> None:
    """Also when nobody waits for its answer any more."""
    there = Real()
    async with hanging(there, 2):
        pass
    async with asyncio.timeout(60):
        for backend in DEAD:
            assert await there.ways.blocking(backend, lambda _: "again") == "again"


async def test_sockets_end_with_the_time_of_the_call() -> None:
    """Whatever limit the library gives, or none: a thread cannot be cancelled."""
    there = Real()
    async with wire.saying(hold=True) as server:
        for limit in (None, 60, (60, 60)):
            with pytest.raises(requests.Timeout):
                await there.ways.blocking(
                    "metal:a",
                    lambda session, limit=limit: session.get(server, timeout=limit),
                    within=0.1,
                )


async def test_a_silent_backend_is_left_alone_and_an_answer_ends_it() -> None:
    """Three silences, also ones that the library swallowed; then nobody is asked. Any status is
    an answer."""
    there = Real()

    def swallow(session: requests.Session) -> str:
        try:
            session.get("http://127.0.0.1:1/")
        except requests.ConnectionError:
            return "nobody"
        return "somebody"

    for _ in range(TIGHT.failures_max):
        assert await there.ways.blocking("metal:a", swallow) == "nobody"
    with pytest.raises(GateClosed, match="metal:a did not answer several times"):
        await there.ways.blocking("metal:a", swallow)
    for _ in range(2 * TIGHT.failures_max):
        assert await there.ways.blocking("bmc:a", swallow, counted=False) == "nobody"

    async with wire.saying(REFUSAL) as server:
        for _ in range(2 * TIGHT.failures_max):
            found = await there.ways.blocking("metal:b", lambda session: session.get(server))
            assert found.status_code == 500


async def test_a_kubeconfig_is_judged_before_anybody_is_asked() -> None:
    """What is no good is refused at once; programs only run where the setting allows them."""
    asking = wire.kubeconfig("https://api.example", {}, {"exec": {"command": "true"}})
    strict, open_handed = net.RealNetwork(), net.RealNetwork(plugins=True)

    with pytest.raises(config.BadConfig):
        strict.kube(asking)
    assert isinstance(open_handed.kube(asking), http.HttpTransport)


async def test_the_environment_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a proxy nor a bundle nor a password of a .netrc: only the settings do."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password canary-netrc\n", "utf-8")
    for name, value in {
        "HTTP_PROXY": "http://127.0.0.1:1",
        "http_proxy": "http://127.0.0.1:1",
        "NETRC": str(tmp_path / ".netrc"),
        "REQUESTS_CA_BUNDLE": str(tmp_path / "none.pem"),
    }.items():
        monkeypatch.setenv(name, value)

    async with wire.saying(REFUSAL) as server:
        found = await Real().ways.blocking("metal:a", lambda session: session.get(server))

    assert found.status_code == 500
    assert "Authorization" not in found.request.headers


async def test_the_proxy_and_the_authorities_are_the_settings(tmp_path: Path) -> None:
    """The proxy is asked for everything but what is near; a library that says `verify=True` gets
    our authorities."""
    async with wire.saying(REFUSAL) as proxy:
        passage = net.Passage(proxy=proxy, direct=("127.0.0.1",), authorities=tmp_path / "ours.pem")
        ways = net.Ways(net.RealNetwork(passage), Gates(TIGHT, SystemClock()), SystemClock())
        found = await ways.blocking("bmc:a", lambda session: session.get("http://bmc.invalid/"))
        assert found.status_code == 500
        with pytest.raises(requests.ConnectionError):
            await ways.blocking("bmc:a", lambda session: session.get("http://127.0.0.1:1/"))
    assert passage.verify(given=True) == str(tmp_path / "ours.pem")
    assert passage.verify(given=False) is False


@pytest.mark.parametrize(
    "asked",
    [
        requests.Request("get", "https://h:1/a b?x=1", params={"y": "ü", "z": None}),
        requests.Request("POST", "https://h/", json={"a": 1}, headers={"User-Agent": "mine"}),
        requests.Request("PUT", "https://h/", data={"a": "b"}, headers=NOT_SENT),
        requests.Request("GET", "https://h/", auth=("who", "word"), cookies={"mine": "2"}),
    ],
    ids=["query", "json", "form", "login"],
)
@pytest.mark.parametrize("kept", [{}, {"kept": "1"}], ids=["no cookie", "a cookie"])
async def test_a_session_sends_what_requests_would_send(
    asked: requests.Request, kept: dict[str, str]
) -> None:
    """Method, address, headers and body; with a cookie that came before, or none."""
    plain = requests.Session()

    def call(session: requests.Session) -> list[object]:
        made: list[object] = []
        for one in (session, plain):
            one.cookies.update(kept)
            ready = one.prepare_request(asked)
            made.append((ready.method, ready.url, sorted(ready.headers.items()), ready.body))
        return made

    ours, theirs = await Real().ways.blocking("openbao:live", call)

    assert ours == theirs


async def test_a_session_is_begun_as_requests_begins_one() -> None:
    """But for the ways out and the environment; and no two share what may be changed."""

    def call(session: requests.Session) -> requests.Session:
        session.headers["mine"] = session.cookies["mine"] = session.params["mine"] = "1"  # pyright: ignore[reportIndexIssue]
        session.hooks["response"].append(print)
        return session

    await Real().ways.blocking("openbao:live", call)
    ours = await Real().ways.blocking("openbao:live", lambda session: session)

    theirs, own = requests.Session(), {"trust_env", "adapters"}
    for name in {*requests.Session.__attrs__} - own:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert len({ours.get_adapter("https://h/"), ours.get_adapter("http://h/")}) == 1
