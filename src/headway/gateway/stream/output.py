"""The live output of a run: what it has emitted lately, what it emits from now on, and how it ended.

Of a run that another node executes only the outcome can be told. A run that was merged into another one goes on
there, so the other one's output is told.
"""

import asyncio
from collections.abc import AsyncGenerator

import msgspec

from headway.gateway.stream.journal import Journal
from headway.gateway.stream.listener import Listener
from headway.gateway.stream.sse import CHUNK, KEEP_ALIVE_S, TOO_SLOW, named, opening, sign_of_life
from headway.model.events import Event, OutputEmitted, RunFinished, RunQueuedAgain, RunStarted
from headway.model.run import RunId
from headway.runtime.handle import Handle
from headway.wire.output import AttemptBegun, AttemptOver, OutputPiece, RunOver
from headway.wire.runs import outcome_answer

_encode = msgspec.json.Encoder().encode


class Watch:
    """One client's watch of one run."""

    def __init__(self, journal: Journal, handle: Handle, backlog: int) -> None:
        self._journal = journal
        self._handle = handle
        self._runs = {handle.id}
        if handle.outcome is not None and handle.outcome.into is not None:
            self._runs.add(RunId(handle.outcome.into))
        self._before = b"".join(present(journal, run_id) for run_id in self._runs)
        self._listener = Listener(journal, journal.start(None), backlog, self._is_news)

    async def told(self) -> AsyncGenerator[bytes, None]:
        """Everything about the run, as server-sent events, until its outcome."""
        yield opening() + self._before
        ear = asyncio.Event()
        loop = asyncio.get_running_loop()
        ended = loop.create_task(self._outcome())
        said_s = loop.time()
        ended.add_done_callback(lambda _: ear.set())
        self._journal.tell(ear, each=True)
        try:
            while True:
                ear.clear()
                # Asked first: what was emitted before the end is then told before it.
                over = ended.done()
                if self._listener.behind:
                    yield TOO_SLOW
                    return
                news = b"".join(self._news(entry.event) for entry in self._listener.take(CHUNK))
                if news:
                    yield news
                    said_s = loop.time()
                elif over:
                    yield ended.result()
                    return
                elif self._journal.closed:
                    return
                else:
                    try:
                        async with asyncio.timeout_at(said_s + KEEP_ALIVE_S):
                            await ear.wait()
                    except TimeoutError:
                        yield sign_of_life()
                        said_s = loop.time()
        finally:
            self._journal.tell_no_more(ear)
            ended.cancel()

    def _is_news(self, event: Event) -> bool:
        if getattr(event, "run_id", None) not in self._runs:
            return False
        if isinstance(event, RunFinished) and event.into is not None:
            self._runs.add(event.into)
        return True

    def _news(self, event: Event) -> bytes:
        match event:
            case RunStarted():
                return _attempt(event.run_id, event.attempt)
            case OutputEmitted():
                return _piece(event.run_id, event.text)
            case RunQueuedAgain():
                return named("again", _encode(AttemptOver(run_id=event.run_id, error=event.error)))
            case _:
                return b""

    async def _outcome(self) -> bytes:
        outcome = await self._handle.wait()
        first = self._handle.outcome
        over = RunOver(
            run_id=self._handle.id,
            into=None if first is None else first.into,
            outcome=outcome_answer(outcome),
        )
        return named("outcome", _encode(over))


def present(journal: Journal, run_id: RunId) -> bytes:
    """The attempt that a run is at, and what that has emitted lately; nothing if it does not run here."""
    attempt = journal.tails.running.get(run_id)
    if attempt is None:
        return b""
    tail = journal.tails.of(run_id)
    text = "".join(tail.pieces)
    said = _piece(run_id, text, cut=tail.cut) if text or tail.cut else b""
    return _attempt(run_id, attempt) + said


def _attempt(run_id: RunId, attempt: int) -> bytes:
    return named("attempt", _encode(AttemptBegun(run_id=run_id, attempt=attempt)))


def _piece(run_id: RunId, text: str, *, cut: bool = False) -> bytes:
    return named("output", _encode(OutputPiece(run_id=run_id, text=text, cut=cut)))
