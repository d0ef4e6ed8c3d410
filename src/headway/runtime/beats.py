"""Beats: what follows for a worker from one look at it (D-8). Nothing here asks or writes."""

from collections.abc import Sequence

import msgspec

from headway.model.outcome import Outcome
from headway.model.run import Run, RunId
from headway.model.text import whole
from headway.model.time import Instant
from headway.model.views import RunView
from headway.model.words import FINAL_STATES, WorkerState
from headway.model.worker import MAX_LINE, MAX_LINES, Worker
from headway.turn import Sight


def worker_id(run_id: RunId, attempt: int) -> str:
    return f"{run_id}.{attempt}"


def seen(
    sight: Sight,
    before: Worker | None,
    now: Instant,
    *,
    run: Run,
    host: str,
    node: int,
    missed_beats: int,
    was_busy: bool = False,
) -> Worker:
    """A worker after a look that found it. `was_busy`: it was at a look since the last beat."""
    silent = not sight.answers and not sight.over
    missed = before.missed + 1 if silent and before is not None else 0
    last_beat_at = sight.started_at if before is None else before.beat_at
    return Worker(
        id=worker_id(sight.run_id, sight.attempt),
        run_id=sight.run_id,
        attempt=sight.attempt,
        agent=run.agent,
        session=run.session,
        kind=sight.kind,
        host=host,
        node=node,
        pid=sight.pid,
        born=sight.born,
        started_at=sight.started_at,
        state=_state(sight, before, was_busy, dead=sight.over or missed > missed_beats),
        beat_at=now if sight.answers else last_beat_at,
        missed=missed,
        lines=_lines(sight.lines),
        pane=sight.pane,
        adopted=sight.adopted,
        exit_code=sight.exit_code,
    )


def unseen(before: Worker, missed_beats: int) -> Worker:
    """A worker after a look that should have found it and did not."""
    missed = before.missed + 1
    state = WorkerState.DEAD if missed > missed_beats else before.state
    return msgspec.structs.replace(before, missed=missed, state=state)


def dead(worker: Worker, exit_code: int | None = None, lines: Sequence[str] = ()) -> Worker:
    """A worker that has ended. What is not told stays as it was when it was last seen."""
    code = worker.exit_code if exit_code is None else exit_code
    last = _lines(lines) if lines else worker.lines
    return msgspec.structs.replace(worker, state=WorkerState.DEAD, exit_code=code, lines=last)


def ended(worker: Worker, outcome: Outcome | None) -> Worker:
    """A worker whose attempt is over: how it ended and what it wrote last, where the run's outcome says it."""
    if outcome is None:
        return dead(worker)
    return dead(worker, exit_code(outcome), last_lines(outcome))


def is_alive(worker: Worker) -> bool:
    return worker.state is not WorkerState.DEAD


def is_same(worker: Worker, sight: Sight) -> bool:
    """Whether it is this very process: an attempt that did not count comes again under the same number."""
    return (worker.pid, worker.born) == (sight.pid, sight.born)


def is_unwanted(attempt: int, view: RunView) -> bool:
    """Whether a worker of this attempt has nothing to do any more, as the store knows the run.

    A run that waits with this attempt's number may have been left by a node that died: its worker may still be
    adopted (W-2).
    """
    return view.state in FINAL_STATES or view.attempt > attempt


def exit_code(outcome: Outcome) -> int | None:
    """How the worker ended, where the outcome of its run says it."""
    said = outcome.details if outcome.reply is None else outcome.reply.data
    code = said.get("exit") if isinstance(said, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def last_lines(outcome: Outcome) -> Sequence[str]:
    """What the worker wrote last, where the outcome of its run says it."""
    if outcome.reply is not None:
        return outcome.reply.text.splitlines() if exit_code(outcome) is not None else ()
    said = outcome.details
    written = said.get("output") if isinstance(said, dict) else None
    return written.splitlines() if isinstance(written, str) else ()


def _state(sight: Sight, before: Worker | None, was_busy: bool, *, dead: bool) -> WorkerState:
    if dead:
        return WorkerState.DEAD
    if not sight.answers and before is not None:
        return before.state
    if sight.busy or was_busy:
        return WorkerState.BUSY
    return WorkerState.ALIVE if sight.busy is None else WorkerState.IDLE


def _lines(lines: Sequence[str]) -> tuple[str, ...]:
    """The last of them, as every store can keep them."""
    return tuple(whole(line[:MAX_LINE]).replace("\0", "\ufffd") for line in lines[-MAX_LINES:])
