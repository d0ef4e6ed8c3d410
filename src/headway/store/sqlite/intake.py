"""New runs and orders: each gets its place in its session, and with luck its session (N-6, N-13, N-14)."""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from headway.model.outcome import Outcome
from headway.model.places import Cancel, Clear, Order, Stop
from headway.model.run import Run, RunId, SessionKey
from headway.model.time import Instant
from headway.model.words import Source, State
from headway.ports import Admission, Duplicate, Elsewhere, Granted, Hint, TurnedAway
from headway.store.codec import (
    decode_memory,
    decode_outcome,
    encode_command,
    encode_outcome,
    encode_run,
)
from headway.store.keys import UNSUCCESSFUL, keys_of
from headway.store.ranks import rank_of, ready_at
from headway.store.refusals import FULL, STOPPED
from headway.store.sqlite.database import Column, Database
from headway.store.sqlite.node import Node

_TASK = Source.TASK


class Asked(NamedTuple):
    """A run, as it was given to `admit`."""

    run: Run
    retry: bool
    claim: bool


def all_above(run: Run) -> tuple[str, ...]:
    """The runs above this one, and the session of the first of them: a stop of any of these reaches it (X-3)."""
    return (*run.ancestors, root_name(run.root)) if run.root is not None else run.ancestors


def root_name(session: SessionKey) -> str:
    """A session among the names of runs; no run is called so."""
    return f"\x1f{session}"


class Session(msgspec.Struct, eq=False, array_like=True):
    """A row of `sessions`."""

    key: SessionKey
    owner: int | None = None
    epoch: int = 0
    last_seq: int = 0
    memory: str | None = None
    lane: str | None = None
    agent: str | None = None
    rank: int | None = None
    first: int | None = None
    ready_at: Instant | None = None
    deadline_at: Instant | None = None

    @property
    def has_work(self) -> bool:
        """Of a session that nobody owns: whether something is unfinished in it."""
        return self.ready_at is not None or self.deadline_at is not None

    def granted(self, seq: int, *, fresh: bool = False) -> Granted:
        memory = None if self.memory is None else decode_memory(self.memory)
        return Granted(self.epoch, seq, memory, fresh)

    def add_work(self, run: Run, number: int, ready: Instant, rank: int) -> None:
        """What a claim must know of one more run: the first that is ready stands for the session."""
        if self.ready_at is None or ready < self.ready_at:
            self.ready_at, self.lane, self.agent = ready, run.lane, run.agent
        if self.rank is None or rank < self.rank:
            self.rank = rank
        if self.first is None:
            self.first = number
        deadline = run.deadline_at
        if deadline is not None and (self.deadline_at is None or deadline < self.deadline_at):
            self.deadline_at = deadline

    def columns(self) -> tuple[Column, ...]:
        return (
            self.key,
            self.owner,
            self.epoch,
            self.last_seq,
            self.lane,
            self.agent,
            self.rank,
            self.first,
            self.ready_at,
            self.deadline_at,
        )


_read_sessions = msgspec.json.Decoder(list[Session]).decode
_read_keys = msgspec.json.Decoder(list[tuple[str, RunId, State | None]]).decode
_read_names = msgspec.json.Decoder(list[str]).decode


def lives(database: Database, node: Node) -> bool:
    """Whether this node may own sessions: it is enlisted, and nobody has declared it dead."""
    if node.alone or not node.id:
        return bool(node.id)
    found = database.row("lives", node.id)
    return found is not None and bool(found[0])


def read_sessions(database: Database, keys: Sequence[SessionKey]) -> dict[SessionKey, Session]:
    """Rows of these sessions, where there are any."""
    found = database.read("sessions_of", [(key,) for key in keys])
    return {row.key: row for (text,) in found for row in _read_sessions(cast(str, text))}


def run_row(run: Run, number: int) -> tuple[Column, ...]:
    task = int(run.source is _TASK)
    fired = None if run.firing is None else 1
    return (number, run.id, run.session, run.agent, task, fired, encode_run(run))


