"""HTTP as uvicorn reads it, with bounds on what one client can take before any of our code is asked.

uvicorn has none of its own: a head may grow for ever, a request may take for ever to arrive, and a connection that
says nothing is kept. What is refused here is answered in the one form that all errors have (T-2).
"""

import asyncio
from http import HTTPStatus
from typing import ClassVar

import msgspec

from headway.cli.serve.writing import Gathering
from headway.gateway.stream.protocols import HttpProtocol
from headway.model.server import KIB

HEAD_LIMIT = 64 * KIB
"""The most bytes of a request line with all headers. The gateway's own bound is lower and says more."""
READ_WITHIN_S = 30.0
"""How long a request may take to arrive, and a new connection to ask for something."""
_LINGER_S = 1.0
"""How long a client that is turned away has to read why, before the connection is cut."""
_TOLD_WHY = 100
"""So many at once are told that there are too many; more are just cut off."""


class BoundedProtocol(HttpProtocol):
    """One connection."""

    most_connections = 1_000
    being_told: ClassVar["set[BoundedProtocol]"] = set()
    """Those that are one too many, while they are told so; they do not count as connections."""

    _fed = 0
    """Bytes since the head began that is not complete yet."""
    _arriving = False
    _head_open = False
    _has_asked = False
    _turned_away = False
    _handed_over = False
    """To the protocol of a WebSocket, which looks after itself."""
    _gathering: Gathering
    _too_slow_at: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = self._gathering = Gathering(transport, self.loop)  # type: ignore[assignment]
        if len(self.connections) > self.most_connections:
            self._one_too_many()
        else:
            self._give_time()

    def _one_too_many(self) -> None:
        self.connections.discard(self)
        if len(self.being_told) >= _TOLD_WHY:
            self.transport.abort()
            return
        self.being_told.add(self)
        reason = f"{self.most_connections} connections are open already"
        self._turn_away(503, "too_many_connections", reason, retryable=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._take_time()
        self.being_told.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._turned_away:
            self._fed += len(data)
            super().data_received(data)
            self._look_after_rest()

    def _look_after_rest(self) -> None:
        """What is incomplete may neither grow nor wait for ever."""
        if self._turned_away or self._handed_over:
            return
        if self._head_open and self._fed > HEAD_LIMIT:
            self._turn_away(431, "headers_too_large", f"headers have at most {HEAD_LIMIT} bytes")
        elif self._too_slow_at is None and (self._arriving or not self._answering):
            self._give_time()

    @property
    def _answering(self) -> bool:
        return self._has_asked and not self.cycle.response_complete

    def on_message_begin(self) -> None:
        self._arriving = self._head_open = True
        self._take_time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_open = False
        self._has_asked = True
        self._fed = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._arriving = False
        self._fed = 0
        self._take_time()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._take_time()
        self._handed_over = True
        self.transport = self._gathering.plain
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        self._turn_away(400, "bad_request", msg)

    def _give_time(self) -> None:
        self._too_slow_at = self.loop.call_later(READ_WITHIN_S, self._too_slow)

    def _take_time(self) -> None:
        if self._too_slow_at is not None:
            self._too_slow_at.cancel()
            self._too_slow_at = None

    def _too_slow(self) -> None:
        self._too_slow_at = None
        if not self._arriving:
            # It has not asked for anything more, so it expects no answer.
            self.transport.close()
        else:
            reason = f"the request did not arrive within {READ_WITHIN_S:g} s"
            self._turn_away(408, "request_timeout", reason, retryable=True)

    def _turn_away(self, status: int, code: str, error: str, *, retryable: bool = False) -> None:
        """Say why, and end the connection; what still comes is thrown away meanwhile."""
        self._turned_away = True
        self._take_time()
        transport = self.transport
        if transport.is_closing():
            return
        cycle = self.cycle
        if self._has_asked and cycle.response_started and not cycle.response_complete:
            transport.abort()
            return
        transport.write(_answer(status, code, error, retryable=retryable))
        if transport.can_write_eof():
            # To close with something unread would reset the connection, and the answer with it.
            transport.write_eof()
            self.loop.call_later(_LINGER_S, transport.abort)
        else:
            transport.close()


def bounded(most_connections: int) -> type[BoundedProtocol]:
    """The protocol of a server that has at most so many connections."""
    own = {"most_connections": most_connections, "being_told": set()}
    return type("BoundedProtocol", (BoundedProtocol,), own)


def _answer(status: int, code: str, error: str, *, retryable: bool) -> bytes:
    body = msgspec.json.encode(
        {"error": error, "code": code, "retryable": retryable, "details": {}}
    )
    again = "retry-after: 1\r\n" if retryable else ""
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(body)}\r\n"
        f"{again}connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
