"""Tells one kernel what happens, one thing at a time, and checks all that comes of it.

Nothing here is random. A test can play a history by hand with it: each call is checked as the simulator checks
it, and raises `Violation` as soon as an invariant does not hold.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import TypeVar

import msgspec

from headway.core.actions import (
    Abandon,
    Action,
    AskEstimate,
    Ended,
    Limited,
    Release,
    Steer,
    Stopped,
)
from headway.core.kernel import Kernel
from headway.model.errors import WouldDeadlock
from headway.model.outcome import Outcome
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Route,
    Run,
    RunId,
    SessionKey,
)
from headway.model.settings import AgentSettings, LaneSettings, Limits, QueueSettings, Settings
from headway.model.time import SECOND, Instant
from headway.model.words import Cut, Drop, Mode, Reason, Source, State, SteerFallback
from headway.testing.simulation.audit import audit, audit_end, follow_lending
from headway.testing.simulation.invariants import check_instants, check_standing, check_why
from headway.testing.simulation.ledger import Ledger
from headway.testing.simulation.merging import window_key
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.seen import FINAL_CUTS, Seen, SeenSession, Where
from headway.testing.simulation.violation import Invariant, Violation, broken
from headway.testing.simulation.witness import Witness

Answer = TypeVar("Answer")
Doing = tuple[object, ...]
"""What was done, for the log; made into text only if somebody reads it."""

BEGINNING: Instant = 1_000 * SECOND


class Driver:
    """A kernel, and everything that watches it."""

    def __init__(
        self, settings: Settings, *, kernel: type[Kernel] = Kernel, gated: bool = False
    ) -> None:
        self.kernel = kernel(settings, BEGINNING)
        self.kernel.set_gated(gated)
        self.mirror = Mirror(settings, BEGINNING)
        self.mirror.gated = gated
        self.ledger = Ledger()
        self.witness = Witness(self.mirror, self.ledger)
        self.submitted: list[RunId] = []
        self.late: list[int] = []
        """Attempts that count no longer and have not returned."""
        self.asked: list[SessionKey] = []
        """Estimates that are owed an answer."""
        self.offers: list[tuple[int, RunId]] = []
        """Messages in the inbox of an attempt, also those that were taken back since."""
        self.log: list[tuple[Instant, Doing, list[Action]]] = []
        self._twin: Kernel | None = None
        self._told: list[Action] = []

    @property
    def now(self) -> Instant:
        return self.mirror.now

    # Time.

    def pass_time(self, now: Instant) -> None:
        """Nothing happens but time."""
        self.witness.since, self.mirror.now = self.mirror.now, now
        self._tell(lambda kernel: kernel.time_passed(now), ("time passes",), twin=False)
        self.witness.since = now
        check_instants(self.mirror)

    # Submissions and attempts.

    def submit(self, run: Run) -> Outcome | None:
        self.submitted.append(run.id)
        held = self.ledger.admit(run.session)
        memory = self.ledger.memories.get(run.session)
        refusals = self._refusals(run)
        if refusals:
            self.witness.refused = run.id
        else:
            self._admit(run)
        outcome = self._tell(
            lambda kernel: kernel.submit(
                run, self.now, epoch=held.epoch, seq=held.seq, memory=memory
            ),
            ("submit", run),
        )
        said = None if outcome is None else (outcome.state, outcome.reason)
        if said not in (refusals or {None}):
            broken(Invariant.VERDICT, f"{run.id} was answered {said}, not {refusals or None}")
        return outcome

    def begins(self, seen: Seen) -> bool:
        """The hooks of an attempt are through."""
        ticket = seen.ticket
        expected = seen.cut is None
        if expected and seen.state is State.ASSIGNED:
            self.witness.advance(seen, State.RUNNING)
        went = self._tell(lambda kernel: kernel.began(ticket, self.now), ("begin", seen))
        if went is not expected:
            broken(Invariant.VERDICT, f"{seen} may begin: {went}, not {expected}")
        return went

    def returns(self, seen: Seen, ended: Ended, jitter: float = 0.5) -> None:
        """An attempt has returned."""
        ticket = seen.ticket
        self.witness.returning = (seen, ended)
        if seen.cut is None and isinstance(ended, Limited):
            self.witness.expect_hold()
        counted = self._tell(
            lambda kernel: kernel.finished(ticket, ended, self.now, jitter=jitter),
            ("return", seen, ended),
        )
        if not counted:
            broken(Invariant.LATE_RESULT, f"the result of {seen} did not count")

    def returns_late(self, ticket: int, ended: Ended) -> None:
        """An attempt that counts no longer has returned after all."""
        self.late.remove(ticket)
        self.witness.expect_late(ticket)
        counted = self._tell(
            lambda kernel: kernel.finished(ticket, ended, self.now), ("late return", ticket)
        )
        actions = self.log[-1][2]
        if counted or len(actions) != 1:
            broken(Invariant.LATE_RESULT, f"late attempt {ticket} made {actions}")

    def uses(self, seen: Seen, tokens: int) -> None:
        """An attempt reports tokens."""
        ticket = seen.ticket
        for budget in (seen.agent.budget, seen.lane.budget):
            if budget is not None and budget.tokens is not None:
                budget.tokens.take(tokens, self.now)
        self._tell(lambda kernel: kernel.used(ticket, tokens, self.now), (seen, "uses", tokens))

    # Cancelling.

    def cancel(self, run_id: RunId) -> Stopped:
        seen = self.mirror.runs.get(run_id)
        reached = [] if seen is None else self._tree(seen)
        return self._stop(
            reached, lambda kernel: kernel.cancel(run_id, self.now), ("cancel", run_id)
        )

    def stop(self, key: SessionKey) -> Stopped:
        reached: list[Seen] = []
        session = self.mirror.sessions.get(key)
        if session is not None:
            for seen in session.running or session.line:
                if seen.cut not in FINAL_CUTS:
                    reached = self._tree(seen)
                    break
            if not session.running and not session.line:
                reached = [part for window in session.windows.values() for part in window.parts]
        return self._stop(reached, lambda kernel: kernel.stop(key, self.now), ("stop", key))

    def stop_all(
        self,
        key: SessionKey,
        sent_at: Instant | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        mirror = self.mirror
        held, memory = self.ledger.recall(key), self.ledger.memories.get(key)
        session = mirror.session(key)
        mirror.cut_off(key, self.now if sent_at is None else sent_at, message_id, route)
        reached = [
            seen
            for seen in mirror.runs.values()
            if seen.session is session
            or seen.root is session
            or any(above.session is session for above in seen.ancestors())
        ]
        return self._stop(
            reached,
            lambda kernel: kernel.stop_all(
                key,
                self.now,
                sent_at=sent_at,
                message_id=message_id,
                route=route,
                epoch=held.epoch,
                memory=memory,
            ),
            ("stop all", key, sent_at, message_id, route),
        )

    def clear(self, key: SessionKey) -> int:
        session = self.mirror.sessions.get(key)
        reached = [
            seen
            for seen in self.mirror.runs.values()
            if seen.session is session
            and seen.message
            and not seen.begun
            and seen.where in {Where.LINE, Where.WINDOW}
        ]
        return self._end(
            reached, Reason.CLEARED, lambda kernel: kernel.clear(key, self.now), ("clear", key)
        )

    def clear_lane(self, name: LaneName) -> int:
        lane = self.mirror.lane(name)
        reached = [seen for seen in self.mirror.runs.values() if seen.lane is lane and seen.waits]
        return self._end(
            reached,
            Reason.LANE_CLEARED,
            lambda kernel: kernel.clear_lane(name, self.now),
            ("clear lane", name),
        )

    # Steering, sub-runs, estimates.

    def steered(self, ticket: int, message: RunId) -> bool:
        """A turn takes a message from its inbox."""
        turn, seen = self.mirror.attempts.get(ticket), self.mirror.runs.get(message)
        expected = False
        if turn is not None and turn.cut is None and seen is not None:
            expected = seen.offered_to is turn
            if expected:
                self.mirror.take_out(seen)
                seen.where = Where.TURN
                seen.offered_to = None
                seen.taken_by = turn
                turn.taken.append(seen)
        taken = self._tell(
            lambda kernel: kernel.steered(ticket, message, self.now),
            ("steer", message, "into", ticket),
        )
        if taken is not expected:
            broken(Invariant.STEERING, f"{message} was taken: {taken}, not {expected}")
        return taken

    def awaits(self, waiter: Seen, other: Seen) -> bool:
        """A turn begins to wait for a run. False: that would never end."""
        ticket, run_id = waiter.ticket, other.run.id
        deadlock = not other.ticket and self._keeps_out(waiter, other)
        if not deadlock:
            self.mirror.begin_wait(waiter, other)

        def begin(kernel: Kernel) -> bool:
            try:
                kernel.awaits(ticket, run_id, self.now)
            except WouldDeadlock:
                return False
            return True

        waits = self._tell(begin, (waiter, "awaits", other))
        if waits is deadlock:
            broken(Invariant.LENDING, f"{waiter} may wait for {other}: {waits}")
        return waits

    def resumes(self, waiter: Seen, other: Seen) -> None:
        ticket, run_id = waiter.ticket, other.run.id
        self.mirror.end_wait(waiter, other)
        self._tell(
            lambda kernel: kernel.resumes(ticket, run_id, self.now), (waiter, "resumes from", other)
        )

    def estimated(self, key: SessionKey, tokens: int, window: int) -> None:
        self.asked.remove(key)
        session = self.mirror.sessions.get(key)
        if session is not None and session.asked:
            session.asked = False
            ratio = self.mirror.settings.throttle_ratio
            session.tight = window > 0 and tokens >= ratio * window
        self._tell(
            lambda kernel: kernel.estimated(key, self.now, tokens, window),
            ("estimate", key, tokens, window),
        )

    def set_estimating(self, on: bool) -> None:
        self.mirror.estimating = on
        self.kernel.set_estimating(on)

    # Settings and operation.

    def configure(self, key: SessionKey, options: QueueOptions | None) -> None:
        mirror = self.mirror
        held, memory = self.ledger.recall(key), self.ledger.memories.get(key)
        mirror.session(key)
        mirror.remember(key, msgspec.structs.replace(mirror.memory(key), options=options))
        self._tell(
            lambda kernel: kernel.configure(
                key, options, self.now, epoch=held.epoch, memory=memory
            ),
            ("configure", key, options),
        )

    def set_lane(self, name: LaneName, settings: LaneSettings) -> None:
        self.mirror.set_lane(name, settings)
        self._tell(lambda kernel: kernel.set_lane(name, settings, self.now), (name, settings))

    def set_limits(self, limits: Limits) -> None:
        self.mirror.limits = limits
        self._tell(lambda kernel: kernel.set_limits(limits, self.now), (limits,))

    def set_agent(self, name: AgentName, settings: AgentSettings) -> None:
        self.mirror.set_agent(name, settings)
        self._tell(lambda kernel: kernel.set_agent(name, settings, self.now), (name, settings))

    def drain(self, *, keep_waiting: bool) -> None:
        self.mirror.draining = True
        self.mirror.keeps_waiting = keep_waiting
        self._tell(
            lambda kernel: kernel.drain(self.now, keep_waiting=keep_waiting),
            ("drain, keep waiting:", keep_waiting),
        )

    def cut_all(self) -> None:
        self.mirror.closing = True
        self.witness.cutting_all = True
        self._tell(lambda kernel: kernel.cut_all(self.now), ("cut all",))
        uncut = {None, Cut.PREEMPTED}
        going_on = [seen for seen in self.mirror.attempts.values() if seen.cut in uncut]
        if going_on:
            broken(Invariant.DRAINING, f"{going_on} go on after the drain's grace")

    def reset(self) -> None:
        mirror = self.mirror
        mirror.draining = mirror.closing = False
        before = tuple(mirror.attempts)
        self.witness.resetting = True
        self.late += before
        self._tell(lambda kernel: kernel.reset(self.now), ("reset",))
        left = [mirror.attempts[ticket] for ticket in before if ticket in mirror.attempts]
        if left:
            broken(Invariant.SLOT_HELD, f"{left} live on in a new incarnation")

    def release_idle(self) -> None:
        """All that was decided is stored."""
        self._tell(lambda kernel: kernel.release_idle(), ("release idle",), twin=False)
        idle = [key for key in self.ledger.held if key not in self.mirror.sessions]
        idle += [session.key for session in self.mirror.sessions.values() if session.idle]
        if idle:
            broken(Invariant.MEMORY, f"idle sessions {idle} are still held")

    # Looking.

    def check(self, turn: int) -> None:
        """Everything that must hold between two steps; `turn` says which waiting run is asked about."""
        mirror, kernel = self.mirror, self.kernel
        self._twin = None
        audit(kernel, mirror)
        check_standing(mirror, self.ledger)
        waiting = [seen for seen in mirror.runs.values() if not seen.ticket]
        if waiting:
            seen = waiting[turn % len(waiting)]
            check_why(mirror, kernel, seen, whole=turn % 150 == 0)

    def check_end(self) -> None:
        """All is over: every caller was told, and nothing is left."""
        outcomes = self.witness.outcomes
        for run_id in self.submitted:
            told = outcomes.get(run_id)
            if told is None:
                broken(Invariant.LOST_CALLER, f"{run_id} has no outcome")
            if told.into is not None and told.into not in outcomes:
                broken(Invariant.LOST_CALLER, f"{run_id} went into {told.into}, which has none")
        self.release_idle()
        audit_end(self.kernel)
        if self.ledger.held:
            broken(Invariant.MEMORY, f"sessions {list(self.ledger.held)} are still held")

    def copy_kernel(self) -> None:
        """Let a copy go through the next step too: it must decide alike, with no word of time before."""
        self._twin = deepcopy(self.kernel)
        self._told = []

    # How things are told and checked.

    def _tell(self, call: Callable[[Kernel], Answer], what: Doing, *, twin: bool = True) -> Answer:
        try:
            answer = call(self.kernel)
        except Exception as error:
            self.log.append((self.now, what, self.kernel.take_actions()))
            raise Violation(Invariant.CRASH, f"{type(error).__name__}: {error}") from error
        actions = self.kernel.take_actions()
        self.log.append((self.now, what, actions))
        for action in actions:
            self.witness.heed(action)
            self._note(action)
        self.witness.close()
        follow_lending(self.kernel, self.mirror)
        if self._twin is not None:
            self._told += actions
            if twin:
                self._compare_twin(self._twin, call, answer)
        return answer

    def _compare_twin(self, twin: Kernel, call: Callable[[Kernel], Answer], answer: Answer) -> None:
        self._twin = None
        if call(twin) != answer or twin.take_actions() != self._told:
            broken(Invariant.TWIN, f"a copy of the kernel decided otherwise than {self._told}")

    def _note(self, action: Action) -> None:
        match action:
            case Abandon(ticket=ticket):
                self.late.append(ticket)
            case AskEstimate(session=session):
                self.asked.append(session)
            case Steer(message=message, into=into):
                self.offers.append((into, message.id))
            case Release(session=session):
                self.asked = [key for key in self.asked if key != session]
            case _:
                pass

    def _stop(self, reached: list[Seen], call: Callable[[Kernel], Stopped], what: Doing) -> Stopped:
        mirror = self.mirror
        running = [seen for seen in reached if seen.ticket and seen.cut not in FINAL_CUTS]
        waiting = [seen for seen in reached if seen.waits]
        self.witness.ending = frozenset(seen.run.id for seen in running + waiting)
        self.witness.ending_as = Reason.STOPPED
        stopped = self._tell(call, what)
        if stopped != Stopped(len(running), len(waiting)):
            broken(Invariant.VERDICT, f"{what}: {stopped}, not {running} and {waiting}")
        going_on = [
            seen
            for seen in reached
            if seen.run.id in mirror.runs
            and seen.where is not Where.TURN
            and (not seen.ticket or seen.cut not in FINAL_CUTS)
        ]
        if going_on:
            broken(Invariant.STOPPED, f"{what}: {going_on} go on")
        return stopped

    def _end(
        self, reached: list[Seen], reason: Reason, call: Callable[[Kernel], int], what: Doing
    ) -> int:
        self.witness.ending = frozenset(seen.run.id for seen in reached)
        self.witness.ending_as = reason
        ended = self._tell(call, what)
        left = [seen for seen in reached if seen.run.id in self.mirror.runs]
        if ended != len(reached) or left:
            broken(Invariant.VERDICT, f"{what}: {ended} ended, not {reached}")
        return ended

    def _tree(self, seen: Seen) -> list[Seen]:
        below = [other for other in self.mirror.runs.values() if seen in other.ancestors()]
        return [seen, *below]

    def _keeps_out(self, waiter: Seen, other: Seen) -> bool:
        """Whether the waiter and those above it fill the session that the other run must wait for."""
        session = other.session
        holders = 0
        above: Seen | None = waiter
        while above is not None:
            holders += above.session is session and above.ticket != 0
            above = above.parent
        return holders > 0 and holders >= session.width_for(other.width)

    # Submissions.

    def _refusals(self, run: Run) -> set[tuple[State, Reason]]:
        """For what this run must be refused at once; empty if it is taken."""
        mirror, found = self.mirror, set[tuple[State, Reason]]()
        if run.parent is not None:
            parent = mirror.runs.get(run.parent)
            if parent is None or not parent.ticket or parent.cut is not None:
                return {(State.CANCELLED, Reason.STOPPED)}
        elif mirror.draining:
            return {(State.CANCELLED, Reason.DRAINING)}
        if run.deadline_at is not None and run.deadline_at <= self.now:
            found.add((State.FAILED, Reason.DEADLINE_QUEUED))
        if run.source is Source.TASK and run.parent is None:
            limits, agent = mirror.limits, mirror.agent(run.agent)
            if mirror.waiting_tasks() >= limits.max_queue:
                found.add((State.REJECTED, Reason.QUEUE_FULL))
            if mirror.waiting_tasks(agent) >= limits.max_queue_per_agent:
                found.add((State.REJECTED, Reason.QUEUE_FULL))
        later = run.due_at is not None and run.due_at > self.now
        if run.source is Source.MESSAGE and not later:
            found |= self._message_refusals(run)
        return found

    def _message_refusals(self, run: Run) -> set[tuple[State, Reason]]:
        mirror, found = self.mirror, set[tuple[State, Reason]]()
        if mirror.is_stale(run):
            found.add((State.CANCELLED, Reason.STALE))
        session = mirror.sessions.get(run.session)
        if session is None:
            return found
        settings = mirror.queue_settings(run)
        busy = session.busy_for(settings.max_concurrent)
        if settings.mode is Mode.REJECT and busy:
            found.add((State.REJECTED, Reason.REJECTED_BUSY))
        full = settings.drop is Drop.NEW and len(session.messages()) >= settings.cap
        interrupts = busy and self._interrupts(run, session, settings)
        joins = settings.debounce > 0 and window_key(run) in session.windows
        if full and not interrupts and not joins:
            found.add((State.REJECTED, Reason.QUEUE_FULL))
        return found

    def _interrupts(self, run: Run, session: SeenSession, settings: QueueSettings) -> bool:
        if settings.mode is Mode.STEER and settings.steer_fallback is SteerFallback.INTERRUPT:
            agent = self.mirror.agent(run.agent)
            steerable = any(turn.agent is agent and turn.cut is None for turn in session.running)
            return not settings.debounce and not (agent.settings.steerable and steerable)
        return settings.mode is Mode.INTERRUPT

    def _admit(self, run: Run) -> None:
        mirror = self.mirror
        parent = mirror.runs.get(run.parent) if run.parent is not None else None
        later = run.due_at is not None and run.due_at > self.now
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
            self.witness.debounce(seen, settings)
        else:
            self.witness.arriving = (seen, settings)
