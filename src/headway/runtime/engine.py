"""The engine: one node. It tells the kernel what happened, and has stored and carried out what it decided.

What is the engine's own: checking and admitting requests, orders to sessions, and taking sessions in and giving
them up as the store says who owns them. The scribe stores, the carrier carries out, the membership keeps the
lease, the claims look for work, the follower learns what other nodes decided.
"""

import asyncio
import contextlib
from asyncio import get_running_loop
from collections.abc import Awaitable, Coroutine, Mapping, Sequence

import msgspec

from headway.core.actions import Action, Deliver, Finish, Release, Stopped
from headway.core.kernel import Kernel
from headway.core.request import Composer
from headway.core.session import with_options
from headway.core.why import explain, lane_views, queue_status, session_views
from headway.model.errors import (
    InvalidInput,
    NotFound,
    NotRunning,
    Refused,
    RunEnded,
    TurnOver,
    Unavailable,
    UnknownName,
    WrongLoop,
)
from headway.model.outcome import Outcome, Reply, error_of
from headway.model.places import (
    Answer,
    Cancel,
    Clear,
    Command,
    Configure,
    Delivery,
    Holding,
    Order,
    Stop,
    StopAll,
)
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
from headway.model.settings import (
    LANE_ALIASES,
    AgentSettings,
    LaneSettings,
    Limits,
    Settings,
)
from headway.model.time import SECOND, Instant, Span
from headway.model.views import LaneView, NodeView, RunView, SessionView, Why
from headway.model.words import WAITING_STATES, Drop, Mode, Reason, Rule, Source, State
from headway.ports import (
    Admission,
    Clock,
    Duplicate,
    Elsewhere,
    Granted,
    Hint,
    Recorded,
    RunPage,
    RunQuery,
    Store,
    TurnedAway,
)
from headway.runtime.attempts import Attempts
from headway.runtime.bus import Bus
from headway.runtime.callbacks import Callbacks, TokenEstimate
from headway.runtime.carrier import Carrier
from headway.runtime.claims import Claims
from headway.runtime.clock import follow_time
from headway.runtime.courier import Channel, Courier
from headway.runtime.follower import Follower
from headway.runtime.handle import Handle
from headway.runtime.herald import Herald
from headway.runtime.ids import RunIds
from headway.runtime.membership import Membership
from headway.runtime.permits import Permits
from headway.runtime.replies import describe
from headway.runtime.scribe import Scribe, without_lost
from headway.turn import Runner, current_turn

_LEFT = Outcome(State.CANCELLED, Reason.DRAINING, error="left in the store for the next start")
_PRUNED_AT_ONCE = 500
_CHORE_PAUSE_S = 1.0


