"""
A page of a list, as a server writes it: whole, or in short with no more than what each is called.

In short it is half as long, and read in half the time; who has had all of it asks so first. The one
rule: a page says itself in which form it came, because a server may not know the other.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fleetd.kube import errors, slim, transport
from fleetd.kube.kinds import Kind
from fleetd.kube.slim import Key, Slim
from fleetd.kube.transport import Response


class Listing(NamedTuple):
    items: list[Slim]
    version: str
    """Where a watch that misses nothing begins."""


class _Meta(msgspec.Struct, rename={"version": "resourceVersion", "more": "continue"}):
    version: str = ""
    more: str = ""


class List(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw] | None = None


class _ShortMeta(msgspec.Struct, gc=False, rename={"version": "resourceVersion"}):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = ""


class _ShortItem(msgspec.Struct, gc=False):
    metadata: _ShortMeta


class Short(msgspec.Struct):
    """A page with no more of each object than what it is called; it says so by its kind."""

    metadata: _Meta
    kind: str = ""
    items: list[_ShortItem] | None = None


SHORT_KIND = "PartialObjectMetadataList"
IN_SHORT = f"{transport.JSON};as={SHORT_KIND};v=v1;g=meta.k8s.io,{transport.JSON}"
UNABLE = (400, 406, 410, 422)
"""A server that cannot give a page again, or not in short."""
_LIST = msgspec.json.Decoder(List)
_SHORT = msgspec.json.Decoder(Short)


def slims(items: Sequence[msgspec.Raw], kind: Kind, path: str, *, managed: bool) -> list[Slim]:
    try:
        return [slim.of_bytes(bytes(item), kind, managed=managed) for item in items]
    except errors.UNREADABLE:
        raise errors.not_an_api_server(f"{path} answers what is no list of objects") from None


def page(response: Response, path: str) -> List:
    try:
        return _LIST.decode(response.body)
    except errors.UNREADABLE:
        raise errors.not_an_api_server(f"{path} answers what is no list of objects") from None


def short(response: Response, path: str) -> Short:
    try:
        return _SHORT.decode(response.body)
    except errors.UNREADABLE:
        raise errors.not_an_api_server(f"{path} answers what is no list of objects") from None


def as_known(page: Short, known: Mapping[Key, Slim]) -> list[Slim] | None:
    """What is known of all that is on a short page; None: not all of it, or it is not short."""
    if page.kind != SHORT_KIND:
        return None
    found: list[Slim] = []
    for item in page.items or ():
        meta = item.metadata
        old = known.get((meta.namespace, meta.name))
        if old is None or old.version != meta.version or old.uid != meta.uid or not meta.uid:
            return None
        found.append(old)
    return found


def at(query: Mapping[str, str], page: Short) -> dict[str, str]:
    """Asks for the same page, as it was at the same moment."""
    if "continue" in query:
        return dict(query)
    return {
        **query,
        "resourceVersion": page.metadata.version,
        "resourceVersionMatch": "Exact",
    }


def the_same(page: Short, found: Sequence[Slim]) -> bool:
    """Whether the same objects are on both, and all of them."""
    metas = [item.metadata for item in page.items or ()]
    told = [(one.namespace, one.name, one.uid, one.version) for one in metas]
    return told == [(one.namespace, one.name, one.uid, one.version) for one in found]