def place_row(  # noqa: PLR0917
    run: Run, number: int, seq: int, rank: int, state: State, asked_by: int | None
) -> tuple[Column, ...]:
    return (
        number,
        run.session,
        seq,
        run.agent,
        run.lane,
        int(run.source is _TASK),
        rank,
        ready_at(run),
        run.deadline_at,
        state,
        int(bool(run.merged_from)),
        asked_by,
    )


def admit(database: Database, node: Node, batch: Sequence[Asked], now: Instant) -> list[Admission]:
    """Keep these runs, in their order. An `IntegrityError` says that one of them is there already."""
    return _Admitting(database, node, batch, now).all()


def admit_again(database: Database, node: Node, asked: Asked, now: Instant) -> Admission:
    """Keep a run that may be there already, because the answer to its first admission was lost."""
    return _repeated(database, node, asked.run) or admit(database, node, [asked], now)[0]


def admit_together(
    database: Database, node: Node, batch: Sequence[Asked], now: Instant
) -> list[Admission] | TurnedAway:
    """Keep all of these runs, or none (T-5). An `IntegrityError` says that they are there already."""
    return _Admitting(database, node, batch, now).all_or_none()


def admit_together_again(
    database: Database, node: Node, batch: Sequence[Asked], now: Instant
) -> list[Admission] | TurnedAway:
    """Keep runs that may be there already. If one is, all are, but for those that a key led to an earlier one."""
    known = [_repeated(database, node, asked.run) for asked in batch]
    if not any(known):
        return admit_together(database, node, batch, now)
    return [
        answer or admit(database, node, [asked], now)[0]
        for answer, asked in zip(known, batch, strict=True)
    ]


def _repeated(database: Database, node: Node, run: Run) -> Admission | None:
    """The answer to a run that was kept before; None: it was not."""
    known = database.row("repeated_run", run.id)
    if known is None:
        return None
    state, outcome, seq = known
    if state is not None and seq is None and outcome is not None:
        ended = decode_outcome(cast(str, outcome))
        if ended in (FULL, STOPPED):
            return TurnedAway(ended)
    session = read_sessions(database, [run.session]).get(run.session)
    if session is None:
        return Elsewhere(cast(int, seq or 0), owned=False)
    place = cast(int, session.last_seq if seq is None else seq)
    if node.id and session.owner == node.id:
        return session.granted(place)
    return Elsewhere(place, owned=session.owner is not None)


