"""The client and the listeners of `bench http`: a figure counts only if what was measured did its work."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from bench import http
from bench._load import Broken
from bench.serving.listeners import LIFE, Heard, Listener, check_all_heard
from bench.serving.load import ask, hammer, request

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def on_port(serve: Serve, scenario: Callable[[int], Awaitable[None]]) -> None:
    """Run a scenario beside a small server."""

    async def main() -> None:
        gone: list[asyncio.Event] = []

        async def watched(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            gone.append(asyncio.Event())
            mine = gone[-1]
            with contextlib.suppress(ConnectionError):
                await serve(reader, writer)
            writer.transport.abort()
            mine.set()

        server = await asyncio.start_server(watched, "127.0.0.1", 0)
        async with server:
            await scenario(server.sockets[0].getsockname()[1])
            for one in gone:
                await one.wait()
        await asyncio.sleep(0)

    asyncio.run(main())


def answering(status: int, *, torn: bool = False) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = b"HTTP/1.1 %d X\r\ncontent-length: 2\r\n\r\nok" % status
        while await reader.read(10_000):
            for piece in (answer[:20], answer[20:-1], answer[-1:]) if torn else (answer,):
                writer.write(piece)
                await writer.drain()
        writer.close()

    return serve


@pytest.mark.parametrize("torn", [False, True])
def test_the_client_reads_an_answer_in_however_many_pieces(torn: bool) -> None:
    async def scenario(port: int) -> None:
        assert await ask(port, request("GET", "/x")) == (202, b"ok")

    on_port(answering(202, torn=torn), scenario)


def test_the_client_asks_again_on_each_connection_until_the_time_is_over() -> None:
    async def scenario(port: int) -> None:
        load = await hammer(port, request("POST", "/x", b"{}"), 0.05, at_once=3, status=202)
        assert load.answers >= 3
        assert load.rate > 0
        assert 0 < load.spread.p50 <= load.spread.p99

    on_port(answering(202), scenario)


def test_an_answer_of_another_status_makes_the_figure_worthless() -> None:
    async def scenario(port: int) -> None:
        with pytest.raises(Broken, match="429"):
            await hammer(port, request("POST", "/x"), 0.01, at_once=2, status=202)

    on_port(answering(429), scenario)


def test_a_connection_that_is_lost_is_no_answer() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        writer.close()

    async def scenario(port: int) -> None:
        with pytest.raises(Broken, match="lost"):
            await ask(port, request("GET", "/x"))

    on_port(hang_up, scenario)


def block(number: int, event: str, run: str) -> bytes:
    return b'id: boot-%d\nevent: %b\ndata: {"event":"x","runId":"%b"}\n\n' % (
        number,
        event.encode(),
        run.encode(),
    )


def life(*runs: str) -> list[bytes]:
    told = [(event, run) for run in runs for event in LIFE]
    return [block(number, *each) for number, each in enumerate(told, start=8)]


def test_a_listener_that_was_cut_off_comes_back_with_the_last_id() -> None:
    """It reads what is torn over packets, and passes over the marks of the chunks."""
    asked: list[bytes] = []

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"1e\r\nretry: 2000\nid: boot-7\n\n\r\n")
        seen = 7 if len(asked) == 1 else 9
        told = b"".join(life("a")[seen - 7 :])
        for piece in (told[:30], told[30:]):
            writer.write(piece)
            await writer.drain()
        await reader.read()
        writer.close()

    async def scenario(port: int) -> None:
        listener = Listener(runs=1, cut_after=2)
        await listener.listen(port)
        await listener.ended()
        await listener.listen(port)
        await listener.ended()
        assert b"last-event-id" not in asked[0]
        assert b"last-event-id: boot-9\r\n" in asked[1]
        assert [one.id for one in listener.heard] == ["boot-8", "boot-9", "boot-10"]
        check_all_heard([listener], {"a"})
        listener.close()

    on_port(stream, scenario)


def heard(*events: Heard) -> Listener:
    listener = Listener(runs=1)
    listener.heard = list(events)
    return listener


ALL = [Heard(f"boot-{number}", event, "a") for number, event in enumerate(LIFE, start=1)]


def test_a_listener_that_missed_something_is_found_out() -> None:
    check_all_heard([heard(*ALL), heard(*ALL)], {"a"})
    for wrong in (ALL[:-1], [*ALL, ALL[-1]], [ALL[1], ALL[0], ALL[2]]):
        with pytest.raises(Broken):
            check_all_heard([heard(*ALL), heard(*wrong)], {"a"})


def test_a_gap_that_all_have_is_found_out() -> None:
    gap = [ALL[0], Heard("boot-3", LIFE[1], "a"), Heard("boot-4", LIFE[2], "a")]
    with pytest.raises(Broken, match="gap"):
        check_all_heard([heard(*gap)], {"a"})


def test_a_run_that_nobody_heard_of_is_found_out() -> None:
    with pytest.raises(Broken, match="missing"):
        check_all_heard([heard(*ALL)], {"a", "b"})


def test_the_body_that_both_servers_read_is_a_task() -> None:
    asked = http._task("worker")
    head, _, body = asked.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /tasks HTTP/1.1\r\n")
    assert f"content-length: {len(body)}".encode() in head
