"""The WebSocket side of RPC: from ASGI messages to frames, and how a connection ends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from litestar.types import Receive, Scope, Send

from headway.gateway.desk import Desk
from headway.gateway.errors import Unauthorized, tell
from headway.gateway.refusing import refuse
from headway.gateway.rpc.connection import Connection, FellBehind, Methods
from headway.gateway.stream.admission import Visitor, need_room, seat
from headway.gateway.stream.cutting import CutOff, abort_of, sending_within, until_gone
from headway.model.errors import HeadwayError
from headway.model.time import SECOND

GOING_AWAY = 1001
UNAUTHORIZED = 4401
"""Its token is good no more."""
TOO_SLOW = 4408
"""It takes its events more slowly than they happen; it may come back and go on behind the last that it saw."""
_BREAKS_OFF_S = 1.0


async def serve_socket(
    desk: Desk, methods: Methods, scope: Scope, receive: Receive, send: Send
) -> None:
    """One connection, from its handshake to its end."""
    await receive()
    visitor = Visitor(desk, scope)
    try:
        await visitor.admit()
        need_room(desk)
    except HeadwayError as refusal:
        await refuse(scope, send, tell(refusal))
        return
    abort = abort_of(scope)
    send = sending_within(send, abort, desk.settings.send_within / SECOND)
    with seat(desk):
        try:
            await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
            await _serve(Connection(desk, visitor, methods), receive, send)
        except* OSError:
            pass  # The client was gone before it was told something.
        except* CutOff:
            # It is being broken off; the server notices in its next turn.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BREAKS_OFF_S):
                    await until_gone(receive)


async def _serve(connection: Connection, receive: Receive, send: Send) -> None:
    async def send_frame(text: str) -> None:
        await send({"type": "websocket.send", "text": text, "bytes": None})

    code, reason = GOING_AWAY, "the server ends"
    left = asyncio.Event()
    try:
        await connection.serve(_frames(receive, left), send_frame)
    except* FellBehind:
        code, reason = TOO_SLOW, "too slow: more happens than you take; come back with `after`"
    except* Unauthorized:
        code, reason = UNAUTHORIZED, "your token is good no more"
    if not left.is_set():
        await send({"type": "websocket.close", "code": code, "reason": reason})


async def _frames(receive: Receive, left: asyncio.Event) -> AsyncIterator[str | bytes]:
    """What the client sends, until it leaves."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            left.set()
            return
        if message["type"] == "websocket.receive":
            yield message.get("text") or message.get("bytes") or b""
