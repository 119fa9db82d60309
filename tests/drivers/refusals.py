"""
A token that is good and is refused all the same, so many times: by an API server that cannot ask
about it just then, or by an OpenBao that has no leader for a moment.
"""

from collections.abc import Generator
from contextlib import contextmanager
from unittest import mock

from fleetd.kube.transport import Request, Response
from fleetd.sim.faces.weather import Fate
from fleetd.sim.faults import Climate
from fleetd.sim.world import HttpRequest, HttpResponse, Service


@contextmanager
def refusing(climate: Climate, backend: str, part: str, times: int = 1) -> Generator[list[str]]:
    """Requests whose path holds `part`; gives those that were refused."""
    refused: list[str] = []
    before, over = climate.before, climate.over

    def meant(name: str, path: str) -> bool:
        found = name == backend and part in path and len(refused) < times
        refused.extend([path] * found)
        return found

    def asked(name: str, request: Request) -> Fate:
        fate = before(name, request)
        answer = Response(status=401, body=b"") if meant(name, request.path) else fate.answer
        return Fate(wait=fate.wait, lost=fate.lost, answer=answer)

    def called(name: str, request: HttpRequest, service: Service) -> HttpResponse:
        if meant(name, request.path):
            return HttpResponse(status=403, body=b'{"errors":["permission denied"]}')
        return over(name, request, service)

    with mock.patch.multiple(climate, before=asked, over=called):
        yield refused
