"""All that a document may say of a Shoot, and how Gardener logs in: said to every garden."""

import copy
from typing import Any

import pytest

from drivers.gardener import manifests
from fleetd.kube import facts
from tests.conformance.garden.gardens import GARDEN, SECURITY, Plot
from tests.conformance.kube.api import CORE, Obj, eventually
from tests.drivers.gardener.region import changed, everything, want


async def _prepare(plot: Plot) -> Obj:
    """What the Shoot names is there; the Shoot, as our driver writes it."""
    config: dict[str, Any] = copy.deepcopy(dict(manifests.authentication(everything())[0].body))
    config["metadata"]["namespace"] = plot.space
    assert (await plot.api.post(f"{CORE}/namespaces/{plot.space}/configmaps", config)).status == 201
    made: Obj = copy.deepcopy(dict(manifests.shoot(everything()).body))
    made["apiVersion"] = "core.gardener.cloud/v1beta1"
    made["metadata"]["namespace"] = plot.space
    made["spec"]["cloudProfile"] = {"kind": "CloudProfile", "name": plot.project}
    made["spec"]["dns"]["domain"] = f"hv.{plot.project}.example"
    made["spec"].pop("exposureClassName")
    return made


async def test_all_that_a_document_may_say_is_taken(plot: Plot) -> None:
    """And comes back as it was said."""
    body = await _prepare(plot)
    answer = await plot.plant(body)

    assert answer.status == 201, answer.message
    spec = answer.json["spec"]
    for name in ("purpose", "dns", "hibernation", "maintenance", "controlPlane"):
        assert facts.differences({"spec": {name: body["spec"][name]}}, answer.json) == []
    pool = spec["provider"]["workers"][0]
    assert pool["sysctls"] == {"net.core.somaxconn": "4096"}
    named = spec["kubernetes"]["kubeAPIServer"]["structuredAuthentication"]["configMapName"]
    assert named == "hv-authentication"


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"dns": {"domain": "other.example"}}, 422, "field is immutable"),
        ({"exposureClassName": "other"}, 422, "field is immutable"),
    ],
)
async def test_what_is_said_once_is_not_changed(
    plot: Plot, change: Obj, status: int, words: str
) -> None:
    """Our driver holds both back with the reason."""
    planted = await plot.plant(await _prepare(plot))
    assert planted.status == 201, planted.message
    path = plot.shoot("hv")
    wanted = (await plot.api.get(path)).json
    wanted["spec"] |= change
    answer = await plot.api.put(path, wanted, dryRun="All")

    assert (answer.status, words in answer.message) == (status, True), answer.message


async def test_no_two_shoots_have_one_domain(plot: Plot) -> None:
    """The second is refused; our checks say so before."""
    body = await _prepare(plot)
    assert (await plot.plant(body)).status == 201
    body["metadata"]["name"] = "hv-b"
    answer = await eventually(lambda: plot.plant(body, dryRun="All"), 403)

    assert answer.status == 403, answer.message
    assert "spec.dns.domain: Duplicate value" in answer.message


async def test_an_exposure_class_must_be_there(plot: Plot) -> None:
    """Nobody makes one for a Shoot that names it."""
    body = await _prepare(plot)
    body["spec"]["exposureClassName"] = "none"
    answer = await plot.plant(body)

    assert answer.status in (403, 404, 500), answer.message
    assert '"none" not found' in answer.message


async def test_an_identity_is_named_at_once_and_bound(plot: Plot) -> None:
    """Its subject follows from its names, and a binding may name it."""
    binding = want("credentials-binding")
    identity = {"audiences": ["metal"], "prefix": ""}
    given = changed(binding, garden={**binding.spec["garden"], "workloadIdentity": identity})
    names = {"name": "metal-id", "namespace": plot.space}
    who: Obj = copy.deepcopy(dict(manifests.identity(given).body))
    who |= {"apiVersion": "security.gardener.cloud/v1alpha1", "metadata": names}
    path = f"{SECURITY}/namespaces/{plot.space}"
    made = await plot.api.post(f"{path}/workloadidentities", who)
    assert made.status == 201, made.message
    begins = f"gardener.cloud:workloadidentity:{plot.space}:metal-id:"
    assert made.json["status"]["sub"].startswith(begins)

    bound: Obj = copy.deepcopy(dict(manifests.binding(given).body))
    bound |= {"apiVersion": "security.gardener.cloud/v1alpha1", "metadata": names}
    bound["credentialsRef"] = {**bound["credentialsRef"], **names}
    answer = await plot.api.post(f"{path}/credentialsbindings", bound)
    assert answer.status == 201, answer.message


async def test_a_profile_of_the_project_is_named(plot: Plot) -> None:
    """Until the garden has put it together with its parent it offers nothing."""
    body = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "NamespacedCloudProfile",
        "metadata": {"name": "own", "namespace": plot.space},
        "spec": {"parent": {"kind": "CloudProfile", "name": plot.project}},
    }
    where = f"{GARDEN}/namespaces/{plot.space}/namespacedcloudprofiles"
    assert (await plot.api.post(where, body)).status == 201
    shoot = await _prepare(plot)
    shoot["spec"]["cloudProfile"] = {"kind": "NamespacedCloudProfile", "name": "own"}
    answer = await plot.plant(shoot)

    assert answer.status == 403, answer.message
