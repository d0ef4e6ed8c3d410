"""The store itself: the latest record of each run, and the only node, which owns everything."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import TypeAlias, assert_never

import msgspec

from headway.core.actions import (
    Action,
    CancelAttempt,
    Deliver,
    Enqueue,
    Finish,
    Merge,
    Release,
    Remember,
    Start,
)
from headway.core.alarms import NEVER
from headway.core.endings import FINAL_CUTS
from headway.core.session import BLANK
from headway.model.job import Advance, Ending, Job, JobRecord, Ticking
from headway.model.outcome import Outcome
from headway.model.places import Answer, Cancel, Clear, Delivery, Glimpse, Holding, Order, Stop
from headway.model.run import (
    AgentName,
    JobId,
    LaneName,
    Route,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import Limits, Settings
from headway.model.time import Instant, Span
from headway.model.token import Token
from headway.model.views import NodeView, RunView, StoreStatus
from headway.model.words import Source, State
from headway.model.worker import Beat, Snapshot, Worker
from headway.ports import (
    KEPT,
    Admission,
    Claims,
    Clock,
    DueJobs,
    Duplicate,
    Elsewhere,
    Granted,
    Hint,
    JobPage,
    JobQuery,
    LetterPage,
    LetterQuery,
    LogPage,
    LogQuery,
    Peer,
    Recorded,
    Renewal,
    RunPage,
    RunQuery,
    SnapshotPage,
    SnapshotQuery,
    TurnedAway,
    WorkerPage,
    WorkerQuery,
)
from headway.store.keys import UNSUCCESSFUL, Key, is_freed, keys_of, was_handled
from headway.store.memory.cursors import position
from headway.store.memory.log import JobLog
from headway.store.memory.outbox import MemoryOutbox
from headway.store.memory.timetable import MemoryTimetable
from headway.store.memory.tokens import MemoryTokens
from headway.store.memory.workers import MemoryWorkers
from headway.store.refusals import FULL

# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_TASK = Source.TASK
_QUEUED = State.QUEUED
_RUNNING = State.RUNNING

_Record: TypeAlias = Run | Start | Enqueue | Finish
"""The latest that was said of a run: asked for, started, waiting again, or finished."""


class _Held(msgspec.Struct, eq=False, gc=False):
    """A session that a node decides for."""

    epoch: int
    seq: int = 0


class MemoryStore:
    """Keeps runs in dictionaries. Fast, and gone with the process."""

    durable = False
    writers = 1
    one_owner = True

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._records: dict[RunId, _Record] = {}
        self._cancelling: set[RunId] = set()
        self._held: dict[SessionKey, _Held] = {}
        self._memories: dict[SessionKey, SessionMemory] = {}
        self._cutoffs: deque[tuple[Instant, SessionKey]] = deque()
        self._keys: dict[Key, tuple[RunId, Instant]] = {}
        self._key_ends: list[tuple[Instant, RunId, Key]] = []
        self._pinned: dict[RunId, int] = {}
        """Runs that live keys lead to, and how many: they are not forgotten."""
        self._overdue: set[RunId] = set()
        """Those of them that would have been forgotten already."""
        self._finished: deque[Finish] = deque()
        self._finished_tasks: deque[Finish] = deque()
        self._numbers: dict[RunId, int] = {}
        self._numbered = 0
        self._epochs = 0
        self._node = NodeView(0, "", 0, 0, 0)
        self._hear: Callable[[Hint], None] | None = None
        self._texts: dict[str, str] = {}
        self._limits = settings.limits
        self._tokens = MemoryTokens()
        self._workers = MemoryWorkers()
        self._outbox = MemoryOutbox()
        self._log = JobLog(self._state_of, self._view_of, settings.retained_runs)
        self._timetable = MemoryTimetable(self._log, self._outbox, self.admit, self._jobs_changed)

    async def open(self, hear: Callable[[Hint], None] | None = None) -> None:
        """Nothing to get ready; there are no other nodes, so the only hints are those about jobs."""
        self._hear = hear

    async def close(self) -> None:
        self._hear = None

    async def migrate(self) -> Sequence[str]:
        return ()

    async def status(self) -> StoreStatus:
        return StoreStatus("memory://", 1, 1)

    def admit(self, run: Run, retry: bool = False, claim: bool = True) -> Admission:
        if run.message_id is not None or run.idempotency_key is not None:
            earlier = self._earlier(run, retry=retry)
            if earlier is not None:
                return Duplicate(earlier)
        self._records[run.id] = run
        held = self._held.get(run.session)
        if held is None:
            held = self._hold(run.session)
        seq = held.seq = held.seq + 1
        memory = self._memories.get(run.session) if self._memories else None
        return Granted(held.epoch, seq, memory, seq == 1)

    async def admit_together(
        self, runs: Sequence[Run], claims: Sequence[bool]
    ) -> Sequence[Admission] | TurnedAway:
        new = self._not_asked_before(runs)
        if not self._has_room(new):
            return TurnedAway(FULL)
        return [self.admit(run, claim=claim) for run, claim in zip(runs, claims, strict=True)]

    def _not_asked_before(self, runs: Sequence[Run]) -> Sequence[Run]:
        """Those that no key leads to an earlier run for."""
        now = self._clock.now()
        while self._key_ended(now):
            self._drop_oldest_key()
        new: list[Run] = []
        taken: set[Key] = set()
        for run in runs:
            keys = keys_of(run)
            if not any(key in self._keys or key in taken for key in keys):
                new.append(run)
                taken.update(keys)
        return new

    def _has_room(self, runs: Sequence[Run]) -> bool:
        """Whether the limits allow all of these beside the tasks that wait (F-1)."""
        asked = Counter(run.agent for run in runs if _is_task(run))
        if not asked:
            return True
        waiting = Counter(run.agent for run in self._waiting() if _is_task(run))
        limits = self._limits
        return waiting.total() + asked.total() <= limits.max_queue and all(
            waiting[agent] + count <= limits.max_queue_per_agent for agent, count in asked.items()
        )

    def _waiting(self) -> Iterator[Run]:
        for record in self._records.values():
            if type(record) is Run:
                yield record
            elif type(record) is Enqueue:
                yield record.run

    async def order(self, order: Order) -> Granted | Elsewhere | None:
        """Carried out at once by the only node there is, so it is not kept."""
        held = self._held.get(order.session)
        if held is None:
            if isinstance(order.command, Stop | Clear | Cancel):
                return None
            held = self._hold(order.session)
        held.seq += 1
        memory = self._memories.get(order.session)
        return Granted(held.epoch, held.seq, memory, held.seq == 1)

    async def outcomes(self, runs: Sequence[RunId]) -> Mapping[RunId, Outcome]:
        records = ((run_id, self._records.get(run_id)) for run_id in runs)
        return {run_id: known.outcome for run_id, known in records if isinstance(known, Finish)}

    async def answers(self, orders: Sequence[str]) -> Mapping[str, Answer]:
        return {}

    async def memory_of(self, session: SessionKey) -> SessionMemory | None:
        return self._memories.get(session)

    async def glimpse(self, session: SessionKey) -> Glimpse | None:
        return None

    async def record(self, actions: Sequence[Action]) -> Recorded:
        records = self._records
        kept: list[SessionKey] = []
        for action in actions:
            if type(action) is Start:
                records[action.run.id] = action
            elif type(action) is Finish:
                self._finish(action)
            elif type(action) is Release:
                if not self._release(action):
                    kept.append(action.session)
            else:
                self._record_rare(action)
        return Recorded(kept=tuple(kept)) if kept else KEPT

    async def find(self, run_id: RunId) -> RunView | None:
        return self._view_of(run_id)

    async def list(self, query: RunQuery) -> RunPage:
        """Newest first. Runs are numbered as they are first listed, so a cursor outlives what it points at."""
        self._number()
        upto = NEVER if query.cursor is None else position(query.cursor)
        found: list[RunView] = []
        for run_id in reversed(self._numbers):
            number = self._numbers[run_id]
            view = self._view(self._records[run_id])
            if number <= upto and _matches(query, view):
                if len(found) == query.limit:
                    return RunPage(tuple(found), str(number))
                found.append(view)
        return RunPage(tuple(found))

    async def descendants(self, run_id: RunId, most: int) -> Sequence[RunView]:
        """Looks at all runs: for people, who ask seldom."""
        below = (
            record
            for record in self._records.values()
            if _run_of(record).id == run_id or run_id in _run_of(record).ancestors
        )
        return [self._view(record) for record in islice(below, most)]

    def set_limits(self, limits: Limits) -> None:
        """For runs that come together; the kernel of the only node knows them for each one alone."""
        self._limits = limits

    async def prune(self, most: int) -> int:
        """Runs are forgotten as later ones end; this finds what outlived its time while none did."""
        now = self._clock.now()
        before = len(self._records)
        while self._key_ended(now) and before - len(self._records) < most:
            self._drop_oldest_key()
        settings = self._settings
        for finished, retention in (
            (self._finished_tasks, settings.task_retention),
            (self._finished, settings.retention),
        ):
            while (
                finished
                and finished[0].at + retention <= now
                and before - len(self._records) < most
            ):
                self._forget(finished.popleft().run.id)
        self._log.prune(now - settings.retention)
        self._outbox.prune(now, now - settings.retention)
        self._workers.prune(now - settings.beat_retention, now - settings.snapshot_retention)
        return before - len(self._records)

    async def keep(self, kind: str, at: Instant, fields: Mapping[str, object]) -> None:
        """Nothing here outlives the process."""

    # One node, which owns everything as soon as it is asked for.

    async def enlist(self, name: str, lease: Span, host: str = "") -> int:
        self._node = NodeView(self._node.id + 1, name, self._clock.now(), 0, lease, host=host)
        return self._node.id

    async def renew(self) -> Renewal:
        return Renewal(alive=True)

    async def bury(self, peer: Peer) -> bool:
        return False

    async def retire(self) -> None:
        """Nobody else could take anything over."""

    async def claim(
        self,
        room: Mapping[LaneName, int],
        agents: Sequence[AgentName],
        until: Instant,
    ) -> Claims:
        return Claims()

    async def news(
        self, seen: Mapping[SessionKey, int], complete: bool = False
    ) -> Sequence[Holding]:
        return ()

    async def nodes(self) -> Sequence[NodeView]:
        running = sum(isinstance(record, Start) for record in self._records.values())
        return (msgspec.structs.replace(self._node, sessions=len(self._held), running=running),)

    async def hold_slots(self, lane: LaneName, limit: int, count: int) -> int:
        return min(count, limit)

    async def slots_wanted(self, lane: LaneName) -> int:
        return 0

    # What is to be said.

    async def take_deliveries(
        self, channels: Sequence[str], most: int, now: Instant, until: Instant
    ) -> Sequence[Delivery]:
        return self._outbox.take(channels, most, now, until)

    async def settle_delivery(
        self, delivery: Delivery, again_at: Instant | None = None, error: str = ""
    ) -> None:
        self._outbox.settle(delivery, again_at, error)

    async def letters(self, query: LetterQuery) -> LetterPage:
        return self._outbox.page(query)

    async def retry_letter(self, delivery_id: str, now: Instant) -> bool:
        retried = self._outbox.retry(delivery_id, now)
        if retried and self._hear is not None:
            self._hear(Hint.ENDED)
        return retried

    async def count_letters(self) -> tuple[int, int]:
        return self._outbox.count()

    async def note_routes(self, routes: Mapping[AgentName, Route], at: Instant) -> None:
        self._outbox.note_routes(routes, at)

    async def last_route(self, agent: AgentName) -> Route | None:
        return self._outbox.last_route(agent)

    # What is to happen when.

    async def add_job(self, job: Job, ticking: Ticking) -> bool:
        return self._timetable.add(job, ticking)

    async def change_job(self, job: Job, ticking: Ticking) -> bool:
        return self._timetable.change(job, ticking)

    async def remove_job(self, job_id: JobId) -> bool:
        return self._timetable.remove(job_id)

    async def find_job(self, job_id: JobId) -> JobRecord | None:
        return self._timetable.find(job_id)

    async def find_job_named(self, agent: AgentName, name: str) -> JobRecord | None:
        return self._timetable.find_named(agent, name)

    async def list_jobs(self, query: JobQuery) -> JobPage:
        return self._timetable.page(query)

    async def due_jobs(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        return self._timetable.due(now, most, frozenset(abilities))

    async def settled_jobs(self, most: int) -> Sequence[JobRecord]:
        return self._timetable.settled(most)

    async def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        answers = self._timetable.advance(advances)
        if self._hear is not None and any(advance.notices for advance in advances):
            self._hear(Hint.ENDED)
        return answers

    async def tally(self, endings: Sequence[Ending]) -> Mapping[JobId, int]:
        return self._timetable.tally(endings)

    async def job_log(self, query: LogQuery) -> LogPage:
        return self._log.page(query)

    async def keep_text(self, name: str, text: str | None) -> None:
        if text is None:
            self._texts.pop(name, None)
        else:
            self._texts[name] = text

    async def text(self, name: str) -> str | None:
        return self._texts.get(name)

    # Who works.

    async def beat(self, workers: Sequence[Worker], at: Instant) -> None:
        self._workers.beat(workers, at)

    async def workers(self, query: WorkerQuery) -> WorkerPage:
        return self._workers.page(query)

    async def find_worker(self, worker_id: str) -> Worker | None:
        return self._workers.find(worker_id)

    async def beats(self, worker_id: str, most: int) -> Sequence[Beat]:
        return self._workers.beats(worker_id, most)

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        self._workers.keep_snapshot(snapshot)

    async def snapshots(self, query: SnapshotQuery) -> SnapshotPage:
        return self._workers.snapshots(query)

    async def machines(self) -> Sequence[Snapshot]:
        return self._workers.machines()

    # Who may ask.

    async def add_token(self, token: Token) -> bool:
        return self._tokens.add(token)

    async def tokens(self) -> Sequence[Token]:
        return self._tokens.all()

    async def revoke_token(self, token_id: str) -> bool:
        return self._tokens.revoke(token_id)

    def _jobs_changed(self) -> None:
        if self._hear is not None:
            self._hear(Hint.JOBS)

    def _number(self) -> None:
        """Give every run its number in the order of coming; the forgotten ones lose theirs."""
        numbers: dict[RunId, int] = {}
        for run_id in self._records:
            number = self._numbers.get(run_id)
            if number is None:
                number = self._numbered = self._numbered + 1
            numbers[run_id] = number
        self._numbers = numbers

    def _view_of(self, run_id: RunId) -> RunView | None:
        record = self._records.get(run_id)
        return None if record is None else self._view(record)

    def _state_of(self, run_id: RunId) -> State | None:
        """As `_view` says, and quicker: each job that is due asks for its latest runs."""
        record = self._records.get(run_id)
        if type(record) is Finish:
            return record.outcome.state
        if type(record) is Run:
            return _QUEUED
        if type(record) is Start:
            return _RUNNING
        return record.state if type(record) is Enqueue else None

    def _view(self, record: _Record) -> RunView:
        match record:
            case Run():
                return RunView(record, State.QUEUED)
            case Start(run=run, attempt=attempt, at=at):
                cancelling = run.id in self._cancelling
                return RunView(
                    run, State.RUNNING, attempt, at, cancelling=cancelling, node=self._node.id
                )
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
            case CancelAttempt(run=run, cut=cut) if cut in FINAL_CUTS:
                self._cancelling.add(run.id)
            case Deliver(delivery):
                self._outbox.put(delivery)
            case Remember(session=session, memory=memory):
                self._remember(session, memory)
            case _:
                pass

    def _release(self, release: Release) -> bool:
        """Let a session go, unless something came that the node has not seen."""
        held = self._held.get(release.session)
        if held is None:
            return True
        if held.seq != release.seen:
            return False
        del self._held[release.session]
        return True

    def _finish(self, finish: Finish) -> None:
        """Keep the outcome for its retention, and while a key still leads to it."""
        run = finish.run
        settings = self._settings
        if self._cancelling:
            self._cancelling.discard(run.id)
        if self._keys and not was_handled(finish.outcome):
            self._free_keys(run, finish.outcome)
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
            if self._pinned:
                self._forget(run_id)
            else:
                records.pop(run_id, None)

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
        while self._key_ended(now):
            self._drop_oldest_key()
        keys = keys_of(run)
        for key in keys:
            earlier = self._keys.get(key)
            if earlier is not None and not (retry and self._did_not_succeed(earlier[0])):
                return earlier[0]
        for key in keys:
            ends_at = now + key.lasts(self._settings)
            self._keys[key] = (run.id, ends_at)
            self._pinned[run.id] = self._pinned.get(run.id, 0) + 1
            heappush(self._key_ends, (ends_at, run.id, key))
        return None

    def _key_ended(self, now: Instant) -> bool:
        return bool(self._key_ends) and self._key_ends[0][0] <= now

    def _drop_oldest_key(self) -> None:
        ends_at, run_id, key = heappop(self._key_ends)
        if self._keys.get(key) == (run_id, ends_at):
            del self._keys[key]
        if run_id in self._pinned:
            self._pinned[run_id] -= 1
            if not self._pinned[run_id]:
                self._unpin(run_id)

    def _unpin(self, run_id: RunId) -> None:
        """No key leads to the run any more: it is forgotten if its time was up before."""
        del self._pinned[run_id]
        if run_id in self._overdue:
            self._overdue.remove(run_id)
            del self._records[run_id]

    def _forget(self, run_id: RunId) -> None:
        """The time of a finished run is up; one that a key leads to is kept until then."""
        if run_id in self._pinned:
            self._overdue.add(run_id)
        else:
            del self._records[run_id]

    def _free_keys(self, run: Run, outcome: Outcome) -> None:
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
            held = [key for key in keys_of(known) if self._keys.get(key, ("", 0))[0] == run_id]
            freed = [key for key in held if is_freed(key, outcome)]
            for key in freed:
                del self._keys[key]
            if len(freed) == len(held):
                self._unpin(run_id)

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
        return isinstance(record, Finish) and record.outcome.state in UNSUCCESSFUL


def _matches(query: RunQuery, view: RunView) -> bool:
    return (
        (query.agent is None or view.run.agent == query.agent)
        and (query.session is None or view.run.session == query.session)
        and (query.state is None or view.state is query.state)
        and (query.source is None or view.run.source is query.source)
    )


def _run_of(record: _Record) -> Run:
    return record if type(record) is Run else record.run  # type: ignore[union-attr]  # mypy does not follow type()


def _is_task(run: Run) -> bool:
    """Whether the admission limits count it: what a turn starts is not bounded by them."""
    return run.source is _TASK and run.parent is None
