"""A turn: what an agent is given for one attempt, and its way to talk back."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from headway.core.actions import Start
from headway.model.errors import InvalidInput, TurnOver, WouldDeadlock
from headway.model.outcome import Attachment
from headway.model.run import AgentName, JobId, Route, Run, RunId, Sender, SessionKey
from headway.model.task import Task
from headway.model.time import Instant, as_datetime
from headway.model.value import Value
from headway.model.words import Cut, Source, WorkerKind
from headway.ports import Desk, SubRun

Result = TypeVar("Result")

current_turn: "ContextVar[Turn | None]" = ContextVar("headway_turn", default=None)
"""The turn whose code is running, if any: who waits in a turn waits as that turn (L-4)."""


class Fence(Value, frozen=True, order=True):
    """Grows with every attempt of a session, on whatever node (X-4).

    A tool that has seen a higher one refuses a lower one.
    """

    epoch: int
    ticket: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.ticket}"


class Message(Value, frozen=True):
    """A message that was steered into a running turn."""

    id: RunId
    text: str
    attachments: tuple[Attachment, ...] = ()
    sender: Sender | None = None


class Inbox:
    """Messages steered into a turn. Taking one is its receipt: it will not become a turn of its own (X-2)."""

    def __init__(
        self,
        desk: Desk,
        ticket: int,
        ask_loop: "Callable[[Callable[[], Message | None]], Message | None]",
    ) -> None:
        self._desk = desk
        self._ticket = ticket
        self._ask_loop = ask_loop
        self._offered: deque[Run] = deque()
        self._arrived = asyncio.Event()

    def poll(self) -> Message | None:
        """The next message if there is one, at once. A plain agent asks from its thread."""
        return self._ask_loop(self._take)

    def _take(self) -> Message | None:
        while self._offered:
            run = self._offered.popleft()
            if self._desk.take_message(self._ticket, run.id):
                return Message(run.id, run.text, run.attachments, run.sender)
        self._arrived.clear()
        return None

    async def get(self) -> Message:
        """The next message, as soon as there is one."""
        while (message := self._take()) is None:
            await self._arrived.wait()
        return message

    def offer(self, run: Run) -> None:
        """For the engine: a message for this turn has come."""
        self._offered.append(run)
        self._arrived.set()

    def withdraw(self, run_id: RunId) -> None:
        """For the engine: the message is not for this turn any more."""
        self._offered = deque(run for run in self._offered if run.id != run_id)


class Turn(msgspec.Struct, eq=False):
    """One attempt of a run, as its agent sees it."""

    _desk: Desk
    _loop: asyncio.AbstractEventLoop
    start: Start
    run: Run
    text: str
    """What was said, with the note about dropped messages in front. A hook may change it."""
    cut: Cut | None = None
    """Why this attempt was asked to end, if it was."""
    begun: bool = False
    over: bool = False
    work: asyncio.Task[None] | None = None
    """The engine's: what runs this attempt."""
    _inbox: Inbox | None = None
    _context: dict[str, object] | None = None
    _threads_wait: list[Callable[[], object]] | None = None

    def __repr__(self) -> str:
        return f"<Turn {self.run.id} attempt {self.start.attempt}>"

    @property
    def id(self) -> RunId:
        return self.run.id

    @property
    def agent(self) -> AgentName:
        return self.run.agent

    @property
    def session(self) -> SessionKey:
        """The conversation that this turn belongs to. A firing may have a fresh one each time (C-1)."""
        firing = self.run.firing
        return SessionKey(firing.session) if firing and firing.session else self.run.session

    @property
    def job(self) -> JobId | None:
        """The job that made this run, if one did."""
        return None if self.run.firing is None else self.run.firing.job

    @property
    def task(self) -> Task | None:
        """What a program asks for by the task API, if one does (T-1)."""
        return self.run.task

    @property
    def is_heartbeat(self) -> bool:
        """Whether the agent was woken by its heartbeat: it answers HEARTBEAT_OK if nothing needs attention."""
        return self.run.source is Source.HEARTBEAT

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return self.run.attachments

    @property
    def sender(self) -> Sender | None:
        return self.run.sender

    @property
    def route(self) -> Route | None:
        return self.run.route

    @property
    def attempt(self) -> int:
        """1 for the first try. A higher one may find traces of an earlier attempt's work.

        A try that was preempted or rate-limited does not count: the next one has the same number.
        """
        return self.start.attempt

    @property
    def trace_id(self) -> str:
        return self.run.trace_id or self.run.id

    @property
    def deadline(self) -> datetime | None:
        at = self.run.deadline_at
        return None if at is None else as_datetime(at)

    @property
    def fence(self) -> Fence:
        return Fence(self.start.epoch, self.start.ticket)

    @property
    def overflow(self) -> tuple[str, ...]:
        """One line of each message that a full queue dropped since the last turn (S-6)."""
        return self.run.overflow

    @property
    def context(self) -> dict[str, object]:
        """A place for hooks to leave things for the agent."""
        if self._context is None:
            self._context = {}
        return self._context

    @property
    def inbox(self) -> Inbox:
        """Messages steered into this turn; the agent must be registered as steerable."""
        if self._inbox is None:
            self._inbox = Inbox(self._desk, self.start.ticket, self._ask_loop)
        return self._inbox

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was asked to end. Sync agents look here now and then."""
        return self.cut is not None

    def raise_if_cancelled(self) -> None:
        if self.cut is not None:
            raise asyncio.CancelledError(self.cut)

    def emit(self, text: str) -> None:
        """Stream a piece of output to whoever listens, before the reply is whole."""
        if not self.over:
            self._on_loop(lambda: self._desk.emit(self.start.ticket, text))

    def say(self, text: str) -> None:
        """Say something on the channel that the message came from, before the reply: it goes into the outbox.

        It counts only while this attempt does: what a zombie says is never delivered (X-4).
        """
        if not self.over:
            self._on_loop(lambda: self._desk.say(self.start.ticket, text))

    def usage(self, input: int = 0, output: int = 0) -> None:
        """Report tokens: budgets count them, estimates and logs show them."""
        for field, count in (("input", input), ("output", output)):
            if count < 0:
                raise InvalidInput(field, count, "a whole number from 0 up")
        if not self.over:
            self._on_loop(lambda: self._desk.use(self.start.ticket, input, output))

    async def submit(self, agent: str, text: str = "", **options: object) -> SubRun:
        """Start a sub-run and go on. It ends with this turn if that is stopped."""
        if self.over or self.cut is not None:
            raise TurnOver(self.run.id)
        return await self._desk.delegate(self.start.ticket, agent, text, options)

    async def delegate(self, agent: str, text: str = "", **options: object) -> str:
        """Ask another agent and wait for its reply. Meanwhile this turn lends it its slot (L-4)."""
        child = await self.submit(agent, text, **options)
        try:
            return await child.reply()
        except WouldDeadlock:
            await child.cancel()
            raise

    def wait_for(self, work: Coroutine[object, object, Result]) -> Result:
        """For sync agents: run an awaitable of this turn on the engine's loop, and wait for it."""
        if self._in_loop():
            work.close()
            raise InvalidInput("work", "an await", "awaited directly: this agent is async")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        waits = self._threads_wait = self._threads_wait or []
        waits.append(future.cancel)
        if self.cut is not None:
            future.cancel()
        try:
            return future.result()
        finally:
            waits.remove(future.cancel)

    def wake_threads(self) -> None:
        """For the engine: the turn was cut, so nothing that its threads wait for is waited for any more."""
        for cancel in tuple(self._threads_wait or ()):
            cancel()

    @property
    def desk(self) -> Desk:
        """The engine that runs this turn."""
        return self._desk

    def _ask_loop(self, ask: Callable[[], Result]) -> Result:
        """Call something on the engine's loop and wait for its answer, from whatever thread."""
        if self._in_loop():
            return ask()

        async def answer() -> Result:
            return ask()

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result()

    def _in_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _on_loop(self, call: Callable[[], None]) -> None:
        if self._in_loop():
            call()
        else:
            self._loop.call_soon_threadsafe(call)


