"""The real network: threads that are few and named, sessions that do not wait for ever."""

import asyncio
import threading

import pytest
import requests

from fleetd import net
from fleetd.kube import config, http
from tests.kube import wire


async def test_blocking_calls_run_beside_the_loop_and_are_few() -> None:
    """The loop goes on, answers come back, and never more run at once than there are threads."""
    network = net.RealNetwork(threads=2)
    lock, both = threading.Lock(), threading.Barrier(2, timeout=10)
    now, most, names = 0, 0, set[str]()

    def call() -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            names.add(threading.current_thread().name.rpartition("_")[0])
        both.wait()
        with lock:
            now -= 1
        return 7

    try:
        answers = await asyncio.gather(*(network.blocking(call) for _ in range(6)))
    finally:
        await network.close()

    assert answers == [7] * 6
    assert most == 2
    assert names == {"fleetd-blocking"}


async def test_what_a_blocking_call_raises_arrives() -> None:
    """An error is the caller's, as if it had called itself."""
    network = net.RealNetwork()

    def call() -> None:
        raise requests.ConnectionError("no route")

    with pytest.raises(requests.ConnectionError, match="no route"):
        await network.blocking(call)
    await network.close()


async def test_a_session_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who gives no limit gets one, because a thread cannot be cancelled."""
    monkeypatch.setattr(net, "ANSWER", 0.1)
    network = net.RealNetwork()
    session = network.session()

    async with wire.saying(hold=True) as server:
        with pytest.raises(requests.exceptions.ReadTimeout):
            await network.blocking(lambda: session.get(server))
        await network.close()


async def test_a_kubeconfig_is_judged_before_anybody_is_asked() -> None:
    """What is no good is refused at once; programs only run where the setting allows them."""
    asking = wire.kubeconfig("https://api.example", {}, {"exec": {"command": "true"}})
    strict, open_handed = net.RealNetwork(), net.RealNetwork(plugins=True)

    with pytest.raises(config.BadConfig):
        strict.kube(asking)
    assert isinstance(open_handed.kube(asking), http.HttpTransport)

    await strict.close()
    await open_handed.close()
