"""A cache on a stage: it follows a shelf in virtual time."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetd.clock import LoopClock
from fleetd.kube import cache
from fleetd.kube.client import KubeClient
from tests.kube.shelf import BOX, Shelf
from topology.resource import Ref

START = datetime(2026, 1, 1, tzinfo=UTC)


class JumpingClock(LoopClock):
    """What the wall says may be put back or ahead."""

    off = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.off


@dataclass
class Stage:
    shelf: Shelf
    cache: cache.Cache
    clock: JumpingClock
    woken: list[Ref] = field(default_factory=list[Ref])

    def spec(self, name: str, namespace: str = "ns") -> Any:
        found = self.cache.get(name, namespace)
        return None if found is None else found["spec"]

    def names(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.cache.items()]


@contextlib.asynccontextmanager
async def following(shelf: Shelf, namespace: str = "", **options: Any) -> AsyncGenerator[Stage]:
    """A cache that has listed, and watches."""
    woken: list[Ref] = []
    clock = JumpingClock(START)
    kept = cache.Cache(
        KubeClient(shelf),
        BOX,
        namespace,
        clock=clock,
        rng=random.Random(1),
        wake=woken.append,
        **options,
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(kept.run(), name="cache")
        await kept.synced(5)
        await asyncio.sleep(0.1)
        yield Stage(shelf, kept, clock, woken)
        task.cancel()
