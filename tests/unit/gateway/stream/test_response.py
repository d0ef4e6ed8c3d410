"""An answer that lasts: it ends with its source, with its client, and with who does not read."""

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

import pytest
from litestar.types import HTTPScope, Message

from headway import Headway
from headway.gateway.desk import Desk
from headway.gateway.errors import Crowded
from headway.gateway.stream.admission import need_room, seat
from headway.gateway.stream.cutting import EXTENSION
from headway.gateway.stream.response import EventStream
from headway.model.server import ServerSettings
from headway.model.time import SECOND
from headway.model.words import Scope
from headway.testing import virtual_time
from tests.unit.gateway.calling import opened


class Client:
    """What a server does for a client: it passes messages on, and notices when the client is gone."""

    def __init__(self, *, reads: bool = True, token: str = "", method: str = "GET") -> None:
        self.messages: list[Message] = []
        self.aborted = False
        self._reads = reads
        self._gone = asyncio.Event()
        headers = [(b"host", b"localhost")]
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        self.scope = cast(
            HTTPScope,
            {
                "type": "http",
                "method": method,
                "client": ("127.0.0.1", 1),
                "headers": headers,
                "query_string": b"",
                "extensions": {EXTENSION: {"abort": self.abort}},
            },
        )

    def abort(self) -> None:
        self.aborted = True
        self._gone.set()

    def leave(self) -> None:
        self._gone.set()

    @property
    def body(self) -> bytes:
        return b"".join(cast(bytes, each.get("body", b"")) for each in self.messages)

    async def receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self._reads and self.messages:
            await asyncio.Event().wait()
        self.messages.append(message)
        if message["type"] == "http.response.body" and not message["more_body"]:
            self._gone.set()


async def ticking(ended: list[str], count: int = 1_000_000) -> AsyncGenerator[bytes, None]:
    try:
        for number in range(count):
            yield b"%d\n" % number
            await asyncio.sleep(1)
    finally:
        ended.append("ended")


async def answered(desk: Desk, client: Client, ended: list[str], count: int = 1_000_000) -> None:
    await EventStream(desk, ticking(ended, count))(client.scope, client.receive, client.send)  # type: ignore[arg-type]


@virtual_time
async def test_it_ends_when_its_source_does() -> None:
    async with opened(Headway()) as gateway:
        reader, ended = Client(), list[str]()
        await answered(gateway.desk, reader, ended, count=3)
        assert reader.body == b"0\n1\n2\n"
        assert reader.messages[-1]["more_body"] is False  # type: ignore[typeddict-item]
        assert (ended, gateway.desk.streams) == (["ended"], 0)


@virtual_time
async def test_it_ends_when_its_client_leaves_and_the_source_is_told() -> None:
    async with opened(Headway()) as gateway:
        reader, ended = Client(), list[str]()
        asyncio.get_running_loop().call_later(10.5, reader.leave)
        await answered(gateway.desk, reader, ended)
        assert len(reader.body.split()) == 11
        assert (ended, reader.aborted, gateway.desk.streams) == (["ended"], False, 0)


@virtual_time
async def test_who_does_not_read_is_broken_off_after_the_time_that_is_set() -> None:
    async with opened(Headway(), ServerSettings(send_within=7 * SECOND)) as gateway:
        dead, ended = Client(reads=False), list[str]()
        began = asyncio.get_running_loop().time()
        await answered(gateway.desk, dead, ended)
        assert asyncio.get_running_loop().time() - began == pytest.approx(7)
        assert (dead.aborted, ended, gateway.desk.streams) == (True, ["ended"], 0)


@virtual_time
async def test_o4_a_revoked_token_ends_it() -> None:
    async with opened(Headway()) as gateway:
        hw = gateway.desk.hw
        token, secret = await hw.tokens.create("reader", [Scope.READ])
        await hw.tokens.create("another", [Scope.READ])
        reader, ended = Client(token=secret), list[str]()
        loop = asyncio.get_running_loop()
        serving = loop.create_task(answered(gateway.desk, reader, ended))
        await asyncio.sleep(60)
        assert not serving.done()
        await hw.tokens.revoke(token.id)
        began = loop.time()
        await serving
        assert loop.time() - began <= 20
        assert (reader.aborted, ended) == (True, ["ended"])


@virtual_time
async def test_head_gets_the_head_alone() -> None:
    async with opened(Headway()) as gateway:
        asking, ended = Client(method="HEAD"), list[str]()
        await answered(gateway.desk, asking, ended)
        assert [message["type"] for message in asking.messages] == [
            "http.response.start",
            "http.response.body",
        ]
        assert asking.body == b""


@virtual_time
async def test_there_is_room_for_so_many() -> None:
    async with opened(Headway(), ServerSettings(max_streams=2)) as gateway:
        desk = gateway.desk
        with seat(desk), seat(desk), pytest.raises(Crowded, match="2"):
            need_room(desk)
        need_room(desk)
