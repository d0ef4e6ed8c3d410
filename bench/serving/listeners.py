"""Listeners of `GET /events`, and what each of them must have heard: all of it, once, in order."""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple, cast

import msgspec

from bench._load import Broken
from bench.serving.load import HOST

LIFE = ("RunSubmitted", "RunStarted", "RunFinished")
_WITHIN_S = 60.0


class Heard(NamedTuple):
    """One event as it came over the stream."""

    id: str
    event: str
    run: str


class Listener(asyncio.Protocol):
    """One stream. It knows nothing of the server but what it is sent, as a browser would."""

    def __init__(self, runs: int, cut_after: int | None = None) -> None:
        self._unfinished = runs
        self._cut_after = cut_after
        self._cut = False
        self._buffer = b""
        self._seen = ""
        """The id that it would come back with."""
        self.heard: list[Heard] = []

    async def listen(self, port: int) -> None:
        """Come, or come back with the last id."""
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[float] = loop.create_future()
        self._buffer = b""
        await loop.create_connection(lambda: self, HOST, port)
        async with asyncio.timeout(_WITHIN_S):
            await self._opened

    async def ended(self) -> float:
        """When it had heard of the end of every run, or was cut off."""
        async with asyncio.timeout(_WITHIN_S):
            return await self._ended

    def close(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        again = f"last-event-id: {self._seen}\r\n" if self._seen else ""
        self._transport.write(f"GET /events HTTP/1.1\r\nhost: {HOST}\r\n{again}\r\n".encode())

    def data_received(self, data: bytes) -> None:
        """What HTTP puts around the chunks has no name that is known here, so it is passed over."""
        *blocks, self._buffer = (self._buffer + data).split(b"\n\n")
        for block in blocks:
            fields = dict(line.partition(b": ")[::2] for line in block.split(b"\n"))
            if b"id" in fields:
                self._seen = fields[b"id"].decode()
                if not self._opened.done():
                    self._opened.set_result(None)
            if b"data" in fields and not self._hear(fields):
                return

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - its own cut, or the server's
        if self._cut:
            self._cut = False
            self._ended.set_result(time.perf_counter())
        for awaited in (self._opened, self._ended):
            if not awaited.done():
                awaited.set_exception(Broken("the server ended a stream"))

    def _hear(self, fields: dict[bytes, bytes]) -> bool:
        """Note an event. False: nothing is to be heard any more."""
        told = msgspec.json.decode(fields[b"data"], type=dict[str, object])
        event = fields[b"event"].decode()
        self.heard.append(Heard(self._seen, event, str(told.get("runId", ""))))
        self._unfinished -= event == LIFE[-1]
        if self._cut_after is not None and len(self.heard) >= self._cut_after:
            self._cut_after = None
            self._cut = True
            self._transport.abort()
            return False
        if not self._unfinished and not self._ended.done():
            self._ended.set_result(time.perf_counter())
        return True


def check_all_heard(listeners: Sequence[Listener], runs: Collection[str]) -> None:
    """Each has heard the same, without a gap, and the whole life of each run."""
    first = listeners[0].heard
    numbers = [int(one.id.rpartition("-")[2]) for one in first]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise Broken(f"the ids of the events have a gap: {numbers}")
    lives = Counter((one.event, one.run) for one in first if one.event in LIFE)
    if lives != Counter((event, run) for event in LIFE for run in runs):
        raise Broken(f"{len(lives)} events of {len(runs)} runs, some missing or told twice")
    for number, listener in enumerate(listeners):
        if listener.heard != first:
            raise Broken(f"listener {number} heard something else: {len(listener.heard)} events")
