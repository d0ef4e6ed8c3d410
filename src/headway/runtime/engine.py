"""The engine: tells the kernel what happened, stores what it decided, then carries it out.

One task, the scribe, does the storing and carrying out; everything else only tells the kernel and wakes the
scribe. So what happens in one turn of the event loop is stored as one batch, and nothing is acted on before it
is stored. Each attempt is a task of its own, known by its ticket; the table of turns takes the place of a task
group, because an attempt that ignores its cancellation must be left behind (S-3), not waited for.
"""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TypeAlias

import msgspec

from headway.calls import call
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
    Stopped,
    Unsteer,
)
from headway.core.kernel import Kernel
from headway.core.request import Composer
from headway.core.session import with_options
from headway.core.why import explain, lane_views, queue_status, session_views
from headway.model import events
from headway.model.errors import (
    NotFound,
    NotRunning,
    Permanent,
    RateLimited,
    Refuse,
    TurnOver,
    UnknownName,
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
from headway.model.time import SECOND, Instant, Span, span
from headway.model.views import LaneView, RunView, SessionView, Why
from headway.model.words import FINAL_STATES, Cut, Reason, State
from headway.ports import Admission, Clock, Duplicate, Granted, RunPage, RunQuery, Store
from headway.runtime.bus import Bus
from headway.runtime.handle import Handle
from headway.runtime.ids import RunIds
from headway.runtime.replies import describe, reply_of
from headway.turn import Runner, Turn, with_note

Hook: TypeAlias = Callable[[Turn], object]
TokenEstimate: TypeAlias = Callable[[SessionKey], object]
"""Answers (tokens, context window) of a session, at once or as an awaitable."""
WaitCallback: TypeAlias = Callable[[events.RunWaited], object]

_STOPPING = Outcome(State.CANCELLED, Reason.STOPPED)


class Engine:
    """One node: its kernel, its store, and the attempts that run here."""

    def __init__(self, settings: Settings, store: Store, clock: Clock) -> None:
        self.settings = settings
        self.bus = Bus()
        self.kernel = Kernel(settings, clock.now())
        self.incarnation = 1
        self.before: list[Hook] = []
        self.on_wait: list[WaitCallback] = []
        self._store = store
        self._clock = clock
        self._ids = RunIds.for_node(clock.now())
        self._runners: dict[AgentName, Runner] = {}
        self._agents: dict[AgentName, AgentSettings] = {}
        self._composers: dict[str, Composer] = {}
        self._estimate: TokenEstimate | None = None
        self._handles: dict[RunId, Handle] = {}
        self._turns: dict[int, Turn] = {}
        self._left_behind: dict[int, Turn] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self.random = random.Random()  # noqa: TID251 - jitter of retries; the kernel only sees the number
        """Draws the jitter of retries; tests put a seeded one here."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scribe: asyncio.Task[None] | None = None
        self._nudge: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Instant | None = None
        self._interrupted: KeyboardInterrupt | None = None
        """Ctrl-C reached an agent: the run has its outcome, then the program its interrupt."""
        self._unstored: list[asyncio.Future[None]] = []
        self._kept_idle = 0
        self._rested: list[asyncio.Future[None]] = []

    # Life.

    async def start(self) -> None:
        if self._scribe is not None:
            return
        await self._store.open()
        self.kernel.set_gated(bool(self.before))
        self._loop = asyncio.get_running_loop()
        self._scribe = self._loop.create_task(self._write(), name="headway-scribe")
        self._scribe.add_done_callback(self._scribe_ended)

    async def drain(self, grace: Span | None = None, *, keep_waiting: bool | None = None) -> None:
        """Take nothing new, let running work finish within the grace, then cut it (L-5)."""
        loop = self._running_loop()
        kernel = self.kernel
        keep = self._store.durable if keep_waiting is None else keep_waiting
        kernel.drain(self._clock.now(), keep_waiting=keep)
        self.bus.publish(events.NodeDraining(at=self._clock.now(), running=len(self._turns)))
        self._wake()
        grace = self.settings.drain_grace if grace is None else grace
        await self._rest(loop.time() + grace / SECOND)
        if self._turns:
            kernel.cut_all(self._clock.now())
            self._wake()
            await self._rest(None)

    async def restart(self, grace: Span | None = None) -> None:
        """Drain, then come back as a new incarnation: late results of the old one touch nothing (L-6)."""
        await self.drain(grace, keep_waiting=True)
        self.kernel.reset(self._clock.now())
        self.incarnation += 1
        self.bus.publish(events.NodeRestarted(at=self._clock.now(), incarnation=self.incarnation))
        self._wake()

    async def close(self, grace: Span | None = None) -> None:
        """Drain and end. Safe to call twice."""
        scribe = self._scribe
        if scribe is None:
            return
        await self.drain(grace)
        self._scribe = None
        scribe.cancel()
        await asyncio.wait((scribe,))
        for chore in tuple(self._chores):
            chore.cancel()
        for turn in self._left_behind.values():
            if turn.task is not None:
                turn.task.cancel()
        if self._alarm is not None:
            self._alarm.cancel()
        self.bus.close()
        await self._store.close()

    # Registration.

    def register(self, name: AgentName, runner: Runner, settings: AgentSettings) -> None:
        self._runners[name] = runner
        self._agents[name] = settings
        self._composers[name] = Composer(name, settings)
        self.kernel.set_agent(name, settings, self._clock.now())
        self._wake()

    def set_estimate(self, estimate: TokenEstimate | None) -> None:
        self._estimate = estimate
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
        parent_id = self._live_parent(parent) if parent else None
        run = composer.compose(self._ids.next(), text, options, self._clock.now(), parent_id)
        if run.lane not in self.kernel.stage.floor.lanes:
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
        return earlier.shared(parent) if parent else earlier

    def _submit(self, run: Run, granted: Granted, now: Instant, parent: int) -> Handle:
        handle = self._handles[run.id] = Handle(self, run.id, parent)
        if self.bus.heard:
            self._publish_submitted(run)
        refused = self.kernel.submit(run, now, granted.epoch, granted.seq, granted.memory)
        if self._nudge is not None:
            self._wake()
        if refused is not None:
            if run.parent is not None and refused.reason is Reason.STOPPED:
                raise TurnOver(run.parent)
            raise error_of(run.id, refused)
        return handle

    def _live_parent(self, ticket: int) -> RunId:
        """The run of a turn that may still start others (X-3)."""
        turn = self._turns.get(ticket)
        if turn is None or turn.over or turn.cut is not None:
            raise TurnOver(RunId("" if turn is None else turn.id))
        return turn.id

    # Stopping.

    async def cancel(self, run_id: RunId) -> Stopped:
        stopped = self.kernel.cancel(run_id, self._clock.now())
        self._wake()
        if stopped.nothing and await self._store.find(run_id) is None:
            raise NotFound(run_id)
        return stopped

    async def stop(self, session: SessionKey) -> Stopped:
        stopped = self.kernel.stop(session, self._clock.now())
        self._publish_stopped(session, stopped, everything=False)
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
            memory=granted.memory,
        )
        self._publish_stopped(session, stopped, everything=True)
        await self._stored()
        return stopped

    async def _stored(self) -> None:
        """Wait until what was decided so far is kept: only then is a stop or a setting acknowledged."""
        if self.kernel.stage.actions:
            stored: asyncio.Future[None] = self._running_loop().create_future()
            self._unstored.append(stored)
            self._wake()
            await stored

    async def clear_session(self, session: SessionKey) -> int:
        ended = self.kernel.clear(session, self._clock.now())
        self._wake()
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
            memory=granted.memory,
        )
        self._wake()
        await self._stored()

    async def queue_status(self, session: SessionKey, route: Route | None = None) -> str:
        memory = (await self._store.recall(session)).memory
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
        self._publish(
            lambda at: events.LaneChanged(
                at=at, lane=name, width=settings.width, reserve=settings.reserve
            )
        )
        self._wake()

    def clear_lane(self, name: LaneName) -> int:
        lanes = self.kernel.stage.floor.lanes
        if LANE_ALIASES.get(name, name) not in lanes:
            raise UnknownName("lane", name, lanes)
        ended = self.kernel.clear_lane(name, self._clock.now())
        self._publish(lambda at: events.LaneCleared(at=at, lane=name, ended=ended))
        self._wake()
        return ended

    def set_limits(self, limits: Limits) -> None:
        self.kernel.set_limits(limits, self._clock.now())
        self._publish(
            lambda at: events.LimitsChanged(
                at=at,
                max_queue=limits.max_queue,
                max_queue_per_agent=limits.max_queue_per_agent,
                max_inflight=limits.max_inflight,
                max_inflight_per_agent=limits.max_inflight_per_agent,
            )
        )
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
        turn = self._turns.get(ticket)
        if turn is None:
            return
        handle = self._handles.get(turn.id)
        if handle is not None:
            handle.push(text)
        self._publish(
            lambda at: events.OutputEmitted(at=at, run_id=turn.id, session=turn.session, text=text)
        )

    def use(self, ticket: int, tokens_in: int, tokens_out: int) -> None:
        turn = self._turns.get(ticket)
        if turn is None:
            return
        self.kernel.used(ticket, tokens_in + tokens_out, self._clock.now())
        self._publish(
            lambda at: events.TokensUsed(
                at=at,
                run_id=turn.id,
                agent=turn.agent,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
            )
        )

    def take_message(self, ticket: int, message: RunId) -> bool:
        taken = self.kernel.steered(ticket, message, self._clock.now())
        self._wake()
        turn = self._turns.get(ticket)
        if taken and turn is not None:
            self._publish(lambda at: events.MessageSteered(at=at, message=message, into=turn.id))
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
        if scribe.cancelled():
            return
        error = scribe.exception()
        self._loop = self._scribe = None
        self.bus.publish(
            events.NodeBroken(at=self._clock.now(), error=describe(error) if error else "ended")
        )
        broken = Outcome(State.FAILED, Reason.ERROR, error=f"Headway broke: {error!r}")
        for handle in tuple(self._handles.values()):
            handle.settle(broken)

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
                unstored, self._unstored = self._unstored, []
                lost = await self._store.record(actions)
                if lost:
                    self._lose(lost)
                self._carry_out(actions)
                for waiter in unstored:
                    if not waiter.done():
                        waiter.set_result(None)
                continue
            if self._many_idle():
                continue
            self._set_alarm(loop)
            self._nudge = loop.create_future()
            await self._nudge

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
        heard = self.bus.heard
        for action in actions:
            if type(action) is Start:
                self._begin(action, heard=heard)
            elif type(action) is Finish:
                self._tell(action, heard=heard)
            elif type(action) is not Release:
                self._carry_out_rare(action)

    def _carry_out_rare(self, action: Action) -> None:
        now = self._clock.now()
        match action:
            case CancelAttempt(run=run, ticket=ticket):
                self._cancel(ticket, action.cut)
                if self.bus.heard:
                    self.bus.publish(
                        events.AttemptCancelled(
                            at=now, run_id=run.id, session=run.session, cut=action.cut
                        )
                    )
            case Abandon(run=run, ticket=ticket):
                self._leave_behind(ticket)
                self.bus.publish(events.AttemptAbandoned(at=now, run_id=run.id, agent=run.agent))
            case Steer(message=message, into=into):
                if (turn := self._turns.get(into)) is not None:
                    turn.inbox.offer(message)
            case Unsteer(message=message, into=into):
                if (turn := self._turns.get(into)) is not None:
                    turn.inbox.withdraw(message.id)
            case AskEstimate(session=session):
                self._chore(self._ask_estimate(session))
            case NoteWait(run=run, waited=waited, ahead=ahead):
                self._note_wait(run, waited, ahead)
            case NoteLate(ticket=ticket):
                self._note_late(ticket)
            case NoteHold(provider=provider, until=until):
                self.bus.publish(events.ProviderHeld(at=now, provider=provider, until=until))
            case Enqueue(run=run, cut=cut, until=until, retry_error=error) if cut or error:
                self._publish(
                    lambda at: events.RunQueuedAgain(
                        at=at,
                        run_id=run.id,
                        agent=run.agent,
                        session=run.session,
                        cut=cut,
                        until=until,
                        error=error,
                    )
                )
            case Merge(run=run):
                self._handles.setdefault(run.id, Handle(self, run.id))
                self._publish(
                    lambda at: events.RunsMerged(
                        at=at, run_id=run.id, session=run.session, parts=run.merged_from
                    )
                )
            case Enqueue() | Remember() | Release() | Start() | Finish():
                pass

    def _begin(self, start: Start, *, heard: bool) -> None:
        loop = self._loop
        assert loop is not None
        ticket = start.ticket
        run = start.run
        text = with_note(run) if run.overflow else run.text
        turn = self._turns[ticket] = Turn(self, loop, start, run, text)
        turn.task = loop.create_task(self._attempt(turn, ticket))
        if heard:
            self.bus.publish(
                events.RunStarted(
                    at=start.at,
                    run_id=run.id,
                    agent=run.agent,
                    session=run.session,
                    lane=run.lane,
                    attempt=start.attempt,
                )
            )

    async def _attempt(self, turn: Turn, ticket: int) -> None:
        """One attempt, from its hooks to its return. Whatever happens in it, the kernel is told."""
        turn.begun = True
        ended: Ended
        try:
            runner = self._runners[turn.run.agent]
            if turn.cut is not None or (self.before and not await self._gate(turn)):
                ended = Failed("cancelled before it began")
            else:
                ended = Done(reply_of(await runner.run(turn)))
        except asyncio.CancelledError:
            ended = Failed("the agent cancelled itself")
        except RateLimited as error:
            ended = Limited(_pause(error), str(error))
        except Refuse as error:
            ended = Failed(str(error), Reason.REFUSED, permanent=True)
        except Permanent as error:
            ended = Failed(describe(error), permanent=True)
        except BaseException as error:  # noqa: BLE001 - whatever an agent raises is its run's outcome
            ended = Failed(describe(error))
            if isinstance(error, KeyboardInterrupt):
                self._interrupted = error
        turn.over = True
        jitter = 0.5 if type(ended) is Done else self.random.random()
        self.kernel.finished(ticket, ended, self._clock.now(), jitter=jitter)
        if self._turns.pop(ticket, None) is not None and self._rested and not self._turns:
            self._let_rest()
        if self._nudge is not None:
            self._wake()
        if self._interrupted is not None:
            raise self._interrupted

    async def _gate(self, turn: Turn) -> bool:
        """Call the hooks, then look once more whether the attempt is still wanted (S-11)."""
        for hook in self.before:
            result = hook(turn)
            if inspect.isawaitable(result):
                await result
        return self.kernel.began(turn.start.ticket, self._clock.now())

    def _tell(self, finish: Finish, *, heard: bool) -> None:
        """Every waiting caller is told the outcome (R-2)."""
        run, outcome = finish.run, finish.outcome
        handle = self._handles.pop(run.id, None)
        if handle is not None:
            if outcome.into is not None:
                into = self._handles.get(RunId(outcome.into))
                if into is not None:
                    handle.follow(into, outcome)
                else:
                    handle.settle(outcome)
            else:
                handle.settle(outcome)
        if heard:
            self.bus.publish(
                events.RunFinished(
                    at=finish.at,
                    run_id=run.id,
                    agent=run.agent,
                    session=run.session,
                    lane=run.lane,
                    attempt=finish.attempt,
                    state=outcome.state,
                    reason=outcome.reason,
                    error=outcome.error,
                    into=None if outcome.into is None else RunId(outcome.into),
                )
            )
            if outcome.state is State.CANCELLED and finish.started_at is not None:
                self.bus.publish(
                    events.OutboundEmpty(
                        at=finish.at, run_id=run.id, session=run.session, route=run.route
                    )
                )

    def _cancel(self, ticket: int, cut: Cut) -> None:
        turn = self._turns.get(ticket)
        if turn is None:
            return
        turn.cut = cut
        if turn.begun and turn.task is not None:
            turn.task.cancel(cut)
        turn.wake_threads()

    def _leave_behind(self, ticket: int) -> None:
        turn = self._turns.pop(ticket, None)
        if turn is not None:
            turn.over = True
            self._left_behind[ticket] = turn
            if not self._turns:
                self._let_rest()

    def _lose(self, lost: Sequence[SessionKey]) -> None:
        """Another node decides for these sessions now: their attempts here must end."""
        sessions = frozenset(lost)
        for ticket, turn in tuple(self._turns.items()):
            if turn.session in sessions:
                self._cancel(ticket, Cut.LOST)

    def _note_wait(self, run: Run, waited: Span, ahead: int) -> None:
        event = events.RunWaited(
            at=self._clock.now(), run_id=run.id, lane=run.lane, waited=waited, ahead=ahead
        )
        self.bus.publish(event)
        for callback in self.on_wait:
            self._chore(self._guarded("on_wait", self._call_on_wait(callback, event)))

    def _note_late(self, ticket: int) -> None:
        turn = self._left_behind.pop(ticket, None)
        if turn is not None:
            self.bus.publish(
                events.LateResult(at=self._clock.now(), run_id=turn.id, agent=turn.agent)
            )

    async def _call_on_wait(self, callback: WaitCallback, event: events.RunWaited) -> None:
        """On the loop, like hooks: it may call back into Headway."""
        result = callback(event)
        if inspect.isawaitable(result):
            await result

    async def _guarded(self, name: str, work: Coroutine[object, object, object]) -> object:
        """Await a user's function; if it raises or takes too long, that is an event, not our problem."""
        try:
            return await asyncio.wait_for(work, self.settings.callback_within / SECOND)
        except Exception as error:  # noqa: BLE001 - a user's callback must not stop the scheduler
            self._publish_failed(name, describe(error))
            return None

    def _publish_failed(self, name: str, error: str) -> None:
        self.bus.publish(events.CallbackFailed(at=self._clock.now(), callback=name, error=error))

    async def _ask_estimate(self, session: SessionKey) -> None:
        tokens = window = 0
        if self._estimate is not None:
            answer = await self._guarded("token_estimate", call(self._estimate, session))
            match answer:
                case (int(tokens), int(window)):
                    pass
                case None:
                    tokens = window = 0
                case _:
                    tokens = window = 0
                    error = f"answered {answer!r}, not (tokens, context window)"
                    self._publish_failed("token_estimate", error)
        self.kernel.estimated(session, self._clock.now(), tokens, window)
        self._wake()

    def _chore(self, work: "Coroutine[object, object, object]") -> None:
        loop = self._running_loop()

        async def do() -> None:
            await work

        task = loop.create_task(do())
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    # Time and rest.

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
        self.kernel.time_passed(self._clock.now())
        self._wake()

    async def _rest(self, until: float | None) -> None:
        """Wait until no attempt runs here and all that was decided is carried out, or until then."""
        loop = self._running_loop()
        while self._turns or self.kernel.stage.attempts or self.kernel.stage.actions:
            rested: asyncio.Future[None] = loop.create_future()
            self._rested.append(rested)
            self._wake()
            if not self._turns:
                loop.call_soon(self._let_rest)
            timer = loop.call_at(until, self._let_rest) if until is not None else None
            try:
                await rested
            finally:
                if timer is not None:
                    timer.cancel()
            if until is not None and loop.time() >= until:
                return

    def _let_rest(self) -> None:
        rested, self._rested = self._rested, []
        for waiter in rested:
            if not waiter.done():
                waiter.set_result(None)

    # Small things.

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

    def _publish(self, make: Callable[[Instant], events.Event]) -> None:
        if self.bus.heard:
            self.bus.publish(make(self._clock.now()))

    def _publish_submitted(self, run: Run) -> None:
        self.bus.publish(
            events.RunSubmitted(
                at=run.submitted_at,
                run_id=run.id,
                agent=run.agent,
                session=run.session,
                lane=run.lane,
                source=run.source,
            )
        )

    def _publish_stopped(self, session: SessionKey, stopped: Stopped, *, everything: bool) -> None:
        self._publish(
            lambda at: events.SessionStopped(
                at=at,
                session=session,
                running=stopped.running,
                waiting=stopped.waiting,
                everything=everything,
            )
        )
        self._wake()


def _pause(error: RateLimited) -> Span:
    retry_after = error.retry_after
    if isinstance(retry_after, int | float):
        return round(max(0.0, retry_after) * SECOND)
    return span(retry_after, "retry_after")
