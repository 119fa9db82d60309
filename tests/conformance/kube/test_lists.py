"""Lists: in pieces, by selector, in other forms."""

import pytest

from tests.conformance.kube.api import CORE, Answer, Api, Kind

# A real cluster puts this ConfigMap into every namespace.
OURS = "metadata.name!=kube-root-ca.crt"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def _names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.json["items"]]


async def _widgets(api: Api, widget: Kind, names: str) -> None:
    for name in names:
        await api.post(widget.place(api), widget.make(name))


async def test_list_is_in_order(api: Api, widget: Kind) -> None:
    """A list is sorted by name, whatever the order of creation."""
    await _widgets(api, widget, "cab")

    assert _names(await api.get(widget.place(api))) == ["a", "b", "c"]


async def test_list_has_a_kind_and_a_version(api: Api, widget: Kind) -> None:
    """A list names its kind and the version it shows."""
    await _widgets(api, widget, "a")
    answer = await api.get(widget.place(api))
    newest = (await api.get(widget.place(api, "a"))).version

    assert answer.json["kind"] == "WidgetList"
    assert answer.json["apiVersion"] == f"{widget.group}/v1"
    assert int(answer.version) >= int(newest)


async def test_custom_items_say_what_they_are(api: Api, widget: Kind) -> None:
    """Items of a custom resource have kind and apiVersion."""
    await _widgets(api, widget, "a")
    item = (await api.get(widget.place(api))).json["items"][0]

    assert (item["kind"], item["apiVersion"]) == ("Widget", f"{widget.group}/v1")


async def test_builtin_items_do_not(api: Api) -> None:
    """Items of a built-in kind have neither: a client must know what it asked for."""
    await api.config("a")
    item = (await api.get(api.maps(), fieldSelector=OURS)).json["items"][0]

    assert "kind" not in item
    assert "apiVersion" not in item


async def test_pieces_make_the_whole(api: Api, widget: Kind) -> None:
    """Pieces of two show every object once, in order."""
    await _widgets(api, widget, "abcde")
    names: list[str] = []
    query = {"limit": "2"}
    left: list[int | None] = []
    while True:
        answer = await api.get(widget.place(api), **query)
        names += _names(answer)
        left.append(answer.meta.get("remainingItemCount"))
        if not answer.meta.get("continue"):
            break
        query["continue"] = answer.meta["continue"]

    assert names == ["a", "b", "c", "d", "e"]
    assert left == [3, 1, None]


async def test_pieces_show_one_moment(api: Api, widget: Kind) -> None:
    """What is created or deleted between two pieces does not show in the second."""
    await _widgets(api, widget, "abd")
    first = await api.get(widget.place(api), limit="1")
    await _widgets(api, widget, "c")
    await api.delete(widget.place(api, "b"))
    second = await api.get(widget.place(api), **{"continue": first.meta["continue"]})

    assert _names(second) == ["b", "d"]
    assert second.version == first.version


async def test_full_last_piece_has_no_continue(api: Api, widget: Kind) -> None:
    """A limit that is just met ends the list."""
    await _widgets(api, widget, "ab")
    answer = await api.get(widget.place(api), limit="2")

    assert not answer.meta.get("continue")


async def test_bad_continue(api: Api, widget: Kind) -> None:
    """A continue token that is none is answered with 400."""
    answer = await api.get(widget.place(api), limit="1", **{"continue": "nonsense"})

    assert answer.status == 400


async def test_list_of_nothing(api: Api, widget: Kind) -> None:
    """An empty list is a list."""
    answer = await api.get(widget.place(api))

    assert (answer.status, answer.json["items"]) == (200, [])


async def test_list_of_a_missing_namespace(api: Api) -> None:
    """A namespace that is not there has an empty list, not an error."""
    answer = await api.get(api.maps(namespace="nowhere-at-all"))

    assert (answer.status, answer.json["items"]) == (200, [])


async def test_list_of_all_namespaces(api: Api, widget: Kind) -> None:
    """The path without a namespace lists those of all."""
    await _widgets(api, widget, "a")
    answer = await api.get(f"{widget.base}/widgets")

    assert _names(answer) == ["a"]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("tier=web", ["a"]),
        ("tier==web", ["a"]),
        ("tier!=web", ["b", "c"]),
        ("tier in (web,db)", ["a", "b"]),
        ("tier notin (web)", ["b", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier,zone=1", ["b"]),
    ],
)
async def test_label_selectors(api: Api, selector: str, names: list[str]) -> None:
    """Each form of label selector finds what it says; a missing label is not equal."""
    await api.config("a", labels={"tier": "web"})
    await api.config("b", labels={"tier": "db", "zone": "1"})
    await api.config("c")
    answer = await api.get(api.maps(), labelSelector=selector, fieldSelector=OURS)

    assert _names(answer) == names


