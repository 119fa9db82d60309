"""
The web page: files that lie beside the program, read once, sent with their length and their mark.

No build step and nothing from elsewhere: the browser is told (by the policy below) to load
nothing but these files, to run no script that is not one of them, and to be framed by nobody.
Every file is compressed once, when it is read. A browser keeps them and asks each time whether
they are still the same, so a new version shows at once.
"""

import gzip
import hashlib
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from aiohttp import hdrs, web

from fleetd.surface import accept, etags

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"


class File(NamedTuple):
    type: str
    plain: bytes
    packed: bytes
    mark: str


def load() -> dict[str, File]:
    """By path below the page's folder."""
    return dict(_load(resources.files("fleetd") / "page", ""))


def _load(folder: Traversable, before: str) -> list[tuple[str, File]]:
    found: list[tuple[str, File]] = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        suffix = entry.name.rpartition(".")[2]
        if entry.is_dir():
            found += _load(entry, f"{before}{entry.name}/")
        elif suffix in TYPES:
            plain = entry.read_bytes()
            mark = hashlib.sha256(plain).hexdigest()[:20]
            packed = gzip.compress(plain, mtime=0)
            found.append((before + entry.name, File(TYPES[suffix], plain, packed, mark)))
    return found


def answer(files: Mapping[str, File], path: str, request: web.Request) -> web.Response:
    """The file at a path, or HTTPNotFound."""
    file = files.get(path)
    if file is None:
        raise web.HTTPNotFound
    packed = accept.gzip(",".join(request.headers.getall(hdrs.ACCEPT_ENCODING, ())))
    headers = {
        hdrs.CONTENT_TYPE: file.type,
        hdrs.CACHE_CONTROL: "no-cache",
        hdrs.ETAG: etags.header(file.mark, compressed=packed),
        hdrs.VARY: "Accept-Encoding",
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    known = request.headers.getall(hdrs.IF_NONE_MATCH, ())
    if known and etags.names(",".join(known), file.mark, what=hdrs.IF_NONE_MATCH):
        return web.Response(status=304, headers=headers)
    if packed:
        return web.Response(body=file.packed, headers=headers | {hdrs.CONTENT_ENCODING: "gzip"})
    return web.Response(body=file.plain, headers=headers)