@runtime_checkable
class Closes(Protocol):
    """A runner that keeps something open: connections, threads."""

    async def close(self) -> None: ...


class Runner(Protocol):
    """Executes attempts: a function, an HTTP endpoint, a command, a pane.

    What `run` gives ends only when the work is really over, also after a cancel: the session's slot hangs on it
    (S-3).
    """

    @property
    def run(self) -> Callable[[Turn], Awaitable[object]]: ...


class Sight(Value, frozen=True):
    """A worker as its runner sees it just now."""

    run_id: RunId
    attempt: int
    kind: WorkerKind
    pid: int
    born: float
    started_at: Instant
    answers: bool
    """Whether it shows a sign of life."""
    over: bool = False
    """Whether it has ended; how is kept until it is forgotten."""
    busy: bool | None = None
    """Whether it wrote or computed something since the last look; None: not known yet."""
    lines: tuple[str, ...] = ()
    pane: str = ""
    adopted: bool = False
    exit_code: int | None = None


@runtime_checkable
class KeepsWorkers(Protocol):
    """A runner whose work goes on outside this process, and may outlive it (W-2).

    An attempt is known by its run and its number. Workers of other machines are never seen.
    """

    def has(self, run_id: RunId, attempt: int) -> bool:
        """Whether a worker of this attempt is on this machine: it lives, or nobody has collected how it ended."""
        ...

    async def look(self) -> Sequence[Sight]:
        """All workers of this runner on this machine, whichever process has started them."""
        ...

    async def end(self, run_id: RunId, attempt: int) -> None:
        """Nobody wants this worker any more: kill all of it, and forget it."""
        ...

    def forget(self, run_id: RunId, attempt: int) -> None:
        """How this attempt ended is in the store: nothing of its worker is needed any more."""
        ...


@runtime_checkable
class ChecksTasks(Protocol):
    """A runner that knows at submission what it could never do (T-3)."""

    def check_task(self, task: Task | None) -> None:
        """Raises `InvalidInput` naming the field. None: what is asked for is no task."""
        ...


def with_note(run: Run) -> str:
    """The text of a run behind a note about the messages that were dropped before it."""
    lines = "\n".join(f"- {line}" for line in run.overflow)
    return f"[Dropped while busy:\n{lines}]\n{run.text}"
