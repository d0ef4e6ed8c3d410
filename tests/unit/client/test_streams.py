"""Server-sent events: read as the HTML standard says, and taken up again where they were."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from headway.client import Client, NoServer
from headway.client.runs import ServerAway, ServerBack
from headway.client.streams import Reader
from headway.model.errors import NotFound
from headway.testing import virtual_time
from headway.wire.events import EventQuery
from headway.wire.output import RunOver


def read(text: str) -> list[tuple[str, str, dict[str, object]]]:
    reader = Reader()
    heard = [reader.line(line) for line in text.split("\n")]
    return [(each.id, each.event, each.data) for each in heard if each is not None]


def test_an_event_ends_with_an_empty_line() -> None:
    assert read('id: b-1\nevent: Hi\ndata: {"a":1}\n\ndata: {}') == [("b-1", "Hi", {"a": 1})]


def test_data_may_have_several_lines_and_comments_say_nothing() -> None:
    assert read(': still here\nid: b-2\n\ndata: {"a":\ndata: 2}\n\n') == [("b-2", "", {"a": 2})]


def test_how_soon_to_come_back_is_taken_over() -> None:
    reader = Reader()
    for line in ("retry: 250", "retry: soon", ""):
        assert reader.line(line) is None
    assert reader.retry_s == 0.25


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces, and may break off."""

    def __init__(self, *pieces: bytes, breaks: bool = False) -> None:
        self._pieces = pieces
        self._breaks = breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._breaks:
            raise httpx.ReadError("cut off")


def server(*answers: Pieces) -> tuple[Client, list[httpx.Request]]:
    asked: list[httpx.Request] = []
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if not left:
            raise httpx.ConnectError("All connection attempts failed")
        return httpx.Response(200, stream=left.pop(0))

    return Client("http://server", transport=httpx.MockTransport(answer)), asked


@virtual_time
async def test_o3_a_stream_that_breaks_is_taken_up_behind_the_last_event() -> None:
    client, asked = server(
        Pieces(b"retry: 500\n\nid: b-1\nda", b'ta: {"n":1}\n\n', breaks=True),
        Pieces(b'id: b-2\r\ndata: {"n":2}\r\n\r\n'),
        Pieces(b'id: b-3\ndata: {"n":3}\n\n'),
    )
    heard: list[object] = []
    began_at = asyncio.get_running_loop().time()
    async for event in client.events(EventQuery(last=7)):
        heard.append(event.data["n"])
        if len(heard) == 3:
            break
    assert heard == [1, 2, 3]
    assert [request.headers.get("last-event-id") for request in asked] == [None, "b-1", "b-2"]
    assert [request.url.params.get("last") for request in asked] == ["7", None, None]
    assert asyncio.get_running_loop().time() - began_at == pytest.approx(0.5 + 0.5)


@virtual_time
async def test_no_server_at_the_start_is_an_error() -> None:
    client, _ = server()
    with pytest.raises(NoServer, match="headway serve"):
        async for _ in client.events():
            pass


@virtual_time
async def test_what_is_only_remembered_ends_by_itself() -> None:
    client, asked = server(Pieces(b'id: b-1\ndata: {"n":1}\n\n'))
    assert [event.id async for event in client.events(EventQuery(follow=False))] == ["b-1"]
    assert asked[0].url.params["follow"] == "false"


OVER = (
    b'event: outcome\ndata: {"runId":"r1","into":null,"outcome":{"state":"done","reason":null,"text":"hi",'
    b'"attachments":[],"data":null,"error":"","into":null,"tokensIn":0,"tokensOut":0,"code":"","details":null}}\n\n'
)


def flaky(*answers: httpx.Response | httpx.HTTPError) -> Client:
    left = list(answers)

    def answer(_: httpx.Request) -> httpx.Response:
        now = left.pop(0)
        if isinstance(now, httpx.HTTPError):
            raise now
        return now

    return Client("http://server", transport=httpx.MockTransport(answer))


def streamed(*pieces: bytes, breaks: bool = False) -> httpx.Response:
    return httpx.Response(200, stream=Pieces(b"retry: 2000\n\n", *pieces, breaks=breaks))


@virtual_time
async def test_d1_a_run_that_waits_is_watched_on_when_the_server_is_back() -> None:
    """It has emitted nothing yet, so nothing was heard before the connection broke."""
    client = flaky(
        streamed(breaks=True), httpx.ConnectError("refused"), httpx.Response(502), streamed(OVER)
    )
    news = [each async for each in client.runs.watch("r1")]
    assert [type(each) for each in news] == [ServerAway, ServerBack, RunOver]


@virtual_time
async def test_d1_of_a_run_that_was_taken_the_first_connection_may_fail_too() -> None:
    away = httpx.ConnectError("refused")
    assert (await flaky(away, streamed(OVER)).runs.wait("r1", taken=True)).outcome.text == "hi"
    with pytest.raises(NoServer):
        await flaky(away, streamed(OVER)).runs.wait("r1")


@virtual_time
async def test_a_run_that_the_next_server_does_not_know_is_not_waited_for() -> None:
    told = {
        "error": "no such run",
        "code": "not_found",
        "retryable": False,
        "details": {"run": "r1"},
    }
    client = flaky(streamed(breaks=True), httpx.Response(404, json=told))
    with pytest.raises(NotFound):
        await client.runs.wait("r1", taken=True)


@virtual_time
async def test_o3_a_quiet_stream_that_breaks_is_taken_up_too() -> None:
    client = flaky(streamed(breaks=True), streamed(b'id: b-1\ndata: {"n":1}\n\n'))
    async for event in client.events():
        assert event.id == "b-1"
        break