class _Admitting:
    """One batch: everything is read first, then decided, then written with few statements."""

    def __init__(
        self, database: Database, node: Node, batch: Sequence[Asked], now: Instant
    ) -> None:
        self._database = database
        self._node = node
        self._batch = batch
        self._now = now
        self._keys: dict[str, tuple[RunId, State | None]] = {}
        self._runs: list[tuple[Column, ...]] = []
        self._refused: list[tuple[Column, ...]] = []
        self._places: list[tuple[Column, ...]] = []
        self._offspring: list[tuple[Column, ...]] = []
        self._taken_keys: list[tuple[Column, ...]] = []
        self._touched: dict[SessionKey, Session] = {}
        self._unstopped: set[RunId] = set()
        self._not_cut: set[RunId] = set()

    def all(self) -> list[Admission]:
        self._read()
        answers = [self._one(asked) for asked in self._batch]
        self._write()
        return answers

    def all_or_none(self) -> list[Admission] | TurnedAway:
        self._read()
        node = self._node
        told = node.hints()
        answers = [self._one(asked) for asked in self._batch]
        refused = next((answer for answer in answers if isinstance(answer, TurnedAway)), None)
        if refused is None:
            self._write()
            return answers
        if any(self._database.row("repeated_run", asked.run.id) for asked in self._batch):
            raise sqlite3.IntegrityError("admitted before")
        # Nobody need be told of them. The room that they took is found again: it is counted anew near a limit.
        node.tell_only(told)
        return refused

    def _read(self) -> None:
        batch = self._batch
        database = self._database
        self._read_keys()
        self._read_ancestors()
        self._count_tasks()
        # Only a live node takes anything: what a dead one took would stay with it (N-4).
        self._lives = lives(database, self._node)
        keys = sorted({asked.run.session for asked in batch})
        self._sessions = read_sessions(database, keys)
        counters = database.row("counters")
        assert counters is not None
        self._number, self._epoch = cast(tuple[int, int], counters)

    def _one(self, asked: Asked) -> Admission:
        run = asked.run
        keyed = run.message_id is not None or run.idempotency_key is not None
        if keyed:
            earlier = self._earlier(asked)
            if earlier is not None:
                return Duplicate(earlier)
        self._number += 1
        row = run_row(run, self._number)
        refusal = self._refusal(run)
        if refusal is not None:
            self._refused.append((*row, refusal.state, encode_outcome(refusal), self._now))
            return TurnedAway(refusal)
        if keyed:
            self._take_keys(run)
        self._runs.append(row)
        session = self._session(run.session)
        session.last_seq += 1
        seq = session.last_seq
        ready = ready_at(run)
        rank = rank_of(run, self._node.settings)
        answer = self._grant(asked, session, seq, ready, rank)
        state = State.QUEUED if run.due_at is None or run.due_at <= self._now else State.PENDING
        asked_by = self._node.id or None
        self._places.append(place_row(run, self._number, seq, rank, state, asked_by))
        for ancestor in all_above(run):
            self._offspring.append((ancestor, self._number))
        return answer

    def _session(self, key: SessionKey) -> Session:
        session = self._touched.get(key)
        if session is None:
            session = self._sessions.get(key) or Session(key)
            self._touched[key] = session
        return session

    def _grant(
        self, asked: Asked, session: Session, seq: int, ready: Instant, rank: int
    ) -> Granted | Elsewhere:
        node = self._node
        if session.owner is not None:
            if session.owner == node.id:
                return session.granted(seq)
            node.hint(session.owner, Hint.NEWS)
            remembered = None if session.memory is None else decode_memory(session.memory)
            return Elsewhere(seq, memory=remembered)
        if asked.claim and not session.has_work and self._lives:
            self._epoch += 1
            session.owner, session.epoch = node.id, self._epoch
            return session.granted(seq, fresh=True)
        session.add_work(asked.run, self._number, ready, rank)
        node.hint_all(Hint.WORK)
        return Elsewhere(seq, owned=False)

    def _refusal(self, run: Run) -> Outcome | None:
        if run.ancestors:
            *above, parent = run.ancestors
            if parent not in self._unstopped or not self._not_cut.issuperset(above):
                return STOPPED
        if run.source is _TASK and run.parent is None:
            limits = self._node.limits
            waiting = self._node.most_waiting
            of_agent = waiting.get(run.agent, 0)
            if self._node.most_in_all >= limits.max_queue or of_agent >= limits.max_queue_per_agent:
                return FULL
            waiting[run.agent] = of_agent + 1
            self._node.most_in_all += 1
        return None

    def _read_keys(self) -> None:
        wanted = [(key.text,) for asked in self._batch for key in keys_of(asked.run)]
        if wanted:
            for (text,) in self._database.read("keys_of", wanted, before=(self._now,)):
                for key, run_id, state in _read_keys(cast(str, text)):
                    self._keys[key] = (run_id, state)

    def _read_ancestors(self) -> None:
        """Who started a run must still run; those above it may have ended, but not been stopped (N-14)."""
        wanted = {ancestor for asked in self._batch for ancestor in asked.run.ancestors}
        if wanted:
            rows = [(run_id,) for run_id in sorted(wanted)]
            self._unstopped = self._names("unstopped", rows)
            self._not_cut = self._unstopped | self._names("ended_by_itself", rows)

    def _names(self, statement: str, rows: list[tuple[RunId]]) -> set[RunId]:
        found = self._database.read(statement, rows)
        return {RunId(name) for (text,) in found for name in _read_names(cast(str, text))}

    def _count_tasks(self) -> None:
        """How many tasks wait, at most. Only near a limit, or when others write too, must they be counted."""
        asked: dict[str, int] = {}
        for entry in self._batch:
            if entry.run.source is _TASK:
                asked[entry.run.agent] = asked.get(entry.run.agent, 0) + 1
        if not asked:
            return
        node = self._node
        limits = node.limits
        version = self._database.data_version()
        most = node.most_waiting
        near = node.most_in_all + sum(asked.values()) > limits.max_queue or any(
            most.get(agent, 0) + count > limits.max_queue_per_agent
            for agent, count in asked.items()
        )
        if near or node.counted_at != version:
            rows = self._database.rows("waiting_tasks")
            node.most_waiting = {cast(str, agent): cast(int, count) for agent, count in rows}
            node.most_in_all = sum(node.most_waiting.values())
            node.counted_at = version

    def _earlier(self, asked: Asked) -> RunId | None:
        for key in keys_of(asked.run):
            earlier = self._keys.get(key.text)
            if earlier is None:
                continue
            run_id, state = earlier
            if run_id == asked.run.id:
                raise sqlite3.IntegrityError("admitted before")
            if not (asked.retry and state in UNSUCCESSFUL):
                return run_id
        return None

    def _take_keys(self, run: Run) -> None:
        for key in keys_of(run):
            self._keys[key.text] = (run.id, None)
            ends_at = self._now + key.lasts(self._node.settings)
            self._taken_keys.append((key.text, run.id, ends_at))

    def _write(self) -> None:
        write = self._database.write
        # First the runs: if one is there already, nothing else was written yet.
        if self._runs:
            write("add_runs", self._runs)
        if self._refused:
            write("add_refused", self._refused)
        if self._places:
            write("add_places", self._places)
        if self._offspring:
            write("add_offspring", self._offspring)
        if self._taken_keys:
            write("take_keys", self._taken_keys)
        if self._touched:
            write("put_sessions", [session.columns() for session in self._touched.values()])
        self._database.run("set_counters", self._number, self._epoch)


