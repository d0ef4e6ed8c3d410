"""Where a message must go: into a debounce window, or to its place in line (S-6, S-7)."""

from headway.model.run import Run
from headway.model.settings import QueueSettings
from headway.model.words import Drop, Mode, SteerFallback
from headway.testing.simulation.merging import window_key
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.phase import Phase
from headway.testing.simulation.seen import FINAL_CUTS, Seen, SeenAgent, SeenSession
from headway.testing.simulation.violation import Invariant, broken


def debounce(mirror: Mirror, seen: Seen, settings: QueueSettings) -> None:
    """A message goes into its window; collecting ones keep the session quiet."""
    seen.width = settings.max_concurrent
    mirror.open_window(seen, window_key(seen.run), settings.debounce)
    if settings.mode is Mode.COLLECT and seen.session.running:
        _extend_quiet(mirror, seen, settings)


def place(mirror: Mirror, phase: Phase, seen: Seen, settings: QueueSettings) -> None:
    """A message takes its place, and what it has brought about is checked."""
    session = seen.session
    dropped = _check_drops(mirror, phase, seen, settings)
    ended = session in phase.superseded
    phase.superseded = [other for other in phase.superseded if other is not session]
    was_busy = session.busy_for(settings.max_concurrent) or dropped or ended
    mode = settings.mode
    if mode is Mode.STEER and was_busy:
        if steerable(seen) is not None:
            phase.to_steer = seen
        elif settings.steer_fallback is SteerFallback.INTERRUPT and not session.only_beats:
            mode = Mode.INTERRUPT
    if mode is Mode.INTERRUPT and was_busy:
        seen.interrupts = True
        _check_interrupted(seen, session)
    elif ended:
        broken(Invariant.REASON, f"{seen} does not interrupt, but others are superseded for it")
    phase.placed.append(seen)
    seen.collect = mode is Mode.COLLECT
    if seen.collect and session.running:
        _extend_quiet(mirror, seen, settings)
    mirror.line_up(seen, first=mode is Mode.INTERRUPT and was_busy)


def steerable(seen: Seen) -> Seen | None:
    """The running turn that this message can go into."""
    return _turn_for(seen.agent, seen.session)


def interrupts(mirror: Mirror, session: SeenSession, run: Run, settings: QueueSettings) -> bool:
    """Whether a message that comes now will cancel what its busy session is at."""
    if settings.mode is Mode.STEER and settings.steer_fallback is SteerFallback.INTERRUPT:
        steered = _turn_for(mirror.agent(run.agent), session) is not None
        return not steered and not session.only_beats
    return settings.mode is Mode.INTERRUPT


def _turn_for(agent: SeenAgent, session: SeenSession) -> Seen | None:
    """The oldest running turn of this agent, if it can be steered; never a heartbeat."""
    if agent.settings.steerable:
        for turn in session.running:
            if turn.agent is agent and turn.cut is None and not (turn.heartbeat or turn.ahead):
                return turn
    return None


def _check_drops(mirror: Mirror, phase: Phase, seen: Seen, settings: QueueSettings) -> bool:
    """Whether others gave way for it; they may only where its queue was full (S-6)."""
    drops, phase.drops = phase.drops, []
    for other, count in drops:
        if other.session is not seen.session or count < settings.cap:
            broken(Invariant.REASON, f"{other} was dropped at {count} waiting for {seen}")
        if settings.drop is Drop.SUMMARIZE:
            mirror.memories.drop_line(other.run)
    if len(seen.session.messages()) >= settings.cap:
        broken(Invariant.VERDICT, f"{seen} joins a queue that is full")
    return bool(drops)


def _check_interrupted(seen: Seen, session: SeenSession) -> None:
    going_on = [other for other in session.running if other.cut not in FINAL_CUTS]
    going_on += session.messages()
    if going_on:
        broken(Invariant.STOPPED, f"{seen} interrupts, but {going_on} go on")


def _extend_quiet(mirror: Mirror, seen: Seen, settings: QueueSettings) -> None:
    """Collecting waits for one window from the last arrival, within its bound from the first."""
    session, span = seen.session, settings.debounce
    first = next((other for other in session.line if other.collect), seen)
    latest = first.run.submitted_at + span * mirror.settings.debounce_limit
    until = min(seen.run.submitted_at + span, latest)
    if span and until > mirror.now:
        session.quiet_until = max(session.quiet_until, until)
