"""A real server on this machine for the tests of runners that speak HTTP, and turns to give them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TypeAlias

import msgspec

from headway import Attachment, Turn
from headway.core.actions import Start
from headway.model.run import AgentName, Firing, JobId, LaneName, Run, RunId, SessionKey
from headway.model.task import Task
from headway.model.time import Instant
from headway.model.words import Source
from headway.ports import SubRun


class Asked(msgspec.Struct):
    """A request as it came in."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> object:
        return json.loads(self.body)


Answering: TypeAlias = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


class Endpoint:
    """Answers each request with the next of its answers, and then with the last one again."""

    def __init__(self, *answers: bytes | Answering) -> None:
        self._answers = list(answers)
        self.asked: list[Asked] = []
        self.connections = 0
        self.closed = 0
        self.changed = asyncio.Event()
        """Set whenever a request has come, or a connection has ended."""
        self.url = ""

    async def until(self, so: Callable[[], bool]) -> None:
        while not so():
            self.changed.clear()
            await self.changed.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (asked := await _read(reader)) is not None:
                self.asked.append(asked)
                self.changed.set()
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    # A caller who hangs up ends what is done for him.
                    await _while_there(answer(asked, writer), reader)
        except ConnectionError:
            pass
        finally:
            writer.close()
            self.closed += 1
            self.changed.set()


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head.strip().split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body)


async def _while_there(work: Awaitable[None], reader: asyncio.StreamReader) -> None:
    doing = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(reader.read(1))
    await asyncio.wait((doing, gone), return_when=asyncio.FIRST_COMPLETED)
    if not gone.cancel() and not doing.done():
        doing.cancel()
        raise ConnectionResetError
    await doing
    await asyncio.wait((gone,))


def answer(body: bytes = b"", *headers: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def json_answer(data: object, *headers: str, status: str = "200 OK") -> bytes:
    return answer(
        json.dumps(data).encode(), "Content-Type: application/json", *headers, status=status
    )


async def hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.Event().wait()


@asynccontextmanager
async def endpoint(*answers: bytes | Answering) -> AsyncIterator[Endpoint]:
    serving = Endpoint(*answers)
    server = await asyncio.start_server(serving.serve, "127.0.0.1", 0)
    serving.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield serving
    finally:
        server.close()


def play(main: Coroutine[object, object, None]) -> None:
    """Run a test's coroutine, never for ever."""
    asyncio.run(asyncio.wait_for(main, 60))


class Ears:
    """A desk that only listens."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.tokens: list[tuple[int, int]] = []
        self.came = asyncio.Event()

    def emit(self, ticket: int, text: str) -> None:
        self.pieces.append(text)
        self.came.set()

    def use(self, ticket: int, tokens_in: int, tokens_out: int) -> None:
        self.tokens.append((tokens_in, tokens_out))

    def say(self, ticket: int, text: str) -> None:
        raise AssertionError

    def take_message(self, ticket: int, message: RunId) -> bool:
        raise AssertionError

    async def delegate(
        self, ticket: int, agent: str, text: str, options: dict[str, object]
    ) -> SubRun:
        raise AssertionError


def turn_of(
    text: str = "hello",
    task: Task | None = None,
    *,
    agent: str = "browser",
    desk: Ears | None = None,
    deadline_at: Instant | None = None,
    traceparent: str = "",
    attachments: tuple[Attachment, ...] = (),
    job: str | None = None,
) -> Turn:
    run = Run(
        id=RunId("run-1"),
        agent=AgentName(agent),
        session=SessionKey("chat:42"),
        source=Source.TASK,
        lane=LaneName("main"),
        priority=0,
        submitted_at=0,
        text=text,
        trace_id="trace-1",
        task=task,
        deadline_at=deadline_at,
        traceparent=traceparent,
        attachments=attachments,
        firing=None if job is None else Firing(JobId(job), 0),
    )
    start = Start(run, ticket=7, attempt=2, epoch=3, at=0)
    return Turn(desk or Ears(), asyncio.get_running_loop(), start, run, text)
