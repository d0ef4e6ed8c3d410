"""The store itself: what `ports.Store` asks for, each in one round trip."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import NamedTuple

import asyncpg
import msgspec

from headway.core.actions import Action, Finish, Release, Start, session_of
from headway.model.errors import InvalidInput, StoreUnavailable
from headway.model.job import Advance, Ending, Job, JobRecord, Ticking
from headway.model.outcome import Outcome
from headway.model.places import (
    Answer,
    Cancel,
    Clear,
    Delivery,
    Glimpse,
    Holding,
    Order,
    Place,
    Stop,
)
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
from headway.model.time import DAY, MINUTE, Instant, Span
from headway.model.token import Token
from headway.model.views import NodeView, RunView, StoreStatus
from headway.model.words import Cut, Reason, Source, State
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
from headway.store.codec import (
    UNTAKEN,
    decode_answer,
    decode_command,
    decode_memory,
    decode_outcome,
    decode_run,
    decode_standing,
    encode_command,
    encode_fields,
    encode_outcome,
    encode_text,
)
from headway.store.postgres.address import address_of
from headway.store.postgres.admissions import MOST_AT_ONCE, AdmissionBatch, Asked, without_clashes
from headway.store.postgres.connections import Connections
from headway.store.postgres.cursors import position
from headway.store.postgres.hints import Hints
from headway.store.postgres.literals import ADMIT, RECORD, Call
from headway.store.postgres.outbox import PostgresOutbox
from headway.store.postgres.records import UNSTORABLE, RecordBatch, batches_of
from headway.store.postgres.schema import migrate, status
from headway.store.postgres.statements import statements
from headway.store.postgres.timetable import PostgresTimetable
from headway.store.postgres.together import RUN_KEY, PostgresTogether
from headway.store.postgres.tokens import PostgresTokens
from headway.store.postgres.troubles import BAD_DATA, constraint_of
from headway.store.postgres.workers import PostgresWorkers
from headway.store.refusals import FULL, STOPPED

_FULL_TEXT, _STOPPED_TEXT = encode_outcome(FULL), encode_outcome(STOPPED)
_EXACT = 10_000
"""Admission limits up to this are exact over all nodes."""
_PART = 8
_MOST_URGENT = 100
_MOST_PLACES = 1_000
_MOST_SEEN = 100
"""So many runs of a session are read for who only looks: their texts may be long."""
_LONG = 10.0
"""Seconds that rare calls over much data may take: a takeover, a list, forgetting."""
_LEFT_ALONE_FOR = 5 * MINUTE
_SLOT_KEY = "attempts_pkey"

# The numbers of arguments of the functions, which SQL wants written out.
_ADMIT_CHECKED, _ADMIT_ONE, _RECORD_ALL = 36, 38, 56


class PostgresStore:
    """Keeps runs in PostgreSQL, shared by any number of nodes."""

    durable = True
    writers = 2
    one_owner = False

    def __init__(self, url: str, settings: Settings, clock: Clock) -> None:
        self._address = address_of(url)
        self._settings = settings
        self._clock = clock
        self._limits = settings.limits
        self._sql = statements(self._address.schema)
        self._connections = Connections(self._address)
        self._tasks: set[asyncio.Task[None]] = set()
        self._hints = Hints(self._connections, self._address.schema, self._sql["tell"], self._spawn)
        parts = (self._connections, self._address.schema, self._hints)
        self._outbox = PostgresOutbox(*parts)
        self._timetable = PostgresTimetable(
            *parts, settings=settings, clock=clock, told=self._answer, keep=self.keep
        )
        self._together = PostgresTogether(
            *parts,
            settings=settings,
            clock=clock,
            limits_for=self._limits_for,
            told=self._answer,
            repeated=self._repeated,
        )
        self._tokens = PostgresTokens(self._connections, self._address.schema)
        self._workers = PostgresWorkers(self._connections, self._address.schema)
        self._unreadable: dict[SessionKey, Instant] = {}
        """Sessions that this version cannot read, and until when they are left alone (N-20)."""
        self._left = 0
        """How often this node has left work in the store that it may find there again."""
        self._searched: _Searched | None = None
        self._node = 0
        """0 until it is enlisted: such a process adds and reads, and owns nothing."""
        self._host = ""
        """The machine that it runs on (W-2)."""
        self._waiting: list[Asked] = []
        self._flushing = False
        self._room = 0
        """How many tasks may be taken before they are counted again, where the limits are large."""
        schema = self._address.schema
        self._admit = Call(f"{schema}.admit_v1", *ADMIT)
        self._admit_checked = _call(schema, "admit_checked_v1", _ADMIT_CHECKED)
        numbers = ", ".join(f"${number}" for number in range(1, _ADMIT_ONE + 1))
        self._admit_one = f"call {schema}.admit_one_v1({numbers}, {', '.join(['null'] * 7)})"
        self._record = Call(f"{schema}.record_v1", *RECORD)
        self._record_all = _call(schema, "record_all_v1", _RECORD_ALL)
        self._record_outliving = _call(schema, "record_all_v2", _RECORD_ALL + 1)
        self._order = _call(schema, "order_v1", 6)
        self._claim = _call(schema, "claim_v2", 10)
        self._take = _call(schema, "take_v2", 8)
        self._news = _call(schema, "news_v1", 5)
        self._renew = _call(schema, "renew_v1", 1)
        self._end_node = _call(schema, "end_node_v2", 4)
        self._hold_slots = _call(schema, "hold_slots_v1", 4)
        self._prune = _call(schema, "prune_v1", 4)

    async def open(self, hear: Callable[[Hint], None] | None = None) -> None:
        await self._connections.open()
        try:
            await migrate(self._connections, self._address)
        except BaseException:
            await self._connections.close()
            raise
        if hear is not None:
            self._hints.open(hear)

    async def close(self) -> None:
        self._hints.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for one in self._waiting:
            if not one.answer.done():
                one.answer.set_exception(self._closed())
        self._waiting.clear()
        await self._connections.close()

    async def migrate(self) -> Sequence[str]:
        connections = Connections(self._address)
        await connections.open()
        try:
            return await migrate(connections, self._address)
        finally:
            await connections.close()

    async def status(self) -> StoreStatus:
        connections = Connections(self._address)
        await connections.open()
        try:
            return await status(connections, self._address)
        finally:
            await connections.close()

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable(self._address.shown, "the store was closed")

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        """Work in the background, which ends with the store at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Admission.

    def admit(
        self, run: Run, retry: bool = False, claim: bool = True
    ) -> "asyncio.Future[Admission]":
        answer: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        self._waiting.append(Asked(run, retry, claim and self._node != 0, answer))
        if not self._flushing:
            self._flushing = True
            self._spawn(self._flush())
        return answer

    async def admit_together(
        self, runs: Sequence[Run], claims: Sequence[bool]
    ) -> Sequence[Admission] | TurnedAway:
        loop = asyncio.get_running_loop()
        asked = [
            Asked(run, False, claim and self._node != 0, loop.create_future())
            for run, claim in zip(runs, claims, strict=True)
        ]
        return await self._together.admit(asked)

    async def _flush(self) -> None:
        """Keep what has gathered, batch by batch: what comes while one is under way makes the next."""
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
                batch, later = without_clashes(taken)
                self._waiting[:0] = later
                await self._admit_batch(batch)
        finally:
            self._flushing = False

    async def _admit_batch(self, asked: Sequence[Asked]) -> None:
        """Every caller gets an answer or an error, whatever happens here."""
        try:
            await self._try_admit(asked)
        except asyncpg.UniqueViolationError as error:
            if constraint_of(error) == RUN_KEY:
                await self._admit_again(asked)
            else:
                await self._admit_halves(asked, error)
        except (*BAD_DATA, TypeError, ValueError, OverflowError, RecursionError) as error:
            await self._admit_halves(asked, error)
        except StoreUnavailable as error:
            _fail(asked, error)
        except BaseException:
            _fail(asked, self._closed())
            raise

    async def _admit_halves(self, asked: Sequence[Asked], error: BaseException) -> None:
        """A value at fault fails its own run, not the neighbours (N-15)."""
        if len(asked) == 1:
            run = asked[0].run
            _fail(asked, InvalidInput("run", run.id, f"text that can be stored ({error})"))
            return
        middle = len(asked) // 2
        await self._admit_batch(asked[:middle])
        await self._admit_batch(asked[middle:])

    async def _admit_again(self, asked: Sequence[Asked]) -> None:
        """Some are kept already, as the answer was lost: they get the answer of the first time."""
        ids = list({one.run.id for one in asked})
        try:
            rows = await self._connections.call(self._sql["known_runs"], ids)
        except StoreUnavailable as error:
            _fail(asked, error)
            return
        known = {row["id"]: row for row in rows}
        fresh: dict[str, Asked] = {}
        twice: list[Asked] = []
        for one in asked:
            row = known.get(one.run.id)
            if row is not None:
                _settle(one, self._repeated(row))
            elif one.run.id in fresh:
                twice.append(one)
            else:
                fresh[one.run.id] = one
        for part in (list(fresh.values()), twice):
            if part:
                await self._admit_batch(part)

    def _repeated(self, row: asyncpg.Record) -> Admission:
        if row["outcome"] is not None and row["seq"] == 0:
            return TurnedAway(decode_outcome(row["outcome"]))
        if self._node and row["owner"] == self._node:
            return Granted(row["epoch"], row["seq"], _memory(row["memory"]))
        return Elsewhere(row["seq"], owned=row["owner"] is not None)

    async def _try_admit(self, asked: Sequence[Asked]) -> None:
        now = self._clock.now()
        batch = AdmissionBatch(asked, self._settings, now)
        most, most_per_agent = await self._limits_for(batch.tasks)
        batch.checked |= most is not None or most_per_agent is not None
        columns = batch.columns(self._node, now)
        limits = (most, most_per_agent, _FULL_TEXT, _STOPPED_TEXT)
        # What this node takes for itself need be told to nobody; a single commit is quicker.
        along = self._hints.along() if len(asked) == 1 and not asked[0].claim else None
        if along is not None:
            values = (*columns, *batch.checks(), *limits, batch.checked, along)
            rows = await self._connections.call(self._admit_one, *values)
        elif batch.checked:
            values = (*columns, *batch.checks(), *limits)
            rows = await self._connections.call(self._admit_checked, *values)
        else:
            call = self._admit
            rows = await self._connections.call(call.statement, *call.values(columns))
        self._answer(batch, rows, told=along is not None)

    async def _limits_for(self, tasks: int) -> tuple[int | None, int | None]:
        """Which limits to hold these tasks against: in all, and for each agent (F-1).

        Small limits are exact. To hold a large one exactly, all that waits would have to be counted again and
        again: there a node counts once, and then takes a part of what is left without asking.
        """
        limits = self._limits
        most = limits.max_queue if limits.max_queue <= _EXACT else None
        per_agent = limits.max_queue_per_agent if limits.max_queue_per_agent <= _EXACT else None
        if not tasks or (most is not None and per_agent is not None):
            return (most, per_agent) if tasks else (None, None)
        if self._room < tasks:
            rows = await self._connections.call(self._sql["waiting_tasks"], within=_LONG)
            left = [
                limits.max_queue - rows[0]["total"],
                limits.max_queue_per_agent - rows[0]["most"],
            ]
            self._room = (
                min(
                    (
                        left[number]
                        for number, exact in enumerate((most, per_agent))
                        if exact is None
                    )
                )
                // _PART
            )
        if self._room < tasks:
            return limits.max_queue, limits.max_queue_per_agent
        self._room -= tasks
        return most, per_agent

    def _answer(
        self, batch: AdmissionBatch, rows: Sequence[asyncpg.Record], *, told: bool = False
    ) -> None:
        """Tell each caller, those of one session in the order of their numbers."""
        asked = batch.asked
        if len(rows) == len(batch.sessions) and (not rows or rows[0]["kind"] == "session"):
            groups, nth, counts, of = rows, batch.nth, batch.counts, batch.of
            stand = list(range(len(asked)))
        else:
            groups = [row for row in rows if row["kind"] == "session"]
            for row in rows:
                if row["kind"] == "earlier":
                    _settle(asked[row["ord"] - 1], Duplicate(row["said"]))
                elif row["kind"] == "turned":
                    _settle(asked[row["ord"] - 1], TurnedAway(decode_outcome(row["said"])))
            out = {row["ord"] - 1 for row in rows if row["kind"] != "session"}
            stand = [place for place in range(len(asked)) if place not in out]
            sessions = sorted({batch.sessions_of[place] for place in stand})
            number_of = {session: number for number, session in enumerate(sessions, 1)}
            counts = [0] * len(sessions)
            of, nth = [0] * len(asked), [0] * len(asked)
            for place in stand:
                of[place] = number_of[batch.sessions_of[place]]
                counts[of[place] - 1] += 1
                nth[place] = counts[of[place] - 1]
        me = self._node or -1
        others: set[int | None] = set()
        for place in stand:
            group = of[place] - 1
            _, _, owner, epoch, last_seq, memory, fresh = groups[group]
            seq = last_seq - counts[group] + nth[place]
            answer = asked[place].answer
            if owner == me:
                if not answer.done():
                    first = fresh and nth[place] == 1
                    answer.set_result(Granted(epoch, seq, _memory(memory), first))
                continue
            if not answer.done():
                answer.set_result(Elsewhere(seq, owner is not None, _memory(memory)))
            others.add(owner)
        self._tell_of_news(others, told=told)

    def _tell_of_news(self, owners: Iterable[int | None], *, told: bool) -> None:
        """Those in whose sessions something came must know of it, if the commit has not told them."""
        for owner in owners:
            if told:
                self._hints.went_along()
                self._left += owner is None
            elif owner is None:
                self._work_left()
            else:
                self._hints.tell(owner, Hint.NEWS)

    async def order(self, order: Order) -> Granted | Elsewhere | None:
        needs_work = isinstance(order.command, Stop | Clear | Cancel)
        rows = await self._connections.call(
            self._order,
            self._node,
            self._clock.now(),
            order.id,
            order.session,
            encode_command(order.command),
            needs_work,
        )
        if not rows:
            return None
        owner, epoch, seq, memory, fresh = rows[0]
        if self._node and owner == self._node:
            return Granted(epoch, seq, _memory(memory), fresh)
        if owner is None:
            self._work_left()
        else:
            self._hints.tell(owner, Hint.NEWS)
        return Elsewhere(seq, owned=owner is not None)

    def _work_left(self) -> None:
        """Something is ready that nobody owns: a search would find it."""
        self._left += 1
        self._hints.tell_all(Hint.WORK)

    # Decisions.

    async def record(self, actions: Sequence[Action]) -> Recorded:
        lost: dict[SessionKey, int] = {}
        kept: list[SessionKey] = []
        for batch in batches_of(actions, self._settings):
            await self._write(_without(batch, lost, self._settings), lost, kept)
        if not lost and not kept:
            return KEPT
        return Recorded(tuple(lost.items()), tuple(kept))

    async def _write(
        self,
        batch: RecordBatch | None,
        lost: dict[SessionKey, int],
        kept: list[SessionKey],
        *,
        careful: bool = False,
    ) -> None:
        if batch is None:
            return
        columns = batch.columns(self._node, self._clock.now(), careful=careful)
        statement = self._record_outliving if batch.outliving else self._record_all
        if not batch.rare:
            statement, columns = self._record.statement, self._record.values(columns)
        try:
            rows = await self._connections.call(statement, *columns)
        except asyncpg.UniqueViolationError as error:
            if constraint_of(error) == _SLOT_KEY and not careful:
                await self._write(batch, lost, kept, careful=True)
            else:
                await self._write_halves(batch, lost, kept, error)
            return
        except BAD_DATA as error:
            await self._write_halves(batch, lost, kept, error)
            return
        if rows and rows[0]["kind"] == "lost":
            lost.update((row["key"], row["node"]) for row in rows)
            await self._write(_without(batch, lost, self._settings), lost, kept)
            return
        if batch.for_all:
            self._hints.tell_all(Hint.ENDED)
        self._told(rows, kept)

    def _told(self, rows: Iterable[asyncpg.Record], kept: list[SessionKey]) -> None:
        for kind, key, node in rows:
            match kind:
                case "kept":
                    kept.append(key)
                case "ended":
                    self._hints.tell(node, Hint.ENDED)
                case "news":
                    self._hints.tell(node, Hint.NEWS)
                case _:
                    self._work_left()

    async def _write_halves(
        self,
        batch: RecordBatch,
        lost: dict[SessionKey, int],
        kept: list[SessionKey],
        error: BaseException,
    ) -> None:
        """A decision at fault fails alone, not its neighbours (N-11, N-15)."""
        actions = batch.actions
        if len(actions) > 1:
            middle = len(actions) // 2
            for half in (actions[:middle], actions[middle:]):
                for part in batches_of(half, self._settings):
                    await self._write(_without(part, lost, self._settings), lost, kept)
            return
        action = actions[0]
        now = self._clock.now()
        if isinstance(action, Start) and constraint_of(error) == _SLOT_KEY:
            text = f"two attempts met in slot {action.slot} of session {action.run.session}"
            fields = {"session": action.run.session, "run": action.run.id, "slot": action.slot}
            await self.keep("slot_conflict", now, fields)
            outcome = Outcome(State.FAILED, Reason.ERROR, error=text)
            finish = Finish(action.run, outcome, action.attempt, action.epoch, now)
            for part in batches_of([finish], self._settings):
                await self._write(part, lost, kept)
            lost[action.run.session] = action.epoch
            return
        await self.keep("not_stored", now, {"action": type(action).__name__, "error": str(error)})
        if isinstance(action, Finish) and action.outcome != UNSTORABLE:
            ended = msgspec.structs.replace(action, outcome=UNSTORABLE)
            for part in batches_of([ended], self._settings):
                await self._write(part, lost, kept)

    # Reading.

    async def outcomes(self, runs: Sequence[RunId]) -> Mapping[RunId, Outcome]:
        if not runs:
            return {}
        rows = await self._connections.call(self._sql["outcomes"], list(runs))
        return {run_id: decode_outcome(outcome) for run_id, outcome in rows}

    async def answers(self, orders: Sequence[str]) -> Mapping[str, Answer]:
        if not orders:
            return {}
        rows = await self._connections.call(self._sql["answers"], list(orders))
        return {order: decode_answer(answer) for order, answer in rows}

    async def memory_of(self, session: SessionKey) -> SessionMemory | None:
        rows = await self._connections.call(self._sql["memory"], session)
        return _memory(rows[0]["memory"]) if rows else None

    async def glimpse(self, session: SessionKey) -> Glimpse | None:
        rows = await self._connections.call(self._sql["glimpse"], session)
        if not rows:
            return None
        places = await self._connections.call(self._sql["places"], session, _MOST_SEEN)
        held, _ = _holdings(places)
        owner, host, until, running = rows[0]
        return Glimpse(
            held[0] if held else Holding(session, 0, 0),
            tuple(running),
            owner or 0,
            host or "",
            until,
        )

    async def find(self, run_id: RunId) -> RunView | None:
        rows = await self._connections.call(f"{self._sql['view']} where r.id = $1", run_id)
        return _view(rows[0]) if rows else None

    async def list(self, query: RunQuery) -> RunPage:
        values: list[object] = [position(query.cursor), query.limit + 1]
        wanted = ["r.number <= $1"]
        for column, value in (("r.agent", query.agent), ("r.session", query.session)):
            if value is not None:
                values.append(value)
                wanted.append(f"{column} = ${len(values)}")
        state = query.state
        if state is State.RUNNING:
            wanted.append("a.run is not null")
        elif state in {State.QUEUED, State.PENDING, State.ASSIGNED}:
            values.append(str(state))
            wanted.append(f"a.run is null and q.state = ${len(values)}")
        elif state is not None:
            values.append(str(state))
            wanted.append(f"e.state = ${len(values)}")
        if query.source is Source.TASK:
            wanted.append("r.task")
        elif query.source is not None:
            # Read from each as it is met, newest first: only tasks have an index.
            values.append(str(query.source))
            source = f"{self._address.schema}.source_v1(r.body)"
            wanted.append(f"not r.task and {source} = ${len(values)}")
        statement = (
            f"{self._sql['view']} where {' and '.join(wanted)} order by r.number desc limit $2"
        )
        rows = await self._connections.call(statement, *values, within=_LONG)
        cursor = str(rows[query.limit]["number"]) if len(rows) > query.limit else None
        return RunPage(tuple(_view(row) for row in rows[: query.limit]), cursor)

    async def descendants(self, run_id: RunId, most: int) -> Sequence[RunView]:
        statement = f"{self._sql['view']} {self._sql['tree']}"
        rows = await self._connections.call(statement, run_id, most, within=_LONG)
        return [_view(row) for row in rows]

    def set_limits(self, limits: Limits) -> None:
        self._limits = limits
        self._room = 0

    async def keep(self, kind: str, at: Instant, fields: Mapping[str, object]) -> None:
        values = (kind, at, self._node or None, encode_fields(fields))
        await self._connections.call(self._sql["keep"], *values)

    async def prune(self, most: int) -> int:
        now, settings = self._clock.now(), self._settings
        values = (now, now - settings.retention, now - settings.task_retention, most)
        rows = await self._connections.call(self._prune, *values, within=_LONG)
        lines = await self._timetable.prune(now - settings.retention, most)
        await self._connections.call(
            self._sql["give_up_letters"], encode_text(UNTAKEN), now - 2 * DAY
        )
        more = await self._workers.prune(settings, most, now)
        # Who asks goes on at once while as much was forgotten as he allowed.
        return max(int(rows[0][0]), most if more or lines >= most else 0)

    # Nodes.

    async def enlist(self, name: str, lease: Span, host: str = "") -> int:
        values = (name, self._clock.now(), lease, host, self._settings.adoption_grace)
        rows = await self._connections.call(self._sql["enlist"], *values)
        self._node = int(rows[0]["id"])
        self._host = host
        self._hints.enlisted(self._node)
        return self._node

    async def renew(self) -> Renewal:
        rows = await self._connections.call(self._renew, self._node)
        mine = rows[0] if rows and rows[0]["id"] == self._node else None
        peers = tuple(
            Peer(row["id"], row["counter"], row["lease"]) for row in rows if row["id"] != self._node
        )
        self._hints.alone = not peers
        at = rows[0]["at"] if rows else None
        return Renewal(mine is not None and mine["alive"], peers, at)

    async def bury(self, peer: Peer) -> bool:
        now = self._clock.now()
        values = (peer.id, peer.counter, now, "dead")
        rows = await self._connections.call(self._end_node, *values, within=_LONG)
        ended, freed, work = rows[0]
        if not ended:
            return False
        await self.keep("node_dead", now, {"node": peer.id, "sessions": freed, "by": self._node})
        if work:
            self._work_left()
            self._hints.tell(self._node, Hint.WORK)
        self._hints.tell_all(Hint.SLOTS)
        self._hints.tell(self._node, Hint.SLOTS)
        return True

    async def retire(self) -> None:
        values = (self._node, None, self._clock.now(), "retired")
        rows = await self._connections.call(self._end_node, *values, within=_LONG)
        if rows[0]["work"]:
            self._work_left()
        self._hints.tell_all(Hint.SLOTS)

    async def claim(
        self, room: Mapping[LaneName, int], agents: Sequence[AgentName], until: Instant
    ) -> Claims:
        now = self._clock.now()
        self._unreadable = {key: at for key, at in self._unreadable.items() if at > now}
        wide = {lane: count for lane, count in room.items() if count > 0}
        offered, searched = self._hints.offered(), self._searched
        self._searched = None
        if offered and searched is not None and self._only(offered, searched, wide, agents, until):
            taken = await self._take_offered(offered, searched, wide, agents, until)
            if len(taken.holdings) >= len(offered):
                return taken
            # A hint may be older than another node's claim, and the one about what is ready may be under way.
            wide = {lane: count - len(taken.holdings) for lane, count in wide.items()}
            rest = await self._search(wide, agents, until)
            return msgspec.structs.replace(rest, holdings=(*taken.holdings, *rest.holdings))
        return await self._search(wide, agents, until)

    async def _search(
        self, wide: Mapping[LaneName, int], agents: Sequence[AgentName], until: Instant
    ) -> Claims:
        now = self._clock.now()
        left = self._left
        rows = await self._connections.call(
            self._claim,
            self._node,
            now,
            until,
            list(wide),
            list(wide.values()),
            list(dict.fromkeys(agents)),
            _MOST_URGENT,
            _MOST_PLACES,
            list(self._unreadable),
            self._host,
        )
        last = rows.pop()
        holdings, strange = await self._holdings(rows)
        if strange:
            await self._leave_alone(strange)
        next_at, more = last["number"], last["orphaned"]
        if not more:
            by = now + self._settings.poll_every
            self._searched = _Searched(by, next_at, left, frozenset(wide), frozenset(agents))
        return Claims(holdings, next_at, more)

    def _only(
        self,
        offered: Sequence[int],
        searched: "_Searched",
        wide: Mapping[LaneName, int],
        agents: Iterable[AgentName],
        until: Instant,
    ) -> bool:
        """Whether nothing is ready but what hints told of, for all that this node may know until the next poll."""
        return (
            searched.left == self._left
            and self._clock.now() < searched.by
            and (searched.next_at is None or searched.next_at > until)
            and len(offered) <= min(wide.values(), default=0)
            and searched.lanes.issuperset(wide)
            and searched.agents.issuperset(agents)
        )

    async def _take_offered(
        self,
        offered: Sequence[int],
        searched: "_Searched",
        wide: Mapping[LaneName, int],
        agents: Sequence[AgentName],
        until: Instant,
    ) -> Claims:
        """A search would cost twice as much, and find the same."""
        rows = await self._connections.call(
            self._take,
            self._node,
            self._clock.now(),
            until,
            list(wide),
            list(agents),
            _MOST_PLACES,
            list(self._unreadable),
            offered,
        )
        holdings, strange = await self._holdings(rows)
        if strange:
            await self._leave_alone(strange)
        self._searched = searched
        next_at = searched.by if searched.next_at is None else min(searched.by, searched.next_at)
        return Claims(holdings, next_at)

    async def _leave_alone(self, strange: Sequence[Release]) -> None:
        """Something in these sessions was written by a newer version: who understands it may have them (N-20)."""
        until = self._clock.now() + _LEFT_ALONE_FOR
        self._unreadable.update((release.session, until) for release in strange)
        for batch in batches_of(strange, self._settings):
            columns = batch.columns(self._node, self._clock.now(), careful=False)
            call = self._record
            await self._connections.call(call.statement, *call.values(columns))

    async def news(
        self, seen: Mapping[SessionKey, int], complete: bool = False
    ) -> Sequence[Holding]:
        if not seen and not complete:
            return ()
        values = (self._node, list(seen), list(seen.values()), _MOST_PLACES, complete)
        holdings, _ = await self._holdings(await self._connections.call(self._news, *values))
        return holdings

    async def _holdings(
        self, rows: Iterable[asyncpg.Record]
    ) -> tuple[tuple[Holding, ...], Sequence[Release]]:
        """Sessions as they were read. Where workers of orphaned runs may be is asked for only if there are any."""
        holdings, strange = _holdings(rows)
        orphans = [
            place.run.id for holding in holdings for place in holding.places if place.orphaned
        ]
        if not orphans:
            return holdings, strange
        found = await self._connections.call(self._sql["hosts"], orphans)
        hosts = {row["run"]: row["host"] for row in found}
        return tuple(_with_hosts(holding, hosts) for holding in holdings), strange

    async def nodes(self) -> Sequence[NodeView]:
        rows = await self._connections.call(self._sql["nodes"], within=_LONG)
        return [NodeView(*row) for row in rows]

    async def hold_slots(self, lane: LaneName, limit: int, count: int) -> int:
        values = (self._node, lane, limit, count)
        rows = await self._connections.call(self._hold_slots, *values)
        held, others = rows[0]
        for node in others:
            self._hints.tell(node, Hint.SLOTS)
        return int(held)

    async def slots_wanted(self, lane: LaneName) -> int:
        rows = await self._connections.call(self._sql["slots_wanted"], lane, self._node)
        return int(rows[0]["waiting"])

    # The outbox.

    async def take_deliveries(
        self, channels: Sequence[str], most: int, now: Instant, until: Instant
    ) -> Sequence[Delivery]:
        return await self._outbox.take(channels, most, now, until)

    async def settle_delivery(
        self, delivery: Delivery, again_at: Instant | None = None, error: str = ""
    ) -> None:
        await self._outbox.settle(delivery, again_at, error)

    async def letters(self, query: LetterQuery) -> LetterPage:
        return await self._outbox.letters(query)

    async def retry_letter(self, delivery_id: str, now: Instant) -> bool:
        return await self._outbox.retry(delivery_id, now)

    async def count_letters(self) -> tuple[int, int]:
        return await self._outbox.count()

    async def note_routes(self, routes: Mapping[AgentName, Route], at: Instant) -> None:
        await self._outbox.note_routes(routes, at)

    async def last_route(self, agent: AgentName) -> Route | None:
        return await self._outbox.last_route(agent)

    # The timetable.

    async def add_job(self, job: Job, ticking: Ticking) -> bool:
        return await self._timetable.add(job, ticking)

    async def change_job(self, job: Job, ticking: Ticking) -> bool:
        return await self._timetable.change(job, ticking)

    async def remove_job(self, job_id: JobId) -> bool:
        return await self._timetable.remove(job_id)

    async def find_job(self, job_id: JobId) -> JobRecord | None:
        return await self._timetable.find(job_id)

    async def find_job_named(self, agent: AgentName, name: str) -> JobRecord | None:
        return await self._timetable.find_named(agent, name)

    async def list_jobs(self, query: JobQuery) -> JobPage:
        return await self._timetable.list(query)

    async def due_jobs(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        return await self._timetable.due(now, most, abilities)

    async def settled_jobs(self, most: int) -> Sequence[JobRecord]:
        return await self._timetable.settled(most)

    async def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        return await self._timetable.advance(advances)

    async def tally(self, endings: Sequence[Ending]) -> Mapping[JobId, int]:
        return await self._timetable.tally(endings)

    async def job_log(self, query: LogQuery) -> LogPage:
        return await self._timetable.log(query)

    async def keep_text(self, name: str, text: str | None) -> None:
        await self._timetable.keep_text(name, text)

    async def text(self, name: str) -> str | None:
        return await self._timetable.text(name)

    # Who works.

    async def beat(self, workers: Sequence[Worker], at: Instant) -> None:
        await self._workers.beat(workers, at)

    async def workers(self, query: WorkerQuery) -> WorkerPage:
        return await self._workers.page(query)

    async def find_worker(self, worker_id: str) -> Worker | None:
        return await self._workers.find(worker_id)

    async def beats(self, worker_id: str, most: int) -> Sequence[Beat]:
        return await self._workers.beats(worker_id, most)

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        await self._workers.keep_snapshot(snapshot)

    async def snapshots(self, query: SnapshotQuery) -> SnapshotPage:
        return await self._workers.snapshots(query)

    async def machines(self) -> Sequence[Snapshot]:
        return await self._workers.machines()

    # Who may ask.

    async def add_token(self, token: Token) -> bool:
        return await self._tokens.add(token)

    async def tokens(self) -> Sequence[Token]:
        return await self._tokens.all()

    async def revoke_token(self, token_id: str) -> bool:
        return await self._tokens.revoke(token_id)


class _Searched(NamedTuple):
    """A search for work after which nothing was left that this node could take."""

    by: Instant
    """When it must search again, whatever hints say: one may have been lost."""
    next_at: Instant | None
    left: int
    lanes: frozenset[LaneName]
    agents: frozenset[AgentName]


def _call(schema: str, function: str, count: int) -> str:
    numbers = ", ".join(f"${number}" for number in range(1, count + 1))
    return f"select * from {schema}.{function}({numbers})"


def _fail(asked: Iterable[Asked], error: BaseException) -> None:
    for one in asked:
        if not one.answer.done():
            one.answer.set_exception(error)


def _settle(asked: Asked, admission: Admission) -> None:
    if not asked.answer.done():
        asked.answer.set_result(admission)


def _without(
    batch: RecordBatch, lost: Mapping[SessionKey, int], settings: Settings
) -> RecordBatch | None:
    """The batch less what belongs to lost sessions; None if nothing is left."""
    if not any(batch.epochs.get(session) == epoch for session, epoch in lost.items()):
        return batch
    rest = [
        action
        for action, session in ((action, session_of(action)) for action in batch.actions)
        if session is None or lost.get(session) != batch.epochs[session]
    ]
    batches = batches_of(rest, settings)
    return batches[0] if batches else None


def _memory(text: str | None) -> SessionMemory | None:
    return None if text is None else decode_memory(text)


def _view(row: asyncpg.Record) -> RunView:
    run = decode_run(row["body"])
    if row["state"] is not None:
        outcome = decode_outcome(row["outcome"])
        times = (row["started_at"], row["finished_at"])
        return RunView(run, outcome.state, row["attempt"], *times, outcome)
    if row["live_attempt"] is not None:
        cancelling = row["cut"] is not None
        return RunView(
            run,
            State.RUNNING,
            row["live_attempt"],
            row["live_since"],
            cancelling=cancelling,
            node=row["live_on"],
        )
    return RunView(run, State(row["waits"]), row["waits_attempt"])


def _holdings(rows: Iterable[asyncpg.Record]) -> tuple[tuple[Holding, ...], list[Release]]:
    """Sessions with their places and orders, from the rows of `holdings_v1`; and those that cannot be read."""
    sessions: dict[str, tuple[int, int, bool]] = {}
    places: dict[str, list[Place]] = {}
    orders: dict[str, list[Order]] = {}
    memories: dict[str, SessionMemory | None] = {}
    strange: set[str] = set()
    for kind, key, number, epoch, said, attempt, standing, orphaned, started_at, cut in rows:
        try:
            if kind == "place":
                place = Place(
                    decode_run(said),
                    number,
                    attempt,
                    None if standing is None else decode_standing(standing),
                    orphaned,
                    started_at,
                    None if cut is None else Cut(cut),
                )
                places[key].append(place)
            elif kind == "session":
                sessions[key] = (epoch, number, bool(orphaned))
                places[key] = []
                orders[key] = []
                memories[key] = _memory(said)
            else:
                orders[key].append(Order(standing, SessionKey(key), decode_command(said), number))
        except (msgspec.MsgspecError, ValueError):
            strange.add(key)
    holdings = tuple(
        Holding(
            SessionKey(key),
            epoch,
            number,
            memories[key],
            tuple(places[key]),
            tuple(orders[key]),
            more,
        )
        for key, (epoch, number, more) in sessions.items()
        if key not in strange
    )
    released = [Release(SessionKey(key), *sessions[key][:2]) for key in sorted(strange)]
    return holdings, released


def _with_hosts(holding: Holding, hosts: Mapping[str, str]) -> Holding:
    places = tuple(
        msgspec.structs.replace(place, host=hosts[place.run.id]) if place.run.id in hosts else place
        for place in holding.places
    )
    return msgspec.structs.replace(holding, places=places)
