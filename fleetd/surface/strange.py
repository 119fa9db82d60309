"""
What comes to the door and is no request of HTTP: it is answered in the same form as all else.

Half of a request, or one on the wrong port, may hold a token in any place. The one rule: nothing of
what came is repeated, neither to who sent it nor in the log.
"""

from collections.abc import Mapping

import structlog
from aiohttp import hdrs, http_exceptions, web

from fleetd.surface import problems

_log = structlog.stdlib.get_logger("fleetd.http")

_WORDS: Mapping[type[BaseException], str] = {
    http_exceptions.LineTooLong: "a line of it is longer than 64 KiB",
    http_exceptions.BadHttpMethod: "it does not begin with a method of HTTP",
    http_exceptions.InvalidURLError: "its address is none",
    http_exceptions.BadStatusLine: "its first line is none of HTTP/1.1",
    http_exceptions.InvalidHeader: "a header of it is none",
    http_exceptions.TransferEncodingError: "its body is not in the parts that it announces",
    http_exceptions.ContentLengthError: "its body is not as long as it announces",
}
OTHERWISE = "its headers are too many, or are not as HTTP has them"
SERVER = "fleetd"
CONTINUE = "100-continue"


class Visitor(web.RequestHandler):
    """One connection."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 -- it repeats what came
    ) -> web.StreamResponse:
        """Instead of theirs, which tells the bytes."""
        if status >= 500:
            _log.error("request failed", exc_info=exc)
        else:
            _log.debug("no request", remote=request.remote, what=type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun")
        answer = refused(status, exc)
        answer.force_close()
        return answer


def refused(status: int, why: BaseException | None) -> web.Response:
    if status >= 500:
        return _plain(problems.answer("internal"))
    words = next((text for kind, text in _WORDS.items() if isinstance(why, kind)), OTHERWISE)
    long = isinstance(why, http_exceptions.LineTooLong)
    code = "headers-too-large" if long else "bad-request"
    return _plain(problems.answer(code, f"what came is no request: {words}"))


def _plain(answer: web.Response) -> web.Response:
    answer.headers.update(problems.SAFE)
    answer.headers[hdrs.SERVER] = SERVER
    return answer


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return Visitor(self, loop=self._loop, **self._kwargs)


class Runner(web.AppRunner):
    """Of an application, with visitors as above."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            if request.headers.get(hdrs.EXPECT, CONTINUE).lower() != CONTINUE:
                detail = f"nothing but {CONTINUE} can be expected"
                return _plain(problems.answer("expectation-failed", detail))
            return await made.request_handler(request)

        how = made._kwargs  # noqa: SLF001 -- those that were given to ourselves
        return _Server(handle, request_factory=made.request_factory, **how)
