"""The kernel: every decision about when an agent run may start, stop or must give way.

Feed it what happened, in order, with the time; collect its decisions with `take_actions`. It holds the runs of
the sessions that this node owns, and nothing else in Headway decides anything about them. Time given to it never
goes backwards: an earlier instant counts as the latest one seen.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from headway.core import ahead, lending
from headway.core.actions import (
    Action,
    Done,
    Ended,
    Failed,
    Finish,
    NoteLate,
    Release,
    Respond,
)
from headway.core.bells import (
    AgentFree,
    Bell,
    DeadlinePassed,
    GraceOver,
    HoldOver,
    LaneFree,
    QuietOver,
    SlotAwaited,
    TimeoutPassed,
    WindowClosed,
)
from headway.core.endings import FINAL_CUTS, past_deadline
from headway.core.leaving import Leaving
from headway.core.live import LiveRun
from headway.core.messages import Messages
from headway.core.recovery import Recovery
from headway.core.returning import Returning
from headway.core.session import BLANK, Estimate, QueueRules, SessionQueue
from headway.core.stage import Stage
from headway.core.stopping import Stopping
from headway.model.errors import WouldDeadlock
from headway.model.outcome import Outcome
from headway.model.places import Answer, Holding, Order
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Route,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import AgentSettings, LaneSettings, Limits, QueueSettings, Settings
from headway.model.time import Instant
from headway.model.words import (
    Cut,
    Reason,
    Rule,
    Source,
    State,
)

if TYPE_CHECKING:
    from headway.core.forecast import Foreseen

# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_TASK = Source.TASK
_DONE = State.DONE


class Kernel:
    """The decisions of one node. Deterministic: the same history gives the same actions."""

    def __init__(self, settings: Settings, now: Instant = 0) -> None:
        self.stage = Stage(settings, now)
        self._rules = QueueRules(settings.queue, settings.channels)
        self._messages = Messages(self.stage, self._rules)
        self._stopping = Stopping(self.stage)
        self._recovery = Recovery(self.stage, self._rules, self._messages, self._stopping)
        self._leaving = Leaving(self.stage)
        self._returning = Returning(self.stage)
        self.changes = 0
        """Grows with everything that happens: what was found out before may be no longer so."""
        self.foreseen: Foreseen | None = None
        """What was found out last about who starts when."""
        self._admitted = False
        """Whether the limits for tasks need not be asked again for what is just submitted."""

    def __del__(self) -> None:
        self.stage.dissolve()

    # What happened: submissions and attempts.

    @contextmanager
    def admitted_before(self) -> Iterator[None]:
        """What is submitted meanwhile was admitted all or none: the limits are not asked again (T-5)."""
        self._admitted = True
        try:
            yield
        finally:
            self._admitted = False

    def submit(  # noqa: C901 - the hot path, kept flat; its parts have names
        self,
        run: Run,
        now: Instant,
        epoch: int = 0,
        seq: int = 0,
        memory: SessionMemory | None = None,
    ) -> Outcome | None:
        """A run was asked for. Answers its outcome if it is refused at once, else None.

        `epoch` and `memory` are what the store knows of the session, and count only if it was idle here; `seq`
        is the run's number in it. A number that the session has seen is nothing new: the run came by `restore`.
        """
        stage = self.stage
        self.changes += 1
        if now > stage.now:
            stage.now = now
        if stage.alarms.due_at <= stage.now:
            self._ring_due()
        session = stage.sessions.get(run.session)
        if session is None:
            if self._leaving.under_way and self._leaving.has(run.session, epoch):
                return None
        elif seq <= session.seen and seq:
            return None
        if stage.draining and run.parent is None:
            return self._refuse(run, epoch, seq, Outcome(State.CANCELLED, Reason.DRAINING))
        parent: LiveRun | None = None
        if run.parent is not None or run.deadline_at is not None or run.source is _TASK:
            parent = None if run.parent is None else stage.runs.get(run.parent)
            refused = self._refused_at_the_door(run, parent)
            if refused is not None:
                return self._refuse(run, epoch, seq, refused)
        if session is None:
            session = stage.session(run.session, epoch, memory)
        if seq > session.seen:
            session.seen = seq
        if run.queue is None and run.route is None and session.memory is BLANK:
            settings = self._rules.from_library
        else:
            settings = self._rules.resolve(run.queue, session.memory.options, run.route)
        if session.memory is not BLANK or session.waiting or session.running:
            verdict = self._messages.refused(run, session, settings)
            if verdict is not None:
                return self._refuse(run, epoch, seq, verdict)
        live = self._messages.take_in(run, session, settings, parent)
        if parent is not None:
            stage.adopt(parent, live)
        stage.refresh(session)
        if (session.posted is not None and session.posted is not live) or stage.touched:
            stage.fill_all()
        elif live.lane.in_use < live.lane.width or live.lane.preemptible or live.lane.ahead:
            stage.fill(live.lane)
        return None

    def _refused_at_the_door(self, run: Run, parent: LiveRun | None) -> Outcome | None:
        """What ends a run before its session is even looked at."""
        if run.parent is not None and (parent is None or not parent.ticket or parent.cut):
            return Outcome(State.CANCELLED, Reason.STOPPED)
        if run.deadline_at is not None and run.deadline_at <= self.stage.now:
            return past_deadline()
        if run.source is _TASK and parent is None and not self._admitted and self._tasks_full(run):
            return Outcome(State.REJECTED, Reason.QUEUE_FULL)
        return None

    def began(self, ticket: int, now: Instant) -> bool:
        """The hooks of an attempt are through: its runner is called now. False: it must not be (S-11).

        Only said where there are hooks; else an attempt runs from its start on.
        """
        self._advance(now)
        live = self.stage.attempts.get(ticket)
        if live is None or live.cut is not None:
            return False
        if live.state is State.ASSIGNED:
            self.stage.enter(live)
        return True

    def finished(self, ticket: int, ended: Ended, now: Instant, jitter: float = 0.5) -> bool:
        """The attempt has returned. False: it counts no longer, nothing was changed (R-4)."""
        stage = self.stage
        self.changes += 1
        if now > stage.now:
            stage.now = now
        if stage.alarms.due_at <= stage.now:
            self._ring_due()
        live = stage.attempts.get(ticket)
        if live is None:
            stage.actions.append(NoteLate(ticket))
            return False
        self._ended(live, ended, jitter)
        return True

    def told(self, ticket: int, now: Instant) -> None:
        """An attempt was asked to end just now: its grace counts from here (S-3).

        Only said where storing the decision may take long; else the grace counts from the decision.
        """
        self._advance(now)
        live = self.stage.attempts.get(ticket)
        if live is not None and ticket in self.stage.untold:
            self.stage.untold.discard(ticket)
            self.stage.set_grace(live)

    def time_passed(self, now: Instant) -> None:
        """Nothing happened but time. That alone changes nothing, unless an alarm rings."""
        stage = self.stage
        if now > stage.now:
            stage.now = now
        if stage.alarms.due_at <= stage.now:
            self.changes += 1
            self._ring_due()

    @property
    def wake_at(self) -> Instant | None:
        """When time alone will change something next."""
        return self.stage.alarms.next_at

    def take_actions(self) -> list[Action]:
        """What was decided since the last call, in order."""
        stage = self.stage
        actions, stage.actions = stage.actions, []
        return actions

    # What happened: orders.

    def carry_out(
        self, order: Order, epoch: int, memory: SessionMemory | None, now: Instant
    ) -> Answer:
        """An order that was given here, to a session of this node; `Respond` keeps the answer (N-13).

        `epoch` and `memory` are what the store knows of the session, as in `submit`. An order that comes or came
        by `restore` is not carried out here: its answer is there.
        """
        self._advance(now)
        if self._leaving.has(order.session, epoch):
            return Answer()
        session = self.stage.session(order.session, epoch, memory)
        if 0 < order.seq <= session.seen:
            return Answer()
        session.seen = max(session.seen, order.seq)
        respond = self._stopping.carry_out(order, session)
        self.stage.fill_all()
        return respond.answer

    # What happened: steering and sub-runs.

    def steered(self, ticket: int, message: RunId, now: Instant) -> bool:
        """A turn takes a message from its inbox. False: too late, it is not the turn's any more (X-2)."""
        self._advance(now)
        turn = self.stage.attempts.get(ticket)
        live = self.stage.runs.get(message)
        if turn is None or turn.cut is not None or live is None or live.ties is None:
            return False
        if live.ties.offered_to is not turn:
            return False
        self.stage.absorb(turn, live)
        self._settle(live.session)
        return True

    def awaits(self, ticket: int, child: RunId, now: Instant) -> None:
        """A turn begins to wait for a sub-run: its slot may carry it meanwhile (L-4)."""
        self._advance(now)
        parent = self.stage.attempts.get(ticket)
        live = self.stage.runs.get(child)
        if parent is None or live is None:
            return
        if live.ticket == 0 and self._keeps_out(parent, live):
            raise WouldDeadlock(child, live.session.key)
        if live.next_up:
            ahead.call_back(self.stage, live)
        lending.begin_wait(self.stage, parent, live)
        self.stage.fill(live.lane)

    def resumes(self, ticket: int, child: RunId, now: Instant) -> None:
        """The turn waits for that sub-run no longer."""
        self._advance(now)
        parent = self.stage.attempts.get(ticket)
        live = self.stage.runs.get(child)
        if parent is not None and live is not None:
            lending.end_wait(self.stage, parent, live)
            self.stage.fill_all()

    def estimated(self, key: SessionKey, now: Instant, tokens: int = 0, window: int = 0) -> None:
        """The answer to `AskEstimate`; a window of 0 means that nothing is known (S-2)."""
        self._advance(now)
        session = self.stage.sessions.get(key)
        if session is None or session.estimate is not Estimate.ASKED:
            return
        tight = window > 0 and tokens >= self.stage.settings.throttle_ratio * window
        session.estimate = Estimate.TIGHT if tight else Estimate.ROOMY
        self._settle(session)

    def used(self, ticket: int, tokens: int, now: Instant) -> None:
        """A turn reports tokens: they are taken from the budgets of its agent and lane (X-6)."""
        self._advance(now)
        live = self.stage.attempts.get(ticket)
        if live is None:
            return
        for purse in (live.agent.purse, live.lane.purse):
            if purse is not None:
                purse.tokens_used(tokens, self.stage.now)

    # What happened: settings and operation.

    def queue_settings(
        self,
        options: QueueOptions | None,
        route: Route | None,
        message: QueueOptions | None = None,
    ) -> QueueSettings:
        """What messages from there go by in a session with these options of its own."""
        return self._rules.resolve(message, options, route)

    def go_by(self, settings: Settings, now: Instant) -> None:
        """Go by these settings from now on, but for lanes, limits and agents: each is set by itself."""
        self._advance(now)
        self.stage.go_by(settings)
        self._rules.go_by(settings.queue, settings.channels)

    def set_lane(self, name: LaneName, settings: LaneSettings, now: Instant) -> None:
        """Make a lane, or change one: up starts waiting runs at once, down lets running ones finish (L-2)."""
        self._advance(now)
        lane = self.stage.floor.set_lane(name, settings, self.stage.now)
        if lane.next_up and lane.in_use >= lane.width:
            ahead.call_all_back(self.stage, lane)
        self.stage.fill(lane)

    def set_ahead(self, name: LaneName, count: int, now: Instant) -> None:
        """Let so many starts of a lane be stored before there are slots for them, while runs are that short."""
        self._advance(now)
        lane = self.stage.floor.lane(name)
        grows = count > lane.ahead
        ahead.allow(self.stage, lane, count)
        if grows:
            self.stage.fill(lane)

    def set_permits(self, name: LaneName, count: int, now: Instant) -> None:
        """How many of a lane's slots over all nodes this node has now (L-8)."""
        self._advance(now)
        lane = self.stage.floor.lane(name)
        lane.permits = count
        lane.fit()
        self.stage.fill(lane)

    def wanted_permits(self) -> dict[LaneName, int]:
        """For each lane with a cluster limit: how many slots it could use now."""
        return {
            name: min(lane.most, lane.in_use + sum(lane.ready))
            for name, lane in self.stage.floor.lanes.items()
            if lane.settings.cluster_limit is not None
        }

    @property
    def limited_lanes(self) -> bool:
        """Whether any lane has a cluster limit."""
        return self.stage.floor.shares_lanes

    def room(self) -> dict[LaneName, int]:
        """How many more sessions with something ready each lane could start now."""
        halted = self.stage.halted
        return {name: 0 if halted else lane.room for name, lane in self.stage.floor.lanes.items()}

    def clear_lane(self, name: LaneName, now: Instant) -> int:
        """End all that waits in a lane; running runs go on (L-5). Answers how many ended."""
        self._advance(now)
        stage = self.stage
        lane = stage.floor.lane(name)
        waiting = [
            live
            for live in stage.runs.values()
            if live.lane is lane and live.ticket == 0 and not live.absorbed
        ]
        for live in waiting:
            if live.run.id in stage.runs:
                stage.finish_waiting(live, State.CANCELLED, Reason.LANE_CLEARED)
        for session in {live.session.key: live.session for live in waiting}.values():
            stage.refresh(session)
        stage.fill_all()
        return len(waiting)

    def set_limits(self, limits: Limits, now: Instant) -> None:
        """Change admission and execution limits; what now may start, starts (F-1)."""
        self._advance(now)
        self.stage.floor.limits = limits
        self._unpark_all()

    def set_agent(
        self, name: AgentName, settings: AgentSettings, now: Instant, *, here: bool = True
    ) -> None:
        """What is to be known of an agent. One that is not `here` runs on other nodes only (N-20)."""
        self._advance(now)
        stage = self.stage
        agent = stage.floor.set_agent(name, settings, stage.now)
        if stage.here is not None and here:
            stage.here.add(name)
            for session in stage.sessions.values():
                stage.refresh(session)
        stage.floor.unpark(agent)
        stage.fill_all()

    def set_outliving(self, name: AgentName, on: bool) -> None:
        """Whether attempts of this agent go on outside this process, whatever becomes of it (W-2)."""
        if on:
            self.stage.outliving.add(name)
        else:
            self.stage.outliving.discard(name)

    def set_shared(self) -> None:
        """Other nodes may have agents that this one has not: only those set as `here` start here."""
        self.stage.here = set()

    def strangers(self) -> list[SessionKey]:
        """Sessions whose next run is for an agent of other nodes, while nothing of them runs here."""
        stage = self.stage
        if not stage.foreign or stage.here is None:
            return []
        keys, stage.foreign = stage.foreign, set()
        found = []
        for key in keys:
            session = stage.sessions.get(key)
            if session is None or not session.waiting or session.waiting[0].run.agent in stage.here:
                continue
            stage.foreign.add(key)
            if not session.running:
                found.append(key)
        return sorted(found)

    def set_gated(self, on: bool) -> None:
        """Whether `began` will tell when an attempt's runner is called, because hooks come first."""
        self.stage.gated = on

    def set_estimating(self, on: bool) -> None:
        self.stage.estimating = on

    def drain(self, now: Instant, *, keep_waiting: bool) -> None:
        """Start nothing new but sub-runs of what runs. Waiting runs are kept for the next start, or end (L-5)."""
        self._advance(now)
        stage = self.stage
        stage.draining = stage.halted = True
        stage.keep_waiting = keep_waiting
        for lane in stage.floor.lanes.values():
            ahead.call_all_back(stage, lane)
        self._drain_waiting()

    def cut_all(self, now: Instant) -> None:
        """The drain's grace is over: ask every running attempt to end."""
        self._advance(now)
        self.stage.closing = True
        for live in tuple(self.stage.attempts.values()):
            if (live.cut is None or live.cut is Cut.PREEMPTED) and not live.next_up:
                self.stage.cut(live, Cut.DRAINED)
        self._drain_waiting()

    def reset(self, now: Instant) -> None:
        """The node comes back as a new incarnation (L-6): attempts of the old one count no longer."""
        self._advance(now)
        stage = self.stage
        stage.draining = stage.closing = stage.suspended = stage.halted = False
        for live in tuple(stage.attempts.values()):
            cut = live.cut or Cut.DRAINED
            if live.next_up and cut not in FINAL_CUTS:
                cut = Cut.PREEMPTED
            stage.step_down(live)
            self._returning.cut(live, cut, again=True)
        stage.floor.reset()
        self._refresh_all()

    # What happened: sessions come and go.

    def restore(self, holding: Holding, now: Instant) -> tuple[Respond, ...]:
        """The store gave this node a session, or says what is new in one of its sessions (D-7, N-12).

        Answers the orders among it, as they were carried out. What an older epoch says counts for nothing.
        """
        self._advance(now)
        stage = self.stage
        key = holding.session
        known = stage.sessions.get(key)
        if known is not None and known.epoch > holding.epoch:
            return ()
        if known is not None and known.epoch < holding.epoch:
            self._leaving.give_up(known)
        self._leaving.came_again(key)
        responds = self._recovery.take(holding)
        stage.touched.append(stage.sessions[key])
        if stage.alarms.due_at <= stage.now:
            self._ring_due()
        if stage.draining:
            self._drain_waiting()
        stage.fill_all()
        return responds

    def put_back(self, keys: Iterable[SessionKey], now: Instant) -> list[RunId]:
        """Leave these sessions to other nodes, unless something of them is under way here (N-17).

        Answers the runs that left. If the store keeps the session for this node after all, because something new
        has come, all of it has to be restored; whatever is submitted to it meanwhile comes with that.
        """
        self._advance(now)
        left = self._leaving.put_back(keys)
        self.stage.fill_all()
        return left

    def unstarted_since(self, instant: Instant) -> list[SessionKey]:
        """Sessions whose next run has been ready since before then, while nothing of them runs (N-17).

        Not those of a sub-run whose parent is here: only here can a slot be lent to it (L-4).
        """
        return [
            session.key
            for session in self.stage.sessions.values()
            if session.posted is not None
            and not session.running
            and session.posted.queued_at < instant
            and (session.posted.ties is None or not session.posted.ties.holds_here)
        ]

    def lose(self, lost: Iterable[tuple[SessionKey, int]], now: Instant) -> list[RunId]:
        """Other nodes decide for these sessions now (D-4): forget their runs, without any outcome.

        Answers which were forgotten. Late results of their attempts count for nothing. A session that this node
        has again, under another epoch than the lost one, stays.
        """
        self._advance(now)
        forgotten = self._leaving.lose(lost)
        if self.stage.draining:
            self._drain_waiting()
        self.stage.fill_all()
        return forgotten

    def suspend(self, now: Instant) -> None:
        """The node may not act any more, because it cannot renew its lease (D-3): all attempts are to end."""
        self._advance(now)
        stage = self.stage
        stage.suspended = stage.halted = True
        for live in tuple(stage.attempts.values()):
            if live.cut is None:
                stage.cut(live, Cut.LOST)
        self._refresh_all()

    def resume(self, now: Instant) -> None:
        """The node may act again."""
        self._advance(now)
        stage = self.stage
        stage.suspended = False
        stage.halted = stage.draining
        self._refresh_all()

    def release_idle(self) -> None:
        """Give idle sessions back to the store (S-4), after all that was decided about them."""
        self.stage.release_idle()

    # How attempts end.

    def _ended(self, live: LiveRun, ended: Ended, jitter: float) -> None:
        stage = self.stage
        stage.step_down(live)
        if live.cut is None and type(ended) is Done:
            agent = live.agent
            took = stage.now - live.started_at
            mean = agent.mean_span
            agent.mean_span = mean + (took - mean) // 8 if mean else took
            stage.finish(live, Outcome(_DONE, None, ended.reply))
        else:
            self._returning.without_reply(live, ended, jitter)
        session = live.session
        if stage.draining:
            self._drain_waiting()
        elif live.kind or live.ties is not None:
            self._settle(session)
        elif session.waiting:
            stage.refresh(session)
            head = session.posted
            if head is None or head.lane is live.lane:
                stage.fill(live.lane)
            else:
                stage.fill_all()
        else:
            stage.fill(live.lane)

    def _keeps_out(self, waiter: LiveRun, live: LiveRun) -> bool:
        """Whether the waiter and its ancestors alone keep the run's session too busy for it."""
        session = live.session
        holders = 0
        holder: LiveRun | None = waiter
        while holder is not None:
            holders += holder.session is session and holder.ticket != 0
            holder = holder.parent
        return holders >= session.width_with(live.width) if holders else False

    # Time.

    def _advance(self, now: Instant) -> None:
        """Something else happens now; what is due by then comes first."""
        stage = self.stage
        self.changes += 1
        if now > stage.now:
            stage.now = now
        if stage.alarms.due_at <= stage.now:
            self._ring_due()

    def _ring_due(self) -> None:
        """Deadlines first: what is past its deadline must not start because of another alarm (F-5)."""
        stage = self.stage
        while stage.alarms.due_at <= stage.now:
            due = stage.alarms.take_due(stage.now)
            for alarm in due:
                if isinstance(alarm.bell, DeadlinePassed):
                    live, alarm.bell = alarm.bell.live, None
                    self._deadline_passed(live)
            some_ended = bool(stage.touched)
            stage.refresh_touched()
            for alarm in due:
                bell, alarm.bell = alarm.bell, None
                if bell is not None:
                    self._ring(bell)
            if some_ended or stage.touched:
                stage.fill_all()

    def _ring(self, bell: Bell) -> None:
        stage = self.stage
        match bell:
            case DeadlinePassed(live):
                self._deadline_passed(live)
            case TimeoutPassed(live):
                live.alarm = None
                if live.cut is None:
                    again = live.retries < live.run.retries
                    stage.cut(live, Cut.OVERRAN if again else Cut.TIMED_OUT)
            case GraceOver(live) if live.ticket in stage.untold:
                stage.set_grace(live)
            case GraceOver(live):
                live.alarm = None
                # Nobody takes its slot over before it is stored that this attempt is left behind.
                ahead.call_all_back(stage, live.lane)
                stage.abandon(live)
                self._ended(live, Failed("abandoned"), 0.5)
            case HoldOver(live):
                self._hold_over(live)
            case WindowClosed(buffer):
                buffer.alarm = None
                self._settle(self._messages.window_closed(buffer))
            case QuietOver(session):
                session.quiet_alarm = None
                self._settle(session)
            case AgentFree(agent):
                agent.free_at = 0
                stage.floor.unpark(agent)
                stage.fill_all()
            case LaneFree(lane):
                lane.free_at = 0
                stage.fill(lane)
            case SlotAwaited(lane):
                ahead.look_after(stage, lane)
            case _:
                assert_never(bell)

    def _deadline_passed(self, live: LiveRun) -> None:
        live.deadline_alarm = None
        if live.ticket:
            if live.cut not in FINAL_CUTS:
                self.stage.cut(live, Cut.DEADLINE)
        else:
            self.stage.drop_out(live)
            self.stage.finish(live, past_deadline())
            self.stage.touched.append(live.session)

    def _hold_over(self, live: LiveRun) -> None:
        live.alarm = None
        if live.held is Rule.RETRY:
            self.stage.release_hold(live)
        else:
            self._messages.became_due(live)
        self._settle(live.session)

    # Shared endings.

    def _drain_waiting(self) -> None:
        """End what will not start any more, unless it is kept for the next start."""
        stage = self.stage
        if not stage.keep_waiting:
            for live in tuple(stage.runs.values()):
                gone = live.run.id not in stage.runs
                if not (gone or live.ticket or live.absorbed or stage.may_start_draining(live)):
                    stage.finish_waiting(live, State.CANCELLED, Reason.DRAINING)
        self._refresh_all()

    def _tasks_full(self, run: Run) -> bool:
        """Whether admission refuses one more waiting task (F-1)."""
        stage = self.stage
        limits = stage.floor.limits
        return (
            stage.waiting_tasks >= limits.max_queue
            or stage.floor.agent(run.agent).waiting_tasks >= limits.max_queue_per_agent
        )

    def _refuse(self, run: Run, epoch: int, seq: int, outcome: Outcome) -> Outcome:
        """The run ends before it has begun; its session is as it was."""
        stage = self.stage
        stage.actions.append(Finish(run, outcome, 0, epoch, stage.now))
        session = stage.sessions.get(run.session)
        if session is None:
            stage.actions.append(Release(run.session, epoch, seq))
        else:
            session.seen = max(session.seen, seq)
        return outcome

    def _refresh_all(self) -> None:
        for session in tuple(self.stage.sessions.values()):
            self.stage.refresh(session)
        self.stage.fill_all()

    def _settle(self, session: SessionQueue) -> None:
        """After a change in a session: post its next run, and fill the lanes that may have room."""
        self.stage.refresh(session)
        self.stage.fill_all()

    def _unpark_all(self) -> None:
        for agent in self.stage.floor.agents.values():
            self.stage.floor.unpark(agent)
        self.stage.fill_all()
