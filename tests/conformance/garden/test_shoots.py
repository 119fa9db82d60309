"""What a garden fills in, takes and refuses of a Shoot, and that our driver knows it beforehand."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from drivers.gardener import operations, shoots
from tests.conformance.garden.gardens import GARDEN, NAME, Plot, created
from tests.conformance.kube.api import Answer, Obj

Change = Callable[[Obj], None]
SYSTEM, HV = "provider.workers.0", "provider.workers.1"
OPERATION = "gardener.cloud/operation"
START = operations.start(list(operations.PHASED))
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}


class Update(NamedTuple):
    path: str
    value: Any
    status: int
    words: str = ""
    foreseen: bool = False
    """Whether our driver holds it back, because the garden would refuse it."""


UPDATES = [
    Update("region", "eu-9", 422, "field is immutable", foreseen=True),
    Update("networking.type", "cilium", 422, "field is immutable", foreseen=True),
    Update("networking.pods", "10.0.0.0/8", 200),
    Update("networking.nodes", "10.0.0.0/8", 200),
    Update("kubernetes.version", "1.33.3", 422, "downgrade is not supported", foreseen=True),
    Update("kubernetes.version", "1.35.1", 422, "cannot skip a minor version", foreseen=True),
    Update(
        "kubernetes.version",
        "1.34.9",
        403,
        'Unsupported value: "1.34.9": supported values: "1.32.6", "1.33.3"',
        foreseen=True,
    ),
    Update("kubernetes.version", "1.34.2", 200),
    Update(
        f"{SYSTEM}.kubernetes",
        {"version": "1.34.2"},
        422,
        "must not be higher than control plane",
        foreseen=True,
    ),
    Update(f"{SYSTEM}.machine.image.version", "1877.3.0", 200),
    Update(
        f"{HV}.machine.image.version",
        "1877.3.0",
        422,
        "machine image version downgrade",
        foreseen=True,
    ),
    Update(f"{SYSTEM}.machine.image.version", "1443.3.0", 403, '"1443.3.0"', foreseen=True),
    Update(f"{SYSTEM}.machine.image.version", "9.9.9", 403, '"9.9.9"', foreseen=True),
    Update(f"{SYSTEM}.machine.image.version", "2000.1.0", 200),
    Update(
        f"{HV}.machine.image.version",
        "2000.1.0",
        403,
        "cannot be in-place updated from the current version",
        foreseen=True,
    ),
    Update(
        f"{SYSTEM}.machine.image.name",
        "ubuntu",
        403,
        '"ubuntu": image is not supported',
        foreseen=True,
    ),
    Update(f"{SYSTEM}.machine.type", "none", 403, 'Unsupported value: "none"', foreseen=True),
    Update(f"{SYSTEM}.machine.type", "old-64c", 403, '"old-64c" is unusable', foreseen=True),
    Update(
        f"{HV}.machine.type",
        "none",
        422,
        "machine type cannot be changed if update strategy",
        foreseen=True,
    ),
    Update(
        f"{HV}.updateStrategy",
        "AutoRollingUpdate",
        422,
        "update strategy cannot be changed from Auto",
        foreseen=True,
    ),
    Update(f"{HV}.updateStrategy", "AutoInPlaceUpdate", 200),
    Update(
        f"{SYSTEM}.updateStrategy",
        "ManualInPlaceUpdate",
        422,
        "update strategy cannot be changed",
        foreseen=True,
    ),
    Update(f"{SYSTEM}.maxUnavailable", 0, 422, "may not be 0 when"),
    Update(f"{HV}.maxSurge", 1, 422, "not be set when `updateStrategy` is `Manual"),
    Update(f"{SYSTEM}.maximum", 1, 422, "maximum value must not be less than minimum value"),
    Update(f"{SYSTEM}.zones", ["az9"], 403, 'Unsupported value: "az9"', foreseen=True),
    Update("provider.workers", [], 422, "from a Shoot with workers to a workerless Shoot"),
    Update("purpose", "infrastructure", 422, 'Unsupported value: "infrastructure"'),
    Update(
        "maintenance.timeWindow",
        {"begin": "220000+0000", "end": "221000+0000"},
        422,
        "time window must not be smaller than 30m0s",
    ),
    Update("seedName", "other", 500, "could not get seed other"),
    Update("exposureClassName", "other", 422, "field is immutable", foreseen=True),
    Update("hibernation.schedules", [{"start": "never"}], 422, "not a valid cron spec"),
    Update(
        "kubernetes.kubeAPIServer.structuredAuthentication.configMapName",
        "nope",
        403,
        'configmaps "nope" not found',
    ),
    Update("credentialsBindingName", "none", 403, 'binding.security.gardener.cloud "none"'),
    Update("controlPlane.highAvailability.failureTolerance.type", "node", 200),
    Update("hibernation.enabled", True, 200),
]


def _set(path: str, value: Any) -> Change:
    def change(live: Obj) -> None:
        *parents, last = path.split(".")
        inner: Any = live["spec"]
        for name in parents:
            inner = inner[int(name)] if name.isdigit() else inner.setdefault(name, {})
        inner[last] = value

    return change


@pytest.mark.parametrize("update", UPDATES, ids=lambda one: f"{one.path}={one.value}")
async def test_a_change_is_taken_or_refused(plot: Plot, update: Update) -> None:
    """With its code and the telling part of its text; and what our driver holds back because a
    garden would refuse it is what a garden refuses."""
    assert (await plot.plant()).status == 201
    live = (await plot.api.get(plot.shoot())).json
    wanted = (await plot.api.get(plot.shoot())).json
    _set(update.path, update.value)(wanted)
    answer = await plot.api.put(plot.shoot(), wanted, dryRun="All")
    profile = (await plot.api.get(plot.profile)).json
    held = shoots.refusals(wanted["spec"], live, profile["spec"], datetime.now(UTC))

    assert answer.status == update.status
    assert update.words in answer.json.get("message", "")
    assert bool(held) is update.foreseen


@pytest.mark.parametrize(
    ("path", "value", "status", "words"),
    [
        ("cloudProfile", {"name": "none"}, 500, "could not find referenced cloud profile"),
        ("provider.type", "aws", 403, "non-registered provider type"),
        ("networking.type", "weave", 403, "non-registered networking type"),
        ("credentialsBindingName", "none", 403, 'binding.security.gardener.cloud "none"'),
        ("credentialsBindingName", "", 422, "must be set when credentialsBindingName is not"),
        ("kubernetes.version", "latest", 403, "must be a semantic version"),
        (f"{SYSTEM}.name", "a-name-that-is-long", 422, "may not be more than 15 bytes"),
    ],
)
async def test_a_bad_shoot_is_refused(
    plot: Plot, path: str, value: Any, status: int, words: str
) -> None:
    """When it is created, with a code that depends on who found it."""
    body = plot.body()
    _set(path, value)(body)
    answer = await plot.plant(body)

    assert answer.status == status
    assert words in answer.message


async def test_a_seed_is_not_chosen_by_a_change(plot: Plot) -> None:
    """Only the scheduler's own way chooses it; in an ordinary change it is passed over."""
    await plot.make_seed()
    created(await plot.plant())
    wanted = (await plot.api.get(plot.shoot())).json
    wanted["spec"]["seedName"] = plot.project
    answer = await plot.api.put(plot.shoot(), wanted)

    assert answer.status == 200
    assert "seedName" not in answer.json["spec"]


