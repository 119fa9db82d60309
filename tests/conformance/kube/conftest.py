"""Every claim is put to every server in `places`, in a namespace of its own."""

import hashlib
from collections.abc import AsyncIterator

import pytest

from tests.conformance.kube.api import CORE, CRDS, Api, Kind, eventually, serve
from tests.conformance.kube.places import PLACES, Server

MARKS = {"real": [pytest.mark.real]}


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, ())) for name in PLACES])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    async with PLACES[request.param]() as server:
        yield server


@pytest.fixture
def label(request: pytest.FixtureRequest) -> str:
    """Follows from the test's name, so that no two tests share anything on a server."""
    return "t" + hashlib.blake2b(request.node.nodeid.encode(), digest_size=5).hexdigest()


@pytest.fixture
async def api(server: Server, label: str) -> Api:
    """The namespace stays: all servers are thrown away in the end, and hundreds of namespaces that
    go would keep a real one's controllers from the few that a claim is about."""
    api = Api(server.admin, f"judged-{label}", server.login)
    made = await api.post(f"{CORE}/namespaces", {"metadata": {"name": api.namespace}})
    assert made.status == 201
    return api


@pytest.fixture
async def widget(api: Api, label: str) -> AsyncIterator[Kind]:
    """A custom resource that only this test uses, served."""
    kind = Kind(f"{label}.judged.example", "widgets", "Widget")
    await serve(api, kind)
    yield kind
    await api.delete(f"{CRDS}/{kind.name}")
    await eventually(lambda: api.get(f"{CRDS}/{kind.name}"), 404)
