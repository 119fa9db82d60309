"""
When Flux has given a release up: whether to have it try again, and when.

Flux tries a few times and then stops for good, also after the cause was mended; it begins anew
only when asked, or when the release is changed. While something that the release brought does not
come up, asking would only fail again. Once all of it is up, a failed install is asked for at once;
where nothing can be seen, after a while that doubles each time. How often fleetd has asked stands
on the release itself, where a restart does not forget it; `state` is pure, and so are the steps.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from drivers.flux import manifests, pods
from fleetd.kube import facts
from fleetd.objects import WRITE_DEADLINE, Manifest, ObjectDriver
from fleetd.vocabulary import Done, Outcome, Step, make_step
from topology.resource import Facts, Resource

RESET = "reset"
REQUESTED = "reconcile.fluxcd.io/requestedAt"
RESETS = "reconcile.fluxcd.io/resetAt"
COUNT = "fleet.c5c3.io/resets"
"""Annotation: `<generation>/<how often>` fleetd had this generation of the release tried anew."""
FIRST, LONGEST = timedelta(minutes=10), timedelta(hours=4)


def state(release: Facts | None, brought: Sequence[Facts] | None, now: datetime) -> Facts:
    """Empty unless Flux has given up. `brought`: the Deployments and DaemonSets of the release;
    None where its cluster cannot be asked."""
    stalled = facts.condition(release, "Stalled")
    if release is None or stalled.get("status") != "True":
        return {}
    if stalled.get("reason") != "RetriesExceeded":
        return {}  # what is wrong with the release itself is not mended by trying again
    count, since = _count(release), str(stalled["lastTransitionTime"])
    found: dict[str, Any] = {
        "token": f"{since}/{count}",
        "mark": f"{release['metadata']['generation']}/{count + 1}",
        "due": False,
    }
    if brought is None:
        return {**found, "down": "its cluster"}
    down = sorted(one["metadata"]["name"] for one in brought if not pods.up(one))
    waits = str(facts.condition(release, "Ready").get("reason", ""))
    if down or waits in ("DependencyNotReady", "SourceNotReady"):
        return {**found, "down": ", ".join(down) or "what it waits for"}
    installing = facts.part(release, "status").get("lastAttemptedReleaseAction") == "install"
    at_once = bool(brought) and installing and not count
    until = datetime.fromisoformat(since) + min(FIRST * 2**count, LONGEST)
    return {**found, "due": at_once or now >= until, "until": until.isoformat()}


def _count(release: Facts) -> int:
    mark = str(facts.part(release, "metadata", "annotations").get(COUNT, ""))
    generation, _, count = mark.partition("/")
    current = generation == str(release["metadata"].get("generation"))
    return int(count) if current and count.isdecimal() else 0


def steps(want: Resource, release: Manifest, told: Facts) -> Sequence[Step]:
    """`told`: what `state` found."""
    if not told.get("due"):
        return ()
    args = {
        "backend": release.backend,
        "name": release.name,
        "token": told["token"],
        "mark": told["mark"],
    }
    why = f"reset the release {release.name}: its retries are used up"
    return (make_step(want, RESET, args, why=why, deadline=WRITE_DEADLINE),)


async def reset(driver: ObjectDriver, step: Step) -> Outcome:
    client = driver.tools.clusters.client(step.args["backend"])
    kind = await client.find(manifests.HELM, "HelmRelease")
    token = step.args["token"]
    notes: Mapping[str, str] = {REQUESTED: token, RESETS: token, COUNT: step.args["mark"]}
    change = {"metadata": {"annotations": notes}}
    await client.patch(kind, step.args["name"], change, manifests.NAMESPACE)
    return Done()
