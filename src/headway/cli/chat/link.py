"""The way to the server and back: sends what is said, in order and once, and takes in what comes of it."""

import asyncio
from collections.abc import Callable

import msgspec

from headway.cli.chat.talk import Talk
from headway.client import Client, Frame, NoServer, Rpc
from headway.model.errors import HeadwayError, Unavailable
from headway.model.words import Mode
from headway.runtime.ids import new_secret
from headway.wire.chat import (
    ChatHistory,
    ChatHistoryParams,
    ChatOutput,
    ChatReply,
    ChatRoute,
    ChatTyping,
)
from headway.wire.events import Subscribed, SubscribeParams
from headway.wire.messages import MessageAnswer, MessageRequest, SenderRequest
from headway.wire.sessions import SessionAnswer

_AGAIN_S = 1.0
_BETWEEN_LOOKS_S = 0.1
_AWAY = "the server is away; trying again"
_QUEUE_NEWS = (
    "RunSubmitted",
    "RunStarted",
    "RunFinished",
    "RunQueuedAgain",
    "RunsMerged",
    "MessageSteered",
    "SessionStopped",
)
"""The events after which the queue of the session is another one."""


class Link:
    """One conversation over connections that may break. What has no reply then is sent again, and done once."""

    def __init__(
        self,
        client: Client,
        talk: Talk,
        session: str,
        *,
        sender: str,
        changed: Callable[[], None],
        mode: Mode | None = None,
        debounce: str | None = None,
    ) -> None:
        self._client = client
        self._talk = talk
        self._session = session
        self._sender = sender
        self._mode = mode
        self._debounce = debounce
        self._changed = changed
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._stale = asyncio.Event()
        self._rpc: Rpc | None = None

    def say(self, text: str) -> None:
        """Send a message, after those before it; it stays the person's own even while there is no server."""
        key = f"chat-{new_secret()}"
        self._talk.say(key, text)
        self._outgoing.put_nowait(key)

    async def command(self, text: str) -> None:
        """Send a chat command, before all that still waits to be sent."""
        key = f"chat-{new_secret()}"
        self._talk.say(key, text)
        if self._rpc is None:
            self._talk.refused(key, "there is no server just now")
        else:
            await self._send(self._rpc, key)

    async def history(self, count: int) -> None:
        """Take in what was said before."""
        if not count:
            return
        async with self._client.rpc() as rpc:
            params = ChatHistoryParams(session=self._session, limit=count)
            found = await rpc.call("chat.history", ChatHistory, params)
        self._talk.remember(reversed(found.turns))

    async def run(self) -> None:
        """For ever. Raises only if there is no server at the start."""
        connected = False
        while True:
            try:
                async with self._client.rpc() as rpc:
                    await self._begin(rpc)
                    connected = True
                    await self._talk_over(rpc)
            except Unavailable as away:
                if not connected:
                    raise
                self._talk.trouble = f"{_AWAY} ({_reason(away)})"
            finally:
                self._rpc = None
                self._talk.lost()
                self._changed()
            if not self._talk.trouble:
                self._talk.trouble = _AWAY
            await asyncio.sleep(_AGAIN_S)

    async def _begin(self, rpc: Rpc) -> None:
        params = SubscribeParams(session=self._session, events=_QUEUE_NEWS)
        await rpc.call("events.subscribe", Subscribed, params)
        self._talk.trouble = ""
        self._rpc = rpc
        self._stale.set()
        for key in list(self._talk.sent):
            # What was on its way when the connection broke; its key lets the server know it again.
            if self._talk.sent[key].run_id is not None:
                await self._send(rpc, key)

    async def _talk_over(self, rpc: Rpc) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._send_all(rpc)),
                group.create_task(self._look_at_queue(rpc)),
            ]
            async for frame in rpc.frames():
                self._take(frame)
                self._changed()
            for task in tasks:
                task.cancel()

    async def _send_all(self, rpc: Rpc) -> None:
        while True:
            key = await self._outgoing.get()
            if not await self._send(rpc, key):
                self._outgoing.put_nowait(key)
                return

    async def _send(self, rpc: Rpc, key: str) -> bool:
        """False: the connection broke, so that it is not known whether it has arrived."""
        sent = self._talk.sent.get(key)
        if sent is None:
            return True
        message = MessageRequest(
            agent_id=self._talk.agent,
            text=sent.text,
            session=self._session,
            sender=SenderRequest(id=self._sender),
            mode=self._mode,
            debounce=self._debounce,
            idempotency_key=key,
        )
        try:
            answer = await rpc.call("chat.send", MessageAnswer, message)
        except Unavailable:
            return False
        except HeadwayError as refused:
            self._talk.refused(key, str(refused))
        else:
            if answer.command:
                self._talk.answered(key, answer.reply or "")
            elif answer.run_id is not None:
                self._talk.taken(key, answer.run_id)
        self._stale.set()
        self._changed()
        return True

    async def _look_at_queue(self, rpc: Rpc) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                self._talk.queue = await rpc.call(
                    "queue.status", SessionAnswer, ChatRoute(session=self._session)
                )
            except HeadwayError:
                return  # The connection is gone, or it may not be seen; the talk goes on without.
            self._changed()
            await asyncio.sleep(_BETWEEN_LOOKS_S)

    def _take(self, frame: Frame) -> None:
        match frame.event:
            case "chat.typing":
                self._talk.typing(msgspec.convert(frame.data, ChatTyping))
            case "chat.output":
                self._talk.emitted(msgspec.convert(frame.data, ChatOutput))
            case "chat.reply":
                self._talk.reply(msgspec.convert(frame.data, ChatReply))
            case _:
                self._stale.set()


def _reason(away: Unavailable) -> str:
    return away.reason if isinstance(away, NoServer) else str(away)
