"""The store under judgement: each test of this folder runs once for each keeper."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.store import keepers


@pytest.fixture(params=sorted(keepers.KEEPERS))
async def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[keepers.Keeper]:
    keeper = keepers.Keeper(make=keepers.KEEPERS[request.param](tmp_path / "state"))
    yield keeper
    for store in keeper.made:
        await store.close()
