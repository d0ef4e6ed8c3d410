"""A gateway behind real sockets, in the loop of the test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from headway import Headway
from headway.cli.serve.listening import Listening
from headway.gateway import Gateway, build_app
from headway.model.server import ServerSettings


class Door:
    """Where the server listens, and the gateway behind it."""

    def __init__(self, gateway: Gateway, listening: Listening) -> None:
        self.gateway = gateway
        self.desk = gateway.desk
        self.port = listening.port
        self.url = listening.url
        self.rpc_url = f"ws://127.0.0.1:{listening.port}/rpc"
        self._listening = listening

    @property
    def connections(self) -> int:
        """How many connections the server has."""
        server = self._listening._server
        assert server is not None
        return len(server.server_state.connections)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop go on until this is so."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def listening(hw: Headway, settings: ServerSettings | None = None) -> AsyncIterator[Door]:
    """The Headway runs and its server takes connections, at any port that is free."""
    given = settings or ServerSettings(port=0)
    door = Listening(given)
    door.take()
    async with hw, build_app(hw, given) as gateway:
        await door.open(gateway.app)
        try:
            yield Door(gateway, door)
        finally:
            gateway.desk.close()
            await door.close()
