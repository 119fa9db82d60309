"""
The body of a request, from the wire to bytes of JSON: in time, whole, unpacked, and in UTF-8.

What it says is `asking`. The rule: a body that is not all there is refused, though what came of
it may be readable.
"""

import asyncio
import zlib

from aiohttp import hdrs, web

from fleetd.surface import problems
from fleetd.surface.routes import JSON

WITHIN = 20.0
"""Seconds for a body of at most 1 MiB to arrive."""
MOST = 1024 * 1024
_PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""By their names in Content-Encoding, as zlib calls them."""
_UTF_8 = {"", "utf-8", "utf8", "us-ascii"}


async def read(request: web.Request) -> bytes:
    """Raises Refused."""
    if request.content_type != JSON:
        raise problems.Refused("not-json", f"send Content-Type: {JSON}")
    if (request.charset or "").strip("\"' ").lower() not in _UTF_8:
        raise problems.Refused("not-json", f"send {JSON} in UTF-8, not in {request.charset:.40}")
    packed = ",".join(request.headers.getall(hdrs.CONTENT_ENCODING, ())).strip().lower()
    if packed not in {"", "identity", *_PACKED}:
        known = ", ".join(sorted(_PACKED))
        raise problems.Refused("bad-encoding", f"a body can be packed as {known}, or not at all")
    data = await _come(request)
    return _unpacked(data, _PACKED[packed]) if packed in _PACKED else data


async def _come(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(WITHIN):
            return await request.read()
    except TimeoutError:
        raise problems.Refused("too-slow", f"a body has {WITHIN:.0f} s to arrive") from None
    except (web.RequestPayloadError, ConnectionError):
        raise problems.Refused("bad-body", "it breaks off") from None


def _unpacked(data: bytes, kind: int) -> bytes:
    box = zlib.decompressobj(kind)
    try:
        found = box.decompress(data, MOST + 1)
    except zlib.error:
        raise problems.Refused("bad-body", "it is not packed as Content-Encoding says") from None
    if len(found) > MOST:
        raise problems.Refused("body-too-large")
    if not box.eof or box.unused_data:
        raise problems.Refused("bad-body", "what is packed in it breaks off, or goes on after it")
    return found
