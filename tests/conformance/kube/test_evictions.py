"""Evictions and the budgets that stand before them."""

from typing import Any

import pytest

from tests.conformance.kube.api import Answer, Api, Obj, until

POLICY = "/apis/policy/v1"
LABELS = {"app": "db"}


async def _pod(api: Api, name: str, *, ready: bool = True, phase: str = "Running") -> None:
    # A server gives every pod an account.
    accounts = api.place("serviceaccounts")
    await api.post(accounts, {"metadata": {"name": "default"}})
    body = {
        "metadata": {"name": name, "labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    assert (await api.post(api.place("pods"), body)).status == 201
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"status": {"phase": phase, "conditions": [condition]}}
    assert (await api.merge(f"{api.place('pods', name)}/status", status)).status == 200


async def _budget(api: Api, name: str = "db", **spec: Any) -> Obj:
    place = api.place("poddisruptionbudgets", base=POLICY)
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": LABELS}, **spec}}
    assert (await api.post(place, body)).status == 201
    return {}


async def _allowed(api: Api, count: int, healthy: int) -> Answer:
    """The budget's status, once it says this much."""
    path = api.place("poddisruptionbudgets", "db", base=POLICY)

    def says(answer: Answer) -> bool:
        status: Obj = answer.json.get("status") or {}
        return (status.get("disruptionsAllowed"), status.get("currentHealthy")) == (count, healthy)

    return await until(lambda: api.get(path), says)


async def _evict(api: Api, name: str, **more: Any) -> Answer:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return await api.post(f"{api.place('pods', name)}/eviction", body)


async def _there(api: Api, name: str) -> bool:
    answer = await api.get(api.place("pods", name))
    return answer.status == 200 and "deletionTimestamp" not in answer.meta


async def test_no_budget(api: Api) -> None:
    """A pod that nobody guards goes."""
    await _pod(api, "a")
    answer = await _evict(api, "a")

    assert (answer.status, answer.json["status"]) == (201, "Success")
    assert not await _there(api, "a")


async def test_a_budget_that_is_spent(api: Api) -> None:
    """429, with the budget's name and its numbers; the pod stays."""
    await _pod(api, "a")
    await _budget(api, minAvailable=1)
    await _allowed(api, 0, 1)
    answer = await _evict(api, "a")

    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    cause = {
        "reason": "DisruptionBudget",
        "message": "The disruption budget db needs 1 healthy pods and has 1 currently",
    }
    assert answer.json["details"]["causes"] == [cause]
    assert await _there(api, "a")


async def test_one_by_one(api: Api) -> None:
    """What one eviction takes from the budget the next does not have."""
    for name in ("a", "b"):
        await _pod(api, name)
    await _budget(api, minAvailable=1)
    await _allowed(api, 1, 2)
    first, second = await _evict(api, "a"), await _evict(api, "b")

    assert (first.status, second.status) == (201, 429)
    assert await _there(api, "b")


async def test_a_dry_run_takes_nothing(api: Api) -> None:
    """It is refused like a real one, and what it is allowed stays allowed."""
    for name in ("a", "b"):
        await _pod(api, name)
    await _budget(api, minAvailable=1)
    before = await _allowed(api, 1, 2)
    dry = await _evict(api, "a", deleteOptions={"dryRun": ["All"]})
    after = await _allowed(api, 1, 2)

    assert dry.status == 201
    assert await _there(api, "a")
    assert after.version == before.version


async def test_an_unready_pod(api: Api) -> None:
    """It may go while the ready ones are enough without it."""
    await _pod(api, "a")
    await _pod(api, "b", ready=False)
    await _budget(api, minAvailable=1)
    await _allowed(api, 0, 1)

    assert (await _evict(api, "b")).status == 201
    assert (await _evict(api, "a")).status == 429


async def test_what_is_over_is_free(api: Api) -> None:
    """A pod that has ended counts for no budget."""
    await _pod(api, "a", ready=False, phase="Succeeded")
    await _budget(api, minAvailable=1)

    assert (await _evict(api, "a")).status == 201


async def test_two_budgets(api: Api) -> None:
    """More than one for a pod is an error of whoever made them, and says so."""
    await _pod(api, "a")
    await _budget(api, minAvailable=0)
    await _budget(api, "other", minAvailable=0)
    answer = await _evict(api, "a")

    assert answer.status == 500
    assert "more than one PodDisruptionBudget" in answer.message
    assert await _there(api, "a")


async def test_another_name(api: Api) -> None:
    """The name in the body is that of the path."""
    await _pod(api, "a")
    answer = await _evict(api, "a", metadata={"name": "b"})

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert await _there(api, "a")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_it_can_only_be_made(api: Api, method: str) -> None:
    """There is nothing to read or to take back."""
    await _pod(api, "a")
    answer = await api.send(method, f"{api.place('pods', 'a')}/eviction")

    assert answer.status == 405
    assert await _there(api, "a")
