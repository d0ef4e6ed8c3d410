"""The memory store: everything in this process, nothing promised beyond it."""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TypeAlias, assert_never

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
from headway.core.alarms import NEVER
from headway.core.session import BLANK
from headway.model.errors import InvalidInput
from headway.model.outcome import Outcome
from headway.model.run import Route, Run, RunId, SessionKey, SessionMemory
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.views import RunView
from headway.model.words import Reason, Source, State
from headway.ports import Admission, Clock, Duplicate, Granted, RunPage, RunQuery

_UNHANDLED = frozenset({Reason.DRAINING, Reason.ORPHANED})
"""Endings in which no agent dealt with the message: it may be delivered again (S-8)."""

_LONGEST_NUMBER = 18
_IDEMPOTENCY = "key"
_FAILED_STATES = frozenset({State.FAILED, State.CANCELLED, State.REJECTED})
# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_TASK = Source.TASK


_Record: TypeAlias = Run | Start | Enqueue | Finish
"""The latest that was said of a run: asked for, started, waiting again, or finished."""

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
        self._records: dict[RunId, _Record] = {}
        self._cancelling: set[RunId] = set()
        self._held: dict[SessionKey, _Held] = {}
        self._memories: dict[SessionKey, SessionMemory] = {}
        self._cutoffs: deque[tuple[Instant, SessionKey]] = deque()
        self._keys: dict[_Key, tuple[RunId, Instant]] = {}
        self._key_ends: list[tuple[Instant, RunId, _Key]] = []
        self._pinned: dict[RunId, int] = {}
        """Runs that live keys lead to, and how many: they are not forgotten."""
        self._finished: deque[Finish] = deque()
        self._finished_tasks: deque[Finish] = deque()
        self._numbers: dict[RunId, int] = {}
        self._numbered = 0
        self._epochs = 0

    async def open(self) -> None:
        """Nothing to get ready."""

    async def close(self) -> None:
        """Nothing to give back."""

    def admit(self, run: Run, retry: bool = False) -> Admission:
        if run.message_id is not None or run.idempotency_key is not None:
            earlier = self._earlier(run, retry=retry)
            if earlier is not None:
                return Duplicate(earlier)
        self._records[run.id] = run
        held = self._held.get(run.session)
        if held is None:
            held = self._hold(run.session)
        held.seq += 1
        memory = self._memories.get(run.session) if self._memories else None
        return Granted(held.epoch, held.seq, memory)

    async def recall(self, session: SessionKey) -> Granted:
        held = self._held.get(session) or self._hold(session)
        return Granted(held.epoch, held.seq, self._memories.get(session))

    async def memory_of(self, session: SessionKey) -> SessionMemory | None:
        return self._memories.get(session)

    async def record(self, actions: Sequence[Action]) -> Sequence[SessionKey]:
        records = self._records
        for action in actions:
            if type(action) is Start:
                records[action.run.id] = action
            elif type(action) is Finish:
                self._finish(action)
            else:
                self._record_rare(action)
        return ()

    async def find(self, run_id: RunId) -> RunView | None:
        record = self._records.get(run_id)
        return None if record is None else self._view(record)

    async def list(self, query: RunQuery) -> RunPage:
        """Newest first. Runs are numbered as they are first listed, so a cursor outlives what it points at."""
        self._number()
        upto = _position(query.cursor)
        found: list[RunView] = []
        for run_id in reversed(self._numbers):
            number = self._numbers[run_id]
            view = self._view(self._records[run_id])
            if number <= upto and _matches(query, view):
                if len(found) == query.limit:
                    return RunPage(tuple(found), str(number))
                found.append(view)
        return RunPage(tuple(found))

    def _number(self) -> None:
        """Give every run its number in the order of coming; the forgotten ones lose theirs."""
        numbers: dict[RunId, int] = {}
        for run_id in self._records:
            number = self._numbers.get(run_id)
            if number is None:
                number = self._numbered = self._numbered + 1
            numbers[run_id] = number
        self._numbers = numbers

    def _view(self, record: _Record) -> RunView:
        match record:
            case Run():
                return RunView(record, State.QUEUED)
            case Start(run=run, attempt=attempt, at=at):
                cancelling = run.id in self._cancelling
                return RunView(run, State.RUNNING, attempt, at, cancelling=cancelling)
            case Enqueue(run=run, state=state, attempt=attempt):
                return RunView(run, state, attempt)
            case Finish(run=run, outcome=outcome, attempt=attempt, at=at, started_at=started_at):
                return RunView(run, outcome.state, attempt, started_at, at, outcome)
            case _:
                assert_never(record)

    def _hold(self, session: SessionKey) -> _Held:
        self._epochs += 1
        held = self._held[session] = _Held(self._epochs)
        return held

    def _record_rare(self, action: Action) -> None:
        match action:
            case Enqueue(run=run):
                self._records[run.id] = action
                self._cancelling.discard(run.id)
            case Merge(run=run):
                self._records[run.id] = run
            case CancelAttempt(run=run):
                self._cancelling.add(run.id)
            case Remember(session=session, memory=memory):
                self._remember(session, memory)
            case Release(session=session, seen=seen):
                held = self._held.get(session)
                if held is not None and held.seq == seen:
                    del self._held[session]
            case _:
                pass

    def _finish(self, finish: Finish) -> None:
        """Keep the outcome for its retention, and while a key still leads to it."""
        run = finish.run
        settings = self._settings
        if self._cancelling:
            self._cancelling.discard(run.id)
        if self._keys and not _was_handled(finish.outcome):
            self._free_keys(run)
        if run.source is _TASK:
            retention, finished = settings.task_retention, self._finished_tasks
        else:
            retention, finished = settings.retention, self._finished
        records = self._records
        records[run.id] = finish
        finished.append(finish)
        while len(finished) > settings.retained_runs or (
            finished and finished[0].at + retention <= finish.at
        ):
            run_id = finished.popleft().run.id
            if run_id not in self._pinned:
                del records[run_id]

    def _remember(self, session: SessionKey, memory: SessionMemory) -> None:
        now = self._clock.now()
        while self._cutoffs and self._cutoffs[0][0] <= now:
            _, old = self._cutoffs.popleft()
            kept = self._memories.get(old)
            if kept is None or kept.cutoff_at is None:
                continue
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
        self._drop_old_keys(now)
        keys = _keys_of(run)
        for key in keys:
            earlier = self._keys.get(key)
            if earlier is not None and not (retry and self._did_not_succeed(earlier[0])):
                return earlier[0]
        for key in keys:
            settings = self._settings
            lasts = settings.dedupe if key[0] != _IDEMPOTENCY else settings.idempotency
            ends_at = now + lasts
            self._keys[key] = (run.id, ends_at)
            self._pinned[run.id] = self._pinned.get(run.id, 0) + 1
            heappush(self._key_ends, (ends_at, run.id, key))
        return None

    def _drop_old_keys(self, now: Instant) -> None:
        while self._key_ends and self._key_ends[0][0] <= now:
            ends_at, run_id, key = heappop(self._key_ends)
            if self._keys.get(key) == (run_id, ends_at):
                del self._keys[key]
            self._unpin(run_id, now)

    def _unpin(self, run_id: RunId, now: Instant) -> None:
        """One key less leads to the run; with the last one it may be forgotten."""
        if run_id not in self._pinned:
            return
        self._pinned[run_id] -= 1
        if self._pinned[run_id]:
            return
        del self._pinned[run_id]
        record = self._records.get(run_id)
        if isinstance(record, Finish):
            task = record.run.source is _TASK
            kept = self._settings.task_retention if task else self._settings.retention
            if record.at + kept <= now:
                del self._records[run_id]

    def _free_keys(self, run: Run) -> None:
        """No agent dealt with the run, or with those merged into it: they may come again (S-8, D-6)."""
        open_ids = [run.id]
        for run_id in open_ids:
            record = self._records.get(run_id)
            if record is None:
                continue
            known = record if isinstance(record, Run) else record.run
            open_ids += known.merged_from
            open_ids += self._absorbed_by(run_id)
            if run_id not in self._pinned:
                continue
            for key in _keys_of(known):
                if self._keys.get(key, ("", 0))[0] == run_id:
                    del self._keys[key]
            del self._pinned[run_id]

    def _absorbed_by(self, run_id: RunId) -> Sequence[RunId]:
        """Messages that a turn took from its inbox; what is pinned is all that matters here."""
        records = [self._records.get(pinned) for pinned in self._pinned]
        return [
            record.run.id
            for record in records
            if isinstance(record, Finish) and record.outcome.into == run_id
        ]

    def _did_not_succeed(self, run_id: RunId) -> bool:
        record = self._records.get(run_id)
        return isinstance(record, Finish) and record.outcome.state in _FAILED_STATES


def _keys_of(run: Run) -> list[_Key]:
    """What makes a run unique: its message id on its route, and its idempotency key (S-8, D-6)."""
    keys: list[_Key] = []
    if run.message_id is not None:
        place = run.session if run.route is None else ""
        keys.append((f"message {place}", run.agent, run.route, run.message_id))
    if run.idempotency_key is not None:
        keys.append((_IDEMPOTENCY, run.agent, None, run.idempotency_key))
    return keys


def _position(cursor: str | None) -> int:
    """The number of the run that a page goes on with."""
    if cursor is None:
        return NEVER
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _LONGEST_NUMBER):
        raise InvalidInput("cursor", cursor, "the cursor of an earlier page")
    return int(cursor)


def _was_handled(outcome: Outcome) -> bool:
    return outcome.state is not State.REJECTED and outcome.reason not in _UNHANDLED


def _matches(query: RunQuery, view: RunView) -> bool:
    return (
        (query.agent is None or view.run.agent == query.agent)
        and (query.session is None or view.run.session == query.session)
        and (query.state is None or view.state is query.state)
    )
