"""Streams over real sockets: two hundred listeners, one that was cut off, and clients that do not read."""

import asyncio
import contextlib
import socket

import httpx
import msgspec

from headway import Headway, Turn
from headway.model.server import ServerSettings
from headway.model.time import MILLISECOND
from tests.unit.gateway.stream.sockets import Door, listening, until

LISTENERS = 200
RUNS = 200


def quick() -> Headway:
    hw = Headway(lanes={"main": 20})

    @hw.agent("a")
    async def a(turn: Turn) -> str:
        return ""

    return hw


class Reader:
    """A client of `/events` that reads blocks as they come."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.seen: list[str] = []
        """The runs that have finished, in the order in which it was told."""
        self.last_id = ""
        self.open = asyncio.Event()

    async def read(self, until: int) -> None:
        """Connect, or come back, and read until so many runs have finished; then break the connection off."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._door.port)
        back = f"Last-Event-ID: {self.last_id}\r\n" if self.last_id else ""
        ask = (
            f"GET /events?event=RunFinished,EventsMissed HTTP/1.1\r\nHost: localhost\r\n{back}\r\n"
        )
        writer.write(ask.encode())
        assert b" 200 " in await reader.readline()
        try:
            while len(self.seen) < until:
                line = (await reader.readline()).decode().strip()
                self._take(line)
        finally:
            writer.transport.abort()

    def _take(self, line: str) -> None:
        name, _, value = line.partition(": ")
        if name == "id":
            self.last_id = value
            self.open.set()
        elif name == "data":
            told = msgspec.json.decode(value)
            assert told["event"] == "RunFinished", told
            self.seen.append(told["runId"])


def test_o3_two_hundred_listeners_hear_of_two_hundred_runs_and_one_that_was_cut_off_misses_none() -> (
    None
):
    async def main() -> None:
        async with listening(quick()) as door:
            hw = door.desk.hw
            readers = [Reader(door) for _ in range(LISTENERS)]
            back = readers[0]
            async with asyncio.TaskGroup() as group:
                group.create_task(back.read(until=RUNS // 4))
                for reader in readers[1:]:
                    group.create_task(reader.read(until=RUNS))
                for reader in readers:
                    await reader.open.wait()
                assert door.desk.streams == LISTENERS
                handles = [await hw.submit("a", "x") for _ in range(RUNS)]
                for handle in handles:
                    await handle.wait()
            assert len(back.seen) == RUNS // 4, "it was cut off in the middle of it"
            await back.read(until=RUNS)
            finished = {handle.id for handle in handles}
            for reader in readers:
                assert len(reader.seen) == RUNS
                assert set(reader.seen) == finished
            assert back.seen == readers[1].seen

    asyncio.run(main())


def a_client_that_does_not_read(door: Door) -> socket.socket:
    """Its own buffers are small, so that what it does not read is soon the server's business."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect(("127.0.0.1", door.port))
    return client


async def flood(door: Door, megabytes: int) -> None:
    """Let an agent say more than all buffers between here and there can hold."""
    for _ in range(megabytes * 16):
        await door.desk.hw.send("loud", "x")


def loud() -> Headway:
    hw = Headway()

    @hw.agent("loud")
    async def agent(turn: Turn) -> str:
        turn.emit("x" * 65_536)
        return ""

    return hw


async def until_gone(door: Door) -> None:
    """Neither the gateway nor the server has anything of a client, although that has neither read nor closed."""
    await until(lambda: not door.desk.streams and not door.connections)


def test_a_client_that_does_not_read_its_events_is_cut_off_and_its_connection_is_gone() -> None:
    async def main() -> None:
        settings = ServerSettings(port=0, send_within=300 * MILLISECOND)
        async with listening(loud(), settings) as door:
            dead = a_client_that_does_not_read(door)
            dead.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await until(lambda: door.desk.streams == 1)
            await flood(door, 16)
            await until_gone(door)
            await expect_little(dead)

    asyncio.run(main())


async def expect_little(client: socket.socket) -> None:
    """Whoever begins to read after all finds what was under way, and then the end."""
    received = 0
    client.settimeout(30)

    def drain() -> None:
        nonlocal received
        with contextlib.suppress(ConnectionResetError):
            while chunk := client.recv(65_536):
                received += len(chunk)

    with client:
        await asyncio.to_thread(drain)
    assert received < 8 * 1024 * 1024, "little of the flood was kept for it"


def test_a_rpc_client_that_does_not_read_is_cut_off_too() -> None:
    async def main() -> None:
        settings = ServerSettings(port=0, send_within=300 * MILLISECOND)
        async with listening(loud(), settings) as door:
            dead = a_client_that_does_not_read(door)
            dead.sendall(
                b"GET /rpc HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            await until(lambda: door.desk.streams == 1)
            call = b'{"id":1,"method":"events.subscribe"}'
            dead.sendall(bytes([0x81, 0x80 | len(call), 0, 0, 0, 0]) + call)
            await flood(door, 16)
            await until_gone(door)
            await expect_little(dead)

    asyncio.run(main())


def test_pings_without_reading_the_pongs_do_not_fill_the_memory() -> None:
    async def main() -> None:
        async with listening(loud(), ServerSettings(port=0)) as door:
            dead = a_client_that_does_not_read(door)
            dead.sendall(
                b"GET /rpc HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            await until(lambda: door.desk.streams == 1)
            ping = bytes([0x89, 0x80 | 125, 0, 0, 0, 0]) + b"x" * 125

            def pings() -> None:
                dead.settimeout(30)
                for _ in range(2_000):
                    dead.sendall(ping * 100)

            try:
                await asyncio.to_thread(pings)
            except (ConnectionResetError, BrokenPipeError):
                pass
            else:
                raise AssertionError("25 MB of pings were answered to nobody")
            await until_gone(door)
            dead.close()

    asyncio.run(main())


def test_a_client_that_is_gone_costs_nothing_any_more() -> None:
    async def main() -> None:
        async with listening(quick()) as door:
            for _ in range(20):
                reader = Reader(door)
                task = asyncio.get_running_loop().create_task(reader.read(until=1))
                await reader.open.wait()
                task.cancel()
                await asyncio.wait((task,))
            await until_gone(door)

    asyncio.run(main())


def test_the_end_of_the_server_ends_streams_in_an_orderly_way() -> None:
    async def main() -> None:
        async with listening(quick()) as door, httpx.AsyncClient(base_url=door.url) as http:
            async with http.stream("GET", "/events") as answer:
                lines = answer.aiter_lines()
                assert await anext(lines) == "retry: 2000"
                door.desk.close()
                assert [line async for line in lines][-1] == ""
            assert door.desk.streams == 0

    asyncio.run(main())
