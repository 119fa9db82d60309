"""
What goes because something else has gone: dependents and namespaces.

On a real cluster this is the controller manager's work; a bare API server does none of it.
"""

from typing import Any

from tests.conformance.kube.api import CORE, Answer, Api, config_map, eventually, until


def _owner(owner: Answer, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner.meta["name"],
        "uid": owner.meta["uid"],
        **more,
    }


async def test_dependent_goes_with_its_owner(api: Api) -> None:
    """What names a deleted object as its owner is collected."""
    owner = await api.config("owner")
    await api.config("child", ownerReferences=[_owner(owner)])
    await api.delete(api.maps("owner"))

    assert (await eventually(lambda: api.get(api.maps("child")), 404)).status == 404


async def test_collection_goes_down_the_line(api: Api) -> None:
    """So are the dependents of dependents."""
    owner = await api.config("owner")
    child = await api.config("child", ownerReferences=[_owner(owner)])
    await api.config("grandchild", ownerReferences=[_owner(child)])
    await api.delete(api.maps("owner"))

    assert (await eventually(lambda: api.get(api.maps("grandchild")), 404)).status == 404


async def test_dependent_with_another_owner_stays(api: Api) -> None:
    """An object with two owners stays with the other, and forgets the first."""
    one = await api.config("one")
    two = await api.config("two")
    await api.config("child", ownerReferences=[_owner(one), _owner(two)])
    await api.delete(api.maps("one"))
    left = await until(
        lambda: api.get(api.maps("child")),
        lambda answer: len(answer.meta["ownerReferences"]) == 1,
    )

    assert [owner["name"] for owner in left.meta["ownerReferences"]] == ["two"]


async def test_orphan_stays(api: Api) -> None:
    """With propagation Orphan the dependent stays and has no owner any more."""
    owner = await api.config("owner")
    await api.config("child", ownerReferences=[_owner(owner)])
    await api.delete(api.maps("owner"), {"propagationPolicy": "Orphan"})
    await eventually(lambda: api.get(api.maps("owner")), 404)
    child = await api.get(api.maps("child"))

    assert child.status == 200
    assert not child.meta.get("ownerReferences")


async def test_foreground_waits_for_dependents(api: Api) -> None:
    """With propagation Foreground the owner waits for what blocks it."""
    owner = await api.config("owner")
    blocking = _owner(owner, blockOwnerDeletion=True)
    await api.config("child", ownerReferences=[blocking], finalizers=["example.com/hold"])
    answer = await api.delete(api.maps("owner"), {"propagationPolicy": "Foreground"})
    marked = await until(
        lambda: api.get(api.maps("child")), lambda child: "deletionTimestamp" in child.meta
    )
    waiting = await api.get(api.maps("owner"))
    await api.merge(api.maps("child"), {"metadata": {"finalizers": None}})
    gone = await eventually(lambda: api.get(api.maps("owner")), 404)

    assert "foregroundDeletion" in answer.meta["finalizers"]
    assert "deletionTimestamp" in marked.meta
    assert (waiting.status, gone.status) == (200, 404)


async def test_owner_that_never_was(api: Api) -> None:
    """An object whose owner does not exist is collected."""
    await api.config("owner")
    lost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "not-it"}
    await api.config("child", ownerReferences=[lost])

    assert (await eventually(lambda: api.get(api.maps("child")), 404)).status == 404


async def _space(api: Api) -> str:
    name = f"{api.namespace}-x"
    await api.post(f"{CORE}/namespaces", {"metadata": {"name": name}})
    return name


async def test_namespace_takes_its_content(api: Api) -> None:
    """A deleted namespace goes, and all that was in it."""
    name = await _space(api)
    await api.post(api.maps(namespace=name), config_map("a"))
    await api.delete(f"{CORE}/namespaces/{name}")
    gone = await eventually(lambda: api.get(f"{CORE}/namespaces/{name}"), 404)
    content = await api.get(api.maps("a", name))

    assert (gone.status, content.status) == (404, 404)


async def test_namespace_waits_for_its_content(api: Api) -> None:
    """A finalizer on something inside holds the namespace in Terminating."""
    name = await _space(api)
    body = config_map("a", finalizers=["example.com/hold"])
    await api.post(api.maps(namespace=name), body)
    await api.delete(f"{CORE}/namespaces/{name}")
    marked = await until(
        lambda: api.get(api.maps("a", name)), lambda answer: "deletionTimestamp" in answer.meta
    )
    waiting = await api.get(f"{CORE}/namespaces/{name}")
    await api.merge(api.maps("a", name), {"metadata": {"finalizers": None}})
    gone = await eventually(lambda: api.get(f"{CORE}/namespaces/{name}"), 404)

    assert "deletionTimestamp" in marked.meta
    assert waiting.json["status"]["phase"] == "Terminating"
    assert gone.status == 404


async def test_ending_namespace_takes_nothing_new(api: Api) -> None:
    """Nothing can be created in a namespace that is going."""
    name = await _space(api)
    body = config_map("a", finalizers=["example.com/hold"])
    await api.post(api.maps(namespace=name), body)
    await api.delete(f"{CORE}/namespaces/{name}")
    answer = await api.post(api.maps(namespace=name), config_map("b"))
    await api.merge(api.maps("a", name), {"metadata": {"finalizers": None}})

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert f"in namespace {name} because it is being terminated" in answer.message
    assert answer.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"


async def test_namespace_is_active_and_labelled(api: Api) -> None:
    """A new namespace is Active and has its name as a label."""
    answer = await api.get(f"{CORE}/namespaces/{api.namespace}")

    assert answer.json["status"]["phase"] == "Active"
    assert answer.meta["labels"]["kubernetes.io/metadata.name"] == api.namespace
