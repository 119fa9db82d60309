"""Door and encryption of the HTTP server, made of the settings and kept as their files are."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from fleetd.clock import SystemClock
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.daemon.access.tls import Tls
from fleetd.net import RealNetwork
from fleetd.settings import AccessSettings, TlsSettings


@dataclass(frozen=True, slots=True)
class Entrance:
    door: GuardedDoor | None
    """None: only this machine."""
    tls: Tls | None


@contextlib.asynccontextmanager
async def entering(access: AccessSettings, tls: TlsSettings) -> AsyncGenerator[Entrance]:
    """Raises SettingsError. Callers are of the real world, and so is the time in which their
    tokens end, whatever world the daemon looks after."""
    time, net = SystemClock(), RealNetwork()
    secured = door = None
    if tls.certificate is not None and tls.key is not None:
        secured = await asyncio.to_thread(Tls, tls.certificate, tls.key, tls.clients)
    if access.file is not None:
        door = await asyncio.to_thread(GuardedDoor, access.file, net, time)
    async with asyncio.TaskGroup() as group:
        keeping = [
            group.create_task(one.run(), name=f"access {type(one).__name__}")
            for one in (door, secured)
            if one is not None
        ]
        try:
            yield Entrance(door, secured)
        finally:
            for task in keeping:
                task.cancel()
            if door is not None:
                await door.close()
