"""What uvicorn speaks with its clients, and two things more: a connection can be broken off, none can be filled.

uvicorn's own protocols only close a connection, which sends first what is buffered: a client that does not read is
never rid of. These say in the scope how to break it off. They are named to uvicorn as `http=` and `ws=`.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from headway.gateway.stream.cutting import EXTENSION


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: {"abort": self.transport.abort}}


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """WebSockets."""

    async def run_asgi(self) -> None:
        self.scope["extensions"] = {
            **(self.scope.get("extensions") or {}),
            EXTENSION: {"abort": self.transport.abort},
        }
        await super().run_asgi()

    def handle_ping(self) -> None:
        """Who asks for signs of life and reads none of them would fill the memory with answers."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.transport.abort()

    def keepalive_timeout(self) -> None:
        """The client is dead or does not read: what is buffered for it will never be sent."""
        super().keepalive_timeout()
        self.transport.abort()
