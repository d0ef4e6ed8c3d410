"""The moves of single runs: into line, onto a slot, off it, to their end.

`Kernel` decides what shall happen; the stage makes each move whole, so that counters, alarms, slots and states
never disagree. Nearly every change of a run's state is made here, and each through `lifecycle.advance`.
"""

import msgspec

from headway.core import ahead, lending
from headway.core.actions import (
    Abandon,
    Action,
    AskEstimate,
    CancelAttempt,
    Enqueue,
    Finish,
    Merge,
    NoteWait,
    Release,
    Remember,
    Start,
    Unsteer,
)
from headway.core.alarms import Alarms
from headway.core.bells import (
    AgentFree,
    Bell,
    DeadlinePassed,
    GraceOver,
    HoldOver,
    LaneFree,
    QuietOver,
    TimeoutPassed,
)
from headway.core.debounce import Buffer
from headway.core.endings import CUT_OUTCOMES, FINAL_CUTS, past_deadline
from headway.core.floor import Floor
from headway.core.lanes import AgentLoad, Flow, Lane
from headway.core.lifecycle import advance
from headway.core.live import PLAIN, TASK, LiveRun, kind_of
from headway.core.merge import may_collect, merged
from headway.core.session import BLANK, ORDER_STEP, Estimate, SessionQueue
from headway.model.outcome import Outcome
from headway.model.places import Standing
from headway.model.run import AgentName, Run, RunId, SessionKey, SessionMemory
from headway.model.settings import Settings
from headway.model.time import Instant, Span
from headway.model.words import WAITING_STATES, Cut, Reason, Rule, Source, State

# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_ASSIGNED = State.ASSIGNED
_QUEUED = State.QUEUED
_RUNNING = State.RUNNING
_PREEMPTED = Cut.PREEMPTED
_HEARTBEAT = Source.HEARTBEAT
_STRAIGHT_ON = advance(advance(_QUEUED, _ASSIGNED), _RUNNING)
"""Without hooks a run goes from queued through assigned to running in one move."""
_STEPPED_OUT = advance(_QUEUED, _ASSIGNED)


FIRST = -1
"""What `Standing.after` says of a run in front of all others of its session."""


