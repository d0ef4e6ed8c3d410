"""Follows the kernel's actions one by one, and asks of each whether it may be.

What the simulator does just now (an attempt returns, a session is stopped) is written into `phase`
before the kernel is told, so that each action has a cause that can be checked.
"""

from collections.abc import Callable

from headway.core.actions import (
    Abandon,
    Action,
    AskEstimate,
    CancelAttempt,
    Enqueue,
    Finish,
    Limited,
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
from headway.model.outcome import Outcome
from headway.model.run import RunId
from headway.model.words import Cut, Reason, State
from headway.testing.simulation import ahead, cutting, ending, merging, placing, starting
from headway.testing.simulation.ledger import Ledger
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.phase import Phase
from headway.testing.simulation.seen import FINAL_CUTS, Seen, Where
from headway.testing.simulation.violation import Invariant, broken

_STEPS: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.QUEUED, State.CANCELLED, State.FAILED}),
    State.QUEUED: frozenset({State.ASSIGNED, State.PENDING, State.CANCELLED, State.FAILED}),
    State.ASSIGNED: frozenset({State.RUNNING, State.QUEUED, State.CANCELLED, State.FAILED}),
    State.RUNNING: frozenset(
        {State.DONE, State.FAILED, State.CANCELLED, State.QUEUED, State.PENDING}
    ),
}
"""The table of R, copied from the specification and not from the kernel."""

_BEFORE_ITS_PLACE = (Release, Remember, Unsteer)
_REASONS_BEFORE = frozenset({Reason.SUPERSEDED, Reason.QUEUE_DROPPED, Reason.STOPPED})


