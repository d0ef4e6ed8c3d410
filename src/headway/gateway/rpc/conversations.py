"""What became of the messages that a connection sent: typing, output and the reply come back to it unasked.

The reply is waited for in the node that was asked, so it comes also when another node has the session. Typing and
output are told by events, so they come only from this node.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from headway.gateway.desk import Desk
from headway.gateway.errors import Crowded
from headway.gateway.rpc.frames import event_frame
from headway.gateway.stream.journal import Entry
from headway.gateway.stream.listener import Listener
from headway.gateway.stream.sse import CHUNK
from headway.model.errors import HeadwayError, Unavailable
from headway.model.events import Event, OutputEmitted, RunFinished, RunQueuedAgain, RunStarted
from headway.model.outcome import Outcome
from headway.model.run import RunId
from headway.model.words import Reason, State
from headway.runtime.handle import Handle
from headway.wire.chat import ChatOutput, ChatReply, ChatTyping
from headway.wire.runs import outcome_answer

UNANSWERED = 256
"""How many messages of one connection may wait for their reply."""
_AGAIN_S = 1.0


class Conversations:
    """The runs that one connection waits for."""

    def __init__(self, desk: Desk, wake: Callable[[], None]) -> None:
        self._desk = desk
        self._wake = wake
        self._since: dict[RunId, int] = {}
        """Each run with the number of the first event that is news about it."""
        self._sessions: dict[RunId, str] = {}
        self._frames: deque[str] = deque()
        self._replies: deque[tuple[int, RunId, str]] = deque()
        """Replies, each with the number of the first event that may be told after it."""
        self._waiting: set[asyncio.Task[None]] = set()
        self._listener: Listener | None = None

    def need_room(self) -> None:
        if len(self._waiting) >= UNANSWERED:
            raise Crowded("unanswered messages of one connection", UNANSWERED)

    @property
    def listening(self) -> bool:
        """Whether events may be news for it."""
        return self._listener is not None

    @property
    def behind(self) -> bool:
        return self._listener is not None and self._listener.behind

    def follow(self, run_id: RunId, session: str) -> None:
        """From now on, whatever becomes of this run is told; what it has emitted before comes first."""
        if run_id in self._sessions:
            return
        journal = self._desk.journal
        if self._listener is None:
            start = journal.start(None)
            self._listener = Listener(
                journal, start, self._desk.settings.stream_backlog, self._is_news
            )
        self._sessions[run_id] = session
        self._since[run_id] = journal.head
        if run_id in journal.tails.running:
            self._frames.append(_typing(run_id, session, typing=True))
            text = "".join(journal.tails.of(run_id).pieces)
            if text:
                self._frames.append(_output(run_id, session, text))
        task = asyncio.get_running_loop().create_task(self._wait_for_reply(run_id, session))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        self._wake()

    def take(self) -> list[str]:
        """The frames that can be told now, in their order: a reply comes after all that was emitted before it."""
        frames = list(self._frames)
        self._frames.clear()
        if self._listener is None:
            return frames
        for entry in self._listener.take(CHUNK):
            frames += self._told(entry)
        while self._replies and self._replies[0][0] <= self._listener.number:
            _, run_id, reply = self._replies.popleft()
            frames.append(reply)
            self._forget(run_id)
        if not self._since and not self._waiting:
            self._listener = None
        return frames

    def end(self) -> None:
        for task in tuple(self._waiting):
            task.cancel()

    def _is_news(self, event: Event) -> bool:
        run_id = getattr(event, "run_id", None)
        if run_id not in self._since:
            return False
        if isinstance(event, RunFinished) and event.into is not None:
            # The message goes on as part of another run: what that one emits belongs here, too.
            self._since.setdefault(event.into, 0)
        return True

    def _told(self, entry: Entry) -> list[str]:
        event = entry.event
        match event:
            case RunStarted() | OutputEmitted() | RunFinished() | RunQueuedAgain():
                run_id, session = event.run_id, event.session
            case _:
                return []
        if entry.number < self._since.get(run_id, entry.number + 1):
            return []
        match event:
            case RunStarted():
                return [_typing(run_id, session, typing=True)]
            case OutputEmitted():
                return [_output(run_id, session, event.text)]
            case RunQueuedAgain():
                return [_typing(run_id, session, typing=False)]
            case RunFinished(into=None):
                if run_id not in self._sessions:
                    self._since.pop(run_id, None)
                return [_typing(run_id, session, typing=False)] if event.attempt else []
            case RunFinished():
                return []

    def _forget(self, run_id: RunId) -> None:
        self._sessions.pop(run_id, None)
        self._since.pop(run_id, None)

    async def _wait_for_reply(self, run_id: RunId, session: str) -> None:
        try:
            handle = await self._handle(run_id)
            outcome = await handle.wait()
            into = None if handle.outcome is None else handle.outcome.into
            echo = handle.echo
        except HeadwayError as lost:
            outcome = Outcome(State.FAILED, Reason.ERROR, error=str(lost))
            into, echo = None, False
        told = outcome_answer(outcome)
        reply = ChatReply(run_id=run_id, session=session, outcome=told, into=into, echo=echo)
        frame = event_frame("chat.reply", reply)
        self._replies.append((self._desk.journal.head, run_id, frame))
        self._wake()

    async def _handle(self, run_id: RunId) -> Handle:
        while True:
            try:
                return await self._desk.hw.engine.handle_of(run_id)
            except Unavailable:
                if self._desk.journal.closed:
                    raise
                await asyncio.sleep(_AGAIN_S)


def _typing(run_id: RunId, session: str, *, typing: bool) -> str:
    return event_frame("chat.typing", ChatTyping(run_id=run_id, session=session, typing=typing))


def _output(run_id: RunId, session: str, text: str) -> str:
    return event_frame("chat.output", ChatOutput(run_id=run_id, session=session, text=text))
