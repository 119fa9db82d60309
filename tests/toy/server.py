"""
The toy world as a process of its own, on loopback: it lives on when the daemon is killed.

One JSON object a line, both ways. `{"op": "read" | "write" | "deeds" | "kill" ...}`. Prints its
port on the first line of stdout, and ends when its stdin closes, so that a test that dies leaves
nothing behind.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from datetime import UTC, datetime
from typing import Any

from tests.toy.world import World
from topology.resource import Ref


def answer(world: World, request: dict[str, Any]) -> dict[str, Any]:
    now = datetime.now(UTC)
    ref = Ref(*request.get("ref", ("", "")))
    try:
        match request["op"]:
            case "read":
                return {"facts": world.read(ref, now)}
            case "write":
                return {
                    "effect": world.write(
                        ref, request["verb"], request["args"], request["step"], now
                    )
                }
            case "deeds":
                return {
                    "deeds": [
                        [deed.at.isoformat(), str(deed.ref), deed.verb, deed.step, deed.effect]
                        for deed in world.deeds
                    ],
                    "harm": world.harm,
                    "ready": sum(world.is_ready(ref, now) for ref in world.things),
                }
            case other:
                return {"error": f"no such op: {other}"}
    except ConnectionError as cause:
        return {"silent": str(cause)}


async def _serve(world: World) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A daemon that is killed resets its connections.
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(json.dumps(answer(world, json.loads(line))).encode() + b"\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pace", type=float, default=1.0)
    asyncio.run(_serve(World(pace=parser.parse_args().pace)))


if __name__ == "__main__":
    main()
