"""The way to a server that a kubeconfig leads to, over our own HTTP client."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from fleetd.kube import config
from fleetd.kube.http import HttpTransport
from fleetd.secrets import Secret
from tests.conformance.kube.api import Api


def text(document: Mapping[str, Any]) -> Secret:
    return Secret(msgspec.json.encode(document).decode())


def transport(document: Mapping[str, Any]) -> HttpTransport:
    """To be closed by whoever asks for it."""
    return HttpTransport(config.read(text(document)))


@asynccontextmanager
async def reached(document: Mapping[str, Any] | Secret) -> AsyncGenerator[Api]:
    """All that can be asked there, until the block ends."""
    held = document if isinstance(document, Secret) else text(document)
    made = HttpTransport(config.read(held))
    try:
        yield Api(made, "default", lambda _: made)
    finally:
        await made.close()
