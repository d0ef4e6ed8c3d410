"""The memory store: everything in this process, nothing promised beyond it."""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TypeAlias

import msgspec

from headway.core.actions import (
    Action,
    CancelAttempt,
    Enqueue,
    Finish,
    Merge,
    Release,
    Remember,
    Start,
)
from headway.core.session import BLANK
from headway.model.outcome import Outcome
from headway.model.run import Route, Run, RunId, SessionKey, SessionMemory
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.views import RunView
from headway.model.words import Reason, Source, State
from headway.ports import Admission, Clock, Duplicate, Granted, RunPage, RunQuery

_UNHANDLED = frozenset({Reason.DRAINING, Reason.ORPHANED})
"""Endings in which no agent dealt with the message: it may be delivered again (S-8)."""

_FAILED_STATES = frozenset({State.FAILED, State.CANCELLED, State.REJECTED})
# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_QUEUED = State.QUEUED
_RUNNING = State.RUNNING
_TASK = Source.TASK


class _Row(msgspec.Struct, eq=False, gc=False):
    run: Run
    state: State
    attempt: int = 0
    started_at: Instant | None = None
    finished_at: Instant | None = None
    outcome: Outcome | None = None
    cancelling: bool = False

    def view(self) -> RunView:
        return RunView(
            self.run,
            self.state,
            self.attempt,
            self.started_at,
            self.finished_at,
            self.outcome,
            self.cancelling,
        )


_Key: TypeAlias = tuple[str, str, Route | None, str]


class _Held(msgspec.Struct, eq=False, gc=False):
    """A session that a node decides for."""

    epoch: int
    seq: int = 0


