"""What a profile offers, what it takes away, and all that a document may say of a Shoot."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drivers.gardener import offers
from fleetd.sim import loop
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, everything, want
from tests.drivers.gardener.test_clusters import (
    PROFILE,
    SHOOT,
    one_pool,
    prepared,
    proposed,
    up,
)


def test_a_cluster_that_says_everything_is_made() -> None:
    """Own profile, domain, exposure class, sleep, issuers and kernel settings: the garden takes
    it, it comes up, and then nothing differs."""

    async def act(region: Region) -> None:
        driver = await prepared(region)
        for body in (
            {"kind": "ExposureClass", "metadata": {"name": "internal"}, "handler": "internal"},
            {
                "kind": "NamespacedCloudProfile",
                "metadata": {"name": "metal", "namespace": "garden-cobalt"},
                "spec": {"parent": {"kind": "CloudProfile", "name": "metal"}},
            },
        ):
            given = {"apiVersion": "core.gardener.cloud/v1beta1", **body}
            region.garden.create(given, manager="t")
        await asyncio.sleep(30)
        whole = everything()
        steps = await proposed(region, driver, whole)
        assert [step.args["manifest"]["kind"] for step in steps] == ["ConfigMap", "Shoot"]
        assert await region.road(driver, whole) == "Ready"
        assert await proposed(region, driver, whole) == ()
        config = region.garden.get(("", "ConfigMap"), "hv-authentication", "garden-cobalt")
        assert config is not None
        trusted = json.loads(config["data"]["config.yaml"])
        assert trusted["apiVersion"] == "apiserver.config.k8s.io/v1beta1"
        assert [one["issuer"]["url"] for one in trusted["jwt"]] == ["https://sso.example"]
        for gone in ({"exposureClass": "other"}, {"dns": {"domain": "other.example"}}):
            (step,) = await proposed(region, driver, changed(whole, **gone))
            assert step.verb == "refuse"

    loop.run(place.play(act))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"kubernetes": "1.33.99"}, "does not offer Kubernetes 1.33.99"),
        ({"image": {"name": "gardenlinux", "version": "1.0.0"}}, "does not offer image"),
        ({"workers": {"machineType": "none"}}, "does not offer machine type none"),
        ({"workers": {"zones": ["z"]}}, "has no zone z in region eu-1"),
    ],
)
def test_what_the_profile_lacks_is_told_before_a_cluster_is_made(
    spec: dict[str, Any], words: str
) -> None:
    """Nothing is sent: the garden would answer in the middle of a plan."""

    async def act(region: Region) -> None:
        driver = await prepared(region)
        cluster = want("cluster", "hv")
        if "workers" in spec:
            given: dict[str, Any] = {
                "workers": [{**one, **spec["workers"]} for one in cluster.spec["workers"]]
            }
        else:
            given = spec
        (step,) = await proposed(region, driver, changed(cluster, **given))
        assert (step.verb, words in step.why) == ("refuse", True)

    loop.run(place.play(act))


async def _until(region: Region, days: int) -> None:
    """Kubernetes and image of the example end in so many days."""
    until = (region.world.now() + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def change(live: dict[str, Any]) -> None:
        images = live["spec"]["machineImages"][0]["versions"]
        for one in (*live["spec"]["kubernetes"]["versions"], *images):
            if one["version"] in ("1.33.4", "1877.4.0"):
                one["expirationDate"] = until

    region.garden.edit(PROFILE, "metal", "", change, manager="t")
    await asyncio.sleep(1)


def test_what_expires_is_told_before_and_refused_after() -> None:
    """A cluster that has it stays Ready with a warning; a new one does not get it any more."""

    async def act(region: Region) -> None:
        driver = await up(region)
        cluster = want("cluster", "hv")
        await _until(region, 59)
        told = driver.judge(cluster, await driver.observe(cluster))
        assert [one.reason for one in told] == ["Healthy", "ExpiresSoon"]
        assert "Kubernetes 1.33.4 expires at" in told[1].message
        assert "image gardenlinux 1877.4.0 expires at" in told[1].message
        await _until(region, -1)
        told = driver.judge(cluster, await driver.observe(cluster))
        assert "Kubernetes 1.33.4 expired at" in told[1].message
        assert await proposed(region, driver, cluster) == ()
        (step,) = await proposed(region, driver, want("cluster", "cp"))
        assert step.verb == "refuse"
        assert "Kubernetes 1.33.4 expired at" in step.why
        assert "image gardenlinux 1877.4.0 is expired" in step.why

    loop.run(place.play(act))


def test_an_image_that_is_not_made_for_it_is_not_updated_in_place() -> None:
    """The version says whether it can; a pool that asks for it nevertheless is refused."""
    image = {"name": "gardenlinux", "version": "1877.4.0"}
    offer: dict[str, Any] = {
        "kubernetes": {"versions": [{"version": "1.33.4"}]},
        "machineTypes": [{"name": "m"}],
        "machineImages": [{"name": "gardenlinux", "versions": [image]}],
    }
    now = datetime(2026, 3, 3, tzinfo=UTC)

    in_place, rolling = (
        list(offers.lacking(one_pool(image, strategy), {}, offer, now))
        for strategy in ("ManualInPlaceUpdate", "AutoRollingUpdate")
    )

    assert len(in_place) == 1
    assert "is not made for updates in place" in in_place[0]
    assert rolling == []


NOON = datetime(2026, 3, 3, tzinfo=UTC)
BEFORE, AFTER = "2026-03-01T00:00:00Z", "2026-03-09T00:00:00Z"


def _offer(**image: Any) -> dict[str, Any]:
    given = {"version": "1877.4.0", **image}
    return {
        "kubernetes": {"versions": [{"version": "1.33.4"}, {"version": "1.34.2"}]},
        "machineTypes": [{"name": "m"}],
        "machineImages": [{"name": "gardenlinux", "versions": [given]}],
    }


IMAGE = {"name": "gardenlinux", "version": "1877.4.0"}


def test_an_image_that_does_not_carry_the_kubelet_is_told() -> None:
    """By its range; for a new pool, and for one whose version changes. What it has it keeps."""
    wanted = one_pool(IMAGE, "AutoRollingUpdate")
    bad, good = _offer(kubeletVersionConstraint="< 1.33"), _offer(kubeletVersionConstraint="~1.33")
    (said,) = offers.lacking(wanted, {}, bad, NOON)
    assert "carries Kubernetes < 1.33, and pool" in said
    assert list(offers.lacking(wanted, {}, good, NOON)) == []
    assert list(offers.lacking(wanted, wanted, bad, NOON)) == []
    newer = {**wanted, "kubernetes": {"version": "1.34.2"}}
    (said,) = offers.lacking(newer, wanted, good, NOON)
    assert "is to have 1.34.2: give it another image" in said
    pinned = json.loads(json.dumps(newer))
    pinned["provider"]["workers"][0]["kubernetes"] = {"version": "1.33.4"}
    assert list(offers.lacking(pinned, wanted, good, NOON)) == []
    for odd in ("", "rubbish", ">=", "1.33.4 ||", None):
        assert list(offers.lacking(wanted, {}, _offer(kubeletVersionConstraint=odd), NOON)) == []


STAGES: dict[str, tuple[list[dict[str, str]], str]] = {
    "supported": ([{"classification": "supported"}], ""),
    "deprecated now": (
        [{"classification": "supported"}, {"classification": "deprecated", "startTime": BEFORE}],
        "",
    ),
    "expired now": (
        [{"classification": "supported"}, {"classification": "expired", "startTime": BEFORE}],
        "is expired",
    ),
    "expired later": (
        [{"classification": "supported"}, {"classification": "expired", "startTime": AFTER}],
        "",
    ),
    "not yet": ([{"classification": "preview", "startTime": AFTER}], f"not offered before {AFTER}"),
    "expired for ever": ([{"classification": "expired"}], "is expired"),
}


@pytest.mark.parametrize("which", STAGES)
def test_stages_of_a_version_count_like_its_end(which: str) -> None:
    """The newer way to say when something is offered, of images and of Kubernetes."""
    stages, words = STAGES[which]
    offer = _offer(lifecycle=stages)
    offer["kubernetes"]["versions"][0]["lifecycle"] = stages
    said = list(offers.lacking(one_pool(IMAGE, "AutoRollingUpdate"), {}, offer, NOON))
    assert len(said) == (2 if words else 0)
    assert all(words.removeprefix("is ") in one for one in said)
    warned = offers.expiring(one_pool(IMAGE, "AutoRollingUpdate"), offer, NOON)
    assert bool(warned) == which.startswith("expired")
    assert not any(AFTER not in one for one in warned if which == "expired later")


def test_a_version_that_is_called_expired_is() -> None:
    """Without a date."""
    offer = _offer(classification="expired")
    wanted = one_pool(IMAGE, "AutoRollingUpdate")
    assert list(offers.lacking(wanted, {}, offer, NOON)) == [
        "image gardenlinux 1877.4.0 is expired"
    ]
    assert "is expired; Gardener" in offers.expiring(wanted, offer, NOON)[0]


def test_a_cluster_is_not_put_to_sleep_for_good() -> None:
    """A constraint that says that it would not wake again holds that change."""

    async def act(region: Region) -> None:
        driver = await up(region)
        status = (region.garden.get(SHOOT, "hv", "garden-cobalt") or {})["status"]
        said = {"type": "HibernationPossible", "status": "False", "message": "a webhook"}
        region.garden.set_status(
            SHOOT, "hv", "garden-cobalt", {**status, "constraints": [said]}, manager="t"
        )
        await asyncio.sleep(1)
        asleep = changed(want("cluster", "hv"), hibernation={"enabled": True, "schedules": []})
        (step,) = await proposed(region, driver, asleep)
        assert step.verb == "refuse"
        assert "it would not wake again: a webhook" in step.why

    loop.run(place.play(act))
