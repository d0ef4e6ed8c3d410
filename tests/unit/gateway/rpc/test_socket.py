"""RPC over a real WebSocket: the handshake, who is let in, how it ends."""

import asyncio
import contextlib

import httpx
import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from headway import Headway, Turn
from headway.gateway.rpc.socket import TOO_SLOW
from headway.model.server import ServerSettings
from headway.model.words import Scope
from tests.unit.gateway.stream.happenings import started
from tests.unit.gateway.stream.sockets import Door, listening, until


def world() -> Headway:
    hw = Headway()

    @hw.agent("a")
    async def a(turn: Turn) -> str:
        turn.emit("hm ")
        return f"re: {turn.text}"

    return hw


async def refusal(url: str, **headers: str) -> tuple[int, str]:
    """The status and the code that a handshake is refused with."""
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, additional_headers=headers):
            pass
    answer = refused.value.response
    return answer.status_code, msgspec.json.decode(answer.body)["code"]


def test_calls_and_replies_over_the_wire() -> None:
    async def main() -> None:
        async with listening(world()) as door, connect(door.rpc_url) as socket:
            call = {
                "id": 1,
                "method": "chat.send",
                "params": {"agentId": "a", "session": "s", "text": "x"},
            }
            await socket.send(msgspec.json.encode(call).decode())
            frames = [msgspec.json.decode(await socket.recv()) for _ in range(5)]
            assert frames[0]["id"] == 1
            assert [frame["event"] for frame in frames[1:]] == [
                "chat.typing",
                "chat.output",
                "chat.typing",
                "chat.reply",
            ]
            assert frames[-1]["data"]["outcome"]["text"] == "re: x"
            await socket.send(b'{"id":2,"method":"health"}')
            assert msgspec.json.decode(await socket.recv())["result"]["ready"] is True

    asyncio.run(main())


def test_o4_who_shows_no_good_token_is_told_before_the_connection_is_open() -> None:
    async def main() -> None:
        async with listening(world()) as door:
            _, secret = await door.desk.hw.tokens.create("reader", [Scope.READ])
            await door.desk.book.any()
            door.desk.book._read_at -= 10_000_000
            assert await refusal(door.rpc_url) == (401, "unauthorized")
            assert await refusal(door.rpc_url, Authorization="Bearer hw_x_y") == (
                401,
                "unauthorized",
            )
            async with connect(
                door.rpc_url, additional_headers={"Authorization": f"Bearer {secret}"}
            ):
                pass
            async with connect(f"{door.rpc_url}?access_token={secret}"):
                pass

    asyncio.run(main())


def test_o4_a_page_of_another_site_may_not_connect_without_a_token() -> None:
    async def main() -> None:
        async with listening(world()) as door:
            assert await refusal(door.rpc_url, Origin="https://evil.example") == (
                401,
                "unauthorized",
            )

    asyncio.run(main())


def test_only_so_many_connections_last() -> None:
    async def main() -> None:
        settings = ServerSettings(port=0, max_streams=1)
        async with listening(world(), settings) as door, connect(door.rpc_url):
            assert await refusal(door.rpc_url) == (503, "too_many_connections")

    asyncio.run(main())


def test_a_request_that_is_no_websocket_is_told_so() -> None:
    async def main() -> None:
        async with listening(world()) as door, httpx.AsyncClient(base_url=door.url) as http:
            answer = await http.get("/rpc")
            assert answer.status_code == httpx.codes.UPGRADE_REQUIRED
            assert answer.headers["upgrade"] == "websocket"
            assert answer.json()["code"] == "method_not_allowed"

    asyncio.run(main())


def test_a_frame_that_is_too_long_ends_the_connection() -> None:
    async def main() -> None:
        async with listening(world()) as door, connect(door.rpc_url) as socket:
            with contextlib.suppress(ConnectionClosed):
                await socket.send('{"id":1,"method":"' + "x" * 2 * 1024 * 1024 + '"}')
            code, _ = await closed_with(socket)
            assert code == 1009
            await until_alone(door)

    asyncio.run(main())


async def closed_with(socket: ClientConnection) -> tuple[int, str]:
    """Read on until the other side has closed: with which code, and why."""
    with contextlib.suppress(ConnectionClosed):
        async for _ in socket:
            pass
    assert socket.close_code is not None
    return socket.close_code, socket.close_reason or ""


async def until_alone(door: Door) -> None:
    await until(lambda: not door.desk.streams)


def test_the_end_of_the_server_is_told_by_a_close() -> None:
    async def main() -> None:
        async with listening(world()) as door, connect(door.rpc_url) as socket:
            await until(lambda: door.desk.streams == 1)
            door.desk.close()
            assert await closed_with(socket) == (1001, "the server ends")
            await until_alone(door)

    asyncio.run(main())


def test_who_falls_behind_is_closed_with_a_reason() -> None:
    async def main() -> None:
        settings = ServerSettings(port=0, stream_backlog=10)
        async with listening(world(), settings) as door, connect(door.rpc_url) as socket:
            await socket.send('{"id":1,"method":"events.subscribe"}')
            await socket.recv()
            for number in range(100):
                door.desk.journal.note(started(number))
            code, reason = await closed_with(socket)
            assert code == TOO_SLOW
            assert "too slow" in reason
            await until_alone(door)

    asyncio.run(main())


def test_a_client_that_breaks_off_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with listening(world()) as door:
            for _ in range(10):
                socket = await connect(door.rpc_url)
                await socket.send('{"id":1,"method":"events.subscribe"}')
                await socket.recv()
                socket.transport.abort()
            await until_alone(door)
            journal = door.desk.journal
            assert (len(journal._ears), len(journal._at_close)) == (1, 1)

    asyncio.run(main())
