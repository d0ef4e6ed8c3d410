"""A client of RPC without sockets: frames go in and come out, as over a WebSocket."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import cast

import msgspec
from litestar.types import Scope

from headway import Headway
from headway.gateway.desk import Desk
from headway.gateway.rpc.connection import Connection, Methods
from headway.gateway.rpc.methods import METHODS
from headway.gateway.stream.admission import Visitor
from headway.model.server import ServerSettings
from tests.unit.gateway.calling import opened

Frame = dict[str, object]


class Line:
    """The client's end. What it does not read waits on the server's side: `room` frames go, no more."""

    def __init__(self, room: int = 1_000) -> None:
        self.out: asyncio.Queue[str] = asyncio.Queue(room)
        self._in: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self._numbers = itertools.count(1)
        self.events: list[Frame] = []

    def say(self, frame: str | bytes) -> None:
        self._in.put_nowait(frame)

    def ask(self, method: str, **params: object) -> int:
        """Send a call; answers its id."""
        number = next(self._numbers)
        self.say(msgspec.json.encode({"id": number, "method": method, "params": params}).decode())
        return number

    def leave(self) -> None:
        self._in.put_nowait(None)

    async def hear(self) -> Frame:
        """The next frame, whatever it is."""
        return cast(Frame, msgspec.json.decode(await self.out.get()))

    async def answer(self, method: str, **params: object) -> Frame:
        """Call, and the whole answer; events that come before it are kept."""
        return await self.answer_of(self.ask(method, **params))

    async def answer_of(self, number: int) -> Frame:
        while True:
            frame = await self.hear()
            if "event" in frame:
                self.events.append(frame)
            else:
                assert frame["id"] == number
                return frame

    async def call(self, method: str, **params: object) -> Frame:
        frame = await self.answer(method, **params)
        assert "error" not in frame, frame
        return cast(Frame, frame["result"])

    async def refused(self, method: str, **params: object) -> Frame:
        frame = await self.answer(method, **params)
        assert "result" not in frame, frame
        return cast(Frame, frame["error"])

    async def event(self, name: str) -> Frame:
        """The next event of this name; others before it are dropped."""
        while True:
            frame = self.events.pop(0) if self.events else await self.hear()
            if frame.get("event") == name:
                return frame

    async def frames(self) -> AsyncIterator[str | bytes]:
        while (frame := await self._in.get()) is not None:
            yield frame

    async def send(self, text: str) -> None:
        await self.out.put(text)


def visitor(desk: Desk, token: str = "") -> Visitor:
    headers = [(b"host", b"localhost:8787")]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    scope = {"client": ("127.0.0.1", 4321), "headers": headers, "query_string": b""}
    return Visitor(desk, cast(Scope, scope))


@contextlib.asynccontextmanager
async def connected(
    desk: Desk, methods: Methods = METHODS, *, token: str = "", room: int = 1_000
) -> AsyncIterator[Line]:
    """A connection to a desk. It ends with the block."""
    line = Line(room)
    connection = Connection(desk, visitor(desk, token), methods)
    serving = asyncio.get_running_loop().create_task(connection.serve(line.frames(), line.send))
    try:
        yield line
    finally:
        line.leave()
        await serving


@contextlib.asynccontextmanager
async def called(hw: Headway, settings: ServerSettings | None = None) -> AsyncIterator[Line]:
    """The Headway runs, and there is a connection to its server."""
    async with opened(hw, settings) as gateway, connected(gateway.desk) as line:
        yield line
