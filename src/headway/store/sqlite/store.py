"""The store as the engine sees it."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from headway.core.actions import Action
from headway.model.errors import InvalidInput, StoreRefused, StoreUnavailable
from headway.model.job import Advance, Ending, Job, JobRecord, Ticking
from headway.model.outcome import Outcome
from headway.model.places import Answer, Delivery, Glimpse, Holding, Order
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
from headway.model.worker import Beat, Snapshot
from headway.model.worker import Worker as SeenWorker
from headway.ports import (
    Admission,
    Claims,
    Clock,
    DueJobs,
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
from headway.store.codec import encode_fields
from headway.store.sqlite import (
    intake,
    keeping,
    ownership,
    reading,
    recording,
    timetable,
    tokens,
)
from headway.store.sqlite import workers as muster
from headway.store.sqlite.advances import advance, advance_apart
from headway.store.sqlite.board import BOARD
from headway.store.sqlite.database import (
    Database,
    error_from,
    is_of_one_request,
    migrate,
    version_of,
)
from headway.store.sqlite.lock import FileLock, Poke
from headway.store.sqlite.node import Node
from headway.store.sqlite.statements import MIGRATIONS
from headway.store.sqlite.writer import Call, Inline, Worker, read_all, refusal_of, transact

T = TypeVar("T")
_Desk: TypeAlias = Worker | Inline


class _Admissions:
    """Runs that came together: kept together, answered together."""

    def __init__(self, node: Node, now: Instant) -> None:
        self._node = node
        self._now = now
        self._asked: list[intake.Asked] = []
        self._futures: list[asyncio.Future[Admission]] = []
        self._answers: list[Admission | BaseException] = []

    def add(self, asked: intake.Asked, future: "asyncio.Future[Admission]") -> None:
        self._asked.append(asked)
        self._futures.append(future)

    def work(self, database: Database, again: bool = False) -> None:
        if not again:
            self._answers = list(intake.admit(database, self._node, self._asked, self._now))
            return
        self._node.counted_at = None
        self._answers = []
        for asked in self._asked:
            database.save()
            try:
                answer = intake.admit_again(database, self._node, asked, self._now)
            except Exception as error:
                if not is_of_one_request(error):
                    raise
                database.undo()
                self._answers.append(refusal_of(database.path, error))
            else:
                database.release()
                self._answers.append(answer)

    def fail(self, error: BaseException) -> None:
        self._node.counted_at = None
        self._answers = [error] * len(self._asked)

    def answer(self) -> None:
        for future, answer in zip(self._futures, self._answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)


class _Together(Call[Sequence[Admission] | TurnedAway]):
    """Runs that are kept all, or none."""

    def __init__(
        self,
        node: Node,
        asked: Sequence[intake.Asked],
        now: Instant,
        future: "asyncio.Future[Sequence[Admission] | TurnedAway]",
    ) -> None:
        super().__init__(
            lambda db: intake.admit_together(db, node, asked, now),
            future,
            again=lambda db: intake.admit_together_again(db, node, asked, now),
        )
        self._node = node

    def work(self, database: Database, again: bool = False) -> None:
        if again:
            self._node.counted_at = None
        super().work(database, again)

    def fail(self, error: BaseException) -> None:
        # What was counted in a transaction that is given up may be wrong.
        self._node.counted_at = None
        super().fail(error)


class SqliteStore:
    """One file. With `exclusive` one process owns it, which an OS lock beside the file sees to.

    Without, several nodes of one process may share the file or an in-memory database: for tests of many nodes.
    `inline` does everything at once in the calling coroutine, without threads: for virtual time.
    """

    durable = True
    writers = 2

    def __init__(
        self,
        path: str,
        settings: Settings,
        clock: Clock,
        *,
        exclusive: bool = True,
        inline: bool = False,
    ) -> None:
        self._path = path
        self._settings = settings
        self._clock = clock
        self._in_memory = path == ":memory:" or "mode=memory" in path
        self._exclusive = exclusive
        self.one_owner = exclusive
        self._inline = inline
        self._node = Node(settings)
        self._node.alone = exclusive
        self._lock = FileLock(path) if exclusive and not self._in_memory else None
        self._poke = Poke(path) if exclusive and not self._in_memory else None
        self._hear: Callable[[Hint], None] | None = None
        self._writer: _Desk | None = None
        self._reader: _Desk | None = None
        self._gathering: _Admissions | None = None
        self._sent = False
        """Whether the writer has what was gathered; while it has not begun with it, more may go with it."""

    # Opening and closing.

    async def open(self, hear: Callable[[Hint], None] | None = None) -> None:
        if self._writer is not None:
            return
        loop = asyncio.get_running_loop()
        writing, reading_ = (
            self._open_files() if self._inline else await asyncio.to_thread(self._open_files)
        )
        if self._inline:
            self._writer = Inline(writing, transact, self._tell)
            self._reader = Inline(reading_, read_all, _nothing)
        else:
            self._writer = Worker(writing, transact, self._tell, loop, "headway-sqlite-write")
            self._reader = (
                self._writer
                if reading_ is writing
                else Worker(reading_, read_all, _nothing, loop, "headway-sqlite-read")
            )
        self._hear = hear
        if hear is not None:
            BOARD.listen(self._board, self, lambda: self._node.id, hear, loop)

    def _open_files(self) -> tuple[Database, Database]:
        """The connection that writes and the one that reads; in memory and inline they are the same."""
        try:
            writing = Database(self._path)
            try:
                migrate(writing)
                alone = self._in_memory or self._inline
                return writing, writing if alone else Database(self._path, readonly=True)
            except BaseException:
                writing.close()
                raise
        except sqlite3.Error as error:
            raise error_from(self._path, error, opening=True) from None

    async def close(self) -> None:
        BOARD.leave(self._board, self)
        if self._poke is not None:
            self._poke.close()
        writer, reader = self._writer, self._reader
        self._writer = self._reader = None
        if reader is not None and reader is not writer:
            await reader.close()
        if writer is not None:
            await writer.close()
        if self._lock is not None:
            self._lock.drop()
        self._node.id = 0

    async def migrate(self) -> Sequence[str]:
        def run() -> list[str]:
            try:
                database = Database(self._path)
                try:
                    return migrate(database)
                finally:
                    database.close()
            except sqlite3.Error as error:
                raise error_from(self._path, error, opening=True) from None

        return run() if self._inline else await asyncio.to_thread(run)

    async def status(self) -> StoreStatus:
        return self._status() if self._inline else await asyncio.to_thread(self._status)

    def _status(self) -> StoreStatus:
        path = Path(self._path)
        if not path.exists():
            raise StoreRefused(self._path, "there is no such file", "'headway db migrate' makes it")
        try:
            database = Database(self._path, readonly=True)
            try:
                version = version_of(database)
                runs = reading.counts(database) if version else {}
            finally:
                database.close()
        except sqlite3.Error as error:
            raise error_from(self._path, error, opening=True) from None
        pending = tuple(step.name for step in MIGRATIONS if step.version > version)
        log = Path(f"{self._path}-wal")
        size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        return StoreStatus(self._path, version, MIGRATIONS[-1].version, pending, runs, size)

    # Requests.

    @property
    def _board(self) -> str:
        if self._path.startswith("file:") or self._in_memory:
            return self._path
        return str(Path(self._path).absolute())

    async def _write(
        self, task: Callable[[Database], T], again: Callable[[Database], T] | None = None
    ) -> T:
        """One request in the next transaction; `again` instead, if something in that could not be written."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._desk(self._writer).ask(Call(task, future, again))
        return await future

    async def _read(self, task: Callable[[Database], T]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._desk(self._reader).ask(Call(task, future))
        return await future

    def _desk(self, desk: _Desk | None) -> _Desk:
        if desk is None:
            raise StoreUnavailable(self._path, "the store is not open")
        return desk

    def _tell(self) -> None:
        """What the last transaction means to others. Where the transaction was written, after it was kept."""
        hints = self._node.take_hints()
        if not hints:
            return
        BOARD.tell(self._board, self, hints)
        if self._poke is not None and not self._node.id:
            self._poke.tell()

    def _poked(self) -> None:
        if self._hear is not None:
            self._hear(Hint.ALL)

    # Ledger.

    def admit(self, run: Run, retry: bool = False, claim: bool = True) -> Awaitable[Admission]:
        future: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        writer = self._desk(self._writer)
        asked = intake.Asked(run, retry, claim)
        gathering = self._gathering
        if gathering is not None and self._sent:
            if writer.add_to(gathering, partial(gathering.add, asked, future)):
                return future
            gathering = None
        if gathering is None:
            gathering = self._gathering = _Admissions(self._node, self._clock.now())
            self._sent = False
            if not self._inline:
                asyncio.get_running_loop().call_soon(self._send_admissions)
        gathering.add(asked, future)
        if self._inline:
            self._gathering = None
            writer.ask(gathering)
        return future

    def _send_admissions(self) -> None:
        """All that came in one turn of the loop goes together, and what comes until the writer takes it."""
        gathering = self._gathering
        if gathering is None:
            return
        if self._writer is None:
            self._gathering = None
            gathering.fail(StoreUnavailable(self._path, "the store was closed"))
            gathering.answer()
            return
        self._sent = True
        self._writer.ask(gathering)

    async def admit_together(
        self, runs: Sequence[Run], claims: Sequence[bool]
    ) -> Sequence[Admission] | TurnedAway:
        asked = [
            intake.Asked(run, retry=False, claim=claim)
            for run, claim in zip(runs, claims, strict=True)
        ]
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[Admission] | TurnedAway] = loop.create_future()
        self._desk(self._writer).ask(_Together(self._node, asked, self._clock.now(), future))
        return await future

    async def order(self, order: Order) -> Granted | Elsewhere | None:
        now = self._clock.now()
        return await self._write(lambda db: intake.give_order(db, self._node, order, now))

    async def record(self, actions: Sequence[Action]) -> Recorded:
        now = self._clock.now()
        return await self._write(
            lambda db: recording.record(db, self._node, actions, now),
            again=lambda db: recording.record_apart(db, self._node, actions, now),
        )

    async def outcomes(self, runs: Sequence[RunId]) -> Mapping[RunId, Outcome]:
        return await self._read(lambda db: reading.outcomes(db, runs))

    async def answers(self, orders: Sequence[str]) -> Mapping[str, Answer]:
        return await self._read(lambda db: reading.answers(db, orders))

    async def memory_of(self, session: SessionKey) -> SessionMemory | None:
        return await self._read(lambda db: reading.memory_of(db, session))

    async def glimpse(self, session: SessionKey) -> Glimpse | None:
        return await self._read(lambda db: ownership.glimpse(db, session))

    async def find(self, run_id: RunId) -> RunView | None:
        return await self._read(lambda db: reading.find(db, run_id))

    async def list(self, query: RunQuery) -> RunPage:
        return await self._read(lambda db: reading.list_runs(db, query))

    async def descendants(self, run_id: RunId, most: int) -> Sequence[RunView]:
        return await self._read(lambda db: reading.descendants(db, run_id, most))

    def set_limits(self, limits: Limits) -> None:
        self._node.limits = limits

    async def keep(self, kind: str, at: Instant, fields: Mapping[str, object]) -> None:
        text = encode_fields(fields)
        await self._write(lambda db: db.run("keep_event", at, kind, text))

    async def prune(self, most: int) -> int:
        now = self._clock.now()
        return await self._write(lambda db: keeping.prune(db, self._settings, most, now))

    # Roll.

    async def enlist(self, name: str, lease: Span, host: str = "") -> int:
        if self._lock is not None:
            self._lock.take()
        now = self._clock.now()
        exclusive = self._exclusive
        self._node.id = await self._write(
            lambda db: ownership.enlist(
                db, self._node, name, lease, now, take_over=exclusive, host=host
            )
        )
        if self._poke is not None:
            self._poke.listen(asyncio.get_running_loop(), self._poked)
        return self._node.id

    async def renew(self) -> Renewal:
        return await self._write(lambda db: ownership.renew(db, self._node))

    async def bury(self, peer: Peer) -> bool:
        now = self._clock.now()
        return await self._write(
            lambda db: ownership.end_node(
                db, self._node, peer.id, how="dead", now=now, counter=peer.counter
            )
        )

    async def retire(self) -> None:
        now = self._clock.now()
        me = self._node.id
        await self._write(lambda db: ownership.end_node(db, self._node, me, how="retired", now=now))

    async def claim(
        self, room: Mapping[LaneName, int], agents: Sequence[AgentName], until: Instant
    ) -> Claims:
        now = self._clock.now()
        return await self._write(
            lambda db: ownership.claim(db, self._node, room, agents, until=until, now=now)
        )

    async def news(
        self, seen: Mapping[SessionKey, int], complete: bool = False
    ) -> Sequence[Holding]:
        known = dict(seen)
        me = self._node.id
        return await self._read(lambda db: ownership.news(db, me, known, complete=complete))

    async def nodes(self) -> Sequence[NodeView]:
        return await self._read(reading.nodes)

    async def hold_slots(self, lane: LaneName, limit: int, count: int) -> int:
        return await self._write(
            lambda db: ownership.hold_slots(db, self._node, lane, limit, count)
        )

    async def slots_wanted(self, lane: LaneName) -> int:
        me = self._node.id
        return len(await self._read(lambda db: db.rows("wanting", lane, me)))

    # Outbox.

    async def take_deliveries(
        self, channels: Sequence[str], most: int, now: Instant, until: Instant
    ) -> Sequence[Delivery]:
        names = tuple(channels)
        return await self._write(lambda db: keeping.take_deliveries(db, names, most, now, until))

    async def settle_delivery(
        self, delivery: Delivery, again_at: Instant | None = None, error: str = ""
    ) -> None:
        await self._write(lambda db: keeping.settle_delivery(db, delivery, again_at, error))

    async def letters(self, query: LetterQuery) -> LetterPage:
        return await self._read(lambda db: keeping.letters(db, query))

    async def retry_letter(self, delivery_id: str, now: Instant) -> bool:
        return await self._write(lambda db: keeping.retry_letter(db, self._node, delivery_id, now))

    async def count_letters(self) -> tuple[int, int]:
        return await self._read(keeping.count_letters)

    async def note_routes(self, routes: Mapping[AgentName, Route], at: Instant) -> None:
        noted = dict(routes)
        await self._write(lambda db: keeping.note_routes(db, noted, at))

    async def last_route(self, agent: AgentName) -> Route | None:
        return await self._read(lambda db: keeping.last_route(db, agent))

    # Timetable.

    async def add_job(self, job: Job, ticking: Ticking) -> bool:
        return await self._write(lambda db: timetable.add_job(db, self._node, job, ticking))

    async def change_job(self, job: Job, ticking: Ticking) -> bool:
        changed = await self._write(lambda db: timetable.change_job(db, self._node, job, ticking))
        if changed is None:
            raise InvalidInput("name", job.name, f"a name that no other job of {job.agent} has")
        return changed

    async def remove_job(self, job_id: JobId) -> bool:
        return await self._write(lambda db: timetable.remove_job(db, self._node, job_id))

    async def find_job(self, job_id: JobId) -> JobRecord | None:
        return await self._read(lambda db: timetable.find_job(db, job_id))

    async def find_job_named(self, agent: AgentName, name: str) -> JobRecord | None:
        return await self._read(lambda db: timetable.find_job_named(db, agent, name))

    async def list_jobs(self, query: JobQuery) -> JobPage:
        return await self._read(lambda db: timetable.list_jobs(db, query))

    async def due_jobs(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        return await self._read(lambda db: timetable.due_jobs(db, now, most, abilities))

    async def settled_jobs(self, most: int) -> Sequence[JobRecord]:
        return await self._read(lambda db: timetable.settled_jobs(db, most))

    async def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        now = self._clock.now()
        return await self._write(
            lambda db: advance(db, self._node, advances, now),
            again=lambda db: advance_apart(db, self._node, advances, now),
        )

    async def tally(self, endings: Sequence[Ending]) -> Mapping[JobId, int]:
        return await self._write(lambda db: timetable.tally(db, endings))

    async def job_log(self, query: LogQuery) -> LogPage:
        return await self._read(lambda db: timetable.job_log(db, query))

    async def keep_text(self, name: str, text: str | None) -> None:
        await self._write(lambda db: timetable.keep_text(db, name, text))

    async def text(self, name: str) -> str | None:
        return await self._read(lambda db: timetable.text_of(db, name))

    # Muster.

    async def beat(self, workers: Sequence[SeenWorker], at: Instant) -> None:
        await self._write(lambda db: muster.beat(db, workers, at))

    async def workers(self, query: WorkerQuery) -> WorkerPage:
        return await self._read(lambda db: muster.page(db, query))

    async def find_worker(self, worker_id: str) -> SeenWorker | None:
        return await self._read(lambda db: muster.find(db, worker_id))

    async def beats(self, worker_id: str, most: int) -> Sequence[Beat]:
        return await self._read(lambda db: muster.beats(db, worker_id, most))

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        await self._write(lambda db: muster.keep_snapshot(db, snapshot))

    async def snapshots(self, query: SnapshotQuery) -> SnapshotPage:
        return await self._read(lambda db: muster.snapshots(db, query))

    async def machines(self) -> Sequence[Snapshot]:
        return await self._read(muster.machines)

    # Vault.

    async def add_token(self, token: Token) -> bool:
        return await self._write(lambda db: tokens.add_token(db, token))

    async def tokens(self) -> Sequence[Token]:
        return await self._read(tokens.tokens)

    async def revoke_token(self, token_id: str) -> bool:
        return await self._write(lambda db: tokens.revoke_token(db, token_id))


def _nothing() -> None:
    """Reading tells nobody anything."""
