"""Receivers on this machine, for the tests of channels that post."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress

import msgspec

from headway.model.time import SECOND, Instant

SECRET = "s3cret"
NOW_S = 1_800_000_000


class FixedClock:
    """A clock that stands."""

    def __init__(self, at_s: int = NOW_S) -> None:
        self._at = at_s * SECOND + 999_999

    def now(self) -> Instant:
        return self._at

    wall = elapsed = now


class Post(msgspec.Struct):
    """A request as it came in."""

    line: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """Answers each post with the next of its answers, and then with the last one again."""

    def __init__(self, *answers: bytes | None) -> None:
        self._answers = list(answers)
        self.posts: list[Post] = []
        self.came = asyncio.Event()
        self.url = ""
        self.port = 0
        self._serving: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def end(self) -> None:
        """Until no connection is left open, not even one that was just about to be taken."""
        for _ in range(10):
            await asyncio.sleep(0)
        # A task that is cancelled before its first step would close nothing.
        for writer in self._writers:
            writer.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        for _ in range(10):
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # It has read enough, or was told too little.
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                await self._take(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.strip().split("\r\n")
        headers = {
            name.lower(): value for name, value in (field.split(": ", 1) for field in fields)
        }
        body = await reader.readexactly(int(headers["content-length"]))
        self.posts.append(Post(line, headers, body))
        self.came.set()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            await reader.read()  # Until the other side gives up.
        else:
            writer.write(answer)
            await writer.drain()


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


OK = answer("200 OK", b"thanks")


@asynccontextmanager
async def receiver(
    *answers: bytes | None, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    receiving = Receiver(*answers)
    server = await asyncio.start_server(receiving.connected, "127.0.0.1", port, ssl=tls)
    receiving.port = server.sockets[0].getsockname()[1]
    receiving.url = f"http://127.0.0.1:{receiving.port}/hook/t0ken?x=1"
    try:
        yield receiving
    finally:
        server.close()
        await receiving.end()


def play(main: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 60))
