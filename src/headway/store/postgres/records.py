"""What the kernel decided, in columns: as the functions `record_v1` and `record_all_v1` take it."""

from collections.abc import Sequence
from typing import assert_never

from headway.core.actions import (
    Abandon,
    Action,
    AskEstimate,
    CancelAttempt,
    Deliver,
    Enqueue,
    Finish,
    Merge,
    NoteExhausted,
    NoteHold,
    NoteLate,
    NoteWait,
    Release,
    Remember,
    Respond,
    Start,
    Steer,
    Unsteer,
)
from headway.core.endings import FINAL_CUTS, STOPS
from headway.core.session import BLANK
from headway.model.outcome import Outcome
from headway.model.places import Delivery, StopAll
from headway.model.run import Run, RunId, SessionKey
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.words import Cut, Reason, Rule, Source, State
from headway.store.codec import (
    encode_answer,
    encode_delivery,
    encode_memory,
    encode_outcome,
    encode_run,
    encode_standing,
    said_key,
)
from headway.store.keys import was_handled
from headway.store.postgres.admissions import BETWEEN
from headway.store.ranks import rank_of, ready_at

_TASK = Source.TASK
_MOST_BYTES = 4_000_000
_ALL_OF_IT = "*"
"""Instead of a run: everything that a session's runs have started (X-3)."""
UNSTORABLE = Outcome(State.FAILED, Reason.ERROR, error="what the agent returned cannot be stored")
"""Instead of an outcome that no database takes: the run has ended all the same."""

_NONE = object()
_USUAL_FINISH = (_NONE, State.DONE, _NONE, 1, _NONE, _NONE, False, None)
_USUAL_START = (0, _NONE, 1, _NONE, _NONE)
"""What most finishes and starts have in each column: where all have it, the functions need not be told."""

# In which order a batch is written. What comes for a run in another order begins a new batch.
_MERGE, _ENQUEUE, _FINISH, _START, _CANCEL = range(5)


class RecordBatch:
    """Decisions that can be written together."""

    def __init__(self) -> None:
        self.actions: list[Action] = []
        self.epochs: dict[SessionKey, int] = {}
        self.steps: dict[RunId, int] = {}
        self.released: set[SessionKey] = set()
        self.starts: tuple[list[object], ...] = ([], [], [], [], [])
        self.outliving: list[object] = []
        """Runs that start and go on outside the node's process (W-2)."""
        self.finishes: tuple[list[object], ...] = tuple([] for _ in range(8))
        self.releases: tuple[list[object], ...] = ([], [])
        self.merges: tuple[list[object], ...] = tuple([] for _ in range(12))
        self.enqueues: tuple[list[object], ...] = tuple([] for _ in range(7))
        self.cancels: tuple[list[object], ...] = ([], [], [])
        self.bodies: dict[RunId, str] = {}
        self.steers: list[object] = []
        self.memories: dict[SessionKey, str | None] = {}
        self.answers: tuple[list[object], ...] = ([], [])
        self.deliveries: tuple[list[object], ...] = tuple([] for _ in range(7))
        self.rare = False
        self.size = 0
        self.for_all = False
        """Whether nodes may wait for some of it that are not known here: a merged run, or the outbox."""

    def columns(self, node: int, now: Instant, *, careful: bool) -> list[object]:
        """The arguments of `record_v1`, and those of `record_all_v1` besides if the batch has any of its kinds.

        With starts that outlive their node, those of `record_all_v2`.
        """
        sessions = sorted(self.epochs)
        columns: list[object] = [
            node, now, sessions, [self.epochs[session] for session in sessions],
            *map(_unless_usual, self.finishes, _USUAL_FINISH), *map(_unless_usual, self.starts, _USUAL_START),
            careful, *self.releases,
        ]  # fmt: skip
        if self.rare:
            columns += [*self.merges, *self.enqueues, *self.cancels,
                list(self.bodies), list(self.bodies.values()), self.steers,
                        list(self.memories), list(self.memories.values()), *self.answers,
                        *self.deliveries]  # fmt: skip
        if self.outliving:
            columns.append(self.outliving)
        return columns


def batches_of(actions: Sequence[Action], settings: Settings) -> list[RecordBatch]:
    """The decisions in as few batches as their order allows: mostly one."""
    plain = plain_batch(actions)
    return in_order(actions, settings) if plain is None else [plain]


