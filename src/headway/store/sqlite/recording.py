"""What the kernel decided: kept for the sessions that are still this node's, and only for those (N-9)."""

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias, cast

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
    Respond,
    Start,
    Steer,
)
from headway.core.endings import FINAL_CUTS, STOPS
from headway.core.session import BLANK
from headway.model.outcome import Outcome
from headway.model.places import Cancel, Order, StopAll
from headway.model.run import Run, RunId, SessionKey
from headway.model.time import Instant
from headway.model.words import Reason, State
from headway.ports import KEPT, Hint, Recorded
from headway.store.codec import (
    decode_run,
    encode_answer,
    encode_fields,
    encode_memory,
    encode_outcome,
    encode_run,
    encode_standing,
)
from headway.store.keys import is_freed, keys_of, was_handled
from headway.store.ranks import rank_of, ready_at
from headway.store.sqlite.database import Column, Database, is_of_one_request
from headway.store.sqlite.intake import (
    Session,
    all_above,
    place_order,
    place_row,
    read_sessions,
    root_name,
    run_row,
)
from headway.store.sqlite.keeping import keep_delivery
from headway.store.sqlite.node import Node

_Kept: TypeAlias = (
    Start
    | Finish
    | Enqueue
    | Merge
    | CancelAttempt
    | Steer
    | Remember
    | Release
    | Respond
    | Deliver
)
"""Actions that change what is kept. The others are for the runtime only."""

_KEPT_KINDS = frozenset(_Kept.__args__)

_read_numbers = msgspec.json.Decoder(list[tuple[RunId, int]]).decode


def record(database: Database, node: Node, actions: Sequence[Action], now: Instant) -> Recorded:
    """Keep a batch. What belongs to sessions of others is left out, and told."""
    return _Recording(database, node, now).all(actions)


def record_apart(
    database: Database, node: Node, actions: Sequence[Action], now: Instant
) -> Recorded:
    """Keep a batch in which something cannot be written: one action after the other, that one left out (N-15).

    A run whose outcome cannot be written fails instead, and its session is given up, loudly.
    """
    lost: dict[tuple[SessionKey, int], None] = {}
    kept: list[SessionKey] = []
    for action in actions:
        database.save()
        try:
            recorded = record(database, node, [action], now)
        except Exception as error:
            if not is_of_one_request(error):
                raise
            database.undo()
            recorded = _leave_out(database, node, action, error, now)
        else:
            database.release()
        lost.update(dict.fromkeys(recorded.lost))
        kept += recorded.kept
    return Recorded(tuple(lost), tuple(kept)) if lost or kept else KEPT


def _leave_out(
    database: Database, node: Node, action: Action, error: Exception, now: Instant
) -> Recorded:
    session, epoch = _guard_of(cast(_Kept, action))
    reason = f"{type(error).__name__}: {error}"
    fields = encode_fields(
        {"action": type(action).__name__, "session": session, "epoch": epoch, "error": reason}
    )
    database.run("keep_event", now, "write_failed", fields)
    if isinstance(action, Finish):
        said = f"its outcome could not be stored: {reason}".encode(errors="replace").decode()
        outcome = Outcome(State.FAILED, Reason.ERROR, error=said)
        record(database, node, [msgspec.structs.replace(action, outcome=outcome)], now)
    return Recorded(lost=((session, epoch),))


