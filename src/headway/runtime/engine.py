"""The engine: tells the kernel what happened, stores what it decided, then carries it out.

One task, the scribe, does the storing and carrying out; everything else only tells the kernel and wakes the
scribe. So what happens in one turn of the event loop is stored as one batch, and nothing is acted on before it
is stored.
"""

import asyncio
from asyncio import get_running_loop
from collections.abc import Awaitable, Coroutine, Mapping, Sequence

import msgspec

from headway.core.actions import (
    Abandon,
    Action,
    AskEstimate,
    CancelAttempt,
    Enqueue,
    Finish,
    Merge,
    NoteHold,
    NoteLate,
    NoteWait,
    Release,
    Remember,
    Start,
    Steer,
    Stopped,
    Unsteer,
    session_of,
)
from headway.core.kernel import Kernel
from headway.core.request import Composer
from headway.core.session import with_options
from headway.core.why import explain, lane_views, queue_status, session_views
from headway.model.errors import (
    InvalidInput,
    InvariantBroken,
    NotFound,
    NotRunning,
    TurnOver,
    UnknownName,
    WrongLoop,
)
from headway.model.outcome import Outcome, error_of
from headway.model.run import AgentName, LaneName, QueueOptions, Route, Run, RunId, SessionKey
from headway.model.settings import (
    LANE_ALIASES,
    AgentSettings,
    LaneSettings,
    Limits,
    Settings,
)
from headway.model.time import SECOND, Instant, Span
from headway.model.views import LaneView, RunView, SessionView, Why
from headway.model.words import Reason, State
from headway.ports import Admission, Clock, Duplicate, Granted, RunPage, RunQuery, Store
from headway.runtime.attempts import Attempts
from headway.runtime.bus import Bus
from headway.runtime.callbacks import Callbacks, TokenEstimate
from headway.runtime.handle import Handle
from headway.runtime.herald import Herald
from headway.runtime.ids import RunIds
from headway.runtime.replies import describe
from headway.turn import Runner, current_turn


