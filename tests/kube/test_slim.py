"""What is kept of an object, however it was written down."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetd.kube import errors, slim
from fleetd.kube.kinds import Kind
from fleetd.kube.slim import Memo

NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
MANAGED: list[dict[str, Any]] = [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}}]
META: dict[str, Any] = {
    "name": "a",
    "namespace": "ns",
    "uid": "u-1",
    "resourceVersion": "7",
    "labels": {"x": 'y ,"managedFields":[]'},
}
PLAIN: dict[str, Any] = {"kind": "Box", "apiVersion": "v1", "metadata": META, "spec": {"size": 1}}


def _with_fields(*, first: bool = False) -> dict[str, Any]:
    fields = {"managedFields": MANAGED}
    return {**PLAIN, "metadata": {**fields, **META} if first else {**META, **fields}}


def _lines() -> list[bytes]:
    usual = {"type": "ADDED", "object": _with_fields()}
    return [
        msgspec.json.encode(usual),
        msgspec.json.format(msgspec.json.encode(usual), indent=1),
        msgspec.json.encode({"type": "ADDED", "object": _with_fields(first=True)}),
        msgspec.json.encode({"object": _with_fields(), "type": "ADDED"}),
        msgspec.json.encode({**usual, "more": {"x": 1}}),
        msgspec.json.encode({"type": "ADDED", "object": {**_with_fields(), "more": {}}}),
    ]


@pytest.mark.parametrize("line", _lines(), ids=range(len(_lines())))
def test_an_event_is_kept_without_managed_fields_however_it_is_written(line: bytes) -> None:
    """As API servers write it, and with blanks, in another order or with more in it."""
    change = slim.of_event(line)
    kept = change.object
    made = kept.object()
    made.pop("more", None)

    assert (change.type, made) == ("ADDED", PLAIN)
    assert (kept.key, kept.uid, kept.version) == (("ns", "a"), "u-1", "7")
    assert slim.of_event(line, managed=True).object.object()["metadata"]["managedFields"] == MANAGED


def test_a_field_of_the_same_name_elsewhere_stays() -> None:
    """Only the object's own managedFields go."""
    other = [{"manager": "somebody else, at some length"}]
    obj = {**_with_fields(), "aTemplate": {"a": 1, "managedFields": other}}
    body = msgspec.json.encode(dict(sorted(obj.items())))

    assert slim.of_bytes(body).object() == {**PLAIN, "aTemplate": {"a": 1, "managedFields": other}}


_SAID = '}]},"spec":{}'
_ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"managedFields": [{"fieldsV1": {"f:spec": {"f:}]},": {".": {}}, "f:b": {}}}}]}, {}),
    ({"managedFields": [{"fieldsV1": {f'v:"{_SAID}"': {}, "k:{}]}": {}}}]}, {}),
    ({"managedFields": [{"fieldsV1": {"f:a": {"f:}]}}}": {}}}}], "selfLink": "/x"}, {}),
    ({"annotations": {"last": '[{"managedFields":[{}]}]'}, "managedFields": MANAGED}, {}),
    ({"ownerReferences": [{"uid": "u"}], "finalizers": ["x"], "managedFields": MANAGED}, {}),
    ({"managedFields": MANAGED, "finalizers": ["x"]}, {}),
    ({"annotations": {f"a{n}": "[]" for n in range(9)}, "managedFields": MANAGED}, {}),
    ({}, {"template": {"managedFields": MANAGED}}),
    ({"managedFields": MANAGED}, {"aTemplate": {"managedFields": MANAGED}}),
]


@pytest.mark.parametrize(("meta", "more"), _ODD)
def test_brackets_and_names_in_odd_places_mislead_nobody(
    meta: dict[str, Any], more: dict[str, Any]
) -> None:
    """In strings, other lists, a template before or behind: its own fields go, no others."""
    obj = {"kind": "Box", **more, "metadata": {**META, **meta}, "spec": {"a": [{"b": ["}]}"]}]}}
    line = msgspec.json.encode({"type": "ADDED", "object": obj})
    kept = {name: value for name, value in meta.items() if name != "managedFields"}

    assert slim.of_event(line).object.object() == {**obj, "metadata": {**META, **kept}}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4) | st.just("managedFields"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=4), _JSON),
    st.lists(_JSON, min_size=1, max_size=3),
    st.randoms(),
)
def test_it_reads_as_if_it_had_been_decoded_at_once(
    more: dict[str, Any], fields: list[Any], chance: Any
) -> None:
    """Of any object: the same dict, less its managedFields, which no server sends empty."""
    pairs = list({**META, "annotations": more, "managedFields": fields}.items())
    chance.shuffle(pairs)
    top = [*{**more, "kind": "Box", "apiVersion": "v1", "metadata": dict(pairs)}.items()]
    chance.shuffle(top)
    obj: dict[str, Any] = dict(top)
    line = msgspec.json.encode({"type": "MODIFIED", "object": obj})

    whole = slim.of_event(line, managed=True).object.object()
    kept = slim.of_event(line).object.object()
    kept["metadata"].pop("managedFields", None)  # too short to be worth the cut
    del obj["metadata"]["managedFields"]

    assert kept == obj
    assert whole == {**obj, "metadata": {**obj["metadata"], "managedFields": fields}}


def test_what_is_listed_without_a_kind_gets_it() -> None:
    """Built-in kinds are listed so; who says what he is keeps his word."""
    bare = msgspec.json.encode({"metadata": META})

    assert slim.of_bytes(bare, NODE).object() == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": META,
    }
    assert slim.of_bytes(msgspec.json.encode(PLAIN), NODE).object()["kind"] == "Box"


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"type":"ADDED"}', b'{"type":"ADDED","object":7}']
)
def test_what_is_no_event_is_told_apart(line: bytes) -> None:
    """Half a line or another document raises, and nothing is kept of it."""
    with pytest.raises(msgspec.MsgspecError):
        slim.of_event(line)


def test_an_error_in_a_watch_is_raised_as_what_it_is() -> None:
    """The Status of a line becomes the error it stands for."""
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    with pytest.raises(errors.Gone, match="too old"):
        slim.of_event(msgspec.json.encode({"type": "ERROR", "object": status}))


def test_the_memo_gives_the_same_again_and_forgets_the_oldest() -> None:
    """Reading twice decodes once; what is remembered never exceeds its size."""
    kept = [slim.of_object({**PLAIN, "spec": {"n": n, "pad": "x" * 1000}}) for n in range(4)]
    memo = Memo(most=3 * len(kept[0].body))
    first = memo.read(kept[0])
    memo.read(kept[1])

    assert memo.read(kept[0]) is first
    memo.read(kept[2])
    second = memo.read(kept[1])
    memo.read(kept[3])  # 0 was read the longest ago
    assert memo.read(kept[1]) is second
    assert memo.read(kept[0]) is not first
    assert memo.read(kept[2], keep=False) is not memo.read(kept[2], keep=False)
