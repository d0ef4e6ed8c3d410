"""One client's connection: calls come in, answers and events go out, and neither piles up."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

from headway.gateway.desk import Desk
from headway.gateway.rpc.conversations import Conversations
from headway.gateway.rpc.frames import error_frame, id_of, read_call, result_frame
from headway.gateway.rpc.method import Method
from headway.gateway.stream.admission import Visitor
from headway.gateway.stream.journal import frame
from headway.gateway.stream.listener import Listener
from headway.gateway.stream.sse import CHUNK
from headway.model.errors import InvalidInput, UnknownName
from headway.wire.base import Request

CALLS = 64
"""How many calls of one connection go at once; more wait where they are, in the client's network."""

Methods: TypeAlias = Mapping[str, Method[Request, msgspec.Struct]]
Sends: TypeAlias = Callable[[str], Awaitable[None]]


class FellBehind(Exception):
    """The client takes its events more slowly than they happen."""


class Connection:
    """Knows its desk and who asks; methods get it where they need more than an operation."""

    def __init__(self, desk: Desk, visitor: Visitor, methods: Methods) -> None:
        self.desk = desk
        self.conversations = Conversations(desk, self._wake)
        self._visitor = visitor
        """Looked up anew for each call, as for each request: it may be revoked, or ask too often."""
        self._methods = methods
        self._subscription: Listener | None = None
        self._answers: deque[str] = deque()
        self._places = asyncio.Semaphore(CALLS)
        self._woken = asyncio.Event()
        self._left = asyncio.Event()

    def subscribe(self, listener: Listener | None) -> bool:
        """Tell these events from now on, or none; answers whether there was a subscription before."""
        before, self._subscription = self._subscription, listener
        self._wake()
        return before is not None

    async def serve(self, frames: AsyncIterator[str | bytes], send: Sends) -> None:
        """Until the client leaves or the node ends.

        Raises, in a group, `FellBehind`, `Unauthorized` once the token is good no more, and what `send` raises.
        """
        journal = self.desk.journal
        journal.tell(self._woken, each=False)
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(self._read(frames, tasks))
                writing = tasks.create_task(self._write(send))
                looking = tasks.create_task(self._visitor.until_refused())
                await asyncio.wait((reading, writing), return_when=asyncio.FIRST_COMPLETED)
                # Calls under way end by themselves: what was asked for is done although the client has left. Only
                # outcomes are not waited for any more.
                self._left.set()
                for task in (reading, writing, looking):
                    task.cancel()
        finally:
            journal.tell_no_more(self._woken)
            self.conversations.end()

    async def _read(self, frames: AsyncIterator[str | bytes], tasks: asyncio.TaskGroup) -> None:
        async for text in frames:
            await self._places.acquire()
            tasks.create_task(self._answer(text))

    async def _answer(self, text: str | bytes) -> None:
        self._answers.append(await self._answered(text))
        self._wake()

    async def _answered(self, text: str | bytes) -> str:
        try:
            call = read_call(text)
        except InvalidInput as wrong:
            return error_frame(id_of(text), wrong)
        try:
            caller = await self._visitor.admit()
            caller = msgspec.structs.replace(caller, gone=self._left.wait)
            method = self._methods.get(call.method)
            if method is None:
                raise UnknownName("method", call.method, self._methods)
            return result_frame(call.id, await method.call(self, caller, bytes(call.params)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told in the one form
            return error_frame(call.id, error)

    async def _write(self, send: Sends) -> None:
        while True:
            self._woken.clear()
            if await self._send_answers(send) or await self._send_events(send):
                continue
            if self.desk.journal.closed:
                return
            listens = self._subscription is not None or self.conversations.listening
            self.desk.journal.tell(self._woken, each=listens)
            await self._woken.wait()

    async def _send_answers(self, send: Sends) -> bool:
        """Answers first: they are few, and somebody waits for each."""
        sent = bool(self._answers)
        while self._answers:
            await send(self._answers.popleft())
            self._places.release()
        return sent

    async def _send_events(self, send: Sends) -> bool:
        subscription, conversations = self._subscription, self.conversations
        if conversations.behind or (subscription is not None and subscription.behind):
            raise FellBehind
        frames = conversations.take()
        if subscription is not None:
            frames += map(frame, subscription.take(CHUNK))
        for text in frames:
            await send(text)
        return bool(frames)

    def _wake(self) -> None:
        self._woken.set()
