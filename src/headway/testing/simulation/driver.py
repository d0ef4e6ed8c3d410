"""Everything that can happen to a node, each as one call that is checked from all sides.

Nothing here is random. A test can play a history by hand with it: it raises `Violation` as soon as
an invariant does not hold.
"""

from collections.abc import Callable

import msgspec

from headway.core.actions import Died, Ended, Limited, Stopped
from headway.core.kernel import Kernel
from headway.model.errors import WouldDeadlock
from headway.model.places import Cancel, Clear, Command, Configure, Order, Stop, StopAll
from headway.model.run import AgentName, LaneName, QueueOptions, Route, Run, RunId, SessionKey
from headway.model.settings import AgentSettings, LaneSettings, Limits
from headway.model.time import Instant
from headway.model.words import Cut, Reason, State
from headway.testing.simulation import admission
from headway.testing.simulation.ahead import COUNTS_FOR
from headway.testing.simulation.seen import FINAL_CUTS, Seen, Where
from headway.testing.simulation.telling import Doing, Teller
from headway.testing.simulation.violation import Invariant, broken


class Driver(Teller):
    """Drives one kernel through a history."""

    # Submissions and attempts.

    def submit(self, run: Run) -> admission.Refusal | None:
        """Answers how the run ended at once, if it was refused."""
        self.submitted.append(run.id)
        held = self.ledger.admit(run.session)
        memory = self.ledger.memories.get(run.session)
        refusals = admission.refusals(self.mirror, run)
        if refusals:
            self.witness.phase.refused = run.id
        else:
            admission.admit(self.mirror, self.witness.phase, run)

        def submit(kernel: Kernel) -> admission.Refusal | None:
            outcome = kernel.submit(run, self.now, epoch=held.epoch, seq=held.seq, memory=memory)
            return None if outcome is None else (outcome.state, outcome.reason)

        return self.tell(submit, ("submit", run), allowed=refusals or {None})

    def begins(self, seen: Seen) -> bool:
        """The hooks of an attempt are through."""
        ticket, may = seen.ticket, seen.cut is None
        if may and seen.state is State.ASSIGNED:
            self.witness.advance(seen, State.RUNNING)
        return self.tell(
            lambda kernel: kernel.began(ticket, self.now), ("begin", seen), allowed={may}
        )

    def returns(self, seen: Seen, ended: Ended, jitter: float = 0.5) -> None:
        """An attempt has returned."""
        ticket = seen.ticket
        self.witness.phase.returning = (seen, ended)
        self.witness.phase.limits = seen.cut is None and isinstance(ended, Limited)
        if seen.cut is None and isinstance(ended, Died) and seen.resumes_no_more:
            self.witness.phase.gives_up = seen.run.id
        self.tell(
            lambda kernel: kernel.finished(ticket, ended, self.now, jitter=jitter),
            ("return", seen, ended),
            allowed={True},
            invariant=Invariant.LATE_RESULT,
        )

    def returns_late(self, ticket: int, ended: Ended) -> None:
        """An attempt that counts no longer has returned after all."""
        self.late.remove(ticket)
        self.witness.phase.late = ticket
        self.tell(
            lambda kernel: kernel.finished(ticket, ended, self.now),
            ("late return", ticket),
            allowed={False},
            invariant=Invariant.LATE_RESULT,
        )
        actions = self.log[-1][2]
        if len(actions) != 1:
            broken(Invariant.LATE_RESULT, f"late attempt {ticket} made {actions}")

    def uses(self, seen: Seen, tokens: int) -> None:
        """An attempt reports tokens."""
        ticket = seen.ticket
        for budget in (seen.agent.budget, seen.lane.budget):
            if budget is not None and budget.tokens is not None:
                budget.tokens.take(tokens, self.now)
        self.tell(lambda kernel: kernel.used(ticket, tokens, self.now), (seen, "uses", tokens))

    # Cancelling.

    def cancel(self, run_id: RunId) -> Stopped:
        seen = self.mirror.runs.get(run_id)
        reached = [] if seen is None else self._tree(seen)
        key = None if seen is None else seen.run.session
        return self._stop(reached, self._ordered(key, Cancel(run_id)), ("cancel", run_id))

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
        return self._stop(reached, self._ordered(key, Stop()), ("stop", key))

    def stop_all(
        self,
        key: SessionKey,
        sent_at: Instant | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        mirror = self.mirror
        self.ledger.recall(key)
        session = mirror.session(key)
        mirror.memories.cut_off(key, self.now if sent_at is None else sent_at, message_id, route)
        reached = [
            seen
            for seen in mirror.runs.values()
            if seen.session is session
            or seen.root is session
            or any(
                above.session is session and above.run.id in mirror.runs
                for above in seen.ancestors()
            )
        ]
        return self._stop(
            reached,
            self._ordered(key, StopAll(sent_at, message_id, route)),
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
        clear = self._ordered(key, Clear())
        return self._end(
            reached, Reason.CLEARED, lambda kernel: clear(kernel).waiting, ("clear", key)
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
        return self.tell(
            lambda kernel: kernel.steered(ticket, message, self.now),
            ("steer", message, "into", ticket),
            allowed={expected},
            invariant=Invariant.STEERING,
        )

    def awaits(self, waiter: Seen, other: Seen) -> bool:
        """A turn begins to wait for a run. False: that would never end."""
        ticket, run_id = waiter.ticket, other.run.id
        deadlock = not other.ticket and admission.keeps_out(waiter, other)
        if not deadlock:
            self.mirror.begin_wait(waiter, other)
            self.witness.phase.awaited = other

        def begin(kernel: Kernel) -> bool:
            try:
                kernel.awaits(ticket, run_id, self.now)
            except WouldDeadlock:
                return False
            return True

        return self.tell(
            begin,
            (waiter, "awaits", other),
            allowed={not deadlock},
            invariant=Invariant.LENDING,
        )

    def resumes(self, waiter: Seen, other: Seen) -> None:
        ticket, run_id = waiter.ticket, other.run.id
        self.mirror.end_wait(waiter, other)
        self.tell(
            lambda kernel: kernel.resumes(ticket, run_id, self.now), (waiter, "resumes from", other)
        )

    def estimated(self, key: SessionKey, tokens: int, window: int) -> None:
        self.asked.remove(key)
        session = self.mirror.sessions.get(key)
        if session is not None and session.asked:
            session.asked = False
            ratio = self.mirror.settings.throttle_ratio
            session.tight = window > 0 and tokens >= ratio * window
        self.tell(
            lambda kernel: kernel.estimated(key, self.now, tokens, window),
            ("estimate", key, tokens, window),
        )

    def set_estimating(self, on: bool) -> None:
        self.mirror.estimating = on
        self.kernel.set_estimating(on)

    # Settings and operation.

    def configure(self, key: SessionKey, options: QueueOptions | None) -> None:
        mirror = self.mirror
        self.ledger.recall(key)
        configure = self._ordered(key, Configure(options))
        mirror.session(key)
        mirror.memories.keep(key, msgspec.structs.replace(mirror.memories.of(key), options=options))
        self.tell(configure, ("configure", key, options))

    def set_lane(self, name: LaneName, settings: LaneSettings) -> None:
        self.mirror.set_lane(name, settings)
        self.witness.phase.resized = self.mirror.lane(name)
        self.tell(lambda kernel: kernel.set_lane(name, settings, self.now), (name, settings))

    def set_ahead(self, name: LaneName, count: int) -> None:
        """Some starts of the lane may be stored before there are slots for them."""
        lane = self.mirror.lane(name)
        lane.ahead, lane.ahead_until = count, self.now + COUNTS_FOR
        self.tell(lambda kernel: kernel.set_ahead(name, count, self.now), (name, "ahead", count))

    def set_limits(self, limits: Limits) -> None:
        self.mirror.limits = limits
        self.tell(lambda kernel: kernel.set_limits(limits, self.now), (limits,))

    def set_agent(self, name: AgentName, settings: AgentSettings) -> None:
        self.mirror.set_agent(name, settings)
        self.tell(lambda kernel: kernel.set_agent(name, settings, self.now), (name, settings))

    def drain(self, *, keep_waiting: bool) -> None:
        self.mirror.draining = True
        self.mirror.keeps_waiting = keep_waiting
        self.tell(
            lambda kernel: kernel.drain(self.now, keep_waiting=keep_waiting),
            ("drain, keep waiting:", keep_waiting),
        )

    def cut_all(self) -> None:
        self.mirror.closing = True
        self.witness.phase.cutting_all = True
        self.tell(lambda kernel: kernel.cut_all(self.now), ("cut all",))
        uncut = {None, Cut.PREEMPTED}
        going_on = [seen for seen in self.mirror.attempts.values() if seen.cut in uncut]
        going_on = [seen for seen in going_on if not (seen.ahead and seen.cut)]
        if going_on:
            broken(Invariant.DRAINING, f"{going_on} go on after the drain's grace")

    def reset(self) -> None:
        mirror = self.mirror
        mirror.draining = mirror.closing = False
        for lane in mirror.lanes.values():
            lane.owed = lane.ahead = 0
        before = tuple(mirror.attempts)
        self.witness.phase.resetting = True
        self.late += before
        self.tell(lambda kernel: kernel.reset(self.now), ("reset",))
        left = [mirror.attempts[ticket] for ticket in before if ticket in mirror.attempts]
        if left:
            broken(Invariant.SLOT_HELD, f"{left} live on in a new incarnation")

    def lose(self, keys: tuple[SessionKey, ...]) -> None:
        """Other nodes decide for these sessions now: their runs have no outcome here (D-4)."""
        mirror = self.mirror
        lost = [seen for seen in mirror.runs.values() if seen.session.key in keys]
        for seen in lost:
            if seen.ticket:
                self.late.append(seen.ticket)
                mirror.step_down(seen)
            else:
                mirror.take_out(seen)
        for seen in lost:
            mirror.forget(seen)
        pairs = [(key, self.ledger.recall(key).epoch) for key in keys]
        for key in keys:
            mirror.sessions.pop(key, None)
            self.ledger.held.pop(key, None)
        ids = frozenset(seen.run.id for seen in lost)
        self.lost |= ids
        self.witness.phase.losing = ids
        self.tell(
            lambda kernel: frozenset(kernel.lose(pairs, self.now)), ("lose", *keys), allowed={ids}
        )

    # Ends of many.

    def _ordered(self, key: SessionKey | None, command: Command) -> Callable[[Kernel], Stopped]:
        """The order as the store passes it on: to a session that is held, else nobody need carry it out."""
        held = None if key is None else self.ledger.held.get(key)
        if key is None or held is None:

            def nothing(kernel: Kernel) -> Stopped:
                kernel.time_passed(self.now)
                return Stopped()

            return nothing
        order, epoch, memory = (
            Order("order", key, command),
            held.epoch,
            self.ledger.memories.get(key),
        )

        def carry_out(kernel: Kernel) -> Stopped:
            answer = kernel.carry_out(order, epoch, memory, self.now)
            return Stopped(answer.running, answer.waiting)

        return carry_out

    def _stop(self, reached: list[Seen], call: Callable[[Kernel], Stopped], what: Doing) -> Stopped:
        mirror = self.mirror
        running = [seen for seen in reached if seen.ticket and seen.cut not in FINAL_CUTS]
        waiting = [seen for seen in reached if seen.waits]
        self.witness.phase.ending = frozenset(seen.run.id for seen in running + waiting)
        self.witness.phase.ending_as = Reason.STOPPED
        stopped = self.tell(call, what, allowed=(Stopped(len(running), len(waiting)),))
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
        self.witness.phase.ending = frozenset(seen.run.id for seen in reached)
        self.witness.phase.ending_as = reason
        ended = self.tell(call, what, allowed={len(reached)})
        left = [seen for seen in reached if seen.run.id in self.mirror.runs]
        if left:
            broken(Invariant.STOPPED, f"{what}: {left} go on")
        return ended

    def _tree(self, seen: Seen) -> list[Seen]:
        below = [other for other in self.mirror.runs.values() if seen in other.ancestors()]
        return [seen, *below]
