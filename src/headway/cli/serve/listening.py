"""uvicorn inside our own process: it serves connections, and nothing else is left to it.

Signals, logging, start and end are ours: a uvicorn that hears SIGTERM itself would close the door before the node
has drained, and callers would be refused a connection instead of being told to come later (L-5).
"""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import uvicorn
from litestar.types import ASGIApp

from headway.cli.serve import addresses
from headway.cli.serve.protocol import bounded
from headway.gateway.stream.protocols import WebSocketProtocol
from headway.model.server import ServerSettings

if TYPE_CHECKING:
    from uvicorn._types import ASGIApplication

KEEP_ALIVE_S = 75
"""How long a connection may rest between two requests: longer than most balancers keep it, so they close it."""
_ENDING_S = 1
"""How long answers under way may take when the server ends; event streams have been ended before."""


class Listening:
    """The door: taken before the node starts, opened when it is ready, closed after it has drained."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._sockets: Sequence[socket.socket] = ()
        self.port = settings.port
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    def take(self) -> None:
        """Have the port, or refuse while nothing else has begun."""
        self._sockets = addresses.take(self._settings.host, self._settings.port)
        self.port = int(self._sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """Where a program on this machine finds it."""
        return f"http://{addresses.shown(addresses.reachable(self._settings.host), self.port)}"

    async def open(self, app: ASGIApp) -> None:
        """Serve from now on."""
        self._server = _Server(_config(app, self._settings))
        self._serving = asyncio.get_running_loop().create_task(
            self._server.serve(list(self._sockets))
        )
        started = asyncio.get_running_loop().create_task(self._server.opened.wait())
        await asyncio.wait((self._serving, started), return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if self._serving.done():
            await self._serving

    async def ended(self) -> None:
        """Wait until it serves no more. Raises what broke it, if something did."""
        if self._serving is not None:
            await asyncio.shield(self._serving)

    async def close(self) -> None:
        """Take no more connections, let answers under way end, then cut the rest. Safe to call twice."""
        server, serving = self._server, self._serving
        if server is not None and serving is not None:
            server.should_exit = True
            await asyncio.wait((serving,))
            await server.cut_rest()
        for listening in self._sockets:
            listening.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.opened = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.opened.set()

    async def cut_rest(self) -> None:
        """What did not end in its time ends now."""
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        rest = tuple(self.server_state.tasks)
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=_ENDING_S)


def _config(app: ASGIApp, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        # Both mean the same by it, and each has types of its own for it.
        cast("ASGIApplication", app),
        interface="asgi3",
        http=bounded(settings.max_connections),
        # Reads no more from a connection than its handler has taken.
        ws=WebSocketProtocol,
        ws_max_size=settings.body_limit,
        # Compression would let a small frame take much memory.
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        # What bad clients send is not worth a line each.
        log_level="error",
        access_log=False,
        # Who says to be asking for somebody else is not believed: the gateway looks at the real peer.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=_ENDING_S,
    )