async def test_things_must_exist_in_order(bare: Plot) -> None:
    """The namespace, then the project; each missing one has an answer of its own."""
    nowhere = await bare.plant()
    await bare.make_space()
    unknown = await bare.plant()

    assert nowhere.status == 404
    assert (unknown.status, "could not find referenced project" in unknown.message) == (403, True)


async def test_names_have_their_limits(plot: Plot) -> None:
    """10 for a project, 21 together with the Shoot."""
    shoot = await plot.plant(plot.body("a" * 17))
    body = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Project",
        "metadata": {"name": "elevenchars"},
    }
    project = await plot.api.post(f"{GARDEN}/projects", body)

    assert (shoot.status, "must not exceed 21 characters" in shoot.message) == (422, True)
    assert (project.status, "10 bytes" in project.message) == (422, True)


async def test_omitted_maintenance_turns_automatic_updates_on(plot: Plot) -> None:
    """The default that fleetd guards against."""
    body = plot.body()
    del body["spec"]["maintenance"]
    made = await plot.plant(body)

    assert made.json["spec"]["maintenance"]["autoUpdate"] == {
        "kubernetesVersion": True,
        "machineImageVersion": True,
    }


async def test_confined_changes_do_not_raise_the_generation(plot: Plot) -> None:
    """They wait for the window; the spec is stored, the generation stays."""
    body = plot.body()
    body["spec"]["maintenance"]["confineSpecUpdateRollout"] = True
    made = await plot.plant(body)
    changed = await plot.api.merge(plot.shoot(), {"spec": {"kubernetes": {"version": "1.33.5"}}})

    assert changed.json["spec"]["kubernetes"]["version"] == "1.33.5"
    assert changed.meta["generation"] == made.meta["generation"]