class _Recording:
    """One batch. Starts, finishes and releases are gathered and written together; the rest one by one."""

    def __init__(self, database: Database, node: Node, now: Instant) -> None:
        self._database = database
        self._node = node
        self._now = now
        self._numbers: dict[RunId, int] = {}
        self._sessions: dict[SessionKey, Session] = {}
        self._starts: dict[RunId, Start] = {}
        self._finishes: list[Finish] = []
        self._releases: list[Release] = []
        self._stopped: list[str] = []
        """What was stopped: everything below it must end too."""
        self._lost: dict[tuple[SessionKey, int], None] = {}
        self._kept: list[SessionKey] = []

    def all(self, actions: Sequence[Action]) -> Recorded:
        kept = cast(list[_Kept], [action for action in actions if type(action) in _KEPT_KINDS])
        if not kept:
            return KEPT
        guards = [_guard_of(action) for action in kept]
        self._sessions = read_sessions(self._database, sorted({key for key, _ in guards}))
        self._find_numbers({run.id for action in kept if (run := _run_of(action)) is not None})
        # In a batch that is repeated, what it has ended is there no more: that is no reason to give up a session.
        ended = {action.run.id for action in kept if isinstance(action, Finish)}
        mine = self._node.id
        for action, guard in zip(kept, guards, strict=True):
            session = self._sessions.get(guard[0])
            if session is None or session.owner != mine or session.epoch != guard[1] or not mine:
                self._lost[guard] = None
                continue
            if isinstance(action, Start):
                if action.run.id not in self._numbers and action.run.id not in ended:
                    # It has its outcome: who starts it goes by an old picture of the session.
                    self._lost[guard] = None
                    continue
                self._starts[action.run.id] = action
            elif isinstance(action, Finish):
                self._starts.pop(action.run.id, None)
                self._finishes.append(action)
            elif isinstance(action, Release):
                self._releases.append(action)
            else:
                self._flush()
                self._keep(action)
        self._flush()
        for ancestor in dict.fromkeys(self._stopped):
            self._cancel_descendants(ancestor)
        if not self._lost and not self._kept:
            return KEPT
        return Recorded(tuple(self._lost), tuple(self._kept))

    def _find_numbers(self, runs: set[RunId]) -> None:
        found = self._database.read("numbers_of", [(run_id,) for run_id in runs])
        for (text,) in found:
            self._numbers.update(_read_numbers(cast(str, text)))

    def _flush(self) -> None:
        """Ends before starts: who ends leaves the slot that who starts takes (N-10)."""
        if self._finishes:
            self._write_finishes()
        if self._starts:
            self._write_starts()
        if self._releases:
            self._write_releases()

    def _write_finishes(self) -> None:
        finishes, self._finishes = self._finishes, []
        database = self._database
        numbers = self._numbers
        rows: list[tuple[Column, ...]] = []
        places: list[tuple[Column]] = []
        for finish in finishes:
            run, outcome = finish.run, finish.outcome
            number = numbers.get(run.id)
            if number is None:
                continue
            places.append((number,))
            rows.append(
                (
                    number,
                    outcome.state,
                    encode_outcome(outcome),
                    finish.attempt,
                    finish.started_at,
                    finish.at,
                    outcome.into,
                )
            )
            if run.overflow:
                database.run("set_body", encode_run(run), number)
            for ancestor in all_above(run):
                database.run("leave_offspring", ancestor, number)
            if run.merged_from:
                self._node.hint_all(Hint.ENDED)
            if outcome.reason in STOPS and finish.started_at is not None:
                self._stopped.append(run.id)
        if not self._node.alone:
            for (asker,) in database.read("askers", places, before=(self._node.id,)):
                self._node.hint(cast(int, asker), Hint.ENDED)
        database.write("finish_runs", rows)
        database.write("leave_queue", places)
        database.write("end_attempts", places)
        for finish in finishes:
            # Once all of the batch are written: a message may have been taken over in it.
            if not was_handled(finish.outcome):
                self._free_keys(finish.run.id, finish.outcome)

    def _write_starts(self) -> None:
        starts, self._starts = self._starts, {}
        numbers = self._numbers
        rows: list[tuple[Column, ...]] = []
        again: list[tuple[Column]] = []
        for run_id, start in starts.items():
            number = numbers.get(run_id)
            if number is None:
                continue
            run = start.run
            rows.append(
                (
                    number,
                    run.session,
                    start.slot,
                    start.attempt,
                    self._node.id,
                    start.epoch,
                    start.at,
                    int(start.outlives),
                )
            )
            if run.overflow:
                self._database.run("set_body", encode_run(run), number)
            if start.attempt > 1 or start.adopts:
                again.append((number,))
        if again:
            self._database.write("begin_again", again)
        try:
            self._database.write("begin_attempts", rows)
        except sqlite3.IntegrityError:
            for row, start in zip(rows, starts.values(), strict=True):
                self._start_alone(row, start)

    def _start_alone(self, row: tuple[Column, ...], start: Start) -> None:
        """One of the batch's starts was kept before, or meets a live attempt in its slot (N-11)."""
        run = start.run
        number = self._numbers[run.id]
        there = self._database.row("attempt_in_slot", run.session, start.slot)
        if there is not None and there[0] != number:
            self._fail_start(start)
            return
        self._database.write("end_attempts", [(number,)])
        self._database.write("begin_attempts", [row])

    def _fail_start(self, start: Start) -> None:
        run = start.run
        error = f"slot {start.slot} of its session was taken: a bug in Headway, please report it"
        outcome = Outcome(State.FAILED, Reason.ERROR, error=error)
        fields = {
            "run_id": run.id,
            "session": run.session,
            "slot": start.slot,
            "epoch": start.epoch,
        }
        self._database.run("keep_event", self._now, "slot_conflict", encode_fields(fields))
        self._lost[(run.session, start.epoch)] = None
        self._finishes.append(Finish(run, outcome, start.attempt, start.epoch, self._now, start.at))
        self._write_finishes()

    def _write_releases(self) -> None:
        releases, self._releases = self._releases, []
        freed: list[SessionKey] = []
        for release in releases:
            if self._sessions[release.session].last_seq == release.seen:
                freed.append(release.session)
                self._sessions[release.session].owner = None
            else:
                self._kept.append(release.session)
        if not freed:
            return
        dropped = self._database.write("drop_idle", [(key,) for key in freed])
        if dropped == len(freed):
            return
        for key in freed:
            self.free(key)

    def free(self, key: SessionKey) -> None:
        freed = self._database.row("free_session", key, self._now)
        if freed is not None and freed[0]:
            self._node.hint_all(Hint.WORK)

    def _keep(self, action: _Kept) -> None:
        """The rarer decisions."""
        match action:
            case Enqueue():
                self._wait(action)
            case Merge(run=run, seq=seq):
                self._merge(run, seq)
            case CancelAttempt(run=run, cut=cut):
                if cut in FINAL_CUTS and run.id in self._numbers:
                    self._database.run("mark_cut", cut, self._numbers[run.id])
                # Whatever the cut, what the attempt had started ends with it.
                self._stopped.append(run.id)
            case Steer(message=message):
                number = self._number_of(message.id)
                if number is not None:
                    self._database.run("decide", number)
            case Remember(session=session, memory=memory):
                text = None if memory == BLANK else encode_memory(memory)
                self._database.run("remember", text, session)
            case Respond(order=order, answer=answer):
                if isinstance(order.command, StopAll):
                    self._stopped.append(root_name(order.session))
                asked = self._database.row("answer", encode_answer(answer), self._now, order.id)
                if asked is not None:
                    self._node.hint(cast(int | None, asked[0]), Hint.ENDED)
            case Deliver(delivery=delivery):
                keep_delivery(self._database, self._node, delivery)
            case _:
                pass

    def _number_of(self, run_id: RunId) -> int | None:
        if run_id not in self._numbers:
            self._find_numbers({run_id})
        return self._numbers.get(run_id)

    def _wait(self, action: Enqueue) -> None:
        number = self._numbers.get(action.run.id)
        if number is None:
            return
        if action.ended or action.attempt:
            # A task that ran waits again: what was counted without it is too little.
            self._node.counted_at = None
            ending = action.cut or "retry"
            self._database.run("past_attempt", self._now, ending, number)
            self._database.write("end_attempts", [(number,)])
            if action.run.overflow:
                self._database.run("set_body", encode_run(action.run), number)
        standing = action.standing
        until = action.until
        if until is None and standing is not None:
            until = standing.until
        self._database.run(
            "wait",
            number,
            action.state,
            action.attempt,
            None if standing is None else encode_standing(standing),
            int(standing is not None and standing.begun),
            ready_at(action.run),
            until,
        )

    def _merge(self, run: Run, seq: int) -> None:
        if self._database.row("repeated_run", run.id) is not None:
            # The batch is repeated: the run is there, and may even have ended.
            self._find_numbers({run.id})
            return
        counters = self._database.row("counters")
        assert counters is not None
        number, epoch = cast(tuple[int, int], counters)
        number += 1
        self._numbers[run.id] = number
        database = self._database
        database.write("add_runs", [run_row(run, number)])
        rank = rank_of(run, self._node.settings)
        place = place_row(run, number, seq, rank, State.QUEUED, self._node.id)
        database.write("add_places", [place])
        for ancestor in all_above(run):
            database.write("add_offspring", [(ancestor, number)])
        database.run("set_counters", number, epoch)

    def _cancel_descendants(self, ancestor: str) -> None:
        """Each of them gets an order in its session, whoever owns that: this node may not have seen it (N-14)."""
        rows = self._database.rows("descendants", ancestor)
        for session, run_id in cast(list[tuple[SessionKey, RunId]], rows):
            row = read_sessions(self._database, [session]).get(session) or Session(session)
            order = Order(f"cancel {ancestor} {run_id}", session, Cancel(run_id))
            if self._database.row("repeated_order", order.id) is None:
                place_order(self._database, self._node, order, row, self._now)
                if row.owner == self._node.id:
                    self._node.hint_me(Hint.NEWS)

    def _free_keys(self, run_id: RunId, outcome: Outcome) -> None:
        """No agent dealt with the run, or with those merged into it: they may come again (S-8, D-6)."""
        database = self._database
        open_ids = [run_id]
        for open_id in open_ids:
            known = database.row("keyed_run", open_id)
            if known is None:
                continue
            run = decode_run(cast(str, known[0]))
            open_ids += run.merged_from
            absorbed = database.rows("taken_by", open_id)
            open_ids += [RunId(cast(str, row[0])) for row in absorbed if row[0] not in open_ids]
            for key in keys_of(run):
                if is_freed(key, outcome):
                    database.run("free_key", key.text, open_id)


def _run_of(action: _Kept) -> Run | None:
    """The run that is there already and that an action changes."""
    if isinstance(action, Start | Finish | Enqueue | CancelAttempt):
        return action.run
    return action.message if isinstance(action, Steer) else None


def _guard_of(action: _Kept) -> tuple[SessionKey, int]:
    """The session that an action belongs to, and the epoch under which it was decided."""
    match action:
        case Start() | Finish() | Enqueue() | Merge() | CancelAttempt():
            return action.run.session, action.epoch
        case Steer(message=message, epoch=epoch):
            return message.session, epoch
        case Remember(session=session, epoch=epoch) | Release(session=session, epoch=epoch):
            return session, epoch
        case Respond(order=order, epoch=epoch):
            return order.session, epoch
        case Deliver(delivery=delivery):
            return delivery.session, delivery.epoch