def in_order(actions: Sequence[Action], settings: Settings) -> list[RecordBatch]:
    """Any decisions: what must not stand in one batch with what came before it begins a new one."""
    batch = RecordBatch()
    batches = [batch]
    # A batch must be written within a moment: many large outcomes go one part after the other.
    ends = {action.run.id: at for at, action in enumerate(actions) if type(action) is Finish}
    for at, action in enumerate(actions):
        if type(action) is Start and ends.get(action.run.id, -1) > at:
            # Nothing is carried out before it is kept: this attempt never was.
            continue
        if type(action) is Finish or type(action) is Start:
            run, epoch = action.run, action.epoch
            step = _FINISH if type(action) is Finish else _START
        else:
            known = _place_of(action)
            if known is None:
                continue
            session, epoch, run_id, step = known
            if not _fits(batch, session, epoch, run_id, step):
                batch = RecordBatch()
                batches.append(batch)
            batch.epochs[session] = epoch
            if run_id is not None:
                batch.steps[run_id] = step
            batch.actions.append(action)
            _add_rare(batch, action, settings)
            continue
        session, run_id = run.session, run.id
        if batch.size > _MOST_BYTES or not _fits(batch, session, epoch, run_id, step):
            batch = RecordBatch()
            batches.append(batch)
        batch.epochs[session] = epoch
        batch.steps[run_id] = step
        batch.actions.append(action)
        if type(action) is Finish:
            _add_finish(batch, action)
        else:
            _add_start(batch, action)  # type: ignore[arg-type]  # mypy does not follow type()
    return batches if batch.actions else batches[:-1]


def plain_batch(actions: Sequence[Action]) -> RecordBatch | None:
    """The usual batch, quickly: first attempts that start, or end well. None: there is more to be said."""
    finishes = [
        action
        for action in actions
        if type(action) is Finish
        and action.outcome.reason is None
        and action.attempt == 1
        and not (action.run.overflow or action.run.merged_from)
    ]
    starts = [
        action
        for action in actions
        if type(action) is Start
        and action.attempt == 1
        and not (action.slot or action.outlives or action.run.overflow)
    ]
    both: list[Finish | Start] = [*finishes, *starts]
    distinct = len({action.run.id for action in both})
    if not both or len(both) < len(actions) or distinct < len(both):
        return None
    epochs = {action.run.session: action.epoch for action in both}
    if len(epochs) < len({action.epoch for action in both}):
        return None
    try:
        outcomes: list[object] = [encode_outcome(finish.outcome) for finish in finishes]
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    if sum(map(len, outcomes)) > _MOST_BYTES:  # type: ignore[arg-type]  # they are texts
        return None
    batch = RecordBatch()
    batch.actions, batch.epochs = [*both], epochs
    began: list[object] = [finish.started_at for finish in finishes]
    ended: list[object] = [finish.at for finish in finishes]
    batch.finishes = (
        [finish.run.id for finish in finishes],
        [],
        outcomes,
        [],
        began,
        ended,
        [],
        [],
    )
    numbers: list[object] = [start.epoch for start in starts]
    times: list[object] = [start.at for start in starts]
    batch.starts = ([], [start.run.id for start in starts], [], numbers, times)
    return batch


def _fits(
    batch: RecordBatch, session: SessionKey, epoch: int, run_id: RunId | None, step: int
) -> bool:
    if batch.epochs.get(session, epoch) != epoch or session in batch.released:
        return False
    if run_id is None:
        return True
    latest = batch.steps.get(run_id, -1)
    # What comes for a run after its end must find that it has ended.
    return latest < step and latest != _FINISH


def _unless_usual(column: list[object], usual: object) -> list[object]:
    return [] if column.count(usual) == len(column) else column


def _add_start(batch: RecordBatch, start: Start) -> None:
    run = start.run
    slots, ids, attempts, epochs, times = batch.starts
    slots.append(start.slot)
    ids.append(run.id)
    attempts.append(start.attempt)
    epochs.append(start.epoch)
    times.append(start.at)
    if run.overflow:
        _add_body(batch, run)
    if start.outlives:
        batch.rare = True
        batch.outliving.append(run.id)


def _add_body(batch: RecordBatch, run: Run) -> None:
    """Lines of dropped messages left the session's memory and go with the run, also into its next attempt."""
    batch.rare = True
    batch.bodies[run.id] = encode_run(run)