@pytest.mark.parametrize(
    ("state", "asked", "left", "raised"),
    [
        ("Succeeded", "reconcile", None, 1),
        ("Failed", "reconcile", "reconcile", 0),
        ("Failed", "retry", None, 1),
        ("Error", "retry", "retry", 0),
        ("Succeeded", "rotate-ssh-keypair", "rotate-ssh-keypair", 1),
        ("Succeeded", "maintain", "maintain", 0),
        ("Succeeded", "reconcile;rotate-ca-start", "rotate-ca-start", 1),
        ("Succeeded", START, START, 1),
        *(("Succeeded", one, one, 1) for one in operations.AT_ONCE.values()),
    ],
)
async def test_operations_are_consumed_or_stay(
    plot: Plot, state: str, asked: str, left: str | None, raised: int
) -> None:
    """`reconcile` and `retry` vanish in the write itself, where they have an effect at all."""
    made = await plot.plant()
    last = {
        "type": "Reconcile",
        "state": state,
        "progress": 100,
        "description": "",
        "lastUpdateTime": "2030-01-01T00:00:00Z",
    }
    told = await plot.api.merge(plot.shoot(part="status"), {"status": {"lastOperation": last}})
    done = await plot.api.merge(plot.shoot(), {"metadata": {"annotations": {OPERATION: asked}}})

    assert told.status == 200
    assert done.meta.get("annotations", {}).get(OPERATION) == left
    assert done.meta["generation"] - made.meta["generation"] == raised


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("bogus", 'Unsupported value: "bogus"'),
        ("rotate-ca-complete", "cannot complete CA rotation if"),
        ("rotate-serviceaccount-key-complete", "cannot complete service account key rotation if"),
        ("rotate-credentials-complete", "cannot complete rotation of all credentials if"),
        ("rotate-ca-start", "cannot start CA rotation if shoot was not yet created"),
        ("rollout-workers=hv", "is using in-place update strategy"),
        ("rollout-workers=none", "worker pool name none does not exist"),
    ],
)
async def test_operations_that_cannot_be_are_refused(plot: Plot, asked: str, words: str) -> None:
    """They are validated as the rest is."""
    created(await plot.plant())
    answer = await plot.api.merge(plot.shoot(), {"metadata": {"annotations": {OPERATION: asked}}})

    assert answer.status == 422
    assert words in answer.message


async def test_each_part_ends_by_itself(plot: Plot) -> None:
    """Of two that are prepared one may be completed, and neither can be started again."""
    created(await plot.plant())
    last = {
        "type": "Reconcile",
        "state": "Succeeded",
        "progress": 100,
        "description": "",
        "lastUpdateTime": "2030-01-01T00:00:00Z",
    }
    begun = {"phase": "Prepared", "lastInitiationTime": "2030-01-01T00:00:00Z"}
    rotation = dict.fromkeys(operations.PHASED, begun)
    status = {"lastOperation": last, "credentials": {"rotation": rotation}}
    await plot.api.merge(plot.shoot(part="status"), {"status": status})

    async def ask(operation: str) -> Answer:
        change = {"metadata": {"annotations": {OPERATION: operation}}}
        return await plot.api.merge(plot.shoot(), change, dryRun="All")

    ended = [(await ask(operations.complete(one))).status for one in operations.PHASED]
    again = [await ask(operations.start([one])) for one in operations.PHASED]

    assert ended == [200, 200]
    assert [one.status for one in again] == [422, 422]
    assert all("phase is not 'Completed'" in one.message for one in again)


async def test_a_shoot_is_deleted_only_with_the_confirmation(plot: Plot) -> None:
    """403 without the annotation; with it, one without finalizers is gone."""
    created(await plot.plant())
    refused = await plot.api.delete(plot.shoot())
    await plot.api.merge(plot.shoot(), {"metadata": {"annotations": CONFIRMED}})
    deleted = await plot.api.delete(plot.shoot())

    assert refused.status == 403
    assert 'must have a "confirmation.gardener.cloud/deletion" annotation' in refused.message
    assert deleted.status == 200
    assert (await plot.api.get(plot.shoot())).status == 404


async def test_a_version_in_use_cannot_leave_the_profile(plot: Plot) -> None:
    """The garden says which Shoot uses it."""
    created(await plot.plant())
    profile = (await plot.api.get(plot.profile)).json
    offered = profile["spec"]["kubernetes"]
    offered["versions"] = [one for one in offered["versions"] if one["version"] != "1.33.4"]
    answer = await plot.api.put(plot.profile, profile)

    assert answer.status == 403
    assert f"version is still in use by shoot '{plot.space}/{NAME}'" in answer.message


async def test_another_order_of_keys_is_another_spec_for_a_put(plot: Plot) -> None:
    """Of the provider's parts the bytes count; a merge patch and an apply keep them."""
    made = await plot.plant()
    live = (await plot.api.get(plot.shoot())).json
    given = live["spec"]["provider"]["controlPlaneConfig"]
    live["spec"]["provider"]["controlPlaneConfig"] = dict(reversed(given.items()))
    put = await plot.api.put(plot.shoot(), live)
    body = plot.body()
    applied = await plot.api.apply(plot.shoot(), body, "t", force="true")
    again = await plot.api.apply(plot.shoot(), body, "t", force="true")

    generations = [one.meta["generation"] for one in (made, put, applied, again)]
    assert generations == [1, 2, 2, 2]
