"""The simulated garden answers as the real one did: the table of tried updates."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from drivers.gardener import manifests
from fleetd.sim import loop
from fleetd.sim.kube.refusal import Refused
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, want

SHOOT = ("core.gardener.cloud", "Shoot")
SPACE = "garden-fleet"
Change = Callable[[dict[str, Any]], None]


def _shoot(name: str = "cp-a") -> dict[str, Any]:
    body: dict[str, Any] = copy.deepcopy(dict(manifests.shoot(want("cluster", "hv")).body))
    body["apiVersion"] = "core.gardener.cloud/v1beta1"
    body["metadata"] = {"name": name, "namespace": SPACE}
    hv = copy.deepcopy(body["spec"]["provider"]["workers"][0])
    hv |= {"name": "hv", "updateStrategy": "ManualInPlaceUpdate"}
    del hv["maxSurge"], hv["maxUnavailable"]
    body["spec"]["provider"]["workers"][0]["name"] = "system"
    body["spec"]["provider"]["workers"].append(hv)
    return body


def _garden(region: Region, *, binding: bool = True, project: str = "fleet") -> None:
    garden = region.garden
    garden.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, manager="t"
    )
    if project:
        garden.create(
            {
                "apiVersion": "core.gardener.cloud/v1beta1",
                "kind": "Project",
                "metadata": {"name": project},
                "spec": {"namespace": SPACE},
            },
            manager="t",
        )
    if binding:
        metadata = {"name": "metal", "namespace": SPACE}
        garden.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, manager="t")
        garden.create(
            {
                "apiVersion": "security.gardener.cloud/v1alpha1",
                "kind": "CredentialsBinding",
                "metadata": metadata,
                "provider": {"type": "ironcore-metal"},
                "credentialsRef": {"apiVersion": "v1", "kind": "Secret", **metadata},
            },
            manager="t",
        )


def _answer(call: Callable[[], object]) -> tuple[int, str]:
    try:
        call()
    except Refused as refused:
        return refused.status, refused.message
    return 200, ""


def _set(path: str, value: Any) -> Change:
    def change(live: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        inner: Any = live["spec"]
        for name in parents:
            inner = inner[int(name)] if name.isdigit() else inner.setdefault(name, {})
        inner[last] = value

    return change


SYSTEM, HV = "provider.workers.0", "provider.workers.1"
UPDATES: list[tuple[str, Any, int, str]] = [
    ("region", "eu-9", 422, "field is immutable"),
    ("networking.type", "cilium", 422, "field is immutable"),
    ("networking.pods", "10.0.0.0/8", 422, "field is immutable"),
    ("networking.nodes", "10.0.0.0/8", 200, ""),
    ("kubernetes.version", "1.33.3", 422, "kubernetes version downgrade is not supported"),
    ("kubernetes.version", "1.35.1", 422, "upgrade cannot skip a minor version"),
    (
        "kubernetes.version",
        "1.34.9",
        403,
        'Unsupported value: "1.34.9": supported values: "1.35.1"',
    ),
    ("kubernetes.version", "1.34.2", 200, ""),
    (f"{SYSTEM}.kubernetes", {"version": "1.34.2"}, 422, "must not be higher than control plane"),
    (f"{SYSTEM}.machine.image.version", "1877.3.0", 200, ""),
    (f"{HV}.machine.image.version", "1877.3.0", 422, "machine image version downgrade"),
    (f"{SYSTEM}.machine.image.version", "9.9.9", 403, 'Unsupported value: "9.9.9"'),
    (f"{SYSTEM}.machine.image.name", "ubuntu", 403, '"ubuntu": image is not supported'),
    (f"{SYSTEM}.machine.type", "metal.none", 403, 'Unsupported value: "metal.none"'),
    (f"{HV}.machine.type", "metal.none", 422, "machine type cannot be changed if update strategy"),
    (
        f"{HV}.updateStrategy",
        "AutoRollingUpdate",
        422,
        "update strategy cannot be changed from Auto",
    ),
    (f"{SYSTEM}.updateStrategy", "ManualInPlaceUpdate", 422, "update strategy cannot be changed"),
    (f"{SYSTEM}.maxUnavailable", 0, 422, "may not be 0 when"),
    (f"{HV}.maxSurge", 1, 422, "should not be set when updateStrategy is ManualInPlaceUpdate"),
    (f"{SYSTEM}.maximum", 1, 422, "maximum value must not be less than minimum value"),
    (f"{SYSTEM}.zones", ["az9"], 403, 'Unsupported value: "az9"'),
    ("provider.workers", [], 422, "cannot switch from a Shoot with workers to a workerless Shoot"),
    ("purpose", "infrastructure", 422, 'Unsupported value: "infrastructure"'),
    (
        "maintenance.timeWindow",
        {"begin": "220000+0000", "end": "221000+0000"},
        422,
        "time window must not be smaller than 30m0s",
    ),
    ("seedName", "other", 200, ""),
]


@pytest.mark.parametrize(("path", "value", "status", "words"), UPDATES)
def test_updates_are_answered_as_by_the_real_one(
    path: str, value: Any, status: int, words: str
) -> None:
    """The code and the telling part of the text."""

    async def act(region: Region) -> None:
        _garden(region)
        region.garden.create(_shoot(), manager="t")
        found = _answer(
            lambda: region.garden.edit(SHOOT, "cp-a", SPACE, _set(path, value), manager="t")
        )
        assert found[0] == status
        assert words in found[1]

    loop.run(place.play(act))


def test_things_must_exist_in_order() -> None:
    """Namespace, project, binding; each missing one has its own answer."""

    async def act(region: Region) -> None:
        create = region.garden.create
        assert _answer(lambda: create(_shoot(), manager="t"))[0] == 404
        _garden(region, binding=False, project="")
        status, said = _answer(lambda: create(_shoot(), manager="t"))
        assert (status, "could not find referenced project" in said) == (403, True)

    loop.run(place.play(act))


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (_set("cloudProfile", {"name": "none"}), 500, "could not find referenced cloud profile"),
        (_set("provider.type", "aws"), 403, "non-registered provider type"),
        (_set("networking.type", "weave"), 403, "non-registered networking type"),
        (_set("credentialsBindingName", "none"), 403, "credentials binding"),
        (_set("credentialsBindingName", ""), 422, "must be set when credentialsBindingName is not"),
        (_set("kubernetes.version", "latest"), 403, "must be a semantic version"),
        (_set(f"{SYSTEM}.name", "a-name-that-is-long"), 422, "may not be more than 15 bytes"),
    ],
)
def test_a_bad_shoot_is_refused_at_creation(change: Change, status: int, words: str) -> None:
    """As on the real server, with its codes."""

    async def act(region: Region) -> None:
        _garden(region)
        body = _shoot()
        change(body)
        found = _answer(lambda: region.garden.create(body, manager="t"))
        assert found[0] == status
        assert words in found[1]

    loop.run(place.play(act))


def test_names_have_their_limits() -> None:
    """10 for a project, 21 together with the shoot."""

    async def act(region: Region) -> None:
        _garden(region)
        long = _answer(lambda: region.garden.create(_shoot("a" * 17), manager="t"))
        assert long[0] == 422
        assert "must not exceed 21 characters" in long[1]
        body = {
            "apiVersion": "core.gardener.cloud/v1beta1",
            "kind": "Project",
            "metadata": {"name": "elevenchars"},
        }
        assert "10 bytes" in _answer(lambda: region.garden.create(body, manager="t"))[1]

    loop.run(place.play(act))


def test_omitted_maintenance_turns_automatic_updates_on() -> None:
    """The default that fleetd guards against."""

    async def act(region: Region) -> None:
        _garden(region)
        body = _shoot()
        del body["spec"]["maintenance"]
        made = region.garden.create(body, manager="t")
        assert made["spec"]["maintenance"]["autoUpdate"] == {
            "kubernetesVersion": True,
            "machineImageVersion": True,
        }

    loop.run(place.play(act))


def test_confined_changes_do_not_raise_the_generation() -> None:
    """They wait for the window; the spec is stored, the generation stays."""

    async def act(region: Region) -> None:
        _garden(region)
        body = _shoot()
        body["spec"]["maintenance"]["confineSpecUpdateRollout"] = True
        made = region.garden.create(body, manager="t")
        changed = region.garden.edit(
            SHOOT, "cp-a", SPACE, _set("kubernetes.version", "1.33.5"), manager="t"
        )
        assert changed is not None
        assert changed["spec"]["kubernetes"]["version"] == "1.33.5"
        assert changed["metadata"]["generation"] == made["metadata"]["generation"]

    loop.run(place.play(act))


def _annotate(value: str) -> Change:
    def change(live: dict[str, Any]) -> None:
        live["metadata"].setdefault("annotations", {})["gardener.cloud/operation"] = value

    return change


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
    ],
)
def test_operations_are_consumed_or_stay(
    state: str, asked: str, left: str | None, raised: int
) -> None:
    """`reconcile` and `retry` vanish in the write itself, where they have an effect at all."""

    async def act(region: Region) -> None:
        _garden(region)
        made = region.garden.create(_shoot(), manager="t")
        last = {"type": "Reconcile", "state": state, "progress": 100}
        region.garden.set_status(SHOOT, "cp-a", SPACE, {"lastOperation": last}, manager="t")
        done = region.garden.edit(SHOOT, "cp-a", SPACE, _annotate(asked), manager="t")
        assert done is not None
        found = done["metadata"].get("annotations", {}).get("gardener.cloud/operation")
        more = done["metadata"]["generation"] - made["metadata"]["generation"]
        assert (found, more) == (left, raised)

    loop.run(place.play(act))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("bogus", 'Unsupported value: "bogus"'),
        ("rotate-ca-complete", "phase is not 'Prepared'"),
        ("rollout-workers=hv", "is using in-place update strategy"),
        ("rollout-workers=none", "worker pool name none does not exist"),
    ],
)
def test_operations_that_cannot_be_are_refused(asked: str, words: str) -> None:
    """With the texts of the real server."""

    async def act(region: Region) -> None:
        _garden(region)
        region.garden.create(_shoot(), manager="t")
        found = _answer(
            lambda: region.garden.edit(SHOOT, "cp-a", SPACE, _annotate(asked), manager="t")
        )
        assert found[0] == 422
        assert words in found[1]

    loop.run(place.play(act))


def test_a_shoot_is_deleted_only_with_the_confirmation() -> None:
    """403 without the annotation, and then it is only marked."""

    async def act(region: Region) -> None:
        _garden(region)
        region.garden.create(_shoot(), manager="t")
        found = _answer(lambda: region.garden.delete(SHOOT, "cp-a", SPACE))
        assert found[0] == 403
        assert 'must have a "confirmation.gardener.cloud/deletion" annotation' in found[1]

    loop.run(place.play(act))


def test_a_version_in_use_cannot_leave_the_profile() -> None:
    """The garden says which shoot uses it."""

    async def act(region: Region) -> None:
        _garden(region)
        region.garden.create(_shoot(), manager="t")
        profile = ("core.gardener.cloud", "CloudProfile")

        def drop(live: dict[str, Any]) -> None:
            versions = live["spec"]["kubernetes"]["versions"]
            live["spec"]["kubernetes"]["versions"] = [
                one for one in versions if one["version"] != "1.33.4"
            ]

        found = _answer(lambda: region.garden.edit(profile, "metal", "", drop, manager="t"))
        assert found[0] == 403
        assert "version is still in use by shoot 'garden-fleet/cp-a'" in found[1]

    loop.run(place.play(act))


def test_another_order_of_keys_is_another_spec_for_a_put() -> None:
    """Danger 11: the bytes of the provider's parts count; merge patch and apply keep them."""

    async def act(region: Region) -> None:
        _garden(region)
        made = region.garden.create(_shoot(), manager="t")

        def reorder(live: dict[str, Any]) -> None:
            given = live["spec"]["provider"]["controlPlaneConfig"]
            live["spec"]["provider"]["controlPlaneConfig"] = dict(reversed(given.items()))

        put = region.garden.edit(SHOOT, "cp-a", SPACE, reorder, manager="t")
        assert put is not None
        body = _shoot()
        applied = region.garden.apply(body, manager="t", force=True)
        again = region.garden.apply(body, manager="t", force=True)
        assert put["metadata"]["generation"] == made["metadata"]["generation"] + 1
        assert again["metadata"]["generation"] == applied["metadata"]["generation"]
        assert applied["metadata"]["generation"] == put["metadata"]["generation"]

    loop.run(place.play(act))
