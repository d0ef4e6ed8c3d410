"""How a run may end, and when it lives on: the true reason for every outcome (R-2, R-3, R-5)."""

from headway.core.actions import Died, Done, Enqueue, Failed, Limited, NotBegun
from headway.model.outcome import Outcome
from headway.model.time import Instant
from headway.model.words import Cut, Drop, Reason, State
from headway.testing.simulation.bars import may_start_draining
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.phase import Phase
from headway.testing.simulation.seen import RETRY_DELAYS, Seen, Where
from headway.testing.simulation.violation import Invariant, broken

REASONS: dict[State, frozenset[Reason | None]] = {
    State.DONE: frozenset({None}),
    State.REJECTED: frozenset({Reason.QUEUE_FULL, Reason.REJECTED_BUSY}),
    State.CANCELLED: frozenset(
        {
            Reason.STOPPED,
            Reason.SUPERSEDED,
            Reason.QUEUE_DROPPED,
            Reason.LANE_CLEARED,
            Reason.CLEARED,
            Reason.STALE,
            Reason.MERGED,
            Reason.DRAINING,
        }
    ),
    State.FAILED: frozenset(
        {
            Reason.ERROR,
            Reason.DEADLINE_QUEUED,
            Reason.DEADLINE_RUNNING,
            Reason.TIMED_OUT,
            Reason.ORPHANED,
            Reason.RATE_LIMITED,
            Reason.REFUSED,
        }
    ),
}
"""The words of R-3, by state."""

_CUT_ENDS: dict[Cut, tuple[State, Reason]] = {
    Cut.STOPPED: (State.CANCELLED, Reason.STOPPED),
    Cut.SUPERSEDED: (State.CANCELLED, Reason.SUPERSEDED),
    Cut.DEADLINE: (State.FAILED, Reason.DEADLINE_RUNNING),
    Cut.TIMED_OUT: (State.FAILED, Reason.TIMED_OUT),
    Cut.DRAINED: (State.CANCELLED, Reason.DRAINING),
}
_MANY_RATE_LIMITS = 10


def check_returned(phase: Phase, seen: Seen) -> None:
    """Slots are given back by an attempt that has returned, was abandoned, or is of the past."""
    if phase.returning is not None and phase.returning[0] is seen and not phase.returned:
        phase.returned = True
    elif phase.abandoned is seen:
        phase.abandoned = None
    elif phase.resetting:
        seen.clears = False
    else:
        broken(Invariant.SLOT_HELD, f"{seen} gave back its slots and has not returned")


def end_of(mirror: Mirror, phase: Phase, seen: Seen) -> tuple[State, Reason | None] | None:
    """How a run ends with this attempt; None if it lives on."""
    cut = _cut(phase, seen)
    if cut is Cut.PREEMPTED or cut is Cut.OVERRAN:
        return _end_unless_kept(mirror)
    if cut is not None:
        allowed = seen.attempt < seen.run.max_attempts
        if cut is Cut.DRAINED and allowed and (phase.resetting or mirror.keeps_waiting):
            return None
        return _CUT_ENDS[cut]
    assert phase.returning is not None
    match phase.returning[1]:
        case Done():
            return State.DONE, None
        case Failed(reason=reason, permanent=permanent):
            if permanent or seen.retries >= seen.run.retries:
                return State.FAILED, reason
        case Died():
            if seen.attempt >= seen.run.max_attempts:
                return State.FAILED, Reason.ORPHANED
        case NotBegun():
            return None
        case Limited(retry_after=pause):
            deadline_at = seen.run.deadline_at
            often = seen.limited + 1 >= _MANY_RATE_LIMITS
            if often or (deadline_at is not None and mirror.now + pause >= deadline_at):
                return State.FAILED, Reason.RATE_LIMITED
    return _end_unless_kept(mirror)


