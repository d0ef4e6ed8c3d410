"""For what a run must be refused at once, and where it waits if it is taken (F-1, S-6, S-9)."""

from headway.model.run import Run
from headway.model.words import Drop, Mode, Reason, Source, State
from headway.testing.simulation import placing
from headway.testing.simulation.merging import window_key
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.phase import Phase
from headway.testing.simulation.seen import Seen, Where

Refusal = tuple[State, Reason | None]


def refusals(mirror: Mirror, run: Run) -> set[Refusal]:
    """Every true reason to refuse this run; none if it must be taken."""
    found: set[Refusal] = set()
    if run.parent is not None:
        parent = mirror.runs.get(run.parent)
        if parent is None or not parent.ticket or parent.cut is not None:
            return {(State.CANCELLED, Reason.STOPPED)}
    elif mirror.draining:
        return {(State.CANCELLED, Reason.DRAINING)}
    if run.deadline_at is not None and run.deadline_at <= mirror.now:
        found.add((State.FAILED, Reason.DEADLINE_QUEUED))
    if run.source is Source.TASK and run.parent is None:
        limits, agent = mirror.limits, mirror.agent(run.agent)
        full = mirror.waiting_tasks() >= limits.max_queue
        if full or mirror.waiting_tasks(agent) >= limits.max_queue_per_agent:
            found.add((State.REJECTED, Reason.QUEUE_FULL))
    if run.source is Source.MESSAGE and not _is_later(mirror, run):
        found |= _message_refusals(mirror, run)
    return found


def admit(mirror: Mirror, phase: Phase, run: Run) -> None:
    """The run is taken: it waits for its time, its window or its turn."""
    parent = mirror.runs.get(run.parent) if run.parent is not None else None
    later = _is_later(mirror, run)
    settings = mirror.queue_settings(run)
    message = run.source is Source.MESSAGE
    pending = later or (message and settings.debounce > 0)
    seen = mirror.admit(run, parent, State.PENDING if pending else State.QUEUED)
    seen.width = settings.max_concurrent
    if later:
        seen.where = Where.LATER
        seen.session.later += 1
    elif not message:
        mirror.line_up(seen)
    elif pending:
        placing.debounce(mirror, seen, settings)
    else:
        phase.arriving = (seen, settings)


def keeps_out(waiter: Seen, other: Seen) -> bool:
    """Whether the waiter and those above it fill the session that the other run must wait for."""
    session = other.session
    holders = [run for run in (waiter, *waiter.ancestors()) if run.session is session]
    running = sum(1 for run in holders if run.ticket)
    return running > 0 and running >= session.width_for(other.width)


def _is_later(mirror: Mirror, run: Run) -> bool:
    return run.due_at is not None and run.due_at > mirror.now


def _message_refusals(mirror: Mirror, run: Run) -> set[Refusal]:
    found: set[Refusal] = set()
    if mirror.memories.is_stale(run):
        found.add((State.CANCELLED, Reason.STALE))
    session = mirror.sessions.get(run.session)
    if session is None:
        return found
    settings = mirror.queue_settings(run)
    busy = session.busy_for(settings.max_concurrent)
    if settings.mode is Mode.REJECT and busy:
        found.add((State.REJECTED, Reason.REJECTED_BUSY))
    full = settings.drop is Drop.NEW and len(session.messages()) >= settings.cap
    joins = settings.debounce > 0 and window_key(run) in session.windows
    clears = busy and placing.interrupts(mirror, session, run, settings)
    if full and not clears and not joins:
        found.add((State.REJECTED, Reason.QUEUE_FULL))
    return found