class Witness:
    """Sees every action, keeps the mirror in step, and objects."""

    def __init__(self, mirror: Mirror, ledger: Ledger) -> None:
        self.mirror = mirror
        self.ledger = ledger
        self.phase = Phase(mirror.now)
        self.outcomes: dict[RunId, Outcome] = {}
        self._heeders: dict[type[Action], Callable[..., None]] = {
            Start: self._start,
            Finish: self._finish,
            Enqueue: self._enqueue,
            Merge: self._merge,
            CancelAttempt: self._cancel,
            Abandon: self._abandon,
            Steer: self._steer,
            Unsteer: self._unsteer,
            AskEstimate: self._ask,
            Remember: self.ledger.remember,
            Release: self._release,
            NoteWait: self._note_wait,
            NoteLate: self._note_late,
            NoteHold: self._note_hold,
            NoteExhausted: self._note_exhausted,
            Respond: self._respond,
        }

    def heed(self, action: Action) -> None:
        """One action, in its turn."""
        if self.phase.arriving is not None and not _comes_before_its_place(action):
            self._arrive()
        self._heeders[type(action)](action)

    def close(self) -> None:
        """The call is over; the next one begins."""
        if self.phase.arriving is not None:
            self._arrive()
        self.phase.check_complete()
        self.phase = Phase(self.mirror.now)

    def advance(self, seen: Seen, target: State) -> None:
        if target not in _STEPS[seen.state]:
            broken(Invariant.TRANSITION, f"{seen} went from {seen.state} to {target}")
        seen.state = target

    def _seen(self, run_id: RunId, doing: str) -> Seen:
        seen = self.mirror.runs.get(run_id)
        if seen is None:
            what = "has its outcome" if run_id in self.outcomes else "was never submitted"
            broken(Invariant.ONE_OUTCOME, f"{doing} of {run_id}, which {what}")
        return seen

    def _arrive(self) -> None:
        """What a new message brings about has been seen: now it takes its place."""
        assert self.phase.arriving is not None
        seen, settings = self.phase.arriving
        self.phase.arriving = None
        if seen.run.id in self.mirror.runs:
            placing.place(self.mirror, self.phase, seen, settings)

    # Starts.

    def _start(self, action: Start) -> None:
        mirror = self.mirror
        seen = self._seen(action.run.id, "a start")
        if seen.ticket or action.ticket in mirror.attempts:
            broken(Invariant.SLOT_HELD, f"{seen} starts while its attempt {seen.ticket} lives")
        if seen.where is not Where.LINE:
            where = Invariant.STEERING if seen.where is Where.TURN else Invariant.SESSION_ORDER
            broken(where, f"{seen} starts from {seen.where.value}")
        self.ledger.check_epoch(seen.run.session, action.epoch)
        if action.attempt != seen.attempt + 1 or action.at != mirror.now:
            broken(Invariant.TRANSITION, f"{seen}: attempt {action.attempt} at {action.at}")
        if seen.offered_to is not None:
            broken(Invariant.STEERING, f"{seen} starts and is still offered to a turn")
        is_ahead = action.ticket in self.phase.ahead
        lender = None
        if is_ahead:
            ahead.check_start(mirror, seen, self.phase.since)
        else:
            lender = starting.check(mirror, seen, self.phase.since)
            self._check_note(seen)
        self.advance(seen, State.ASSIGNED)
        if seen.message:
            lines = (*seen.run.overflow, *mirror.memories.take_lines(seen.run.session))
            if action.run.overflow != lines:
                broken(Invariant.MEMORY, f"{seen} got {action.run.overflow}, not {lines}")
        seen.run = action.run
        mirror.start(seen, action.ticket, lender, ahead=is_ahead)

    def call_up(self, ticket: int) -> None:
        """One that was started ahead has got its slot: by the same rules as any that starts."""
        if self.phase.arriving is not None:
            self._arrive()
        seen = self.mirror.attempts.get(ticket)
        if seen is None or not seen.ahead or seen.cut is not None:
            broken(
                Invariant.AHEAD, f"attempt {ticket} of {seen} is called up, but waits for nothing"
            )
        starting.check_slot(self.mirror, seen, self.phase.since)
        self._check_note(seen)
        self.advance(seen, State.RUNNING)
        self.mirror.call_up(seen)

    def _check_note(self, seen: Seen) -> None:
        waited = self.mirror.now - seen.queued_at
        due = waited > self.mirror.settings.wait_notice and not seen.begun
        if due != (self.phase.noted == seen.run.id):
            broken(Invariant.WAIT_NOTICE, f"{seen} waited {waited}: note {self.phase.noted}")
        self.phase.noted = None

    def _note_wait(self, action: NoteWait) -> None:
        seen = self._seen(action.run.id, "a note")
        waited = self.mirror.now - seen.queued_at
        ahead = seen.lane.started - seen.started_before
        if (action.waited, action.ahead) != (waited, ahead):
            noted = f"{action.waited} and {action.ahead}"
            broken(Invariant.WAIT_NOTICE, f"{seen} waited {waited} behind {ahead}, noted {noted}")
        self.phase.noted = action.run.id

    # Ends.

    def _finish(self, action: Finish) -> None:
        run_id, outcome = action.run.id, action.outcome
        if action.at != self.mirror.now:
            broken(Invariant.TRANSITION, f"{run_id} ended at {action.at}")
        if outcome.reason not in ending.REASONS.get(outcome.state, ()):
            broken(Invariant.REASON, f"{run_id} ended {outcome.state}/{outcome.reason}")
        self.ledger.check_epoch(action.run.session, action.epoch)
        if run_id == self.phase.refused and run_id not in self.outcomes:
            self.outcomes[run_id] = outcome
            return
        seen = self._seen(run_id, f"outcome {outcome.state}/{outcome.reason}")
        if action.started_at != (seen.started_at if seen.begun else None):
            broken(Invariant.TRANSITION, f"{seen} is said to have begun at {action.started_at}")
        if seen.ticket:
            ending.check_returned(self.phase, seen)
            expected = ending.end_of(self.mirror, self.phase, seen)
            if expected != (outcome.state, outcome.reason):
                got = f"{outcome.state}/{outcome.reason}"
                broken(Invariant.REASON, f"{seen} ended {got}, not {expected}")
            self.mirror.step_down(seen)
        else:
            ending.check_cause(self.mirror, self.phase, seen, outcome)
            self.mirror.take_out(seen)
        self.advance(seen, outcome.state)
        self.outcomes[run_id] = outcome
        self.mirror.forget(seen)

    # Waiting.

    def _enqueue(self, action: Enqueue) -> None:
        seen = self._seen(action.run.id, "a queueing")
        self.ledger.check_epoch(seen.run.session, action.epoch)
        if seen.ticket:
            self._queue_again(seen, action)
        elif seen.where is Where.LINE and action.standing is not None and _keeps(seen, action):
            pass
        elif action.state is State.PENDING:
            self._note_pending(seen, action)
        elif action.state is not State.QUEUED or action.attempt != seen.attempt:
            broken(Invariant.TRANSITION, f"{seen} waits as {action.state}")
        else:
            self.advance(seen, State.QUEUED)
            self._line_up(seen)

    def _line_up(self, seen: Seen) -> None:
        """It was held back, and is no longer: its retry, its due time or its window has come."""
        mirror, now = self.mirror, self.mirror.now
        settings = mirror.queue_settings(seen.run)
        if seen.where is Where.LINE:
            if seen.until is None or seen.until > now:
                broken(Invariant.WINDOW, f"{seen} is released before {seen.until}")
            seen.until = None
            return
        if seen.where is Where.LATER:
            if seen.run.due_at is None or seen.run.due_at > now:
                broken(Invariant.WINDOW, f"{seen} is queued before it is due")
            seen.width = settings.max_concurrent
        elif seen.where is Where.WINDOW:
            assert seen.window is not None
            window = seen.session.windows[seen.window]
            if window.closes_at > now or len(window.parts) > 1:
                broken(Invariant.WINDOW, f"{seen} is queued before its window closed")
        mirror.take_out(seen)
        if seen.message:
            cutting.spare_at_its_place(mirror, seen)
            placing.place(mirror, self.phase, seen, settings)
        else:
            mirror.line_up(seen)

    def _note_pending(self, seen: Seen, action: Enqueue) -> None:
        """A new run waits outside the line: until it is due, or its window closes."""
        until = seen.run.due_at
        if seen.where is Where.LATER and until is not None and until <= self.mirror.now:
            self._into_window(seen)
        if seen.where is Where.WINDOW:
            assert seen.window is not None
            until = seen.session.windows[seen.window].closes_at
        elif seen.where is not Where.LATER:
            broken(Invariant.WINDOW, f"{seen} is pending in {seen.where.value}")
        if action.until != until or seen.state is not State.PENDING:
            broken(Invariant.WINDOW, f"{seen} is pending until {action.until}, not {until}")

    def _into_window(self, seen: Seen) -> None:
        """A message that has become due is debounced like one that has just come."""
        settings = self.mirror.queue_settings(seen.run)
        if not seen.message or not settings.debounce or self.mirror.memories.is_stale(seen.run):
            broken(Invariant.WINDOW, f"{seen} is due and does not take its place")
        self.mirror.take_out(seen)
        placing.debounce(self.mirror, seen, settings)

    def _queue_again(self, seen: Seen, action: Enqueue) -> None:
        mirror = self.mirror
        ending.queue_again(mirror, self.phase, seen, action)
        if seen.until is not None and seen.state is State.ASSIGNED:
            self.advance(seen, State.QUEUED)
        self.advance(seen, State.QUEUED if seen.until is None else State.PENDING)
        mirror.rejoin(seen)
        taken, seen.taken = seen.taken, []
        for message in taken:
            message.taken_by = None
            mirror.rejoin(message)

    def _merge(self, action: Merge) -> None:
        self.ledger.check_epoch(action.run.session, action.epoch)
        merging.merge(self.mirror, action.run)

    # Cuts.

    def _cancel(self, action: CancelAttempt) -> None:
        mirror = self.mirror
        seen = mirror.attempts.get(action.ticket)
        if seen is None or seen.run.id != action.run.id:
            broken(Invariant.ONE_OUTCOME, f"attempt {action.ticket} is cut, but it is over")
        if seen.cut in FINAL_CUTS or seen.cut is action.cut:
            broken(Invariant.REASON, f"{seen} is cut {seen.cut}, then {action.cut}")
        cutting.cut(mirror, self.phase, seen, action.cut)

    def _abandon(self, action: Abandon) -> None:
        seen = self.mirror.attempts.get(action.ticket)
        if seen is None or seen.cut is None:
            broken(Invariant.SLOT_HELD, f"attempt {action.ticket} is abandoned, but was not cut")
        if self.mirror.now < seen.cut_at + self.mirror.settings.cancel_grace:
            broken(Invariant.SLOT_HELD, f"{seen} is abandoned before its grace is over")
        self.phase.abandoned = seen

    # Steering.

    def _steer(self, action: Steer) -> None:
        message = self._seen(action.message.id, "a steering")
        turn = self.mirror.attempts.get(action.into)
        if turn is None or turn is not placing.steerable(message):
            broken(Invariant.STEERING, f"{message} is offered to {turn}")
        if message is not self.phase.to_steer or message.where is not Where.LINE:
            broken(Invariant.STEERING, f"{message} is offered, but was not to be")
        self.phase.to_steer = None
        message.offered_to = turn

    def _unsteer(self, action: Unsteer) -> None:
        if action.message.id in self.phase.losing:
            return
        message = self._seen(action.message.id, "an end of steering")
        if message.offered_to is None:
            broken(Invariant.STEERING, f"{message} is taken back, but was not offered")
        message.offered_to = None

    # Sessions, and what is noted.

    def _ask(self, action: AskEstimate) -> None:
        session = self.mirror.session(action.session)
        if session.asked or session.tight is not None or not session.running or not session.line:
            broken(Invariant.SESSION_LIMIT, f"an estimate of {session.key} is asked for nothing")
        session.asked = True

    def _respond(self, action: Respond) -> None:
        self.ledger.check_epoch(action.order.session, action.epoch)

    def _release(self, action: Release) -> None:
        session = self.mirror.sessions.get(action.session)
        if session is not None and not session.idle:
            broken(Invariant.MEMORY, f"session {session.key} is released and not idle")
        self.mirror.sessions.pop(action.session, None)
        self.ledger.release(action)

    def _note_late(self, action: NoteLate) -> None:
        if action.ticket != self.phase.late:
            broken(Invariant.LATE_RESULT, f"attempt {action.ticket} is said to be late")
        self.phase.late = None

    def _note_hold(self, action: NoteHold) -> None:
        holds = self.mirror.holds
        seen, ended = self.phase.returning or (None, None)
        if seen is None or not isinstance(ended, Limited) or not self.phase.limits:
            broken(Invariant.BUDGET, f"{action.provider} is held without a rate limit")
        name = seen.agent.settings.provider or seen.agent.name
        if (action.provider, action.until) != (name, self.mirror.now + ended.retry_after):
            broken(Invariant.BUDGET, f"{action.provider} is held until {action.until}")
        self.phase.limits = False
        holds[name] = max(holds.get(name, 0), action.until)

    def _note_exhausted(self, action: NoteExhausted) -> None:
        if action.run.id != self.phase.gives_up:
            broken(Invariant.RESUMING, f"{action.run.id} is said to be given up")
        self.phase.gives_up = None


def _keeps(seen: Seen, action: Enqueue) -> bool:
    """Whether the action only says where a run in line stands, for whoever owns its session next."""
    known = (seen.state, seen.attempt, seen.until)
    return not action.ended and known == (action.state, action.attempt, action.until)


def _comes_before_its_place(action: Action) -> bool:
    """What a new message brings about before it stands in line itself."""
    if isinstance(action, Finish):
        return action.outcome.reason in _REASONS_BEFORE
    if isinstance(action, CancelAttempt):
        return action.cut is not Cut.PREEMPTED
    return isinstance(action, _BEFORE_ITS_PLACE)