async def test_bad_label_selector(api: Api) -> None:
    """A selector that cannot be read is answered with 400."""
    answer = await api.get(api.maps(), labelSelector="a=b=c=(")

    assert answer.status == 400


async def test_field_selector_by_name(api: Api) -> None:
    """Objects can be selected by name."""
    await api.config("a")
    await api.config("b")
    answer = await api.get(api.maps(), fieldSelector="metadata.name=b")

    assert _names(answer) == ["b"]


async def test_field_selector_by_a_declared_field(api: Api) -> None:
    """Secrets can be selected by type."""
    path = api.place("secrets")
    await api.post(path, {"metadata": {"name": "a"}, "type": "example.com/x"})
    await api.post(path, {"metadata": {"name": "b"}})
    answer = await api.get(path, fieldSelector="type=example.com/x")

    assert _names(answer) == ["a"]


async def test_field_selector_by_another_field(api: Api, widget: Kind) -> None:
    """Fields that nobody declared cannot be selected by: 400."""
    answer = await api.get(widget.place(api), fieldSelector="spec.size=1")

    assert answer.status == 400
    assert "field label not supported: spec.size" in answer.message


async def test_list_from_the_future(api: Api, widget: Kind) -> None:
    """A version that is not there yet is answered with 504 and a hint to come back."""
    answer = await api.get(
        widget.place(api), resourceVersion="999999999", resourceVersionMatch="NotOlderThan"
    )

    assert (answer.status, answer.reason) == (504, "Timeout")
    assert "Too large resource version" in answer.message


async def test_list_at_an_exact_version(api: Api, widget: Kind) -> None:
    """An exact version shows what was there then."""
    await _widgets(api, widget, "a")
    then = (await api.get(widget.place(api))).version
    await _widgets(api, widget, "b")
    answer = await api.get(widget.place(api), resourceVersion=then, resourceVersionMatch="Exact")

    assert _names(answer) == ["a"]
    assert answer.version == then


async def test_list_as_a_table(api: Api, widget: Kind) -> None:
    """A table has the columns of the definition and a row for each object."""
    await _widgets(api, widget, "a")
    answer = await api.send("GET", widget.place(api), accept=TABLE)
    columns = [column["name"] for column in answer.json["columnDefinitions"]]
    row = answer.json["rows"][0]

    assert answer.json["kind"] == "Table"
    assert columns[:2] == ["Name", "Size"]
    assert row["cells"][:2] == ["a", 1]
    assert row["object"]["metadata"]["name"] == "a"


async def test_metadata_only(api: Api) -> None:
    """An object can be had without what is in it."""
    await api.config("a", {"x": "1"})
    answer = await api.send("GET", api.maps("a"), accept=PARTIAL)

    assert answer.json["kind"] == "PartialObjectMetadata"
    assert "data" not in answer.json
    assert answer.meta["name"] == "a"


async def test_list_of_metadata_only(api: Api) -> None:
    """So can a list."""
    await api.config("a", {"x": "1"})
    answer = await api.send("GET", api.maps(), accept=PARTIAL_LIST, fieldSelector=OURS)

    assert answer.json["kind"] == "PartialObjectMetadataList"
    assert [set(item) for item in answer.json["items"]] == [{"kind", "apiVersion", "metadata"}]


async def test_a_piece_in_short_and_then_whole(api: Api) -> None:
    """A piece of metadata can be had again whole as it was: the first one at its version, each
    later one by the same token."""
    for name in "abc":
        await api.config(name, {"x": "1"})
    query = {"limit": "2", "fieldSelector": OURS}
    first = await api.send("GET", api.maps(), accept=PARTIAL_LIST, **query)
    later = {**query, "continue": first.meta["continue"]}
    short = await api.send("GET", api.maps(), accept=PARTIAL_LIST, **later)
    await api.delete(api.maps("a"))
    await api.delete(api.maps("c"))
    at = {"resourceVersion": first.version, "resourceVersionMatch": "Exact"}
    whole = [await api.get(api.maps(), **query, **at), await api.get(api.maps(), **later)]

    assert [_names(one) for one in (first, short)] == [["a", "b"], ["c"]]
    assert [_names(one) for one in whole] == [["a", "b"], ["c"]]
    assert [one.version for one in (short, *whole)] == [first.version] * 3
    assert all(item["data"] == {"x": "1"} for one in whole for item in one.json["items"])


async def test_unknown_form(api: Api) -> None:
    """A form that the server does not have is answered with 406."""
    answer = await api.send("GET", f"{CORE}/namespaces/{api.namespace}", accept="image/png")

    assert answer.status == 406
