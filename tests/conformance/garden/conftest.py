"""Every claim is put to every garden, on a plot of its own."""

import hashlib
from collections.abc import AsyncIterator

import pytest

from tests.conformance.garden.gardens import PLACES, Plot
from tests.conformance.kube.api import Api

MARKS = {"real": [pytest.mark.real]}


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, ())) for name in PLACES])
async def bare(request: pytest.FixtureRequest) -> AsyncIterator[Plot]:
    """Nothing is there yet; its name follows from the test's, and has ten letters at most."""
    digest = hashlib.blake2b(request.node.nodeid.encode(), digest_size=4).hexdigest()
    async with PLACES[request.param]() as transport:
        yield Plot(Api(transport, "default", lambda _: transport), f"t{digest}")


@pytest.fixture
async def plot(bare: Plot) -> Plot:
    await bare.lay()
    return bare
