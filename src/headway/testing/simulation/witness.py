"""Follows the kernel's actions one by one, and asks of each whether it may be.

What the simulator does just now (an attempt returns, a session is stopped) is written into the witness before
the kernel is told, so that each action has a cause that can be checked.
"""

from collections.abc import Callable

from headway.core.actions import (
    Abandon,
    Action,
    AskEstimate,
    CancelAttempt,
    Done,
    Ended,
    Enqueue,
    Failed,
    Finish,
    Limited,
    Merge,
    NoteHold,
    NoteLate,
    NoteWait,
    Release,
    Remember,
    Start,
    Steer,
    Unsteer,
)
from headway.model.outcome import Outcome
from headway.model.run import RunId
from headway.model.settings import QueueSettings
from headway.model.time import Instant
from headway.model.words import Cut, Drop, Mode, Reason, State, SteerFallback
from headway.testing.simulation import merging, starting
from headway.testing.simulation.ledger import Ledger
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.seen import FINAL_CUTS, RETRY_DELAYS, Seen, SeenSession, Where
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

_REASONS: dict[State, frozenset[Reason | None]] = {
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
_CUT_ENDS: dict[Cut, tuple[State, Reason]] = {
    Cut.STOPPED: (State.CANCELLED, Reason.STOPPED),
    Cut.SUPERSEDED: (State.CANCELLED, Reason.SUPERSEDED),
    Cut.DEADLINE: (State.FAILED, Reason.DEADLINE_RUNNING),
    Cut.TIMED_OUT: (State.FAILED, Reason.TIMED_OUT),
    Cut.DRAINED: (State.CANCELLED, Reason.DRAINING),
}
_BEFORE_ITS_PLACE = (Release, Remember, Unsteer)
_BEFORE_ITS_PLACE_REASONS = frozenset({Reason.SUPERSEDED, Reason.QUEUE_DROPPED, Reason.STOPPED})
_MANY_RATE_LIMITS = 10


class Witness:
    """Sees every action, keeps the mirror in step, and objects."""

    def __init__(self, mirror: Mirror, ledger: Ledger) -> None:
        self.mirror = mirror
        self.ledger = ledger
        self.outcomes: dict[RunId, Outcome] = {}
        self.since: Instant = mirror.now
        """Instants after this one may have been reached only in this phase."""
        self.returning: tuple[Seen, Ended] | None = None
        self._returned = False
        self.arriving: tuple[Seen, QueueSettings] | None = None
        self.refused: RunId | None = None
        self.ending: frozenset[RunId] = frozenset()
        """What a stop, clear or drain may end just now, with `ending_as`."""
        self.ending_as: Reason | None = None
        self.resetting = False
        self.cutting_all = False
        self._abandoned: Seen | None = None
        self._noted: RunId | None = None
        self._superseded: list[SeenSession] = []
        self._interrupted: list[SeenSession] = []
        self._placed: list[Seen] = []
        """Messages that came into line in this phase; they may cut turns."""
        self._drops: list[tuple[Seen, int]] = []
        """Messages that gave way, and how many waited then: who they gave way to comes next."""
        self._expected_steer: Seen | None = None
        self._late: int | None = None
        self._expects_hold = False
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
            Remember: self._remember,
            Release: self._release,
            NoteWait: self._note_wait,
            NoteLate: self._note_late,
            NoteHold: self._note_hold,
        }

    def heed(self, action: Action) -> None:
        """One action, in its turn."""
        if self.arriving is not None and not self._comes_before_its_place(action):
            self._arrive()
        self._heeders[type(action)](action)

    def close(self) -> None:
        """The phase is over: what was begun in it must be complete."""
        if self.arriving is not None:
            self._arrive()
        for session in self._superseded:
            if session not in self._interrupted:
                broken(Invariant.REASON, f"session {session.key} was superseded by nothing")
        if self._drops:
            broken(Invariant.REASON, f"{self._drops[0][0]} was dropped for nothing")
        if self._expected_steer is not None:
            broken(Invariant.STEERING, f"{self._expected_steer} was not offered to a turn")
        if self._late is not None or self._expects_hold:
            broken(Invariant.LATE_RESULT, "a late result or a rate limit was not noted")
        if self._abandoned is not None:
            broken(Invariant.ONE_OUTCOME, f"{self._abandoned} was abandoned and goes on")
        if self.returning is not None and not self._returned:
            broken(Invariant.ONE_OUTCOME, f"{self.returning[0]} has returned and goes on")
        self._superseded.clear()
        self._interrupted.clear()
        self._placed.clear()
        self.returning = self.refused = self.ending_as = None
        self._returned = False
        self.ending = frozenset()
        self.resetting = self.cutting_all = False

    def seen(self, run_id: RunId, doing: str) -> Seen:
        seen = self.mirror.runs.get(run_id)
        if seen is None:
            what = "has its outcome" if run_id in self.outcomes else "was never submitted"
            broken(Invariant.ONE_OUTCOME, f"{doing} of {run_id}, which {what}")
        return seen

    def advance(self, seen: Seen, target: State) -> None:
        if target not in _STEPS[seen.state]:
            broken(Invariant.TRANSITION, f"{seen} went from {seen.state} to {target}")
        seen.state = target

    # Starts.

    def _start(self, action: Start) -> None:
        mirror = self.mirror
        seen = self.seen(action.run.id, "a start")
        if seen.ticket or action.ticket in mirror.attempts:
            broken(Invariant.SLOT_HELD, f"{seen} starts while its attempt {seen.ticket} lives")
        if seen.where is not Where.LINE:
            where = Invariant.STEERING if seen.where is Where.TURN else Invariant.SESSION_ORDER
            broken(where, f"{seen} starts from {seen.where.value}")
        self.advance(seen, State.ASSIGNED)
        self.ledger.check_epoch(seen.run.session, action.epoch)
        if action.attempt != seen.attempt + 1 or action.at != mirror.now:
            broken(Invariant.TRANSITION, f"{seen}: attempt {action.attempt} at {action.at}")
        if seen.offered_to is not None:
            broken(Invariant.STEERING, f"{seen} starts and is still offered to a turn")
        lender = starting.check(mirror, seen, self.since)
        self._check_note(seen)
        if seen.message:
            lines = (*seen.run.overflow, *mirror.take_lines(seen.run.session))
            if action.run.overflow != lines:
                broken(Invariant.MEMORY, f"{seen} got {action.run.overflow}, not {lines}")
        seen.run = action.run
        mirror.start(seen, action.ticket, lender)

    def _check_note(self, seen: Seen) -> None:
        waited = self.mirror.now - seen.queued_at
        due = waited > self.mirror.settings.wait_notice and not seen.begun
        if due != (self._noted == seen.run.id):
            broken(Invariant.WAIT_NOTICE, f"{seen} waited {waited}: note {self._noted}")
        self._noted = None

    def _note_wait(self, action: NoteWait) -> None:
        seen = self.seen(action.run.id, "a note")
        waited = self.mirror.now - seen.queued_at
        ahead = seen.lane.started - seen.started_before
        if (action.waited, action.ahead) != (waited, ahead):
            broken(
                Invariant.WAIT_NOTICE,
                f"{seen} waited {waited} behind {ahead}, noted {action.waited} and {action.ahead}",
            )
        self._noted = action.run.id

    # Ends.

    def _finish(self, action: Finish) -> None:
        run_id, outcome = action.run.id, action.outcome
        if action.at != self.mirror.now:
            broken(Invariant.TRANSITION, f"{run_id} ended at {action.at}")
        if outcome.reason not in _REASONS.get(outcome.state, ()):
            broken(Invariant.REASON, f"{run_id} ended {outcome.state}/{outcome.reason}")
        if run_id == self.refused and run_id not in self.outcomes:
            self.ledger.check_epoch(action.run.session, action.epoch)
            self.outcomes[run_id] = outcome
            return
        seen = self.seen(run_id, f"outcome {outcome.state}/{outcome.reason}")
        self.ledger.check_epoch(seen.run.session, action.epoch)
        if seen.ticket:
            self._check_returned(seen)
            expected = self._end_of(seen)
            if expected != (outcome.state, outcome.reason):
                got = f"{outcome.state}/{outcome.reason}"
                broken(Invariant.REASON, f"{seen} ended {got}, not {expected}")
            self.mirror.step_down(seen)
        else:
            self._check_cause(seen, outcome)
            self.mirror.take_out(seen)
        self.advance(seen, outcome.state)
        self.outcomes[run_id] = outcome
        self.mirror.forget(seen)

    def _check_returned(self, seen: Seen) -> None:
        """An attempt's slots are given back only when it has returned, was abandoned or belongs to the past."""
        if self.returning is not None and self.returning[0] is seen and not self._returned:
            self._returned = True
            return
        if self._abandoned is seen:
            self._abandoned = None
        elif not self.resetting:
            broken(Invariant.SLOT_HELD, f"{seen} gave back its slots and has not returned")

    def _end_of(self, seen: Seen) -> tuple[State, Reason | None] | None:
        """How a run ends with this attempt; None if it lives on."""
        cut = Cut.DRAINED if self.resetting and seen.cut is None else seen.cut
        if cut is Cut.PREEMPTED:
            return self._end_if_preempted()
        if cut is not None:
            allowed = seen.attempt < seen.run.max_attempts
            if cut is Cut.DRAINED and allowed and (self.resetting or self.mirror.keeps_waiting):
                return None
            return _CUT_ENDS[cut]
        assert self.returning is not None
        match self.returning[1]:
            case Done():
                return State.DONE, None
            case Failed(reason=reason, permanent=permanent):
                if permanent or seen.retries >= seen.run.retries:
                    return State.FAILED, reason
            case Limited(retry_after=pause):
                deadline_at = seen.run.deadline_at
                often = seen.limited + 1 >= _MANY_RATE_LIMITS
                if often or (deadline_at is not None and self.mirror.now + pause >= deadline_at):
                    return State.FAILED, Reason.RATE_LIMITED
        return self._end_if_preempted()

    def _end_if_preempted(self) -> tuple[State, Reason] | None:
        """A run that would wait again: a drain that keeps nothing ends it, for it would never start."""
        if self.mirror.draining and not self.mirror.keeps_waiting:
            return State.CANCELLED, Reason.DRAINING
        return None

    def _check_cause(self, seen: Seen, outcome: Outcome) -> None:
        """Whether this is a true reason for a run that was not running."""
        reason = outcome.reason
        if reason is Reason.MERGED:
            into = seen.taken_by.run.id if seen.taken_by is not None else seen.merging_into
            true = outcome.into is not None and outcome.into == into
        elif reason is Reason.SUPERSEDED:
            self._superseded.append(seen.session)
            true = seen.where is Where.LINE and (seen.message or seen.begun)
        elif reason is Reason.QUEUE_DROPPED:
            true = self._dropped(seen)
        elif reason is Reason.DRAINING:
            ends = self.mirror.draining and not self.mirror.keeps_waiting
            true = ends and seen.waits and not self.mirror.may_start_draining(seen)
        elif reason is Reason.DEADLINE_QUEUED:
            true = seen.run.deadline_at is not None and seen.run.deadline_at <= self.mirror.now
        elif reason is Reason.STALE:
            due = seen.run.due_at is not None and seen.run.due_at <= self.mirror.now
            true = seen.where is Where.LATER and due and self.mirror.is_stale(seen.run)
        elif reason is Reason.STOPPED:
            true = seen.waits and self._is_stopped(seen)
        else:
            true = reason is self.ending_as and seen.run.id in self.ending and seen.waits
        if not true:
            broken(Invariant.REASON, f"{seen} ended {outcome.state}/{reason} in {seen.where.value}")

    def _is_stopped(self, seen: Seen) -> bool:
        told = self.ending_as is Reason.STOPPED and seen.run.id in self.ending
        return told or seen.ends_with_parent

    def _dropped(self, seen: Seen) -> bool:
        mirror = self.mirror
        messages = seen.session.messages()
        if seen.where is not Where.LINE:
            settings = mirror.queue_settings(seen.run)
            return settings.drop is Drop.NEW and len(messages) >= settings.cap
        self._drops.append((seen, len(messages)))
        return bool(messages) and messages[0] is seen

    # Waiting again.

    def _enqueue(self, action: Enqueue) -> None:
        seen = self.seen(action.run.id, "a queueing")
        self.ledger.check_epoch(seen.run.session, action.epoch)
        if seen.ticket:
            self._queue_again(seen, action)
            return
        if action.state is State.PENDING:
            self._note_pending(seen, action)
            return
        now = self.mirror.now
        if action.state is not State.QUEUED or action.attempt != seen.attempt:
            broken(Invariant.TRANSITION, f"{seen} waits as {action.state}")
        self.advance(seen, State.QUEUED)
        if seen.where is Where.LINE:
            if seen.until is None or seen.until > now:
                broken(Invariant.WINDOW, f"{seen} is released before {seen.until}")
            seen.until = None
            return
        if seen.where is Where.LATER and (seen.run.due_at is None or seen.run.due_at > now):
            broken(Invariant.WINDOW, f"{seen} is queued before it is due")
        if seen.where is Where.WINDOW:
            self._check_window(seen)
        settings = self.mirror.queue_settings(seen.run)
        if seen.where is Where.LATER:
            seen.width = settings.max_concurrent
        self.mirror.take_out(seen)
        if seen.message:
            self._place(seen, settings)
        else:
            self.mirror.line_up(seen)

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
        if not seen.message or not settings.debounce or self.mirror.is_stale(seen.run):
            broken(Invariant.WINDOW, f"{seen} is due and does not take its place")
        self.mirror.take_out(seen)
        self.debounce(seen, settings)

    def debounce(self, seen: Seen, settings: QueueSettings) -> None:
        """A message goes into its window; collecting ones keep the session quiet."""
        seen.width = settings.max_concurrent
        self.mirror.open_window(seen, merging.window_key(seen.run), settings.debounce)
        if settings.mode is Mode.COLLECT and seen.session.running:
            self._extend_quiet(seen, settings)

    def _check_window(self, seen: Seen) -> None:
        assert seen.window is not None
        window = seen.session.windows[seen.window]
        if window.closes_at > self.mirror.now or len(window.parts) > 1:
            broken(Invariant.WINDOW, f"{seen} is queued before its window closed")

    def _queue_again(self, seen: Seen, action: Enqueue) -> None:
        mirror = self.mirror
        self._check_returned(seen)
        cut = Cut.DRAINED if self.resetting and seen.cut is None else seen.cut
        expected = self._end_of(seen)
        if expected is not None:
            what = Invariant.STOPPED if cut is Cut.STOPPED else Invariant.REASON
            broken(what, f"{seen} lives on, but its end was {expected}")
        until, attempt = self._retry_at(seen, action.until) if cut is None else (None, seen.attempt)
        if cut is Cut.PREEMPTED:
            attempt -= 1
        if (action.until, action.cut, action.attempt) != (until, cut, attempt):
            got = (action.until, action.cut, action.attempt)
            broken(
                Invariant.TRANSITION, f"{seen} waits again as {got}, not {(until, cut, attempt)}"
            )
        mirror.step_down(seen)
        if until is not None and seen.state is State.ASSIGNED:
            self.advance(seen, State.QUEUED)
        self.advance(seen, State.QUEUED if until is None else State.PENDING)
        seen.attempt = attempt
        seen.until = until
        mirror.rejoin(seen)
        taken, seen.taken = seen.taken, []
        for message in taken:
            message.taken_by = None
            mirror.rejoin(message)

    def _retry_at(self, seen: Seen, until: Instant | None) -> tuple[Instant | None, int]:
        """When the run is tried again after this end of its attempt, and what its attempts count then."""
        assert self.returning is not None
        ended, now = self.returning[1], self.mirror.now
        if isinstance(ended, Limited):
            seen.limited += 1
            return now + ended.retry_after, seen.attempt - 1
        seen.limited = 0
        plain = RETRY_DELAYS[min(seen.retries, len(RETRY_DELAYS) - 1)]
        seen.retries += 1
        if until is not None and abs(until - now - plain) <= plain / 4:
            return until, seen.attempt
        return now + plain, seen.attempt

    # Places in line.

    def _comes_before_its_place(self, action: Action) -> bool:
        """What a new message brings about before it stands in line itself."""
        if isinstance(action, Finish):
            return action.outcome.reason in _BEFORE_ITS_PLACE_REASONS
        if isinstance(action, CancelAttempt):
            return action.cut is not Cut.PREEMPTED
        return isinstance(action, _BEFORE_ITS_PLACE)

    def _arrive(self) -> None:
        assert self.arriving is not None
        seen, settings = self.arriving
        self.arriving = None
        if seen.run.id in self.mirror.runs:
            self._place(seen, settings)

    def _place(self, seen: Seen, settings: QueueSettings) -> None:
        """A message takes its place, by its mode if its session is busy."""
        session, mode = seen.session, settings.mode
        dropped, self._drops = self._drops, []
        for other, count in dropped:
            if other.session is not session or count < settings.cap:
                broken(Invariant.REASON, f"{other} was dropped at {count} waiting for {seen}")
            if settings.drop is Drop.SUMMARIZE:
                self.mirror.drop_line(other)
        if len(session.messages()) >= settings.cap:
            broken(Invariant.VERDICT, f"{seen} joins a queue that is full")
        target = self._steerable(seen) if mode is Mode.STEER else None
        full = len(session.running) >= session.width_for(seen.width)
        was_busy = bool(session.line or dropped) or full or session in self._superseded
        if mode is Mode.STEER and target is None and was_busy:
            if settings.steer_fallback is SteerFallback.INTERRUPT:
                mode = Mode.INTERRUPT
        if mode is Mode.INTERRUPT and was_busy:
            self._interrupted.append(session)
            going_on = [other for other in session.running if other.cut not in FINAL_CUTS]
            left = session.messages()
            if going_on or left:
                broken(Invariant.STOPPED, f"{seen} interrupts, but {going_on + left} go on")
        self._placed.append(seen)
        seen.collect = mode is Mode.COLLECT
        if seen.collect and session.running:
            self._extend_quiet(seen, settings)
        if mode is Mode.STEER and target is not None and was_busy:
            self._expected_steer = seen
        self.mirror.line_up(seen, first=mode is Mode.INTERRUPT)

    def _steerable(self, seen: Seen) -> Seen | None:
        if seen.agent.settings.steerable:
            for turn in seen.session.running:
                if turn.agent is seen.agent and turn.cut is None:
                    return turn
        return None

    def _extend_quiet(self, seen: Seen, settings: QueueSettings) -> None:
        session, span = seen.session, settings.debounce
        first = next((other for other in session.line if other.collect), seen)
        latest = first.run.submitted_at + span * self.mirror.settings.debounce_limit
        until = min(seen.run.submitted_at + span, latest)
        if span and until > self.mirror.now:
            session.quiet_until = max(session.quiet_until, until)

    def _merge(self, action: Merge) -> None:
        self.ledger.check_epoch(action.run.session, action.epoch)
        merging.merge(self.mirror, action.run)

    # Cuts.

    def _cancel(self, action: CancelAttempt) -> None:
        mirror = self.mirror
        seen = mirror.attempts.get(action.ticket)
        if seen is None or seen.run.id != action.run.id:
            broken(Invariant.ONE_OUTCOME, f"attempt {action.ticket} is cut, but it is over")
        cut, now, run = action.cut, mirror.now, seen.run
        if seen.cut in FINAL_CUTS or seen.cut is cut:
            broken(Invariant.REASON, f"{seen} is cut {seen.cut}, then {cut}")
        if cut is Cut.STOPPED:
            true = self._is_stopped(seen)
        elif cut is Cut.SUPERSEDED:
            self._superseded.append(seen.session)
            true = True
            if self.arriving is not None and seen in self.arriving[0].ancestors():
                self.arriving[0].spared = True
        elif cut is Cut.DEADLINE:
            true = run.deadline_at is not None and run.deadline_at <= now
        elif cut is Cut.TIMED_OUT:
            true = run.timeout is not None and seen.started_at + run.timeout <= now
        elif cut is Cut.DRAINED:
            true = self.cutting_all
        else:
            true = cut is Cut.PREEMPTED and starting.may_preempt(mirror, seen, self.since)
        if not true:
            where = Invariant.PREEMPTION if cut is Cut.PREEMPTED else Invariant.REASON
            broken(where, f"{seen} is cut {cut} without cause")
        seen.cut = cut
        seen.cut_at = now
        seen.clears = cut is Cut.PREEMPTED and not starting.gives_way(seen)
        for other in self._placed:
            if seen in other.ancestors():
                other.spared = True

    def _abandon(self, action: Abandon) -> None:
        seen = self.mirror.attempts.get(action.ticket)
        if seen is None or seen.cut is None:
            broken(Invariant.SLOT_HELD, f"attempt {action.ticket} is abandoned, but was not cut")
        if self.mirror.now < seen.cut_at + self.mirror.settings.cancel_grace:
            broken(Invariant.SLOT_HELD, f"{seen} is abandoned before its grace is over")
        self._abandoned = seen

    # Steering.

    def _steer(self, action: Steer) -> None:
        message = self.seen(action.message.id, "a steering")
        turn = self.mirror.attempts.get(action.into)
        if turn is None or turn is not self._steerable(message):
            broken(Invariant.STEERING, f"{message} is offered to {turn}")
        if message is not self._expected_steer or message.where is not Where.LINE:
            broken(Invariant.STEERING, f"{message} is offered, but was not to be")
        self._expected_steer = None
        message.offered_to = turn

    def _unsteer(self, action: Unsteer) -> None:
        message = self.seen(action.message.id, "an end of steering")
        if message.offered_to is None:
            broken(Invariant.STEERING, f"{message} is taken back, but was not offered")
        message.offered_to = None

    # Sessions.

    def _ask(self, action: AskEstimate) -> None:
        session = self.mirror.session(action.session)
        if session.asked or session.tight is not None or not session.running or not session.line:
            broken(Invariant.SESSION_LIMIT, f"an estimate of {session.key} is asked for nothing")
        session.asked = True

    def _remember(self, action: Remember) -> None:
        self.ledger.remember(action)

    def _release(self, action: Release) -> None:
        session = self.mirror.sessions.get(action.session)
        if session is not None and not session.idle:
            broken(Invariant.MEMORY, f"session {session.key} is released and not idle")
        self.mirror.sessions.pop(action.session, None)
        self.ledger.release(action)

    # Notes.

    def expect_hold(self) -> None:
        """The attempt that returns reports a rate limit: its provider must be held back."""
        self._expects_hold = True

    def expect_late(self, ticket: int) -> None:
        self._late = ticket

    def _note_late(self, action: NoteLate) -> None:
        if action.ticket != self._late:
            broken(Invariant.LATE_RESULT, f"attempt {action.ticket} is said to be late")
        self._late = None

    def _note_hold(self, action: NoteHold) -> None:
        mirror = self.mirror
        returning = self.returning
        if returning is None or not isinstance(returning[1], Limited):
            broken(Invariant.BUDGET, f"{action.provider} is held without a rate limit")
        if action.until != mirror.now + returning[1].retry_after:
            broken(Invariant.BUDGET, f"{action.provider} is held until {action.until}")
        self._expects_hold = False
        name = returning[0].agent.settings.provider or returning[0].agent.name
        if action.provider != name:
            broken(Invariant.BUDGET, f"{action.provider} is held for {name}")
        mirror.holds[action.provider] = max(mirror.holds.get(action.provider, 0), action.until)