def check_cause(mirror: Mirror, phase: Phase, seen: Seen, outcome: Outcome) -> None:
    """Object if this is no true reason for the end of a run that was not running."""
    run, now = seen.run, mirror.now
    match outcome.reason:
        case Reason.MERGED:
            into = seen.taken_by.run.id if seen.taken_by is not None else seen.merging_into
            true = outcome.into is not None and outcome.into == into
        case Reason.SUPERSEDED:
            phase.superseded.append(seen.session)
            true = seen.where is Where.LINE and (seen.message or seen.begun)
        case Reason.QUEUE_DROPPED:
            true = _may_be_dropped(mirror, phase, seen)
        case Reason.DRAINING:
            ends = mirror.draining and not mirror.keeps_waiting
            true = ends and seen.waits and not may_start_draining(mirror, seen)
        case Reason.DEADLINE_QUEUED:
            true = run.deadline_at is not None and run.deadline_at <= now
        case Reason.STALE:
            due = run.due_at is not None and run.due_at <= now
            true = seen.where is Where.LATER and due and mirror.memories.is_stale(run)
        case Reason.STOPPED:
            true = seen.waits and is_stopped(phase, seen)
        case reason:
            true = reason is phase.ending_as and run.id in phase.ending and seen.waits
    if not true:
        what = f"{outcome.state}/{outcome.reason}"
        broken(Invariant.REASON, f"{seen} ended {what} in {seen.where.value}")


def is_stopped(phase: Phase, seen: Seen) -> bool:
    """Whether a stop reaches it: it was named, or the turn that started it was cut."""
    told = phase.ending_as is Reason.STOPPED and seen.run.id in phase.ending
    return told or seen.ends_with_parent


def queue_again(mirror: Mirror, phase: Phase, seen: Seen, action: Enqueue) -> None:
    """A run lives on after an attempt: whether it may, until when it waits, what was tried."""
    check_returned(phase, seen)
    cut = _cut(phase, seen)
    end = end_of(mirror, phase, seen)
    if end is not None:
        what = Invariant.STOPPED if cut is Cut.STOPPED else Invariant.REASON
        broken(what, f"{seen} lives on, but its end was {end}")
    until, attempt = None, seen.attempt
    if cut is None or cut is Cut.OVERRAN:
        until, attempt = _retry(mirror, phase, seen, action)
    if cut is Cut.PREEMPTED:
        attempt -= 1
    if (action.until, action.cut, action.attempt) != (until, cut, attempt):
        got = (action.until, action.cut, action.attempt)
        broken(Invariant.TRANSITION, f"{seen} waits again as {got}, not {(until, cut, attempt)}")
    mirror.step_down(seen)
    seen.attempt = attempt
    seen.until = until


def _cut(phase: Phase, seen: Seen) -> Cut | None:
    """A new incarnation cuts whatever the old one was at; what had no slot yet was never begun."""
    if phase.resetting and seen.cut is None:
        return Cut.PREEMPTED if seen.ahead else Cut.DRAINED
    return seen.cut


def _end_unless_kept(mirror: Mirror) -> tuple[State, Reason] | None:
    """A run that would wait again: a drain that keeps nothing ends it."""
    if mirror.draining and not mirror.keeps_waiting:
        return State.CANCELLED, Reason.DRAINING
    return None


def _may_be_dropped(mirror: Mirror, phase: Phase, seen: Seen) -> bool:
    messages = seen.session.messages()
    if seen.where is not Where.LINE:
        settings = mirror.queue_settings(seen.run)
        return settings.drop is Drop.NEW and len(messages) >= settings.cap
    phase.drops.append((seen, len(messages)))
    return bool(messages) and messages[0] is seen


def _retry(mirror: Mirror, phase: Phase, seen: Seen, action: Enqueue) -> tuple[Instant | None, int]:
    """When the run is tried again, and how many attempts it has had by then."""
    # An attempt that ignored its cancellation was left behind, and has not returned.
    ended, now = None if phase.returning is None else phase.returning[1], mirror.now
    if isinstance(ended, Died) and seen.cut is None:
        pause = seen.agent.settings.resume_after
        resumed_at = None if pause is None else seen.started_at + pause
        return None if resumed_at is None or resumed_at <= now else resumed_at, seen.attempt
    if isinstance(ended, Limited) and seen.cut is None:
        seen.limited += 1
        return now + ended.retry_after, seen.attempt - 1
    seen.limited = 0
    plain = RETRY_DELAYS[min(seen.retries, len(RETRY_DELAYS) - 1)]
    seen.retries += 1
    if action.until is not None and abs(action.until - now - plain) <= plain / 4:
        return action.until, seen.attempt
    return now + plain, seen.attempt
