"""The page's files: small, whole, from here alone, and guarded by the policy sent with them."""

import gzip
import re
from typing import Any

import aiohttp
import pytest

from fleetd.settings import Address
from fleetd.surface import http, page
from tests.surface import panels

FILES = page.load()
SIZE_MAX = 150 * 1024
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))
IMPORT = re.compile(r"""(?:^|\n)import\s[^"';]*["']([^"']+)["']|import\(["']([^"']+)["']\)""")


def test_the_page_is_small() -> None:
    """All of it, compressed, is at most 150 KB."""
    assert 0 < sum(len(file.packed) for file in FILES.values()) <= SIZE_MAX


def test_what_is_sent_compressed_is_the_same() -> None:
    """For every file."""
    assert all(gzip.decompress(file.packed) == file.plain for file in FILES.values())


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_import_is_a_file_of_the_page(name: str) -> None:
    """A module that is not there would leave the page white."""
    folder = name.rpartition("/")[0]
    for found in IMPORT.finditer(FILES[name].plain.decode()):
        asked = found[1] or found[2]
        assert asked.startswith("."), f"{name} imports {asked}"
        parts = folder.split("/") if folder else []
        for part in asked.split("/"):
            parts = parts[:-1] if part == ".." else parts if part == "." else [*parts, part]
        assert "/".join(parts) in FILES, f"{name} imports {asked}"


@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_comes_from_elsewhere(name: str) -> None:
    """No address of another server is in any file but the licence texts and the name of SVG."""
    text = FILES[name].plain.decode().replace("http://www.w3.org/2000/svg", "")
    text = text.replace("http://www.w3.org/1999/xhtml", "")
    assert name.endswith(".txt") or not re.search(r"(https?:)?//[a-z0-9-]+\.[a-z]", text)


def test_no_script_stands_in_the_document() -> None:
    """The policy would not run it, and nobody should try."""
    text = FILES[page.INDEX].plain.decode()
    assert re.findall(r"<script(?![^>]*\ssrc=)", text) == []
    assert " on" not in re.sub(r">[^<]*<", "><", text)


async def ask(path: str, **headers: str) -> tuple[int, bytes, Any]:
    async with (
        http.serving(panels.small(), Address("127.0.0.1", 0)) as server,
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(server.url + path, headers=headers) as answer,
    ):
        return answer.status, await answer.read(), answer.headers


async def test_the_page_is_served_with_its_policy() -> None:
    """No inline script, nothing from elsewhere, no frame around it."""
    status, body, headers = await ask("/")
    assert status == 200
    assert gzip.decompress(body) == FILES[page.INDEX].plain
    policy = dict(one.split(" ", 1) for one in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"


async def test_who_has_a_file_is_told_so() -> None:
    """The same mark again gives 304 and no body."""
    _, _, headers = await ask("/assets/main.js")
    status, body, _ = await ask("/assets/main.js", **{"If-None-Match": headers["ETag"]})
    assert (status, body) == (304, b"")


async def test_a_file_goes_out_compressed_to_who_can_read_that() -> None:
    """And plain to who cannot; caches are told that it makes a difference."""
    _, body, headers = await ask("/assets/main.js", **{"Accept-Encoding": "gzip, br"})
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(body) == FILES["main.js"].plain
    _, plain, headers = await ask("/assets/main.js", **{"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in headers
    assert plain == FILES["main.js"].plain


@pytest.mark.parametrize(
    "path",
    [
        "/assets/nothing.js",
        "/assets/../page.py",
        "/assets/%2e%2e/page.py",
        "/assets/",
        "/assets/views",
    ],
)
async def test_only_files_of_the_page_are_served(path: str) -> None:
    """Everything else is not there, with a problem as everywhere."""
    status, body, headers = await ask(path)
    assert status == 404
    assert headers["Content-Type"] == "application/problem+json"
    assert b"not-found" in body
