"""
ETags: a short name for what an answer says, so that nobody reads or overwrites the wrong version.

An answer that was compressed is other bytes and so has another tag, which means the same here.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from fleetd.surface import problems

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\U0010ffff]*)"')
_LIST = re.compile(rf"[ \t,]*{_TAG.pattern}(?:[ \t]*,[ \t,]*{_TAG.pattern})*[ \t,]*")
"""Of at least one; commas too many are none."""
COMPRESSED = "-gzip"


def of_bytes(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def of_document(document: Mapping[str, Any]) -> str:
    return of_bytes(msgspec.json.encode(document, enc_hook=str))


def header(tag: str, *, compressed: bool = False) -> str:
    return f'"{tag}{COMPRESSED if compressed else ""}"'


def names(given: str, tag: str | None, *, what: str, strong: bool = False) -> bool:
    """Whether a header If-Match or If-None-Match names this tag; None is "there is nothing".
    `strong`: a weak tag, of something that is only as good as this, does not count. Raises Refused
    if the header is none."""
    if given.strip() == "*":
        return tag is not None
    if not _LIST.fullmatch(given):
        raise problems.Refused("bad-etag", f'{what} must be * or tags such as "0a1b", in signs')
    return any(
        value.removesuffix(COMPRESSED) == tag
        for weak, value in _TAG.findall(given)
        if not (weak and strong)
    )
