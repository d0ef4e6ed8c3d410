"""The door: what it bounds before any of our code is asked, and that it closes in time, whatever clients do."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from litestar.types import Receive, Scope, Send

from headway.cli.serve import protocol
from headway.cli.serve.listening import Listening
from headway.model.server import ServerSettings

ANY_PORT = ServerSettings(port=0)
ASK = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers `/` at once and `/ever` never."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/ever":
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await asyncio.Event().wait()
    await send({"type": "http.response.body", "body": b"hello", "more_body": False})


@asynccontextmanager
async def listening(settings: ServerSettings = ANY_PORT) -> AsyncIterator[Listening]:
    door = Listening(settings)
    door.take()
    try:
        await door.open(app)
        yield door
    finally:
        await door.close()


class Client:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def rest(self) -> bytes:
        """All until the server ends the connection."""
        async with asyncio.timeout(60):
            return await self.reader.read()


@asynccontextmanager
async def client(door: Listening) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


def refusal(answer: bytes) -> tuple[int, dict[str, object]]:
    """The status and the body of a refused request: the one form that all errors have (T-2)."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    told = json.loads(body)
    assert set(told) == {"error", "code", "retryable", "details"}
    return int(head.split()[1]), told


def test_it_serves_on_a_port_of_its_own() -> None:
    async def story() -> None:
        async with listening() as door, client(door) as caller:
            caller.writer.write(ASK)
            assert (await caller.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")

    asyncio.run(story())


def test_t2_what_is_no_http_is_refused_in_the_one_form() -> None:
    async def story() -> None:
        async with listening() as door, client(door) as caller:
            caller.writer.write(b"hello?\r\n\r\n")
            status, told = refusal(await caller.rest())
            assert (status, told["code"], told["retryable"]) == (400, "bad_request", False)

    asyncio.run(story())


def test_a_head_that_never_ends_is_cut_off() -> None:
    async def story() -> None:
        async with listening() as door, client(door) as caller:
            caller.writer.write(b"GET / HTTP/1.1\r\nx-long: " + b"a" * (protocol.HEAD_LIMIT + 1))
            status, told = refusal(await caller.rest())
            assert (status, told["code"]) == (431, "headers_too_large")

    asyncio.run(story())


def test_t2_a_long_body_is_no_part_of_the_next_head() -> None:
    """Bodies may be longer than heads, and a head may come in pieces."""

    async def story() -> None:
        async with listening() as door, client(door) as caller:
            long = b"a" * (2 * protocol.HEAD_LIMIT)
            head = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: %d\r\n\r\n" % len(long)
            caller.writer.write(head + long)
            async with asyncio.timeout(60):
                await caller.reader.readuntil(b"0\r\n\r\n")
                for piece in (ASK[:20], ASK[20:]):
                    caller.writer.write(piece)
                    await caller.writer.drain()
                    # The server has seen this piece alone once it has answered another connection.
                    await _until_served(door)
                answer = await caller.reader.readuntil(b"\r\n\r\n")
            assert b"HTTP/1.1 200" in answer

    asyncio.run(story())


@pytest.mark.parametrize(
    "begun", [b"GET / HTTP/1.1\r\nx-slow: ", b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc"]
)
def test_a_request_that_does_not_arrive_in_time_is_told_so(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "READ_WITHIN_S", 1)

    async def wait_for_body(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def story() -> None:
        door = Listening(ANY_PORT)
        door.take()
        await door.open(wait_for_body)
        try:
            async with client(door) as caller:
                caller.writer.write(begun)
                status, told = refusal(await caller.rest())
                assert (status, told["code"], told["retryable"]) == (408, "request_timeout", True)
        finally:
            await door.close()

    asyncio.run(story())


def test_who_connects_and_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "READ_WITHIN_S", 1)

    async def story() -> None:
        async with listening() as door, client(door) as caller:
            assert await caller.rest() == b""

    asyncio.run(story())


def test_who_has_asked_and_then_says_nothing_that_counts_is_sent_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Empty lines end uvicorn's own patience with a connection that rests, and begin no request."""
    monkeypatch.setattr(protocol, "READ_WITHIN_S", 1)

    async def story() -> None:
        async with listening() as door, client(door) as caller:
            caller.writer.write(ASK)
            await caller.reader.readuntil(b"0\r\n\r\n")
            caller.writer.write(b"\r\n")
            assert await caller.rest() == b""

    asyncio.run(story())


def test_o4_one_connection_too_many_is_told_to_come_later() -> None:
    async def story() -> None:
        two = msgspec.structs.replace(ANY_PORT, max_connections=2)
        async with listening(two) as door, client(door) as first, client(door) as second:
            for caller in (first, second):
                caller.writer.write(ASK)
                await caller.reader.readuntil(b"\r\n\r\n")
            async with client(door) as third:
                third.writer.write(ASK)
                answer = await third.rest()
                assert b"retry-after: 1" in answer
                status, told = refusal(answer)
                assert (status, told["code"], told["retryable"]) == (
                    503,
                    "too_many_connections",
                    True,
                )
            second.writer.transport.abort()
            await _until_served(door)

    asyncio.run(story())


async def _until_served(door: Listening) -> None:
    async with asyncio.timeout(60):
        while True:
            async with client(door) as caller:
                caller.writer.write(ASK)
                if (await caller.reader.readline()).startswith(b"HTTP/1.1 200"):
                    return


def test_it_closes_although_an_answer_never_ends() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with listening() as door, client(door) as caller, client(door) as silent:
            caller.writer.write(ASK.replace(b"/ ", b"/ever ", 1))
            await caller.reader.readuntil(b"begun")
            began = loop.time()
            await door.close()
            assert loop.time() - began < 20
            assert await silent.rest() == b""
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", door.port)

    asyncio.run(story())


def test_o1_a_websocket_is_handed_over_and_not_looked_after_any_more() -> None:
    async def story() -> None:
        async with listening() as door, client(door) as caller:
            caller.writer.write(
                b"GET /ever HTTP/1.1\r\nhost: here\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
                b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            async with asyncio.timeout(60):
                answer = await caller.reader.readline()
            assert answer.startswith(b"HTTP/1.1 500"), "the app speaks only HTTP"

    asyncio.run(story())
