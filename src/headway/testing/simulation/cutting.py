"""Why an attempt may be cancelled, and who lives on when what started it is cut (X-3, X-5, F-4)."""

from headway.model.words import Cut
from headway.testing.simulation import ahead, ending, starting
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.phase import Phase
from headway.testing.simulation.seen import Seen
from headway.testing.simulation.violation import Invariant, broken

_BY_ARRIVAL = frozenset({Cut.SUPERSEDED, Cut.PREEMPTED})


def cut(mirror: Mirror, phase: Phase, seen: Seen, reason: Cut) -> None:
    """The attempt is asked to end; there must be a cause."""
    if not _may_cut(mirror, phase, seen, reason):
        where = Invariant.PREEMPTION if reason is Cut.PREEMPTED else Invariant.REASON
        broken(where, f"{seen} is cut {reason} without cause")
    seen.cut = reason
    seen.cut_at = mirror.now
    preempted = reason is Cut.PREEMPTED and not seen.ahead
    seen.clears = preempted and not _gives_way(phase, seen)
    _spare(phase, seen)


def spare_at_its_place(mirror: Mirror, seen: Seen) -> None:
    """For a sub-run whose window has closed, or that is due: what it cut came before it."""
    cut_now = [above for above in seen.ancestors() if above.cut_at == mirror.now]
    if any(above.cut is Cut.SUPERSEDED and above.session is seen.session for above in cut_now):
        seen.spared += [(above.ticket, above.cut) for above in cut_now]


def _may_cut(mirror: Mirror, phase: Phase, seen: Seen, reason: Cut) -> bool:
    run, now = seen.run, mirror.now
    match reason:
        case Cut.STOPPED:
            return ending.is_stopped(phase, seen)
        case Cut.SUPERSEDED:
            phase.superseded.append(seen.session)
            return True
        case Cut.DEADLINE:
            return run.deadline_at is not None and run.deadline_at <= now
        case Cut.TIMED_OUT | Cut.OVERRAN:
            again = seen.retries < run.retries
            took_too_long = run.timeout is not None and seen.started_at + run.timeout <= now
            return took_too_long and again is (reason is Cut.OVERRAN)
        case Cut.DRAINED:
            return phase.cutting_all and not seen.ahead
        case Cut.PREEMPTED if seen.ahead:
            return _gives_way(phase, seen) or ahead.may_be_called_back(mirror, phase, seen)
        case Cut.PREEMPTED:
            return _gives_way(phase, seen) or starting.may_preempt(mirror, seen)
        case _:
            return False


def _gives_way(phase: Phase, seen: Seen) -> bool:
    """Whether it is a heartbeat in the way of a message that has just come (F-4)."""
    return seen.heartbeat and any(new.session is seen.session for new in phase.placed)


def _spare(phase: Phase, seen: Seen) -> None:
    """A sub-run that cuts a turn above itself by its own arrival lives on without it."""
    arriving = [] if phase.arriving is None else [phase.arriving[0]]
    for new in (*arriving, *phase.placed):
        if seen in new.ancestors():
            by_arrival = new.session is seen.session and seen.cut in _BY_ARRIVAL
            along = any((top.ticket, top.cut) in new.spared for top in seen.ancestors())
            if by_arrival or along:
                new.spared.append((seen.ticket, seen.cut))
