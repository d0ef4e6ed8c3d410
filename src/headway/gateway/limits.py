"""The outermost layer: how much may come in at once, and an id for each request, in and out.

Pure ASGI. It reads nothing of a body and keeps nothing of an answer; bodies are bounded where they are read.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from headway.gateway.errors import Crowded, TooLarge, tell
from headway.gateway.refusing import refuse
from headway.gateway.tracing import is_request_id

MOST_HEADER_BYTES = 32 * 1024
_REQUEST_ID = b"x-request-id"
_STARTS = frozenset({"http.response.start", "websocket.http.response.start", "websocket.accept"})


class Limits:
    """Wraps the app: counts what is open, refuses what is too much, and names each request."""

    def __init__(self, app: ASGIApp, most: int, next_id: Callable[[], str]) -> None:
        self._app = app
        self._most = most
        self._next_id = next_id
        self.open = 0
        """How many requests and sockets are being served."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        request_id, size = b"", 0
        for name, value in scope["headers"]:
            size += len(name) + len(value)
            if name == _REQUEST_ID and is_request_id(value):
                request_id = value
        request_id = request_id or self._next_id().encode()
        scope["headway.request_id"] = request_id.decode()  # type: ignore[typeddict-unknown-key]
        _keep_raw_path(scope)

        def named(message: Message) -> Awaitable[None]:
            if message["type"] in _STARTS:
                headers = [*message["headers"], (_REQUEST_ID, request_id)]  # type: ignore[typeddict-item]
                message = {**message, "headers": headers}  # type: ignore[assignment]
            return send(message)

        if size > MOST_HEADER_BYTES:
            await refuse(scope, named, tell(TooLarge("headers", MOST_HEADER_BYTES)), 431)
            return
        if self.open >= self._most:
            await refuse(scope, named, tell(Crowded("connections", self._most)))
            return
        self.open += 1
        try:
            await self._app(scope, receive, named)
        finally:
            self.open -= 1


def _keep_raw_path(scope: Scope) -> None:
    """Paths are taken apart before they are decoded; a server that does not hand on the raw one is rare."""
    if not scope.get("raw_path"):
        scope["raw_path"] = quote(scope["path"]).encode()