class Stage:
    """All live runs of a node, and the only code that moves them."""

    def __init__(self, settings: Settings, now: Instant) -> None:
        self.settings = settings
        self.now = now
        self.floor = Floor(settings, now)
        self.alarms: Alarms[Bell] = Alarms()
        self.sessions: dict[SessionKey, SessionQueue] = {}
        """Sessions with work, and idle ones that are still at hand until `release_idle`."""
        self.runs: dict[RunId, LiveRun] = {}
        self.attempts: dict[int, LiveRun] = {}
        """Live attempts by ticket. An attempt that is not here counts no longer (R-4, L-6)."""
        self.actions: list[Action] = []
        self.called: list[int] = []
        """Tickets of attempts that have just got the slot for which they were started ahead."""
        self.draining = False
        self.closing = False
        """Whether a drain's grace is over: not even sub-runs start."""
        self.keep_waiting = False
        """Whether a drain leaves waiting runs for the next start."""
        self.suspended = False
        """Whether nothing may start because the node may not act any more (D-3)."""
        self.halted = False
        """Whether it drains or is suspended."""
        self.gated = False
        """Whether hooks come between a start and the call of the runner."""
        self.estimating = False
        """Whether there is a function that estimates tokens (S-2)."""
        self.waiting_tasks = 0
        self.touched: list[SessionQueue] = []
        """Sessions in which something ended on the side: their next run is yet to be posted."""
        self.other_lanes = False
        """Whether a run was posted in another lane than the one that is being filled."""
        self.spared: LiveRun | None = None
        """The message that is just taking its place: what it cuts does not take it along."""
        self.borrowers: list[LiveRun] = []
        """Sub-runs that may just have become able to run on a slot lent to them (L-4)."""
        self.held_borrowers: list[LiveRun] = []
        """Sub-runs that a slot could be lent to, but their agent is held back just now."""
        self.here: set[AgentName] | None = None
        """The agents that have a runner on this node. None: all have."""
        self.outliving: set[AgentName] = set()
        """Those whose attempts go on outside this process, and may outlive it (W-2)."""
        self.graces: dict[AgentName, Span] = {}
        """How long the runners of some agents may take to end what they run (W-1)."""
        self.untold: set[int] = set()
        """Tickets of attempts that shall end and have not been told yet, where that may take long."""
        self.foreign: set[SessionKey] = set()
        """Sessions whose next run was found to be for an agent that has none."""
        self._wait_notice = settings.wait_notice
        self._ageing = settings.ageing
        self._orders = 0
        self._tickets = 0

    def go_by(self, settings: Settings) -> None:
        """Go by these from now on; lanes, limits and agents are set one by one."""
        self.settings = settings
        self.floor.go_by(settings)
        self._wait_notice = settings.wait_notice
        self._ageing = settings.ageing

    def session(self, key: SessionKey, epoch: int, memory: SessionMemory | None) -> SessionQueue:
        """The session, found or made. What the store says of it counts only if nothing is known here."""
        session = self.sessions.get(key)
        if session is None:
            session = self.sessions[key] = SessionQueue(key, epoch, memory or BLANK)
        return session

    @property
    def busy_sessions(self) -> list[SessionQueue]:
        return [session for session in self.sessions.values() if not session.is_idle]

    def admit(
        self, run: Run, session: SessionQueue, state: State, parent: LiveRun | None = None
    ) -> LiveRun:
        """A new run: known from now on, not yet in line."""
        floor = self.floor
        lane = floor.lanes.get(run.lane) or floor.lane(run.lane)
        agent = floor.agents.get(run.agent) or floor.agent(run.agent)
        kind = kind_of(run) if parent is None else kind_of(run, parent.kind)
        live = LiveRun(run, session, lane, agent, state, kind)
        self.runs[run.id] = live
        if live.kind or run.timeout is not None or run.deadline_at is not None:
            self._admit_special(live)
        else:
            live.plain = state is _QUEUED
        return live

    def _admit_special(self, live: LiveRun) -> None:
        if live.kind & TASK:
            self.waiting_tasks += 1
            live.agent.waiting_tasks += 1
        self._watch_deadline(live)

    def _watch_deadline(self, live: LiveRun) -> None:
        deadline_at = live.run.deadline_at
        if deadline_at is not None:
            live.deadline_alarm = self.alarms.set(deadline_at, DeadlinePassed(live))

    def adopt(self, parent: LiveRun, child: LiveRun) -> None:
        """A sub-run belongs to its parent's tree: a stop of the tree's session reaches it (X-3)."""
        parent.plain = False
        ties = child.tie()
        ties.parent = parent
        above = parent.ties.root if parent.ties is not None else None
        root = ties.root = above or parent.session
        if root.offspring is None:
            root.offspring = []
        root.offspring.append(child)

    def hold(self, live: LiveRun, rule: Rule, until: Instant) -> None:
        """Keep the run from starting before an instant."""
        live.held = rule
        live.plain = False
        self._silence(live)
        live.alarm = self.alarms.set(until, HoldOver(live))

    def note_pending(self, live: LiveRun, until: Instant, latest_at: Instant | None = None) -> None:
        """A new run waits outside the line: not due yet, or in a debounce window."""
        self.take_turn(live)
        standing = self._standing(live, until, latest_at)
        self.actions.append(
            Enqueue(
                live.run,
                State.PENDING,
                live.attempt,
                live.session.epoch,
                until,
                standing=standing,
            )
        )

    def line_up(self, live: LiveRun, *, first: bool = False) -> None:
        """The run takes its place in its session's line: at its end, or in front of those that wait."""
        session = live.session
        if live.state is _QUEUED:
            live.after = session.seen
        else:
            live.state = advance(live.state, _QUEUED)
            live.held = None
            self._silence(live)
            self.take_turn(live)
            if first:
                live.after = FIRST
            self.note_place(live)
        now = live.queued_at = self.now
        live.order = self._orders = self._orders + ORDER_STEP
        live.starts_before = live.lane.started
        live.rank = now + live.run.priority * self._ageing
        if first:
            live.after = FIRST
            session.join_first(live)
        elif session.had_heartbeats or live.run.source is _HEARTBEAT:
            for heartbeat in session.join(live):
                self.take_turn(heartbeat)
                self.note_place(heartbeat)
        else:
            live.place = live.order
            session.waiting.append(live)

    def line_up_again(self, live: LiveRun) -> None:
        """A run of a session that was taken over stands in line again, behind those put there before it."""
        run = live.run
        session = live.session
        live.queued_at = self.now
        live.order = live.place = self._orders = self._orders + ORDER_STEP
        live.starts_before = live.lane.started
        self.rank_by_age(live)
        if run.source is _HEARTBEAT:
            session.had_heartbeats = True
        session.waiting.append(live)

    def rank_by_age(self, live: LiveRun) -> None:
        """It waited elsewhere before: its rank counts from then (F-3)."""
        run = live.run
        came_at = run.submitted_at if run.due_at is None else max(run.submitted_at, run.due_at)
        live.rank = came_at + run.priority * self._ageing

    def take_turn(self, live: LiveRun) -> None:
        """Where the run stands is decided in a way that its coming again would not give (N-12)."""
        session = live.session
        live.after = session.seen
        live.turn = session.turns = session.turns + 1

    def note_place(self, live: LiveRun) -> None:
        """Say where a run in line stands, for whoever owns its session next."""
        until = live.alarm.at if live.held is not None and live.alarm is not None else None
        standing = self._standing(live, until)
        self.actions.append(
            Enqueue(
                live.run, live.state, live.attempt, live.session.epoch, until, standing=standing
            )
        )

    def _standing(
        self, live: LiveRun, until: Instant | None = None, latest_at: Instant | None = None
    ) -> Standing:
        quiet_until = live.session.quiet_until
        offered = live.ties is not None and live.ties.offered_to is not None
        return Standing(
            live.after,
            live.turn,
            held=Rule.STEERED if offered else live.held,
            until=until,
            latest_at=latest_at,
            quiet_until=quiet_until if quiet_until > self.now else 0,
            collect=live.collect,
            interrupts=live.interrupts,
            begun=live.begun,
            retries=live.retries,
            limited=live.limited,
        )

    def refresh(self, session: SessionQueue) -> None:
        """Post the run that the session would start next; withdraw one that it no longer would."""
        waiting = session.waiting
        head: LiveRun | None = None
        if waiting:
            head = waiting[0]
            free = not (session.running or head.held or head.collect or self.halted)
            if self.here is not None and head.run.agent not in self.here:
                self.foreign.add(session.key)
                head = None
            elif not free and self.session_bar(head) is not None:
                head = None
        posted = session.posted
        if head is not posted:
            if posted is not None:
                self.floor.withdraw(posted)
            session.posted = head
            if head is not None:
                self.floor.post(head)
                if head.ties is not None and head.ties.awaited_by:
                    self.borrowers.append(head)

    def session_bar(self, head: LiveRun) -> tuple[Rule, Instant | None] | None:
        """Which rule of the session, if any, keeps its first waiting run from starting."""
        session = head.session
        if self.here is not None and head.run.agent not in self.here:
            return Rule.ELSEWHERE, None
        if head.held is not None:
            return head.held, head.alarm.at if head.alarm is not None else None
        if self.halted and not self.may_start_draining(head):
            return Rule.SUSPENDED if self.suspended else Rule.DRAINING, None
        if head.collect and session.quiet_until > self.now:
            return Rule.COLLECTING, session.quiet_until
        if not session.running:
            return None
        return self._running_bar(session, head)

    def fill(self, lane: Lane) -> None:
        """Start what the lane has room for."""
        floor = self.floor
        if self.touched:
            self.refresh_touched()
            self.other_lanes = True
        while lane.in_use < lane.width:
            flow = floor.quick_flow(lane) if floor.lighter is not None else None
            if flow is None:
                flow = floor.next_flow(lane, self.now)
                if flow is None:
                    break
            self._serve(floor.claim(flow, self.now))
        if lane.ahead:
            ahead.fill(self, lane)
        if lane.preemptible and lane.ready[PLAIN]:
            self._preempt(lane)
        if (self.borrowers or self.held_borrowers) and lending.lend(self):
            self.other_lanes = True
        if floor.wakes:
            self._set_wakes()
        if self.touched or self.other_lanes:
            self.fill_all()

    def fill_all(self) -> None:
        """Start what any lane has room for, fairly also where a limit spans lanes (F-2)."""
        floor = self.floor
        while True:
            self.refresh_touched()
            self.other_lanes = False
            best: Flow | None = None
            lanes = [lane for lane in floor.lanes.values() if lane.kinds]
            for lane in lanes:
                flow = floor.next_flow(lane, self.now)
                if flow is not None and (best is None or flow.precedes(best)):
                    best = flow
            if best is not None:
                self._serve(floor.claim(best, self.now))
                continue
            for lane in lanes:
                yields = lane.preemptible and lane.ready[PLAIN]
                if yields or self.borrowers or self.held_borrowers or floor.wakes:
                    self.fill(lane)
                elif lane.ahead:
                    ahead.fill(self, lane)
            if not (self.touched or self.other_lanes):
                return

    def refresh_touched(self) -> None:
        while self.touched:
            self.refresh(self.touched.pop())

    def may_start_draining(self, live: LiveRun) -> bool:
        """While draining, only what a running run has started may still start."""
        parent = live.parent
        closed = self.closing or self.suspended
        return parent is not None and parent.ticket != 0 and not closed

    def _serve(self, live: LiveRun) -> None:
        """The floor has given it a slot."""
        if live.next_up:
            if self.now - live.queued_at > self._wait_notice:
                self._note_wait(live)
            ahead.call_up(self, live)
        else:
            self.start(live)

    def start(self, live: LiveRun) -> None:
        """Take the run out of line and begin an attempt. The floor has given it its slot."""
        session = live.session
        session.posted = None
        session.waiting.remove(live)
        if live.collect and session.waiting:
            live = self._collected(live)
        now = self.now
        if now - live.queued_at > self._wait_notice and not live.begun:
            self._note_wait(live)
        if live.state is _QUEUED and not self.gated:
            live.state = _STRAIGHT_ON
        else:
            live.state = advance(live.state, _ASSIGNED)
        ticket = live.ticket = self._tickets = self._tickets + 1
        live.attempt += 1
        live.begun = True
        live.started_at = now
        slot = 0
        if session.running:
            slot = live.slot = session.free_slot()
        session.running.append(live)
        self.attempts[ticket] = live
        if not live.plain or session.memory is not BLANK or self.estimating:
            self._start_special(live)
        if self.outliving and live.run.agent in self.outliving:
            start = Start(live.run, ticket, live.attempt, session.epoch, now, slot, outlives=True)
        else:
            start = Start(live.run, ticket, live.attempt, session.epoch, now, slot)
        self.actions.append(start)
        if session.waiting and live.width > 1:
            self._post_next(session, live.lane)

    def start_ahead(self, live: LiveRun) -> None:
        """Take a plain run out of line and have its start stored. It waits in its lane on, for its slot."""
        session = live.session
        session.posted = None
        session.waiting.remove(live)
        live.next_up = True
        live.state = _STEPPED_OUT if live.state is _QUEUED else advance(live.state, _ASSIGNED)
        ticket = live.ticket = self._tickets = self._tickets + 1
        live.attempt += 1
        live.started_at = self.now
        session.running.append(live)
        self.attempts[ticket] = live
        self.actions.append(Start(live.run, ticket, live.attempt, session.epoch, self.now))

    def _note_wait(self, live: LiveRun) -> None:
        before = live.lane.started - 1 - live.starts_before
        self.actions.append(NoteWait(live.run, self.now - live.queued_at, before))

    def go_on(self, live: LiveRun) -> None:
        """Its worker outlived its node: the same attempt goes on, whether its lane has room or not (W-2)."""
        session, run = live.session, live.run
        session.waiting.remove(live)
        self.floor.take_up(live)
        live.plain = False
        live.state = advance(advance(live.state, _ASSIGNED), _RUNNING)
        ticket = live.ticket = self._tickets = self._tickets + 1
        live.slot = session.free_slot()
        session.running.append(live)
        session.estimate = Estimate.UNKNOWN
        self.attempts[ticket] = live
        if live.kind & TASK:
            self.waiting_tasks -= 1
            live.agent.waiting_tasks -= 1
        if run.timeout is not None:
            live.alarm = self.alarms.set(live.started_at + run.timeout, TimeoutPassed(live))
        self.actions.append(
            Start(
                run,
                ticket,
                live.attempt,
                session.epoch,
                live.started_at,
                live.slot,
                outlives=True,
                adopts=True,
            )
        )
        if self.suspended or self.closing:
            self.cut(live, Cut.LOST if self.suspended else Cut.DRAINED)

    def _post_next(self, session: SessionQueue, lane: Lane) -> None:
        """The session may start another one at the same time, perhaps in another lane."""
        self.refresh(session)
        if session.posted is not None and session.posted.lane is not lane:
            self.other_lanes = True

    def _start_special(self, live: LiveRun) -> None:
        """What a start brings with it that most runs do not need."""
        run = live.run
        session = live.session
        session.estimate = Estimate.UNKNOWN
        if live.kind & TASK:
            self.waiting_tasks -= 1
            live.agent.waiting_tasks -= 1
        if session.memory.overflow and run.source is Source.MESSAGE:
            lines = (*run.overflow, *session.take_lines())
            live.run = msgspec.structs.replace(run, overflow=lines)
            self.actions.append(Remember(session.key, session.memory, session.epoch))
        if run.timeout is not None:
            live.alarm = self.alarms.set(self.now + run.timeout, TimeoutPassed(live))
        if live.ties is not None:
            self._withdraw_offer(live)
        if self.draining:
            self.touched += [child.session for child in self.descendants(live)]

    def cut(self, live: LiveRun, cut: Cut) -> None:
        """Ask the live attempt to end; its slots stay taken until it has returned (S-3)."""
        live.cut = cut
        live.plain = False
        if live.next_up:
            ahead.leave(self, live)
        if live.yields and cut is not _PREEMPTED:
            live.yields = False
            live.lane.yielding -= 1
        self.set_grace(live)
        if self.here is not None:
            self.untold.add(live.ticket)
        self.actions.append(CancelAttempt(live.run, live.ticket, cut, live.session.epoch))
        for child in self.descendants(live):
            self.stop(child)

    def set_grace(self, live: LiveRun) -> None:
        """How long a cancelled attempt has to return, from now."""
        self._silence(live)
        grace = max(self.settings.cancel_grace, self.graces.get(live.run.agent, 0))
        live.alarm = self.alarms.set(self.now + grace, GraceOver(live))

    def stop(self, live: LiveRun, cut: Cut = Cut.STOPPED) -> bool:
        """End a run for good: at once if it waits, by a cut if it runs. False if it was ending already."""
        if not self.can_stop(live):
            return False
        if live.ticket:
            self.cut(live, cut)
        else:
            self.finish_waiting(live, *CUT_OUTCOMES[cut])
            self.touched.append(live.session)
            if live.session.quiet_until > self.now:
                self._keep_quiet(live.session)
        return True

    def _keep_quiet(self, session: SessionQueue) -> None:
        """The message that extended the quiet window may be gone: another one says how long it lasts."""
        collecting = [live for live in session.waiting if live.collect]
        if collecting:
            self.note_place(collecting[-1])

    def can_stop(self, live: LiveRun) -> bool:
        ended = live.run.id not in self.runs or live.cut in FINAL_CUTS
        return not (ended or live.absorbed or live is self.spared)

    def descendants(self, live: LiveRun) -> list[LiveRun]:
        """Live sub-runs of this run, at any depth."""
        root = live.session
        if live.ties is not None and live.ties.root is not None:
            root = live.ties.root
        return [other for other in root.offspring or () if other.is_under(live)]

    def step_down(self, live: LiveRun) -> None:
        """The attempt is over, one way or the other: give back what it held."""
        ticket = live.ticket
        del self.attempts[ticket]
        session = live.session
        session.running.remove(live)
        if live.next_up:
            self._never_began(live)
            return
        live.ticket = 0
        if live.plain and not self.estimating:
            self.floor.free(live)
            return
        self.untold.discard(ticket)
        self._silence(live)
        session.estimate = Estimate.UNKNOWN
        if live.yields:
            live.yields = False
            live.lane.yielding -= 1
            live.lane.owed += 1
        passes_on = live.ties is not None and lending.give_back(self, live)
        self.floor.free(live, keep_slot=passes_on)

    def _never_began(self, live: LiveRun) -> None:
        """It was started ahead, and held no slot."""
        ahead.leave(self, live)
        self.untold.discard(live.ticket)
        self._silence(live)
        live.ticket = 0
        live.next_up = False

    def enter(self, live: LiveRun) -> None:
        """The runner of the attempt is being called."""
        live.state = advance(live.state, _RUNNING)

    def absorb(self, turn: LiveRun, message: LiveRun) -> None:
        """The turn has taken the message: it leaves the line and ends with the turn (X-2)."""
        session = message.session
        if session.posted is message:
            session.posted = None
            self.floor.withdraw(message)
        session.waiting.remove(message)
        ties = message.tie()
        ties.offered_to = None
        ties.absorbed_by = turn
        turn.tie().absorbed.append(message)
        if message.deadline_alarm is not None:
            self.alarms.cancel(message.deadline_alarm)
            message.deadline_alarm = None

    def abandon(self, live: LiveRun) -> None:
        self.actions.append(Abandon(live.run, live.ticket, live.session.epoch))

    def queue_again(
        self,
        live: LiveRun,
        *,
        until: Instant | None = None,
        cut: Cut | None = None,
        error: str = "",
    ) -> None:
        """The run lives on after a cut or failed attempt: it keeps its place and holds its session (R-5)."""
        if self.draining and not self.keep_waiting:
            self.finish(live, Outcome(State.CANCELLED, Reason.DRAINING, error=error))
            return
        if live.state is _ASSIGNED and until is not None:
            live.state = advance(live.state, _QUEUED)
        live.state = advance(live.state, _QUEUED if until is None else State.PENDING)
        live.cut = None
        live.slot = 0
        if live.kind & TASK:
            self.waiting_tasks += 1
            live.agent.waiting_tasks += 1
        self.return_absorbed(live)
        live.session.rejoin(live)
        if until is not None:
            self.hold(live, Rule.RETRY, until)
        self.actions.append(
            Enqueue(
                live.run,
                live.state,
                live.attempt,
                live.session.epoch,
                until,
                cut,
                error,
                self._standing(live, until),
                ended=True,
            )
        )

    def release_hold(self, live: LiveRun) -> None:
        """A held run in line may start now."""
        live.held = None
        live.alarm = None
        live.state = advance(live.state, _QUEUED)
        self.note_place(live)

    def drop_out(self, live: LiveRun) -> Buffer | None:
        """Take a waiting run out of wherever it waits: line, buffer, or not yet due.

        Answers the window that it leaves open, if it was its latest message.
        """
        session = live.session
        if live.held is Rule.NOT_DUE:
            session.later -= 1
        elif live.held is Rule.DEBOUNCE:
            assert session.buffers is not None
            for buffer in tuple(session.buffers.values()):
                if live in buffer.messages:
                    latest = buffer.messages[-1] is live
                    buffer.messages.remove(live)
                    if not buffer.messages:
                        self.close_buffer(session, buffer.key)
                    elif latest:
                        return buffer
        elif not live.absorbed:
            if session.posted is live:
                session.posted = None
                self.floor.withdraw(live)
            session.waiting.remove(live)
            if live.ties is not None:
                self._withdraw_offer(live)
        return None

    def close_buffer(self, session: SessionQueue, key: tuple[object, ...]) -> list[LiveRun]:
        """Remove a debounce buffer and hand out what is in it."""
        assert session.buffers is not None
        buffer = session.buffers.pop(key)
        if buffer.alarm is not None:
            self.alarms.cancel(buffer.alarm)
        if not session.buffers:
            session.buffers = None
        return buffer.messages

    def finish_waiting(self, live: LiveRun, state: State, reason: Reason, error: str = "") -> None:
        """End a run that was not running."""
        window = self.drop_out(live)
        self.finish(live, Outcome(state, reason, error=error))
        if window is not None:
            self.note_pending(window.messages[-1], window.closes_at, window.latest_at)

    def finish(self, live: LiveRun, outcome: Outcome) -> None:
        """The run has its one outcome (R-2). It holds nothing any more."""
        if not live.plain:
            self._finish_special(live)
        live.state = advance(live.state, outcome.state)
        run = live.run
        del self.runs[run.id]
        started_at = live.started_at if live.begun else None
        self.actions.append(
            Finish(run, outcome, live.attempt, live.session.epoch, self.now, started_at)
        )

    def _finish_special(self, live: LiveRun) -> None:
        """What an end brings with it that most runs do not need."""
        if live.kind & TASK and live.state in WAITING_STATES:
            self.waiting_tasks -= 1
            live.agent.waiting_tasks -= 1
        self._silence(live)
        if live.deadline_alarm is not None:
            self.alarms.cancel(live.deadline_alarm)
        if live.ties is not None or live.session.offspring:
            self._untie(live)

    def forget(self, live: LiveRun) -> None:
        """The run is not this node's any more: it leaves everything, and has no outcome here."""
        if live.ticket:
            self.step_down(live)
        else:
            self.drop_out(live)
        if live.ties is not None:
            live.ties.absorbed = []
        self._finish_special(live)
        del self.runs[live.run.id]

    def merge(self, parts: list[LiveRun], *, place_of: LiveRun | None = None) -> LiveRun:
        """Several messages become one run; each of them ends `merged` and names it."""
        first = parts[0]
        run = merged([part.run for part in parts])
        live = self.admit(run, first.session, first.state, first.parent)
        live.collect = first.collect
        live.width = first.width
        if place_of is not None:
            live.order, live.place, live.rank = place_of.order, place_of.place, place_of.rank
            live.after, live.turn = place_of.after, place_of.turn
            live.queued_at, live.starts_before = place_of.queued_at, place_of.starts_before
        if first.parent is not None:
            self.adopt(first.parent, live)
        for part in parts:
            lending.pass_on_wait(part, live)
        self.actions.append(Merge(run, first.session.epoch, first.session.seen))
        for part in parts:
            self.finish(part, Outcome(State.CANCELLED, Reason.MERGED, into=run.id))
        return live

    def _collected(self, live: LiveRun) -> LiveRun:
        """The turn that this message and those right behind it become together (collect)."""
        session = live.session
        parts = [live]
        for other in session.waiting:
            if not other.collect or other.begun or not may_collect(live.run, other.run):
                break
            parts.append(other)
        if len(parts) == 1 or live.begun:
            return live
        for other in parts[1:]:
            self.drop_out(other)
        together = self.merge(parts, place_of=live)
        self.note_place(together)
        self.floor.replace(live, together)
        return together

    def _running_bar(
        self, session: SessionQueue, head: LiveRun
    ) -> tuple[Rule, Instant | None] | None:
        running = len(session.running)
        width = session.width_with(head.width)
        returning = head.interrupts and any(live.cut in FINAL_CUTS for live in session.running)
        if running >= width or returning:
            return Rule.SESSION_BUSY, None
        if not self.estimating:
            return None
        match session.estimate:
            case Estimate.UNKNOWN:
                session.estimate = Estimate.ASKED
                self.actions.append(AskEstimate(session.key, head.run.agent))
                return Rule.ESTIMATING, None
            case Estimate.ASKED:
                return Rule.ESTIMATING, None
            case Estimate.TIGHT:
                return Rule.SESSION_THROTTLED, None
            case _:
                return None

    def _preempt(self, lane: Lane) -> None:
        """Cut as many preemptible background turns as interactive ones wait for nothing but a slot (X-5)."""
        if lane.in_use < lane.width:
            return
        most = min(lane.ready[PLAIN], len(lane.preemptible))
        if most <= lane.yielding:
            return
        ready = self.floor.count_ready(lane, PLAIN, most + 1, self.now)
        for live in reversed(lane.preemptible):
            head = live.session.posted
            in_own_session = head is not None and head.lane is lane and head.kind == PLAIN
            if ready - in_own_session <= lane.yielding:
                continue
            has_own_slot = live.ties is None or not (live.ties.lent_to or live.ties.borrowed_from)
            if not live.cut and has_own_slot:
                live.yields = True
                lane.yielding += 1
                self.cut(live, _PREEMPTED)

    def _set_wakes(self) -> None:
        wakes, self.floor.wakes = self.floor.wakes, []
        for held in wakes:
            if isinstance(held, AgentLoad):
                self.alarms.set(held.free_at, AgentFree(held))
            else:
                self.alarms.set(held.free_at, LaneFree(held))

    def set_quiet(self, session: SessionQueue, until: Instant) -> None:
        """The quiet window of `collect` ends then (at the earliest)."""
        session.quiet_until = until
        if session.quiet_alarm is not None:
            self.alarms.cancel(session.quiet_alarm)
        session.quiet_alarm = self.alarms.set(until, QuietOver(session))

    def _silence(self, live: LiveRun) -> None:
        if live.alarm is not None:
            self.alarms.cancel(live.alarm)
            live.alarm = None

    def _withdraw_offer(self, live: LiveRun) -> None:
        ties = live.ties
        if ties is not None and ties.offered_to is not None:
            into = ties.offered_to.ticket
            self.actions.append(Unsteer(live.run, into, live.session.epoch))
            ties.offered_to = None

    def return_absorbed(self, live: LiveRun) -> None:
        """Its attempt counts no longer, nor does its taking of messages: they wait again (X-2)."""
        if live.ties is None or not live.ties.absorbed:
            return
        messages, live.ties.absorbed = live.ties.absorbed, []
        for message in messages:
            assert message.ties is not None
            message.ties.absorbed_by = None
            deadline_at = message.run.deadline_at
            if deadline_at is not None and deadline_at <= self.now:
                self.finish(message, past_deadline())
            else:
                message.session.rejoin(message)
                self._watch_deadline(message)

    def _untie(self, live: LiveRun) -> None:
        ties = live.tie()
        messages, ties.absorbed = ties.absorbed, []
        for message in messages:
            assert message.ties is not None
            message.ties.absorbed_by = None
            self.finish(message, Outcome(State.CANCELLED, Reason.MERGED, into=live.run.id))
        for waiter in tuple(ties.awaited_by):
            lending.end_wait(self, waiter, live)
        root = ties.root
        for child in (root or live.session).offspring or ():
            if child.ties is not None and child.ties.parent is live:
                child.ties.parent = ties.parent
        if root is not None and root.offspring is not None:
            root.offspring.remove(live)
            if not root.offspring:
                root.offspring = None

    def dissolve(self) -> None:
        """The kernel is thrown away: untie its runs, which the garbage collector does not see, from the rest."""
        for live in self.runs.values():
            live.ties = live.alarm = live.deadline_alarm = None
        for session in self.sessions.values():
            session.waiting.clear()
            session.running.clear()
            session.posted = session.buffers = session.offspring = None
        for lane in self.floor.lanes.values():
            lane.preemptible.clear()
            for flows in lane.flows:
                for flow in flows.values():
                    flow.heads.clear()
                    flow.next_up.clear()
            lane.next_up.clear()

    def release_idle(self) -> None:
        """An idle session costs nothing (S-4): what must outlive it was handed to the store before."""
        for session in [session for session in self.sessions.values() if session.is_idle]:
            del self.sessions[session.key]
            self.silence_session(session)
            self.actions.append(Release(session.key, session.epoch, session.seen))

    def silence_session(self, session: SessionQueue) -> None:
        """The session is not this node's any more."""
        if session.quiet_alarm is not None:
            self.alarms.cancel(session.quiet_alarm)
            session.quiet_alarm = None
