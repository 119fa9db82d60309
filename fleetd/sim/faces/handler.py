"""
What a simulated server looks like from a face: a request and its headers give an answer.

The answer is a whole `Response`, or a `Stream` of lines that goes on. Handlers are synchronous:
they never wait, they answer as things stand at this moment of the world's time.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from fleetd.kube.transport import Request, Response


@runtime_checkable
class Stream(Protocol):
    """Lines that come as they come. `ended` with nothing left to take: it is over."""

    ended: bool

    def take(self) -> list[bytes]:
        """The lines that are there now; they are not given again."""
        ...

    def on_ready(self, wake: Callable[[], None]) -> None:
        """`wake` is called whenever there is something to take, or it has ended."""
        ...

    def close(self) -> None:
        """The reader has gone."""
        ...


class Handler(Protocol):
    def handle(self, request: Request, headers: Mapping[str, str]) -> Response | Stream:
        """Never raises: a refusal is an answer. Names of headers are in lower case."""
        ...
