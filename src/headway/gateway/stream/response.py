"""The HTTP side of a stream: an answer that goes on until its source ends or its client is gone."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from litestar.types import Receive, Scope, Send

from headway.gateway.desk import Desk
from headway.gateway.errors import Unauthorized
from headway.gateway.stream.admission import Visitor, seat
from headway.gateway.stream.cutting import CutOff, abort_of, sending_within, until_gone
from headway.model.time import SECOND

MEDIA_TYPE = "text/event-stream"
_BREAKS_OFF_S = 1.0
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    # A proxy such as nginx would hold the events back.
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """An answer of server-sent events. A client that takes nothing for `send_within` is cut off."""

    def __init__(self, desk: Desk, source: AsyncGenerator[bytes, None]) -> None:
        self._desk = desk
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        within_s = self._desk.settings.send_within / SECOND
        abort = abort_of(scope)
        send = sending_within(send, abort, within_s)
        only_head = scope.get("method") == "HEAD"
        visitor = Visitor(self._desk, scope)
        try:
            async with contextlib.aclosing(self._source), asyncio.TaskGroup() as group:
                with seat(self._desk):
                    sending = group.create_task(self._send_all(send, only_head=only_head))
                    looking = group.create_task(visitor.until_refused())
                    await until_gone(receive)
                    sending.cancel()
                    looking.cancel()
        except* (CutOff, Unauthorized):
            abort()
            # The server notices in its next turn; until then the answer would look unfinished to it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BREAKS_OFF_S):
                    await until_gone(receive)

    async def _send_all(self, send: Send, *, only_head: bool) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        if not only_head:
            async for chunk in self._source:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