class MemoryStore:
    """Keeps runs in dictionaries. Fast, and gone with the process."""

    durable = False

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._rows: dict[RunId, _Row] = {}
        self._held: dict[SessionKey, _Held] = {}
        self._memories: dict[SessionKey, SessionMemory] = {}
        self._cutoffs: deque[tuple[Instant, SessionKey]] = deque()
        self._keys: dict[_Key, tuple[RunId, Instant]] = {}
        self._key_ends: list[tuple[Instant, RunId, _Key]] = []
        self._finished: deque[tuple[Instant, RunId]] = deque()
        self._finished_tasks: deque[tuple[Instant, RunId]] = deque()
        self._epochs = 0

    async def open(self) -> None:
        """Nothing to get ready."""

    async def close(self) -> None:
        """Nothing to give back."""

    async def admit(self, run: Run, *, retry: bool = False) -> Admission:
        if run.message_id is not None or run.idempotency_key is not None:
            earlier = self._earlier(run, retry=retry)
            if earlier is not None:
                return Duplicate(earlier)
        self._rows[run.id] = _Row(run, _QUEUED)
        held = self._held.get(run.session)
        if held is None:
            held = self._hold(run.session)
        held.seq += 1
        memory = self._memories.get(run.session) if self._memories else None
        return Granted(held.epoch, held.seq, memory)

    async def recall(self, session: SessionKey) -> Granted:
        held = self._held.get(session) or self._hold(session)
        return Granted(held.epoch, held.seq, self._memories.get(session))

    async def record(self, actions: Sequence[Action]) -> Sequence[SessionKey]:
        rows = self._rows
        for action in actions:
            if type(action) is Start:
                row = rows[action.run.id]
                row.run = action.run
                row.state = _RUNNING
                row.attempt = action.attempt
                row.started_at = action.at
            elif type(action) is Finish:
                self._finish(action)
            elif type(action) is Release:
                held = self._held.get(action.session)
                if held is not None and held.seq == action.seen:
                    del self._held[action.session]
            else:
                self._record_rare(action)
        return ()

    async def find(self, run_id: RunId) -> RunView | None:
        row = self._rows.get(run_id)
        return None if row is None else row.view()

    async def list(self, query: RunQuery) -> RunPage:
        found: list[RunView] = []
        started = query.cursor is None
        for run_id in reversed(self._rows):
            if not started:
                started = run_id == query.cursor
                continue
            row = self._rows[run_id]
            if _matches(query, row):
                if len(found) == query.limit:
                    return RunPage(tuple(found), found[-1].id)
                found.append(row.view())
        return RunPage(tuple(found))

    def _hold(self, session: SessionKey) -> _Held:
        self._epochs += 1
        held = self._held[session] = _Held(self._epochs)
        return held

    def _record_rare(self, action: Action) -> None:
        match action:
            case Enqueue(run=run, state=state, attempt=attempt):
                row = self._rows[run.id]
                row.state = state
                row.attempt = attempt
                row.cancelling = False
            case Merge(run=run):
                self._rows[run.id] = _Row(run, State.QUEUED)
            case CancelAttempt(run=run):
                self._rows[run.id].cancelling = True
            case Remember(session=session, memory=memory):
                self._remember(session, memory)
            case _:
                pass

    def _finish(self, action: Finish) -> None:
        run = action.run
        settings = self._settings
        if run.source is _TASK:
            retention, finished = settings.task_retention, self._finished_tasks
        else:
            retention, finished = settings.retention, self._finished
        if run.message_id is not None and not _was_handled(action.outcome):
            self._keys.pop(_message_key(run), None)
        if not retention:
            self._rows.pop(run.id, None)
            return
        row = self._rows[run.id]
        row.state = action.outcome.state
        row.attempt = action.attempt
        row.finished_at = action.at
        row.outcome = action.outcome
        row.cancelling = False
        finished.append((action.at + retention, run.id))
        while finished[0][0] <= action.at or len(finished) > settings.retained_runs:
            self._rows.pop(finished.popleft()[1], None)

    def _remember(self, session: SessionKey, memory: SessionMemory) -> None:
        now = self._clock.now()
        while self._cutoffs and self._cutoffs[0][0] <= now:
            _, old = self._cutoffs.popleft()
            kept = self._memories.get(old)
            if kept is not None and kept.cutoff_at is not None:
                if kept.cutoff_at + self._settings.cutoff_memory <= now:
                    self._keep(old, msgspec.structs.replace(kept, cutoff_at=None, cutoff_id=None))
        if memory.cutoff_at is not None:
            self._cutoffs.append((now + self._settings.cutoff_memory, session))
        self._keep(session, memory)

    def _keep(self, session: SessionKey, memory: SessionMemory) -> None:
        if memory == BLANK:
            self._memories.pop(session, None)
        else:
            self._memories[session] = memory

    def _earlier(self, run: Run, *, retry: bool) -> RunId | None:
        """The run that this one repeats, if any; else its keys are taken for it."""
        now = self._clock.now()
        while self._key_ends and self._key_ends[0][0] <= now:
            ends_at, run_id, key = heappop(self._key_ends)
            if self._keys.get(key) == (run_id, ends_at):
                del self._keys[key]
        keys: list[tuple[Instant, _Key]] = []
        if run.message_id is not None:
            keys.append((now + self._settings.dedupe, _message_key(run)))
        if run.idempotency_key is not None:
            key = ("key", run.agent, None, run.idempotency_key)
            keys.append((now + self._settings.idempotency, key))
        for _, key in keys:
            earlier = self._keys.get(key)
            if earlier is not None and not (retry and self._did_not_succeed(earlier[0])):
                return earlier[0]
        for ends_at, key in keys:
            self._keys[key] = (run.id, ends_at)
            heappush(self._key_ends, (ends_at, run.id, key))
        return None

    def _did_not_succeed(self, run_id: RunId) -> bool:
        row = self._rows.get(run_id)
        return row is not None and row.state in _FAILED_STATES


def _message_key(run: Run) -> _Key:
    return ("message", run.agent, run.route, run.message_id or "")


def _was_handled(outcome: Outcome) -> bool:
    return outcome.state is not State.REJECTED and outcome.reason not in _UNHANDLED


def _matches(query: RunQuery, row: _Row) -> bool:
    return (
        (query.agent is None or row.run.agent == query.agent)
        and (query.session is None or row.run.session == query.session)
        and (query.state is None or row.state is query.state)
    )
