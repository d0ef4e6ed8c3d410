"""RPC to a server: calls and their answers, and frames that come unasked, over one WebSocket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self, TypeVar

import msgspec
import websockets.exceptions
from websockets.asyncio.client import ClientConnection, connect

from headway.client.errors import NoServer, error_of, refusal
from headway.model.errors import HeadwayError
from headway.model.value import Value
from headway.wire.base import Answer, Request
from headway.wire.errors import ErrorAnswer

SomeAnswer = TypeVar("SomeAnswer", bound=Answer)

_LARGEST = 16 * 1024 * 1024
_OPEN_S = 5.0


class Frame(Value, frozen=True):
    """Something that the server tells without being asked each time."""

    event: str
    data: dict[str, object]
    id: str = ""
    """Of an event that was subscribed to: where to take it up again."""


class _Told(msgspec.Struct):
    """Any frame of the server."""

    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorAnswer | None = None
    retry_after: int | None = msgspec.field(default=None, name="retryAfter")
    event: str = ""
    data: dict[str, object] = msgspec.field(default_factory=dict)


class Rpc:
    """One connection. Calls may overlap; frames come in the order in which the server sent them."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = url
        self._token = token
        self._calls = 0
        self._answers: dict[int, asyncio.Future[_Told]] = {}
        self._frames: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._socket: ClientConnection | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        address = f"ws{self._url.removeprefix('http')}/rpc"
        try:
            self._socket = await connect(
                address, additional_headers=headers, open_timeout=_OPEN_S, max_size=_LARGEST
            )
        except websockets.exceptions.InvalidStatus as refused:
            told = refused.response
            retry_after = told.headers.get("retry-after")
            raise error_of(told.status_code, bytes(told.body or b""), retry_after) from None
        except (OSError, TimeoutError, websockets.exceptions.WebSocketException) as away:
            raise NoServer(self._url, str(away) or type(away).__name__) from None
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._reader = group.create_task(self._read(self._socket))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._socket is not None
        await self._socket.close()
        self._reader.cancel()
        await self._stack.aclose()

    async def call(
        self, method: str, answer: type[SomeAnswer], params: Request | None = None
    ) -> SomeAnswer:
        """Call a method and wait for its answer. Raises what the server refuses it with."""
        assert self._socket is not None
        self._calls += 1
        number = self._calls
        future: asyncio.Future[_Told] = asyncio.get_running_loop().create_future()
        self._answers[number] = future
        frame = msgspec.json.encode({"id": number, "method": method, "params": params or {}})
        try:
            await self._socket.send(frame.decode())
            told = await future
        except websockets.exceptions.ConnectionClosed as closed:
            raise self._gone(closed) from None
        finally:
            self._answers.pop(number, None)
            if future.done() and not future.cancelled():
                future.exception()  # Seen, also by a caller that was cancelled meanwhile.
        if told.error is not None:
            raise _error(told.error, told.retry_after)
        return msgspec.json.decode(told.result, type=answer)

    async def frames(self) -> AsyncIterator[Frame]:
        """Frames as they come, until the connection ends."""
        while (frame := await self._frames.get()) is not None:
            yield frame

    async def _read(self, socket: ClientConnection) -> None:
        closed: Exception = EOFError("the server has closed the connection")
        try:
            async for text in socket:
                self._take(msgspec.json.decode(text, type=_Told))
        except (websockets.exceptions.WebSocketException, msgspec.DecodeError) as broken:
            closed = broken
        finally:
            for future in self._answers.values():
                if not future.done():
                    future.set_exception(self._gone(closed))
            self._frames.put_nowait(None)

    def _take(self, told: _Told) -> None:
        if told.event:
            self._frames.put_nowait(Frame(told.event, told.data, str(told.id or "")))
            return
        future = self._answers.get(told.id) if isinstance(told.id, int) else None
        if future is not None and not future.done():
            future.set_result(told)

    def _gone(self, closed: Exception) -> HeadwayError:
        return NoServer(self._url, str(closed) or "the connection broke")


def _error(told: ErrorAnswer, retry_after: int | None) -> HeadwayError:
    """Frames have no status; the family is told by the code and by whether to try again."""
    status = 503 if told.retryable else 500 if told.code == "internal_error" else 400
    return refusal(status, told, retry_after)