class Engine:
    """One node: its kernel, its store, and the attempts that run here."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, name: str = "") -> None:
        self.settings = settings
        self.name = name
        self.bus = Bus()
        self.kernel = kernel = Kernel(settings, clock.now())
        self._herald = Herald(self.bus, clock)
        self._store = store
        self._durable = store.durable
        self._clock = clock
        self.attempts = Attempts(self, kernel, clock, self._wake, self._fail, self._herald)
        self.incarnation = 1
        self.callbacks = Callbacks(self._herald, settings.callback_within)
        self._courier = Courier(store, clock, self._herald)
        self._carrier = Carrier(
            self,
            self.attempts,
            self.callbacks,
            self._herald,
            self.bus,
            estimate=self._ask_estimate,
            delivers=self._courier.look,
            follow=self._follow if store.durable else None,
            told=lambda ticket: kernel.told(ticket, clock.now()),
        )
        self._handles = self._carrier.handles
        self._scribe = Scribe(
            kernel,
            store,
            clock,
            self.attempts,
            self._herald,
            prepare=self._with_replies,
            carry_out=self._carry_out,
            recorded=self._recorded,
            rested=self._rested,
            fail=self._fail,
            asking=lambda: self._asking,
        )
        self.attempts.wake = self._scribe.wake
        self._membership = Membership(
            self, store, clock, settings, self._herald, follow_time(clock)
        )
        self._permits = Permits(kernel, store, clock, self._wake)
        self._claims = Claims(
            kernel,
            store,
            clock,
            settings,
            alone=lambda: self._membership.alone,
            agents=self._fair_agents,
            take_in=self._take_in,
            put_back=self._put_back,
            scribe=self._scribe,
            follow=self._poll,
        )
        self._follower = Follower(
            store,
            self._carrier,
            is_live=lambda run_id: run_id in kernel.stage.runs or run_id in self._asking,
            hears_hints=lambda: self._membership.number > 0,
        )
        if store.durable:
            kernel.set_shared()
        self._lanes = kernel.stage.floor.lanes
        self._ids = RunIds.for_node(clock.now())
        self._agents: dict[AgentName, AgentSettings] = {}
        self._composers: dict[str, Composer] = {}
        self._asking: dict[RunId, bool] = {}
        """Runs on their way into the store, and whether the kernel has met them already by another way."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._services: list[asyncio.Task[None]] = []
        self._restarting: asyncio.Task[None] | None = None
        """One restart at a time: who asks for another one waits for it."""
        self._closed: asyncio.Future[None] | None = None

    # Life.

    async def start(self) -> None:
        if self._loop is not None:
            return
        await self._store.open(self._hear)
        try:
            await self._begin()
        except BaseException:
            await self._store.close()
            raise

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self.kernel.set_gated(bool(self.attempts.before))
        self._store.set_limits(self.kernel.stage.floor.limits)
        await self._membership.join(self.name)
        self._loop = self._carrier.loop = loop
        self._closed = loop.create_future()
        self._scribe.start(loop)
        self._serve(self._permits.run())
        self._serve(self._courier.run())
        if self._durable:
            self.attempts.may_begin = self._membership.holds
            self._serve(self._membership.run())
            self._serve(self._membership.watch_lease())
            self._serve(self._follower.run())
            self._serve(self._prune())
            self._serve(self._claims.run())

    def _serve(self, service: Coroutine[object, object, None]) -> None:
        """A service runs as long as the node does. One that breaks breaks the node, loudly."""
        task = self._running_loop().create_task(service)
        task.add_done_callback(self._service_ended)
        self._services.append(task)

    def _service_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    async def drain(self, grace: Span | None = None, *, keep_waiting: bool | None = None) -> None:
        """Take nothing new, let running work finish within the grace, then cut it (L-5)."""
        loop = self._running_loop()
        if not self._scribe.running:
            raise NotRunning
        kernel = self.kernel
        self._claims.open = False
        keep = self._durable if keep_waiting is None else keep_waiting
        kernel.drain(self._clock.now(), keep_waiting=keep)
        self._herald.draining(len(self.attempts))
        self._wake()
        grace = self.settings.drain_grace if grace is None else grace
        await self._scribe.rest(loop.time() + grace / SECOND)
        if self.attempts or kernel.stage.attempts:
            kernel.cut_all(self._clock.now())
        await self._scribe.rest(self._latest_rest())

    def _latest_rest(self) -> float | None:
        """When to wait no longer for a store that is away: by then others have taken everything over."""
        if not self._durable:
            return None
        settings = self.settings
        return self._running_loop().time() + (settings.lease + settings.cancel_grace) / SECOND

    async def restart(self, grace: Span | None = None) -> None:
        """Drain, then come back as a new incarnation: late results of the old one touch nothing (L-6).

        Whoever asks only waits for it: it comes back even if he gives up.
        """
        self._not_in_a_turn("restart")
        if self._restarting is None:
            self._restarting = self._running_loop().create_task(self._restart(grace))
            self._restarting.add_done_callback(self._restarted)
        await asyncio.shield(self._restarting)

    def _restarted(self, _: asyncio.Task[None]) -> None:
        self._restarting = None

    async def _restart(self, grace: Span | None) -> None:
        await self.drain(grace, keep_waiting=True)
        if self._durable:
            await self._membership.rejoin()
        self.kernel.reset(self._clock.now())
        self.incarnation += 1
        self._herald.restarted(self.incarnation)
        self._claims.open = True
        self._claims.hear(Hint.ALL)
        self._wake()

    async def close(self, grace: Span | None = None) -> None:
        """Drain and end. Safe to call twice."""
        self._not_in_a_turn("close")
        if self._restarting is not None:
            # It has drained, or drains: this goes on from there.
            self._restarting.cancel()
            await asyncio.wait((self._restarting,))
        if self._scribe.running:
            await self.drain(grace)
            await self._scribe.stop()
            await self._end_services()
            await self._leave()
        if self._loop is not None:
            self._loop = None
            await self._store.close()
            if self._closed is not None and not self._closed.done():
                self._closed.set_result(None)

    async def _leave(self) -> None:
        """What waits is free for others and the next start. If the store cannot be told, the lease tells it."""
        self._quiet_down()
        if self._durable:
            self._carrier.settle_all(_LEFT)
            try:
                if self._membership.number:
                    await self._store.retire()
            except Unavailable as away:
                self._herald.store_away(str(away))

    async def ended(self) -> None:
        """Wait until the node was closed. Raises if it broke."""
        if self._closed is None:
            raise NotRunning
        await asyncio.shield(self._closed)

    async def _end_services(self) -> None:
        services, self._services = self._services, []
        for service in services:
            service.cancel()
        if services:
            await asyncio.wait(services)

    # Registration.

    def register(self, name: AgentName, runner: Runner | None, settings: AgentSettings) -> None:
        """An agent that runs here or, without a runner, on other nodes only."""
        if runner is None and not self._durable:
            what = "an agent of this process: a store in memory is shared with no other"
            raise InvalidInput("remote_agent", name, f"{what} (HEADWAY_STORE names one that is)")
        if runner is not None:
            if self._loop is not None and not self._membership.number:
                what = "there before the start: this process does not own the store"
                raise InvalidInput("agent", name, what)
            self.attempts.runners[name] = runner
            self._claims.hear(Hint.WORK)
        self._agents[name] = settings
        self._composers[name] = Composer(name, settings)
        here = runner is not None
        self.kernel.set_agent(name, settings, self._clock.now(), here=here)
        self._wake()

    def add_channel(self, name: str, channel: Channel | None) -> None:
        """Replies to messages from there go into the outbox and from it to this channel, here or elsewhere."""
        self._courier.add(name, channel)

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
        if get_running_loop() is not self._loop or not self._scribe.running:
            raise NotRunning if self._loop is None or not self._scribe.running else WrongLoop
        parent_run = self.attempts.parent_of(parent) if parent else None
        run = composer.compose(self._ids.next(), text, options, self._clock.now(), parent_run)
        if run.lane not in self._lanes:
            lane = self.kernel.stage.floor.lane(run.lane)
            run = msgspec.structs.replace(run, lane=lane.name)
        if parent_run is None and self.kernel.stage.draining:
            raise error_of(run.id, Outcome(State.CANCELLED, Reason.DRAINING))
        retry = len(options) > 1 and options.get("on_repeat") == "retry"
        if self._durable:
            return self._submit_later(run, parent, retry=retry)
        admission = self._store.admit(run, retry)
        if type(admission) is Granted:
            return self._submit(run, admission, run.submitted_at, parent)
        return self._submitted(run, admission, parent)

    async def _submitted(
        self, run: Run, admission: Admission | Awaitable[Admission], parent: int
    ) -> Handle:
        """A store in memory knows the run already, or takes its time."""
        if isinstance(admission, Awaitable):
            admission = await admission
        if isinstance(admission, Granted):
            return self._submit(run, admission, self._clock.now(), parent)
        assert isinstance(admission, Duplicate)
        return (await self._handle_of(admission.run_id)).shared(parent)

    async def _submit_later(self, run: Run, parent: int, *, retry: bool) -> Handle:
        """Durable first. Its session may turn out to be another node's, or to have news that come before it."""
        if self._scribe.away is not None:
            raise self._scribe.away
        handle = self._handles[run.id] = Handle(self, run.id, parent)
        self._asking[run.id] = False
        asked = self._admission(run, retry=retry)
        try:
            admission = await asyncio.shield(asked)
        except asyncio.CancelledError:
            # The caller gave up; the store goes on, and what it takes will run.
            asked.add_done_callback(lambda _: self._admitted_alone(run, handle, asked))
            raise
        except BaseException:
            self._asking.pop(run.id, None)
            self._handles.pop(run.id, None)
            self._claims.in_doubt()
            raise
        return await self._admitted(run, admission, handle, parent)

    async def _admitted(
        self, run: Run, admission: Admission, handle: Handle, parent: int
    ) -> Handle:
        """The store has answered: tell the kernel, or whoever must know."""
        met = self._asking.pop(run.id)
        if not isinstance(admission, Granted | Elsewhere):
            self._handles.pop(run.id, None)
        match admission:
            case Duplicate(earlier):
                return (await self._handle_of(earlier)).shared(parent)
            case TurnedAway(outcome):
                raise _refusal(run, outcome)
            case Granted():
                if met:
                    return _taken(run, handle)
                return self._submit_granted(run, admission, handle)
            case Elsewhere(_, owned, memory):
                if self.bus.heard:
                    self._herald.submitted(run)
                if not owned:
                    self._claims.left_in_store()
                elif self._may_be_refused(run, memory):
                    await self._follower.verdict(handle, self.settings.verdict_within)
                return _taken(run, handle)

    def _admission(self, run: Run, *, retry: bool) -> "asyncio.Future[Admission]":
        claim = run.agent in self.attempts.runners and (
            self._asked_in_a_turn(run) or self._claims.may_claim(run, run.submitted_at)
        )
        admission = self._store.admit(run, retry, claim)
        if isinstance(admission, asyncio.Future):
            return admission
        if isinstance(admission, Awaitable):
            return self._running_loop().create_task(_awaited(admission))
        answer: asyncio.Future[Admission] = self._running_loop().create_future()
        answer.set_result(admission)
        return answer

    def _admitted_alone(self, run: Run, handle: Handle, asked: "asyncio.Future[Admission]") -> None:
        """An answer for which nobody waits any more: the run is taken in all the same."""
        if asked.cancelled() or asked.exception() is not None:
            self._asking.pop(run.id, None)
            self._handles.pop(run.id, None)
            self._claims.in_doubt()
        elif self._loop is not None:
            self.callbacks.start(self._take_in_alone(run, handle, asked.result()))

    async def _take_in_alone(self, run: Run, handle: Handle, admission: Admission) -> None:
        with contextlib.suppress(Refused, RunEnded):
            await self._admitted(run, admission, handle, 0)

    def _asked_in_a_turn(self, run: Run) -> bool:
        """A turn of this node may wait for the run, and only here can it lend it its slot (L-4)."""
        turn = current_turn.get()
        waits_here = turn is not None and turn.desk is self and not turn.over
        return run.parent is not None or waits_here

    def _submit_granted(self, run: Run, granted: Granted, handle: Handle) -> Handle:
        """The session is ours. What came before this run and was not seen yet comes first."""
        if not self._is_next(run.session, granted):
            self._claims.look_at((run.session,))
            return handle
        return self._submit(run, granted, self._clock.now(), 0, handle)

    def _is_next(self, key: SessionKey, granted: Granted) -> bool:
        """Whether nothing has come in the session that this node has not seen."""
        session = self.kernel.stage.sessions.get(key)
        if session is not None:
            return granted.epoch == session.epoch and granted.seq == session.seen + 1
        epoch, seen = self._scribe.releasing.get(key, (0, 0))
        return granted.fresh or (granted.epoch == epoch and seen > 0 and granted.seq == seen + 1)

    def _submit(
        self, run: Run, granted: Granted, now: Instant, parent: int, handle: Handle | None = None
    ) -> Handle:
        if handle is None:
            handle = self._handles[run.id] = Handle(self, run.id, parent)
        if self.bus.heard:
            self._herald.submitted(run)
        refused = self.kernel.submit(run, now, granted.epoch, granted.seq, granted.memory)
        if self._scribe.nudge is not None:
            self._scribe.wake()
        if refused is not None:
            raise _refusal(run, refused)
        return handle

    def _may_be_refused(self, run: Run, memory: SessionMemory | None) -> bool:
        """Whether the owner's verdict could be a refusal, so that it is worth waiting for."""
        if run.source is not Source.MESSAGE:
            return False
        options = None if memory is None else memory.options
        if run.queue is not None:
            options = run.queue if options is None else with_options(options, run.queue)
        settings = self.kernel.queue_settings(options, run.route)
        stale = memory is not None and memory.cutoff_at is not None
        return stale or settings.mode is Mode.REJECT or settings.drop is Drop.NEW

    # Stopping.

    async def cancel(self, run_id: RunId) -> Stopped:
        live = self.kernel.stage.runs.get(run_id)
        if live is not None:
            session = live.run.session
        else:
            view = await self.find(run_id)
            if view.outcome is not None:
                return Stopped()
            session = view.run.session
        return _stopped(await self._order(session, Cancel(run_id)))

    async def stop(self, session: SessionKey) -> Stopped:
        stopped = _stopped(await self._order(session, Stop()))
        self._herald.stopped(session, stopped, everything=False)
        return stopped

    async def stop_all(
        self,
        session: SessionKey,
        *,
        sent_at: Instant | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        sent_at = self._clock.now() if sent_at is None else sent_at
        stopped = _stopped(await self._order(session, StopAll(sent_at, message_id, route)))
        self._herald.stopped(session, stopped, everything=True)
        return stopped

    async def _order(self, session: SessionKey, command: Command) -> Answer:
        """Give the session's owner an order, and wait until it was carried out and that is stored."""
        if not self._scribe.running:
            raise NotRunning
        order = Order(self._ids.next(), session, command)
        answered: asyncio.Future[Answer] = self._running_loop().create_future()
        self._carrier.orders[order.id] = answered
        try:
            try:
                placed = await self._store.order(order)
            except BaseException:
                self._claims.in_doubt()
                raise
            if placed is None:
                return Answer()
            if isinstance(placed, Granted):
                self._carry_order(msgspec.structs.replace(order, seq=placed.seq), placed)
            elif not placed.owned:
                self._claims.hear(Hint.WORK)
            return await answered
        finally:
            self._carrier.orders.pop(order.id, None)

    def _carry_order(self, order: Order, granted: Granted) -> None:
        if self._is_next(order.session, granted) or not self._durable:
            self.kernel.carry_out(order, granted.epoch, granted.memory, self._clock.now())
            self._wake()
        else:
            self._claims.look_at((order.session,))

    async def clear_session(self, session: SessionKey) -> int:
        return (await self._order(session, Clear())).waiting

    async def configure(
        self, session: SessionKey, options: QueueOptions | None, *, change: bool = False
    ) -> None:
        """Set the session's own options; as a change, what they do not say stays as it was."""
        await self._order(session, Configure(options, change))

    async def queue_status(self, session: SessionKey, route: Route | None = None) -> str:
        memory = await self._store.memory_of(session)
        elsewhere = (0, 0)
        if self._durable and session not in self.kernel.stage.sessions:
            elsewhere = await self._counts_of(session)
        return queue_status(self.kernel, session, memory, route, elsewhere)

    async def _counts_of(self, session: SessionKey) -> tuple[int, int]:
        """How many runs of a session run and wait, as far as one page of each shows."""
        counts = {
            state: len((await self._store.list(RunQuery(session=session, state=state))).runs)
            for state in (State.RUNNING, State.QUEUED, State.PENDING)
        }
        return counts[State.RUNNING], counts[State.QUEUED] + counts[State.PENDING]

    # Lanes and limits, live.

    def set_lane(self, name: LaneName, change: int | LaneSettings) -> None:
        """A number changes only the width; reserve and budget stay."""
        if isinstance(change, LaneSettings):
            settings = change
        else:
            lane = self.kernel.stage.floor.lanes.get(LANE_ALIASES.get(name, name))
            known = LaneSettings(change) if lane is None else lane.settings
            reserve = min(known.reserve, change)
            settings = msgspec.structs.replace(known, width=change, reserve=reserve)
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
        self._store.set_limits(limits)
        self._herald.limits_changed(limits)
        self._wake()

    # Reading.

    def lanes(self) -> tuple[LaneView, ...]:
        return lane_views(self.kernel)

    def sessions(self) -> tuple[SessionView, ...]:
        return session_views(self.kernel)

    async def nodes(self) -> Sequence[NodeView]:
        return await self._store.nodes()

    @property
    def number(self) -> int:
        """This incarnation's number among all nodes of the store."""
        return self._membership.number

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
        if why is not None:
            return why
        view = await self.find(run_id)
        if view.state not in WAITING_STATES or run_id in self.kernel.stage.runs:
            return Why(run_id, view.state)
        run = view.run
        return Why(
            run_id,
            view.state,
            Rule.ELSEWHERE,
            lane=run.lane,
            agent=run.agent,
            session=run.session,
        )

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

    def say(self, ticket: int, text: str) -> None:
        """Something for the run's channel before its reply; it counts only while the attempt does (X-4)."""
        live = self.kernel.stage.attempts.get(ticket)
        if live is None or live.run.route is None:
            return
        delivery = self._delivery(live.run, self._ids.next(), Reply(text), live.session.epoch)
        if delivery is not None:
            self.kernel.stage.actions.append(delivery)
            self._wake()

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

    # Among other nodes.

    def _hear(self, hint: Hint) -> None:
        self._claims.hear(hint)
        if hint in {Hint.ENDED, Hint.ALL}:
            self._follower.look()
            self._courier.look()
        if hint in {Hint.SLOTS, Hint.ALL}:
            self._permits.look()

    def _follow(self) -> None:
        self._follower.look()

    def _poll(self) -> None:
        self._follower.look()
        self._permits.look()
        self._courier.look()

    def _fair_agents(self) -> list[AgentName]:
        """The agents that run here, as the floor would serve them: what is claimed goes by it (F-2)."""
        agent = self.kernel.stage.floor.agent
        return sorted(self.attempts.runners, key=lambda name: agent(name).place)

    def _take_in(self, holding: Holding) -> None:
        """A session is ours with what is in it, or something new came in one of ours."""
        self._scribe.kept.pop(holding.session, None)
        self.kernel.restore(holding, self._clock.now())
        for place in holding.places:
            if place.run.id in self._asking:
                self._asking[place.run.id] = True
        self._wake()

    def _put_back(self, sessions: Sequence[SessionKey]) -> None:
        """What could not start here may start elsewhere sooner."""
        before = len(self.kernel.stage.actions)
        self.kernel.put_back(sessions, self._clock.now())
        released = self.kernel.stage.actions[before:]
        for action in released:
            if isinstance(action, Release):
                self._scribe.releases(action)
        if released:
            self._wake()

    @property
    def only_asks(self) -> bool:
        """Whether no agent runs here, so that nothing need be owned."""
        return self._durable and not self.attempts.runners

    def fence(self) -> None:
        """The lease is about to end: stop all attempts, start nothing (D-3)."""
        self._claims.open = False
        self.kernel.suspend(self._clock.now())
        self.attempts.cancel_all()
        self._wake()

    def unfence(self) -> None:
        self.kernel.resume(self._clock.now())
        self._claims.open = not self.kernel.stage.draining
        self._claims.hear(Hint.ALL)
        self._wake()

    async def die(self) -> None:
        """Others own everything that was ours: forget it without any outcome (D-4)."""
        sessions = self.kernel.stage.sessions
        self.attempts.cancel_all()
        self._lose(tuple((key, session.epoch) for key, session in sessions.items()))
        self._scribe.forget()
        self._claims.forget()
        self._permits.lose_all()
        self._follower.look()

    def widow(self) -> None:
        self._claims.hear(Hint.WORK)

    def _recorded(self, recorded: Recorded, actions: Sequence[Action]) -> Sequence[Action]:
        """What the store says besides having kept a batch. Answers what is to be carried out."""
        if recorded.kept:
            self._claims.look_at(recorded.kept)
        if not recorded.lost:
            return actions
        self._lose(recorded.lost)
        self._claims.in_doubt()
        self._follower.look()
        return without_lost(actions, frozenset(recorded.lost))

    def _lose(self, lost: Sequence[tuple[SessionKey, int]]) -> None:
        """Other nodes decide for these sessions now: nothing of them goes on here (D-4)."""
        self._herald.sessions_lost(len(lost))
        self.attempts.cancel_lost(lost)
        self.kernel.lose(lost, self._clock.now())

    async def _prune(self) -> None:
        """Forget what is past its retention, a little at a time."""
        pause_s = 0.0
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self.settings.prune_every / SECOND
            try:
                pruned = await self._store.prune(_PRUNED_AT_ONCE)
            except Unavailable:
                continue
            if pruned >= _PRUNED_AT_ONCE:
                pause_s = _CHORE_PAUSE_S

    # What the scribe asks.

    def _wake(self) -> None:
        self._scribe.wake()

    def _carry_out(self, actions: Sequence[Action]) -> None:
        self._carrier.carry_out(actions)

    def _rested(self) -> None:
        """All is stored and carried out for now."""
        if self._durable:
            self._claims.room_made()
        self._permits.look_if_limited()

    def _with_replies(self, actions: list[Action]) -> list[Action]:
        """What the agents answered goes into the outbox in the same transaction as the outcome."""
        if not self._courier.has_channels:
            return actions
        prepared: list[Action] = []
        for action in actions:
            prepared.append(action)
            if isinstance(action, Finish) and action.outcome.reply is not None:
                run, reply = action.run, action.outcome.reply
                delivery = self._delivery(run, "reply", reply, action.epoch)
                if delivery is not None:
                    prepared.append(delivery)
        return prepared

    def _delivery(self, run: Run, name: str, reply: Reply, epoch: int) -> Deliver | None:
        route = run.route
        if route is None or not self._courier.knows(route.channel):
            return None
        if not reply.text and not reply.attachments:
            return None
        return Deliver(
            Delivery(
                f"{run.id}.{name}",
                route,
                reply.text,
                run.id,
                run.session,
                epoch,
                reply.attachments,
                first_at=self._clock.now(),
            )
        )

    def _fail(self, error: BaseException) -> None:
        """Headway or its store is wrong. Say it loudly, and let nobody wait for ever."""
        if not self._scribe.running:
            return
        self._herald.broken(describe(error))
        self._scribe.break_off()
        broken = Outcome(State.FAILED, Reason.ERROR, error=f"Headway broke: {describe(error)}")
        self._carrier.settle_all(broken)
        for service in self._services:
            service.cancel()
        self.attempts.leave_all_behind()
        self._quiet_down()
        if self._closed is not None and not self._closed.done():
            self._closed.set_exception(error)
            # Most programs do not wait for the end: the event has said it loudly.
            self._closed.exception()

    def _quiet_down(self) -> None:
        self.callbacks.stop()
        self.attempts.stop()
        self.bus.close()

    def _ask_estimate(self, session: SessionKey) -> None:
        self.callbacks.start(self._answer_estimate(session))

    async def _answer_estimate(self, session: SessionKey) -> None:
        tokens, window = await self.callbacks.estimated(session)
        self.kernel.estimated(session, self._clock.now(), tokens, window)
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
        if view.outcome is None:
            self._follower.look()
            return self._handles.setdefault(run_id, Handle(self, run_id))
        handle = Handle(self, run_id)
        if view.outcome.into is None:
            handle.settle(view.outcome)
        else:
            handle.follow(await self._handle_of(RunId(view.outcome.into)), view.outcome)
        return handle


async def _awaited(answer: Awaitable[Admission]) -> Admission:
    return await answer


def _refusal(run: Run, outcome: Outcome) -> Exception:
    """The error that tells a caller that his run ended before it began."""
    if run.parent is not None and outcome.reason is Reason.STOPPED:
        return TurnOver(run.parent)
    return error_of(run.id, outcome)


def _taken(run: Run, handle: Handle) -> Handle:
    """The handle of a run that its session's owner has taken in, unless it was refused right away."""
    outcome = handle.outcome
    if outcome is not None and outcome.state is State.REJECTED:
        raise _refusal(run, outcome)
    return handle


def _stopped(answer: Answer) -> Stopped:
    return Stopped(answer.running, answer.waiting)
