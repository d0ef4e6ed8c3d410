"""Messages: what one does to its session by mode, cap, drop and debounce (S-5 to S-7).

Only messages have these; tasks, firings and heartbeats always wait their turn. The stage makes the moves.
"""

from headway.core.actions import Remember, Steer
from headway.core.bells import WindowClosed
from headway.core.debounce import Buffer, buffer_key
from headway.core.endings import FINAL_CUTS
from headway.core.lanes import AgentLoad
from headway.core.live import LiveRun
from headway.core.session import QueueRules, SessionQueue
from headway.core.stage import Stage
from headway.model.outcome import Outcome
from headway.model.run import Run
from headway.model.settings import QueueSettings
from headway.model.time import Span
from headway.model.words import Cut, Drop, Mode, Reason, Rule, Source, State, SteerFallback

# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_MESSAGE = Source.MESSAGE
_PENDING = State.PENDING
_QUEUED = State.QUEUED
_REJECT = Mode.REJECT
_COLLECT = Mode.COLLECT
_NEW = Drop.NEW
_QUEUE = Mode.QUEUE
_FOLLOWUP = Mode.FOLLOWUP


class Messages:
    """The rules for messages of all sessions."""

    def __init__(self, stage: Stage, rules: QueueRules) -> None:
        self._stage = stage
        self._rules = rules

    def refused(self, run: Run, session: SessionQueue, settings: QueueSettings) -> Outcome | None:
        """What ends a message at its arrival, before the debouncer. Other runs are never refused here."""
        later = run.due_at is not None and run.due_at > self._stage.now
        if run.source is not _MESSAGE or later:
            return None
        if session.memory.cutoff_at is not None and session.is_stale(run):
            return Outcome(State.CANCELLED, Reason.STALE)
        if not session.waiting and not session.running:
            return None
        if settings.mode is _REJECT and session.busy_for(settings.max_concurrent):
            return Outcome(State.REJECTED, Reason.REJECTED_BUSY)
        full = settings.drop is _NEW and session.is_full(settings.cap)
        if full and not self._will_make_room(run, session, settings):
            buffers = session.buffers or {}
            joins = settings.debounce and buffer_key(run) in buffers
            if not joins:
                return Outcome(State.REJECTED, Reason.QUEUE_FULL)
        return None

    def _will_make_room(self, run: Run, session: SessionQueue, settings: QueueSettings) -> bool:
        """Whether the message will end what waits, as an interrupt does."""
        agent = self._stage.floor.agent(run.agent)
        return self._effective_mode(session, agent, settings) is Mode.INTERRUPT

    def _effective_mode(
        self, session: SessionQueue, agent: AgentLoad, settings: QueueSettings
    ) -> Mode:
        """What a message does now: by its mode if the session is busy, else it simply runs."""
        mode = settings.mode
        if not session.busy_for(settings.max_concurrent):
            return mode if mode is Mode.COLLECT else Mode.QUEUE
        if mode is Mode.STEER and self._steerable(session, agent) is None:
            interrupts = settings.steer_fallback is SteerFallback.INTERRUPT
            return Mode.INTERRUPT if interrupts and not session.only_heartbeats_run else Mode.QUEUE
        return mode

    def buffer(self, live: LiveRun, settings: QueueSettings) -> None:
        stage = self._stage
        session = live.session
        window = settings.debounce
        key = buffer_key(live.run)
        if session.buffers is None:
            session.buffers = {}
        buffer = session.buffers.get(key)
        if buffer is None:
            longest = window * stage.settings.debounce_limit
            buffer = session.buffers[key] = Buffer(session, key, stage.now + longest)
        live.held = Rule.DEBOUNCE
        live.plain = False
        buffer.messages.append(live)
        if buffer.alarm is not None:
            stage.alarms.cancel(buffer.alarm)
        buffer.alarm = stage.alarms.set(buffer.extend(stage.now, window), WindowClosed(buffer))
        if settings.mode is _COLLECT and session.is_at_work:
            self._extend_quiet(live, window)
        stage.note_pending(live, buffer.closes_at, buffer.latest_at)

    def take_in(
        self, run: Run, session: SessionQueue, settings: QueueSettings, parent: LiveRun | None
    ) -> LiveRun:
        """The run's place: in line, in a debounce window, or not yet because it is due later."""
        stage = self._stage
        later = run.due_at is not None and run.due_at > stage.now
        debounced = settings.debounce and run.source is _MESSAGE
        state = _PENDING if later or debounced else _QUEUED
        live = stage.admit(run, session, state, parent)
        live.width = settings.max_concurrent
        if later:
            assert run.due_at is not None
            session.later += 1
            stage.hold(live, Rule.NOT_DUE, run.due_at)
            stage.note_pending(live, run.due_at)
        elif run.source is not _MESSAGE:
            stage.line_up(live)
        elif debounced:
            self.buffer(live, settings)
        else:
            self.line_up(live, settings)
        return live

    def became_due(self, live: LiveRun) -> None:
        """A run that was due later takes its place now (S-1)."""
        stage = self._stage
        session = live.session
        session.later -= 1
        live.alarm = None
        live.held = None
        settings = self._rules.resolve(live.run.queue, session.memory.options, live.run.route)
        live.width = settings.max_concurrent
        if live.run.source is not _MESSAGE:
            stage.line_up(live)
        elif session.is_stale(live.run):
            stage.finish(live, Outcome(State.CANCELLED, Reason.STALE))
        elif settings.debounce:
            self.buffer(live, settings)
        else:
            self.line_up(live, settings)

    def window_closed(self, buffer: Buffer) -> SessionQueue:
        """What came in the window takes its place in line, as one run."""
        stage = self._stage
        session = buffer.session
        parts = stage.close_buffer(session, buffer.key)
        live = parts[0]
        if len(parts) > 1:
            live = stage.merge(parts)
            live.width = parts[0].width
        settings = self._rules.resolve(
            parts[-1].run.queue, session.memory.options, parts[-1].run.route
        )
        self.line_up(live, settings)
        return session

    def line_up(self, live: LiveRun, settings: QueueSettings) -> None:
        """The message's place in line, by its mode if the session is busy."""
        stage = self._stage
        session = live.session
        # A message of these modes does nothing but wait its turn, whenever it comes.
        patient = settings.mode is _QUEUE or settings.mode is _FOLLOWUP
        if patient and not session.had_heartbeats and not session.is_full(settings.cap):
            stage.line_up(live)
            return
        if not session.waiting and not session.running:
            live.collect = settings.mode is _COLLECT
            stage.line_up(live)
            return
        stage.spared = live
        mode = self._effective_mode(session, live.agent, settings)
        turn = self._steerable(session, live.agent) if mode is Mode.STEER else None
        if mode is Mode.INTERRUPT:
            live.interrupts = True
            self._interrupt(session)
        if session.is_full(settings.cap) and not self._make_room(live, settings):
            stage.spared = None
            return
        live.collect = mode is Mode.COLLECT
        if live.collect and session.is_at_work:
            self._extend_quiet(live, settings.debounce)
        if turn is not None:
            live.tie().offered_to = turn
        settled = live.state is _QUEUED and not patient
        if settled:
            stage.take_turn(live)
        stage.line_up(live, first=mode is Mode.INTERRUPT and bool(session.waiting))
        if settled:
            stage.note_place(live)
        self.preempt_heartbeats(session)
        stage.spared = None
        if turn is not None:
            stage.actions.append(Steer(live.run, turn.ticket, session.epoch))

    def _steerable(self, session: SessionQueue, agent: AgentLoad) -> LiveRun | None:
        """The running turn that can take a message for this agent: its oldest, if it can be steered.

        A heartbeat takes none, because the message preempts it (F-4).
        """
        if not agent.settings.steerable:
            return None
        for turn in session.running:
            heartbeat = turn.run.source is Source.HEARTBEAT
            if turn.agent is agent and turn.cut is None and not (heartbeat or turn.next_up):
                return turn
        return None

    def _interrupt(self, session: SessionQueue) -> None:
        """Cancel what the session is at; waiting messages are superseded, other work keeps its turn."""
        for live in tuple(session.waiting):
            if live.run.source is Source.MESSAGE or live.begun:
                self._stage.finish_waiting(live, State.CANCELLED, Reason.SUPERSEDED)
        for live in tuple(session.running):
            if live.cut not in FINAL_CUTS:
                self._stage.cut(live, Cut.SUPERSEDED)

    def _make_room(self, live: LiveRun, settings: QueueSettings) -> bool:
        """The queue is full: someone gives way (S-6). False if it is the new message itself."""
        stage = self._stage
        session = live.session
        if settings.drop is Drop.NEW:
            if live.state is State.PENDING:
                live.held = None
                stage.finish(live, Outcome(State.CANCELLED, Reason.QUEUE_DROPPED))
            else:
                raise AssertionError("a full queue refuses at arrival")
            return False
        while session.is_full(settings.cap):
            oldest = session.oldest_message()
            assert oldest is not None
            if settings.drop is Drop.SUMMARIZE:
                session.keep_line(oldest.run)
                stage.actions.append(Remember(session.key, session.memory, session.epoch))
            stage.finish_waiting(oldest, State.CANCELLED, Reason.QUEUE_DROPPED)
        return True

    def _extend_quiet(self, live: LiveRun, window: Span) -> None:
        """`collect` waits until nothing has come for one window, but never longer than its bound."""
        if not window:
            return
        session = live.session
        collecting = [other for other in session.waiting if other.collect]
        first_at = collecting[0].run.submitted_at if collecting else live.run.submitted_at
        latest_at = first_at + window * self._stage.settings.debounce_limit
        until = min(live.run.submitted_at + window, latest_at)
        if until > max(self._stage.now, session.quiet_until):
            self._stage.set_quiet(session, until)

    def preempt_heartbeats(self, session: SessionQueue) -> None:
        """A user's message never waits behind a heartbeat of the same session (F-4)."""
        for live in session.running:
            if live.run.source is Source.HEARTBEAT and live.cut is None:
                self._stage.cut(live, Cut.PREEMPTED)
