"""CustomResourceDefinitions: kinds that come and go."""

from tests.conformance.kube.api import CRDS, Api, Kind, established, eventually, until


def _kind(label: str) -> Kind:
    return Kind(f"{label}.judged.example", "gadgets", "Gadget")


async def test_definition_becomes_established(api: Api, label: str) -> None:
    """A definition is Established after a while, and its names are accepted."""
    kind = _kind(label)
    await api.post(CRDS, kind.definition())
    answer = await until(lambda: api.get(f"{CRDS}/{kind.name}"), established)
    await api.delete(f"{CRDS}/{kind.name}")

    types = {one["type"]: one["status"] for one in answer.json["status"]["conditions"]}
    assert types["Established"] == "True"
    assert types["NamesAccepted"] == "True"
    assert answer.json["status"]["storedVersions"] == ["v1"]


async def test_kind_is_not_there_before(api: Api, label: str) -> None:
    """A kind without a definition answers 404."""
    assert (await api.get(_kind(label).place(api))).status == 404


async def test_kind_is_discovered(api: Api, widget: Kind) -> None:
    """A served kind is in the discovery of its group, with its short name and its status."""
    groups = await api.get("/apis")
    answer = await api.get(widget.base)
    names = {one["name"]: one for one in answer.json["resources"]}

    assert widget.group in {group["name"] for group in groups.json["groups"]}
    assert set(names) == {"widgets", "widgets/status"}
    assert names["widgets"]["shortNames"] == ["wid"]
    assert names["widgets"]["kind"] == "Widget"
    assert names["widgets"]["namespaced"] is True


async def test_definition_goes_with_its_objects(api: Api, label: str) -> None:
    """Deleting a definition deletes its objects and stops serving the kind."""
    kind = _kind(label)
    await api.post(CRDS, kind.definition())
    await eventually(lambda: api.get(kind.place(api)), 200)
    await api.post(kind.place(api), kind.make("a"))
    await api.delete(f"{CRDS}/{kind.name}")
    gone = await eventually(lambda: api.get(f"{CRDS}/{kind.name}"), 404)
    served = await eventually(lambda: api.get(kind.place(api)), 404)

    assert (gone.status, served.status) == (404, 404)


async def test_object_holds_its_definition(api: Api, label: str) -> None:
    """A finalizer on an object keeps its definition from going."""
    kind = _kind(label)
    await api.post(CRDS, kind.definition())
    await eventually(lambda: api.get(kind.place(api)), 200)
    await api.post(kind.place(api), kind.make("a", finalizers=["example.com/hold"]))
    await api.delete(f"{CRDS}/{kind.name}")
    marked = await until(
        lambda: api.get(kind.place(api, "a")), lambda answer: "deletionTimestamp" in answer.meta
    )
    waiting = await api.get(f"{CRDS}/{kind.name}")
    await api.merge(kind.place(api, "a"), {"metadata": {"finalizers": None}})
    gone = await eventually(lambda: api.get(f"{CRDS}/{kind.name}"), 404)

    assert "deletionTimestamp" in marked.meta
    assert (waiting.status, gone.status) == (200, 404)


async def test_names_get_defaults(api: Api, label: str) -> None:
    """singular and listKind are filled in."""
    kind = _kind(label)
    body = kind.definition()
    names = body["spec"]["names"]
    del names["singular"], names["listKind"]
    answer = await api.post(CRDS, body)
    await api.delete(f"{CRDS}/{kind.name}")

    assert answer.json["spec"]["names"]["singular"] == "gadget"
    assert answer.json["spec"]["names"]["listKind"] == "GadgetList"


async def test_name_of_a_definition(api: Api, label: str) -> None:
    """The name of a definition must be plural and group."""
    body = _kind(label).definition()
    body["metadata"]["name"] = f"wrong.{label}.judged.example"
    answer = await api.post(CRDS, body)

    assert answer.status == 422


async def test_wrong_type_is_refused(api: Api, widget: Kind) -> None:
    """A value of another type than the schema says is refused, and the field named."""
    answer = await api.post(widget.place(api), widget.make("a", {"size": "big"}))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "spec.size" in answer.message


async def test_missing_field_is_refused(api: Api, widget: Kind) -> None:
    """A required field that is missing is refused."""
    answer = await api.post(widget.place(api), widget.make("a", {"pools": [{"count": 1}]}))

    assert answer.status == 422
    assert "spec.pools[0].name: Required value" in answer.message


async def test_unknown_field_is_pruned(api: Api, widget: Kind) -> None:
    """A field the schema does not know is dropped without a word."""
    answer = await api.post(widget.place(api), widget.make("a", {"size": 1, "sise": 2}))

    assert answer.status == 201
    assert answer.json["spec"] == {"size": 1}


async def test_free_part_keeps_everything(api: Api, widget: Kind) -> None:
    """Below preserve-unknown-fields everything is kept."""
    answer = await api.post(widget.place(api), widget.make("a", {"free": {"any": {"thing": 1}}}))

    assert answer.json["spec"] == {"free": {"any": {"thing": 1}}}