def give_order(
    database: Database, node: Node, order: Order, now: Instant
) -> Granted | Elsewhere | None:
    """Keep an order. None: there is nothing that it could stop."""
    known = database.row("repeated_order", order.id)
    session = read_sessions(database, [order.session]).get(order.session)
    if known is not None and session is not None:
        seq = cast(int, known[0])
        if node.id and session.owner == node.id:
            return session.granted(seq)
        return Elsewhere(seq, owned=session.owner is not None)
    if isinstance(order.command, Stop | Clear | Cancel) and not _anything(database, order):
        return None
    if session is None:
        session = Session(order.session)
    return place_order(database, node, order, session, now)


def _anything(database: Database, order: Order) -> bool:
    found = database.row("has_runs", order.session)
    return found is not None and bool(found[0])


def place_order(
    database: Database, node: Node, order: Order, session: Session, now: Instant
) -> Granted | Elsewhere:
    """The next place of the session is the order's; an idle session that nobody has is taken for it."""
    session.last_seq += 1
    seq = session.last_seq
    answer: Granted | Elsewhere
    if session.owner is not None:
        if session.owner == node.id:
            answer = session.granted(seq)
        else:
            node.hint(session.owner, Hint.NEWS)
            answer = Elsewhere(seq)
    elif not session.has_work and lives(database, node):
        counters = database.row("counters")
        assert counters is not None
        number, epoch = cast(tuple[int, int], counters)
        database.run("set_counters", number, epoch + 1)
        session.owner, session.epoch = node.id, epoch + 1
        answer = session.granted(seq, fresh=True)
    else:
        # Whoever is next to look takes it, with room or without.
        session.deadline_at = min(now, session.deadline_at or now)
        if session.ready_at is not None:
            session.ready_at = min(now, session.ready_at)
        node.hint_all(Hint.WORK)
        answer = Elsewhere(seq, owned=False)
    database.write("put_sessions", [session.columns()])
    command = encode_command(order.command)
    database.run("add_order", order.id, order.session, seq, command, node.id or None)
    return answer