class Engine:
    """One node: its kernel, its store, and the attempts that run here."""

    def __init__(self, settings: Settings, store: Store, clock: Clock) -> None:
        self.settings = settings
        self.bus = Bus()
        self.kernel = Kernel(settings, clock.now())
        self._herald = Herald(self.bus, clock)
        self.attempts = Attempts(self, self.kernel, clock, self._wake, self._fail, self._herald)
        self.incarnation = 1
        self.callbacks = Callbacks(self._herald, settings.callback_within)
        self._store = store
        self._clock = clock
        self._lanes = self.kernel.stage.floor.lanes
        self._ids = RunIds.for_node(clock.now())
        self._agents: dict[AgentName, AgentSettings] = {}
        self._composers: dict[str, Composer] = {}
        self._handles: dict[RunId, Handle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scribe: asyncio.Task[None] | None = None
        self._nudge: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Instant | None = None
        self._unstored: list[asyncio.Future[None]] = []
        self._storing: list[asyncio.Future[None]] = []
        """Those who wait for the batch that is being stored, or for the next one."""
        self._resting: list[asyncio.Future[None]] = []
        self._kept_idle = 0

    # Life.

    async def start(self) -> None:
        if self._scribe is not None:
            return
        await self._store.open()
        self.kernel.set_gated(bool(self.attempts.before))
        self._loop = asyncio.get_running_loop()
        self._scribe = self._loop.create_task(self._write(), name="headway-scribe")
        self._scribe.add_done_callback(self._scribe_ended)

    async def drain(self, grace: Span | None = None, *, keep_waiting: bool | None = None) -> None:
        """Take nothing new, let running work finish within the grace, then cut it (L-5)."""
        loop = self._running_loop()
        if self._scribe is None:
            raise NotRunning
        kernel = self.kernel
        keep = self._store.durable if keep_waiting is None else keep_waiting
        kernel.drain(self._clock.now(), keep_waiting=keep)
        self._herald.draining(len(self.attempts))
        self._wake()
        grace = self.settings.drain_grace if grace is None else grace
        await self._rest(loop.time() + grace / SECOND)
        if self.attempts:
            kernel.cut_all(self._clock.now())
            await self._rest(None)

    async def restart(self, grace: Span | None = None) -> None:
        """Drain, then come back as a new incarnation: late results of the old one touch nothing (L-6).

        Whoever asks only waits for it: it comes back even if he gives up.
        """
        self._not_in_a_turn("restart")
        await asyncio.shield(self._running_loop().create_task(self._restart(grace)))

    async def _restart(self, grace: Span | None) -> None:
        await self.drain(grace, keep_waiting=True)
        self.kernel.reset(self._clock.now())
        self.incarnation += 1
        self._herald.restarted(self.incarnation)
        self._wake()

    async def close(self, grace: Span | None = None) -> None:
        """Drain and end. Safe to call twice."""
        self._not_in_a_turn("close")
        scribe = self._scribe
        if scribe is not None:
            await self.drain(grace)
            self._scribe = None
            scribe.cancel()
            await asyncio.wait((scribe,))
            self._quiet_down()
        if self._loop is not None:
            self._loop = None
            await self._store.close()

    # Registration.

    def register(self, name: AgentName, runner: Runner, settings: AgentSettings) -> None:
        self.attempts.runners[name] = runner
        self._agents[name] = settings
        self._composers[name] = Composer(name, settings)
        self.kernel.set_agent(name, settings, self._clock.now())
        self._wake()

    def set_estimate(self, estimate: TokenEstimate | None) -> None:
        self.callbacks.estimate = estimate
        self.kernel.set_estimating(estimate is not None)

    @property
    def agents(self) -> Mapping[AgentName, AgentSettings]:
        return self._agents

    # Submitting.

    def ask(
        self, agent: str, text: str, options: Mapping[str, object], parent: int = 0
    ) -> Handle | Coroutine[object, object, Handle]:
        """Check a request, make it a run, store it and tell the kernel. Raises if it is refused.

        Done at once where the store answers at once; else the rest is to be awaited.
        """
        try:
            composer = self._composers[agent]
        except (KeyError, TypeError):
            raise UnknownName("agent", str(agent), self._agents) from None
        if self._scribe is None:
            raise NotRunning
        if get_running_loop() is not self._loop:
            raise WrongLoop
        parent_id = self.attempts.parent_of(parent) if parent else None
        run = composer.compose(self._ids.next(), text, options, self._clock.now(), parent_id)
        if run.lane not in self._lanes:
            lane = self.kernel.stage.floor.lane(run.lane)
            run = msgspec.structs.replace(run, lane=lane.name)
        if parent_id is None and self.kernel.stage.draining:
            raise error_of(run.id, Outcome(State.CANCELLED, Reason.DRAINING))
        retry = len(options) > 1 and options.get("on_repeat") == "retry"
        admission = self._store.admit(run, retry)
        if type(admission) is Granted:
            return self._submit(run, admission, run.submitted_at, parent)
        return self._submit_later(run, admission, parent)

    async def _submit_later(
        self, run: Run, admission: Admission | Awaitable[Admission], parent: int
    ) -> Handle:
        if not isinstance(admission, Granted | Duplicate):
            admission = await admission
        if isinstance(admission, Granted):
            return self._submit(run, admission, self._clock.now(), parent)
        earlier = await self._handle_of(admission.run_id)
        return earlier.shared(parent)

    def _submit(self, run: Run, granted: Granted, now: Instant, parent: int) -> Handle:
        handle = self._handles[run.id] = Handle(self, run.id, parent)
        if self.bus.heard:
            self._herald.submitted(run)
        refused = self.kernel.submit(run, now, granted.epoch, granted.seq, granted.memory)
        if self._nudge is not None:
            self._wake()
        if refused is not None:
            if run.parent is not None and refused.reason is Reason.STOPPED:
                raise TurnOver(run.parent)
            raise error_of(run.id, refused)
        return handle

    # Stopping.

    async def cancel(self, run_id: RunId) -> Stopped:
        stopped = self.kernel.cancel(run_id, self._clock.now())
        await self._stored()
        if stopped.nothing and await self._store.find(run_id) is None:
            raise NotFound(run_id)
        return stopped

    async def stop(self, session: SessionKey) -> Stopped:
        stopped = self.kernel.stop(session, self._clock.now())
        self._herald.stopped(session, stopped, everything=False)
        await self._stored()
        return stopped

    async def stop_all(
        self,
        session: SessionKey,
        *,
        sent_at: Instant | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        granted = await self._store.recall(session)
        stopped = self.kernel.stop_all(
            session,
            self._clock.now(),
            sent_at=sent_at,
            message_id=message_id,
            route=route,
            epoch=granted.epoch,
            seq=granted.seq,
            memory=granted.memory,
        )
        self._herald.stopped(session, stopped, everything=True)
        await self._stored()
        return stopped

    async def _stored(self) -> None:
        """Wait until what was decided so far is kept: only then is a stop or a setting acknowledged."""
        if self.kernel.stage.actions:
            if self._scribe is None:
                raise NotRunning
            stored: asyncio.Future[None] = self._running_loop().create_future()
            self._unstored.append(stored)
            self._wake()
            await stored

    async def clear_session(self, session: SessionKey) -> int:
        ended = self.kernel.clear(session, self._clock.now())
        await self._stored()
        return ended

    async def configure(
        self, session: SessionKey, options: QueueOptions | None, *, change: bool = False
    ) -> None:
        """Set the session's own options; as a change, what they do not say stays as it was."""
        granted = await self._store.recall(session)
        if change and options is not None:
            known = self.kernel.stage.sessions.get(session)
            memory = known.memory if known is not None else granted.memory
            if memory is not None and memory.options is not None:
                options = with_options(memory.options, options)
        self.kernel.configure(
            session,
            options,
            self._clock.now(),
            epoch=granted.epoch,
            seq=granted.seq,
            memory=granted.memory,
        )
        self._wake()
        await self._stored()

    async def queue_status(self, session: SessionKey, route: Route | None = None) -> str:
        memory = await self._store.memory_of(session)
        return queue_status(self.kernel, session, memory, route)

    # Lanes and limits, live.

    def set_lane(self, name: LaneName, change: int | LaneSettings) -> None:
        """A number changes only the width; reserve and budget stay."""
        if isinstance(change, LaneSettings):
            settings = change
        else:
            lane = self.kernel.stage.floor.lanes.get(LANE_ALIASES.get(name, name))
            known = LaneSettings(change) if lane is None else lane.settings
            reserve = min(known.reserve, change)
            settings = LaneSettings(change, reserve, known.budget)
        self.kernel.set_lane(name, settings, self._clock.now())
        self._herald.lane_changed(name, settings)
        self._wake()

    def clear_lane(self, name: LaneName) -> int:
        lanes = self.kernel.stage.floor.lanes
        if LANE_ALIASES.get(name, name) not in lanes:
            raise UnknownName("lane", name, lanes)
        ended = self.kernel.clear_lane(name, self._clock.now())
        self._herald.lane_cleared(name, ended)
        self._wake()
        return ended

    def set_limits(self, limits: Limits) -> None:
        self.kernel.set_limits(limits, self._clock.now())
        self._herald.limits_changed(limits)
        self._wake()

    # Reading.

    def lanes(self) -> tuple[LaneView, ...]:
        return lane_views(self.kernel)

    def sessions(self) -> tuple[SessionView, ...]:
        return session_views(self.kernel)

    async def runs(self, query: RunQuery) -> RunPage:
        return await self._store.list(query)

    async def find(self, run_id: RunId) -> RunView:
        view = await self._store.find(run_id)
        if view is None:
            raise NotFound(run_id)
        return view

    async def state(self, run_id: RunId) -> State:
        live = self.kernel.stage.runs.get(run_id)
        return live.state if live is not None else (await self.find(run_id)).state

    async def why(self, run_id: RunId) -> Why:
        self.kernel.time_passed(self._clock.now())
        self._wake()
        why = explain(self.kernel, run_id)
        return Why(run_id, (await self.find(run_id)).state) if why is None else why

    # What turns and handles ask (ports.Desk).

    def emit(self, ticket: int, text: str) -> None:
        turn = self.attempts.get(ticket)
        if turn is not None:
            handle = self._handles.get(turn.id)
            if handle is not None:
                handle.push(text)
            self._herald.emitted(turn, text)

    def use(self, ticket: int, tokens_in: int, tokens_out: int) -> None:
        turn = self.attempts.get(ticket)
        if turn is not None:
            self.kernel.used(ticket, tokens_in + tokens_out, self._clock.now())
            self._herald.used(turn, tokens_in, tokens_out)

    def take_message(self, ticket: int, message: RunId) -> bool:
        taken = self.kernel.steered(ticket, message, self._clock.now())
        self._wake()
        turn = self.attempts.get(ticket)
        if taken and turn is not None:
            self._herald.steered(message, turn)
        return taken

    async def delegate(
        self, ticket: int, agent: str, text: str, options: dict[str, object]
    ) -> Handle:
        asked = self.ask(agent, text, options, parent=ticket)
        return asked if isinstance(asked, Handle) else await asked

    def awaits(self, ticket: int, child: RunId) -> None:
        self.kernel.awaits(ticket, child, self._clock.now())
        self._wake()

    def resumes(self, ticket: int, child: RunId) -> None:
        self.kernel.resumes(ticket, child, self._clock.now())
        self._wake()

    # The scribe.

    def _scribe_ended(self, scribe: asyncio.Task[None]) -> None:
        """The scribe ends only when it is told to. If it broke, nobody shall wait for ever."""
        if not scribe.cancelled():
            self._fail(scribe.exception() or InvariantBroken("the scribe ended"))

    def _fail(self, error: BaseException) -> None:
        """Headway or its store is wrong. Say it loudly, and let nobody wait for ever."""
        if self._scribe is None:
            return
        scribe, self._scribe = self._scribe, None
        scribe.cancel()
        self._herald.broken(describe(error))
        broken = Outcome(State.FAILED, Reason.ERROR, error=f"Headway broke: {describe(error)}")
        for handle in tuple(self._handles.values()):
            handle.settle(broken)
        for waiter in (*self._storing, *self._unstored, *self._resting):
            if not waiter.done():
                waiter.set_exception(NotRunning())
        self.attempts.cancel_all()
        self._quiet_down()

    def _quiet_down(self) -> None:
        self.callbacks.stop()
        self.attempts.stop()
        if self._alarm is not None:
            self._alarm.cancel()
        self.bus.close()

    def _wake(self) -> None:
        nudge = self._nudge
        if nudge is not None:
            self._nudge = None
            if not nudge.done():
                nudge.set_result(None)

    async def _write(self) -> None:
        """Store what was decided, carry it out, sleep until there is more."""
        loop = self._running_loop()
        kernel = self.kernel
        while True:
            actions = kernel.take_actions()
            if actions:
                self._storing, self._unstored = self._unstored, []
                lost = await self._store.record(actions)
                if lost:
                    actions = self._lose(lost, actions)
                self._carry_out(actions)
                _release(self._storing)
                continue
            if self._many_idle():
                continue
            self._set_alarm(loop)
            self._nudge = loop.create_future()
            if self._resting and not self.attempts and not kernel.stage.attempts:
                resting, self._resting = self._resting, []
                _release(resting)
            await self._nudge

    def _lose(self, lost: Sequence[SessionKey], actions: list[Action]) -> list[Action]:
        """Other nodes decide for these sessions now: nothing of them goes on here (D-4)."""
        for run_id in self.kernel.lose(lost, self._clock.now()):
            handle = self._handles.pop(run_id, None)
            if handle is not None:
                handle.settle(Outcome(State.FAILED, Reason.ORPHANED, error="taken over elsewhere"))
        self.attempts.cancel_sessions(lost)
        return [action for action in actions if session_of(action) not in lost]

    async def _rest(self, until: float | None) -> None:
        """Wait until no attempt runs here and all that was decided is stored and carried out, or until then."""
        loop = self._running_loop()
        stage = self.kernel.stage
        while self.attempts or stage.attempts or stage.actions or self._nudge is None:
            rested: asyncio.Future[None] = loop.create_future()
            self._resting.append(rested)
            self._wake()
            timer = None if until is None else loop.call_at(until, _release, [rested])
            try:
                await rested
            finally:
                if timer is not None:
                    timer.cancel()
            if until is not None and loop.time() >= until:
                return

    def _many_idle(self) -> bool:
        """Give idle sessions back once there are many: surely all beyond the number of live runs are."""
        stage = self.kernel.stage
        surely_idle = len(stage.sessions) - len(stage.runs)
        self._kept_idle = min(self._kept_idle, surely_idle)
        if surely_idle <= self._kept_idle + self.settings.idle_sessions:
            return False
        self.kernel.release_idle()
        self._kept_idle = len(stage.sessions) - len(stage.runs)
        return True

    def _carry_out(self, actions: Sequence[Action]) -> None:
        loop = self._running_loop()
        begin = self.attempts.begin
        heard = self.bus.heard
        for action in actions:
            if type(action) is Start:
                begin(action, loop)
                if heard:
                    self._herald.started(action)
            elif type(action) is Finish:
                self._tell(action)
                if heard:
                    self._herald.finished(action)
            elif type(action) is not Release:
                self._carry_out_rare(action)

    def _carry_out_rare(self, action: Action) -> None:  # noqa: C901 - one case for each kind of action
        attempts = self.attempts
        match action:
            case CancelAttempt(run, ticket, cut):
                attempts.cancel(ticket, cut)
                self._herald.cancelled(run, cut)
            case Abandon(run, ticket):
                attempts.leave_behind(ticket)
                self._herald.abandoned(run)
            case Steer(message, into):
                if (turn := attempts.get(into)) is not None:
                    turn.inbox.offer(message)
            case Unsteer(message, into):
                if (turn := attempts.get(into)) is not None:
                    turn.inbox.withdraw(message.id)
            case AskEstimate(session):
                self.callbacks.start(self._answer_estimate(session))
            case NoteWait(run, waited, ahead):
                self.callbacks.waited(self._herald.waited(run, waited, ahead))
            case NoteLate(ticket):
                if (turn := attempts.take_late(ticket)) is not None:
                    self._herald.late(turn)
            case NoteHold(provider, until):
                self._herald.provider_held(provider, until)
            case Enqueue():
                self._herald.queued_again(action)
            case Merge(run):
                self._handles.setdefault(run.id, Handle(self, run.id))
                self._herald.merged(run)
            case Remember() | Release() | Start() | Finish():
                pass

    def _tell(self, finish: Finish) -> None:
        """Every waiting caller is told the outcome (R-2)."""
        handle = self._handles.pop(finish.run.id, None)
        if handle is None:
            return
        outcome = finish.outcome
        into = None if outcome.into is None else self._handles.get(RunId(outcome.into))
        if into is None:
            handle.settle(outcome)
        else:
            handle.follow(into, outcome)

    async def _answer_estimate(self, session: SessionKey) -> None:
        tokens, window = await self.callbacks.estimated(session)
        self.kernel.estimated(session, self._clock.now(), tokens, window)
        self._wake()

    # Time.

    def _set_alarm(self, loop: asyncio.AbstractEventLoop) -> None:
        at = self.kernel.wake_at
        if at == self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._alarm_at = at
        if at is not None:
            delay_s = max(0, at - self._clock.now()) / SECOND
            self._alarm = loop.call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._alarm = self._alarm_at = None
        try:
            self.kernel.time_passed(self._clock.now())
        except Exception as error:  # noqa: BLE001 - the kernel is wrong: nobody shall wait for ever
            self._fail(error)
        self._wake()

    # Small things.

    def _not_in_a_turn(self, what: str) -> None:
        turn = current_turn.get()
        if turn is not None and turn.desk is self and not turn.over:
            raise InvalidInput(
                what, turn.id, "called from outside: a turn would wait for its own end"
            )

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise NotRunning
        return self._loop

    async def _handle_of(self, run_id: RunId) -> Handle:
        """The handle of a run that was submitted before."""
        handle = self._handles.get(run_id)
        if handle is not None:
            return handle
        view = await self.find(run_id)
        handle = Handle(self, run_id)
        if view.outcome is not None:
            into = view.outcome.into
            if into is not None:
                handle.follow(await self._handle_of(RunId(into)), view.outcome)
            else:
                handle.settle(view.outcome)
        return handle


def _release(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
