"""A client that costs little: connections that stay open, one request after the other on each, and no library."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import cast

from bench._latency import Spread
from bench._load import Broken

HOST = "127.0.0.1"
_LENGTH = b"content-length: "
_END = b"\r\n\r\n"
_LATE_S = 30.0
"""An answer that takes longer will not come."""


@dataclass(frozen=True, slots=True)
class Load:
    """What came back while a server was asked as quickly as it answers."""

    rate: float
    spread: Spread
    answers: int


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """The bytes of a request; they are the same each time."""
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: {HOST}\r\nuser-agent: bench\r\naccept: */*\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Asker(asyncio.Protocol):
    """One connection: asks, and asks again when the answer is there."""

    def __init__(self, asked: bytes, until: float) -> None:
        self._asked = asked
        self._until = until
        self._buffer = b""
        self._began = 0.0
        self.took: list[float] = []
        self.statuses: Counter[bytes] = Counter()
        self.body = b""
        """The last answer."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        head = self._buffer.find(_END)
        if head < 0:
            return
        at = self._buffer.find(_LENGTH, 0, head) + len(_LENGTH)
        length = int(self._buffer[at : self._buffer.find(b"\r", at)])
        if len(self._buffer) < head + len(_END) + length:
            return
        now = time.perf_counter()
        self.took.append(now - self._began)
        self.statuses[self._buffer[9:12]] += 1
        self.body = self._buffer[head + len(_END) :]
        self._buffer = b""
        if now < self._until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - what counts is what came
        if not self.done.done():
            if self._buffer or not self.took:
                self.done.set_exception(Broken("a connection was lost in the middle of an answer"))
            else:
                self.done.set_result(None)


async def ask(port: int, asked: bytes) -> tuple[int, bytes]:
    """Once: the status and the body."""
    loop = asyncio.get_running_loop()
    _, asker = await loop.create_connection(lambda: Asker(asked, 0.0), HOST, port)
    async with asyncio.timeout(_LATE_S):
        await asker.done
    (status,) = asker.statuses
    return int(status), asker.body


async def hammer(port: int, asked: bytes, seconds: float, at_once: int, status: int) -> Load:
    """Ask from so many connections at once for so long. Every answer must have this status."""
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    until = began + seconds
    askers = [
        (await loop.create_connection(lambda: Asker(asked, until), HOST, port))[1]
        for _ in range(at_once)
    ]
    async with asyncio.timeout(seconds + _LATE_S):
        await asyncio.gather(*(asker.done for asker in askers))
    elapsed = time.perf_counter() - began
    statuses = sum((asker.statuses for asker in askers), Counter[bytes]())
    if set(statuses) != {str(status).encode()}:
        raise Broken(f"answers other than {status}: {dict(statuses)}, such as {askers[0].body!r}")
    took = [each for asker in askers for each in asker.took]
    return Load(len(took) / elapsed, Spread.of(took), len(took))