def _add_finish(batch: RecordBatch, finish: Finish) -> None:
    outcome = finish.outcome
    try:
        text = encode_outcome(outcome)
    except (TypeError, ValueError, OverflowError, RecursionError):
        outcome = UNSTORABLE
        text = encode_outcome(outcome)
    ids, states, outcomes, attempts, started, times, unhandled, into = batch.finishes
    batch.size += len(text)
    ids.append(finish.run.id)
    states.append(outcome.state)
    outcomes.append(text)
    attempts.append(finish.attempt)
    started.append(finish.started_at)
    times.append(finish.at)
    unhandled.append(outcome.reason is not None and not was_handled(outcome))
    into.append(outcome.into)
    run = finish.run
    if run.merged_from:
        batch.for_all = True
    if run.overflow:
        _add_body(batch, run)
    if outcome.reason in STOPS and finish.started_at is not None:
        batch.rare = True
        _append(batch.cancels, (run.id, run.root or run.session, Cut.STOPPED))


def _place_of(action: Action) -> tuple[SessionKey, int, RunId | None, int] | None:
    """Session, epoch, run and step of a decision; None for what is not kept."""
    match action:
        case Finish(run=run, epoch=epoch):
            return run.session, epoch, run.id, _FINISH
        case Start(run=run, epoch=epoch):
            return run.session, epoch, run.id, _START
        case Enqueue(run=run, epoch=epoch):
            return run.session, epoch, run.id, _ENQUEUE
        case Merge(run=run, epoch=epoch):
            return run.session, epoch, run.id, _MERGE
        case CancelAttempt(run=run, epoch=epoch):
            return run.session, epoch, run.id, _CANCEL
        case Steer(message=run, epoch=epoch):
            return run.session, epoch, None, 0
        case Remember(session=session, epoch=epoch) | Release(session=session, epoch=epoch):
            return session, epoch, None, 0
        case Respond(order=order, epoch=epoch):
            return order.session, epoch, None, 0
        case Deliver(delivery):
            return delivery.session, delivery.epoch, None, 0
        case (
            Abandon()
            | Unsteer()
            | AskEstimate()
            | NoteWait()
            | NoteLate()
            | NoteHold()
            | NoteExhausted()
        ):
            return None
        case _:
            assert_never(action)


def _add_rare(batch: RecordBatch, action: Action, settings: Settings) -> None:
    if isinstance(action, Release):
        batch.released.add(action.session)
        batch.releases[0].append(action.session)
        batch.releases[1].append(action.seen)
        return
    batch.rare = True
    match action:
        case Enqueue():
            _add_enqueue(batch, action)
        case Merge():
            _add_merge(batch, action, settings)
        case CancelAttempt(run=run, cut=cut):
            # Whatever the cut, what the attempt had started ends with it; but it may not end the run itself.
            ends = cut if cut in FINAL_CUTS else None
            _append(batch.cancels, (run.id, run.root or run.session, ends))
        case Steer(message=run):
            batch.steers.append(run.id)
        case Remember(session=session, memory=memory):
            batch.memories[session] = None if memory == BLANK else encode_memory(memory)
        case Respond(order=order, answer=answer):
            if isinstance(order.command, StopAll):
                _append(batch.cancels, (_ALL_OF_IT, order.session, Cut.STOPPED))
            batch.answers[0].append(order.id)
            batch.answers[1].append(encode_answer(answer))
        case Deliver(delivery):
            _append(batch.deliveries, delivery_row(delivery))
            batch.for_all = True
        case _:
            raise AssertionError(action)


def delivery_row(delivery: Delivery) -> tuple[object, ...]:
    """What is to be said, as `post_v1` takes it."""
    once = said_key(delivery.once) if delivery.once else None
    body = encode_delivery(delivery)
    route, at = delivery.route, delivery.first_at
    return delivery.id, route.channel, at, body, delivery.run_id, once, delivery.once_until


def _add_enqueue(batch: RecordBatch, enqueue: Enqueue) -> None:
    standing = enqueue.standing
    if enqueue.run.overflow:
        _add_body(batch, enqueue.run)
    row = (
        enqueue.run.id,
        enqueue.state,
        enqueue.attempt,
        enqueue.until,
        None if standing is None else encode_standing(standing),
        standing is not None and standing.held is Rule.RETRY,
        "retry" if enqueue.cut is None else enqueue.cut,
    )
    _append(batch.enqueues, row)


def _add_merge(batch: RecordBatch, merge: Merge, settings: Settings) -> None:
    run = merge.run
    row = (
        run.id,
        run.session,
        merge.seq,
        run.agent,
        run.lane,
        run.source is _TASK,
        rank_of(run, settings),
        ready_at(run),
        run.deadline_at,
        run.root,
        BETWEEN.join(run.ancestors) if run.ancestors else None,
        encode_run(run),
    )
    _append(batch.merges, row)


def _append(columns: tuple[list[object], ...], row: Sequence[object]) -> None:
    for column, value in zip(columns, row, strict=True):
        column.append(value)
