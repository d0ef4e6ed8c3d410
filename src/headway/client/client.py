"""The client: one server, and what can be asked of it, by subject."""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

import httpx

from headway.client.heartbeats import Heartbeats
from headway.client.jobs import Jobs
from headway.client.lanes import Lanes
from headway.client.line import Line
from headway.client.outbox import Outbox
from headway.client.rpc import Rpc
from headway.client.runs import Runs
from headway.client.server import ServerSide
from headway.client.sessions import Sessions
from headway.client.streams import Heard, follow
from headway.client.tasks import Tasks
from headway.client.workers import Workers
from headway.model.server import ServerSettings
from headway.wire.events import EventQuery
from headway.wire.messages import MessageAnswer, MessageRequest

_SERVER = ServerSettings()
DEFAULT_URL = f"http://{_SERVER.host}:{_SERVER.port}"


class Client:
    """Talks to one server. Use it with `async with`, on one event loop."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._line = Line(url, token, transport)
        self.tasks = Tasks(self._line)
        self.runs = Runs(self._line)
        self.sessions = Sessions(self._line)
        self.lanes = Lanes(self._line)
        self.jobs = Jobs(self._line)
        self.heartbeats = Heartbeats(self._line)
        self.outbox = Outbox(self._line)
        self.workers = Workers(self._line)
        self.server = ServerSide(self._line)

    @property
    def url(self) -> str:
        return self._line.url

    async def send(self, message: MessageRequest) -> MessageAnswer:
        """Hand a message to its agent, or carry out a chat command; with `wait` the answer may have an outcome."""
        return await self._line.ask("POST", "/messages", MessageAnswer, message, query=("wait",))

    def events(self, asked: EventQuery | None = None) -> AsyncIterator[Heard]:
        """What happens on the server, from now on or from where it is asked to begin.

        A connection that breaks is made anew, and the stream goes on where it was; of what the server does not
        remember any more an `EventsMissed` tells. Raises only if the first connection cannot be made.
        """
        return follow(self._line, "/events", asked or EventQuery())

    def rpc(self) -> Rpc:
        """A connection for calls and frames both ways: `async with client.rpc() as rpc:`."""
        return Rpc(self._line.url, self._line.token)

    async def close(self) -> None:
        await self._line.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
