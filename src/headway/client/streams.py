"""Server-sent events, read: each as its name and data, over connections that may break."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import cast

import httpx
import msgspec

from headway.client.errors import error_of
from headway.client.line import Line, params_of, said_of
from headway.model.errors import Unavailable
from headway.model.value import Value
from headway.wire.base import Request

_RETRY_S = 2.0
_SILENCE_S = 45.0
"""The server gives a sign of life each 15 s; three that did not come mean that it is gone."""


class Heard(Value, frozen=True):
    """One event of a stream."""

    id: str
    """Where the stream can be taken up again; empty where it cannot."""
    event: str
    data: dict[str, object]


class Reader:
    """Reads lines of the format of the HTML standard; pure, so that it needs no connection."""

    def __init__(self) -> None:
        self.seen = ""
        self.retry_s = _RETRY_S
        self._event = ""
        self._data: list[str] = []

    def line(self, line: str) -> Heard | None:
        """Take one line in; an empty one ends an event."""
        if not line:
            return self._dispatched()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "id" if "\0" not in value:
                self.seen = value
            case "event":
                self._event = value
            case "data":
                self._data.append(value)
            case "retry" if value.isascii() and value.isdigit():
                self.retry_s = int(value) / 1000
            case _:
                pass
        return None

    def _dispatched(self) -> Heard | None:
        event, data = self._event, "\n".join(self._data)
        self._event, self._data = "", []
        if not data:
            return None
        return Heard(self.seen, event, cast("dict[str, object]", msgspec.json.decode(data)))


async def follow(line: Line, path: str, asked: Request) -> AsyncGenerator[Heard, None]:
    """Events until the caller has enough; without `follow` until there are no more."""
    reader = Reader()
    said = said_of(asked)
    once = said.get("follow") is False
    connected = False
    while True:
        try:
            async with _connection(line, path, said, reader) as heard:
                connected = True
                async for event in heard:
                    yield event
        except Unavailable:
            if not connected:
                raise
        if once:
            return
        # What was seen is said again each time; where it began has been told.
        if reader.seen:
            said = {key: value for key, value in said.items() if key not in {"last", "after"}}
        await asyncio.sleep(reader.retry_s)


@asynccontextmanager
async def listening(line: Line, path: str) -> AsyncIterator[AsyncIterator[Heard]]:
    """One connection that the server has taken; its events, to its end."""
    async with _connection(line, path, {}, Reader()) as heard:
        yield heard


@asynccontextmanager
async def _connection(
    line: Line, path: str, said: dict[str, object], reader: Reader
) -> AsyncIterator[AsyncIterator[Heard]]:
    headers = {"accept": "text/event-stream"}
    if reader.seen:
        headers["last-event-id"] = reader.seen
    timeout = httpx.Timeout(_SILENCE_S, connect=5.0)
    try:
        async with line.http.stream(
            "GET", path, params=params_of(said), headers=headers, timeout=timeout
        ) as told:
            if not told.is_success:
                body = await told.aread()
                raise error_of(told.status_code, body, told.headers.get("retry-after"))
            async with aclosing(_events(told, reader)) as heard:
                yield heard
    except httpx.HTTPError as away:
        raise line.gone(away) from None


async def _events(told: httpx.Response, reader: Reader) -> AsyncGenerator[Heard, None]:
    async for written in _lines(told.aiter_text()):
        if (event := reader.line(written)) is not None:
            yield event


async def _lines(pieces: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """Lines end with LF, CR LF or CR here, and with nothing else: not where Python's own `splitlines` would."""
    rest = ""
    async for piece in pieces:
        *whole, rest = (rest + piece).replace("\r\n", "\n").split("\n")
        for line in _without_returns(whole):
            yield line


def _without_returns(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        yield from line.split("\r")
