"""The engine: one node. It composes the node's parts, and is what callers, turns and handles speak to.

Its own business is the node's life, from its start to its end, and what can be changed while it runs. All else
is a part's: the intake takes requests and the orders are given to sessions, the scribe stores what the kernel
decides, the carrier carries it out, ownership, claims and membership settle with the other nodes who decides for
which session.
"""

import asyncio
from collections.abc import Mapping, Sequence

from headway.core.actions import Stopped
from headway.core.callback_url import CALLBACK
from headway.core.load import agent_loads
from headway.model.errors import InvalidInput, NotRunning, Unavailable
from headway.model.outcome import Outcome, Reply
from headway.model.run import AgentName, LaneName, QueueOptions, Route, RunId, SessionKey
from headway.model.settings import AgentSettings, LaneSettings, Limits, Settings
from headway.model.text import whole
from headway.model.time import SECOND, Instant, Span
from headway.model.views import LaneView, NodeView, RunView, SessionView, Stats, Why
from headway.model.words import Reason, State
from headway.ports import Channel, Clock, Hint, LetterPage, LetterQuery, RunPage, RunQuery, Store
from headway.runtime.callbacks import TokenEstimate
from headway.runtime.clock import Meter
from headway.runtime.courier import Sends
from headway.runtime.handle import Handle
from headway.runtime.ids import RunIds
from headway.runtime.intake import ChecksCallback
from headway.runtime.looks import Function
from headway.runtime.parts import Parts
from headway.runtime.replies import describe
from headway.runtime.services import Services
from headway.turn import Runner, current_turn

_LAST_LETTERS = 5 * SECOND
_LEFT = Outcome(State.CANCELLED, Reason.DRAINING, error="left in the store for the next start")


class Engine:
    """One node: its kernel, its store, and the attempts that run here."""

    def __init__(  # noqa: PLR0917 - what a node is made from, said once
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        name: str = "",
        ids: RunIds | None = None,
        host: str = "",
    ) -> None:
        self.settings = settings
        self.name = name
        self.host = host
        """The machine that it runs on; without a name no worker is found again (W-2)."""
        self.incarnation = 1
        self._store = store
        self._durable = store.durable
        self._clock = clock
        self._ids = RunIds.for_node(clock.now()) if ids is None else ids
        self._parts = parts = Parts(self, settings, store, clock, self._ids, self._fail, host)
        self.kernel = parts.kernel
        self.bus = parts.bus
        self.attempts = parts.attempts
        self.callbacks = parts.callbacks
        self.jobs = parts.jobs
        self.looks = parts.looks
        self.watch = parts.watch
        self._herald = parts.herald
        self._handles = parts.carrier.handles
        self._scribe = parts.scribe
        self._claims = parts.claims
        self._membership = parts.membership
        self._orders = parts.orders
        self._reader = parts.reader
        self._intake = parts.intake
        self._wake = parts.scribe.wake
        self.ask = parts.intake.ask
        """Bound once: every message comes this way, and needs no step in between."""
        self._services = Services(self._fail)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._restarting: asyncio.Task[None] | None = None
        """One restart at a time: who asks for another one waits for it."""
        self._comes_back = False
        """Whether that is still wanted: who drains meanwhile ends the node, and cuts what it would start."""
        self._gave_up = False
        """Whether a drain has waited in vain for the store."""
        self._closed: asyncio.Future[None] | None = None
        self.started_at: Instant = 0

    # Life.

    async def start(self) -> None:
        if self._loop is not None:
            return
        await self._store.open(self._parts.node.hear)
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
        self._loop = self._intake.loop = self._parts.carrier.loop = loop
        self._closed = loop.create_future()
        self.started_at = self._clock.now()
        self._scribe.start(loop)
        self._serve(loop)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        parts, start = self._parts, self._services.start
        start(parts.permits.run(), loop)
        start(parts.courier.run(), loop)
        start(parts.routes.run(), loop)
        if self._membership.number or not self._durable:
            start(parts.timekeeper.run(), loop)
            start(parts.watch.run(), loop)
            start(parts.sweeper.run(), loop)
        if self._durable:
            self.attempts.may_begin = self._membership.holds
            start(self._membership.run(), loop)
            start(self._membership.watch_lease(), loop)
            start(parts.follower.run(), loop)
            start(parts.pruner.run(), loop)
            start(self._claims.run(), loop)

    async def drain(self, grace: Span | None = None) -> None:
        """Take nothing new, let running work finish within the grace, then cut it (L-5)."""
        self._comes_back = False
        await self._drain(grace, keep_waiting=self._durable)

    async def _drain(self, grace: Span | None, *, keep_waiting: bool) -> None:
        loop = self._running_loop()
        if not self._scribe.running:
            raise NotRunning
        kernel = self.kernel
        self._claims.open = False
        is_news = not kernel.stage.draining
        kernel.drain(self._clock.now(), keep_waiting=keep_waiting)
        if is_news:
            self._herald.draining(self.attempts.begun)
        self._wake()
        grace = self.settings.drain_grace if grace is None else grace
        await self._scribe.rest(loop.time() + grace / SECOND)
        if self.attempts or kernel.stage.attempts:
            kernel.cut_all(self._clock.now())
        await self._scribe.rest(self._latest_rest())
        self._gave_up = self._scribe.away is not None

    def _latest_rest(self) -> float | None:
        """When to wait no longer for a store that is away: by then others have taken everything over."""
        if not self._durable:
            return None
        settings, gave_up = self.settings, self._gave_up and self._scribe.away is not None
        patience = 0 if gave_up else settings.lease + settings.cancel_grace
        return self._running_loop().time() + patience / SECOND

    async def restart(self, grace: Span | None = None) -> None:
        """Drain, then come back as a new incarnation: late results of the old one touch nothing (L-6).

        Whoever asks only waits for it: it comes back even if he gives up.
        """
        self._not_in_a_turn("restart")
        if self._restarting is None:
            self._comes_back = True
            self._restarting = self._running_loop().create_task(self._restart(grace))
            self._restarting.add_done_callback(self._restarted)
        await asyncio.shield(self._restarting)

    def _restarted(self, _: asyncio.Task[None]) -> None:
        self._restarting = None

    async def _restart(self, grace: Span | None) -> None:
        await self._drain(grace, keep_waiting=True)
        if self._comes_back and self._durable:
            await self._membership.rejoin()
        if not self._comes_back:
            return
        self.kernel.reset(self._clock.now())
        self.incarnation += 1
        self._herald.restarted(self.incarnation)
        self._claims.open = True
        self._parts.node.hear(Hint.ALL)
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
            await self._parts.courier.finish(self._last_letters_within(grace))
            await self._services.end()
            await self._leave()
        if self._loop is not None:
            self._loop = self._intake.loop = None
            await self._store.close()
            if self._closed is not None and not self._closed.done():
                self._closed.set_result(None)

    def _last_letters_within(self, grace: Span | None) -> Span:
        """Replies of turns that have just ended shall not wait for the next start; but who waits is in a hurry."""
        return min(_LAST_LETTERS, self.settings.drain_grace if grace is None else grace)

    async def _leave(self) -> None:
        """What waits is free for others and the next start. If the store cannot be told, the lease tells it."""
        self._quiet_down()
        if not self._durable:
            return
        self._parts.carrier.settle_all(_LEFT)
        last_words = [self._parts.routes.flush, self._parts.timekeeper.flush]
        if self._membership.number:
            last_words += [self._parts.watch.flush, self._store.retire]
        for tell in last_words:
            try:
                await tell()
            except Unavailable as away:
                self._parts.outage.noticed(self._membership, str(away))

    async def ended(self) -> None:
        """Wait until the node was closed. Raises if it broke."""
        if self._closed is None:
            raise NotRunning
        await asyncio.shield(self._closed)

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
            self.kernel.set_outliving(name, bool(getattr(runner, "outlives", False)))
            self.kernel.stage.graces[name] = getattr(runner, "patience", 0)
            if self._parts.watch.keep(name, runner):
                self._parts.carrier.workers = self._parts.watch
            self._claims.hear(Hint.WORK)
            self._parts.timekeeper.look()
        self._intake.add_agent(name, settings)
        self.kernel.set_agent(name, settings, self._clock.now(), here=runner is not None)
        self._wake()

    def add_channel(self, name: str, channel: Channel | Sends | None) -> None:
        """Replies to messages from there go into the outbox and from it to this channel, here or elsewhere."""
        self._parts.courier.add(name, channel)
        self._parts.carrier.watching = True

    def set_callbacks(self, channel: Channel | None, check: ChecksCallback | None) -> None:
        """What tells how tasks ended, and says which addresses may be told (T-4). None: no callbacks from here."""
        self._intake.set_callbacks(check)
        if channel is None:
            self._parts.courier.remove(CALLBACK)
        else:
            self.add_channel(CALLBACK, channel)
            self._parts.deliveries.has_callbacks = True

    async def check_callbacks(
        self, requests: Sequence[Mapping[str, object]]
    ) -> dict[str, InvalidInput]:
        return await self._intake.check_callbacks(requests)

    def add_function(self, name: str, function: Function) -> None:
        """Something that jobs can name: their gate, or what they say."""
        self.looks.functions[name] = function
        self._parts.timekeeper.look()

    def set_estimate(self, estimate: TokenEstimate | None) -> None:
        self._parts.estimates.set(estimate)

    @property
    def agents(self) -> Mapping[AgentName, AgentSettings]:
        return self._intake.agents

    # Orders to sessions.

    async def cancel(self, run_id: RunId) -> Stopped:
        return await self._orders.cancel(run_id)

    async def stop(self, session: SessionKey) -> Stopped:
        return await self._orders.stop(session)

    async def stop_all(
        self,
        session: SessionKey,
        *,
        sent_at: Instant | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        return await self._orders.stop_all(
            session, sent_at=sent_at, message_id=message_id, route=route
        )

    async def clear_session(self, session: SessionKey) -> int:
        return await self._orders.clear(session)

    async def configure(
        self, session: SessionKey, options: QueueOptions | None, *, change: bool = False
    ) -> None:
        await self._orders.configure(session, options, change=change)

    # Lanes and limits, live.

    def set_lane(self, name: LaneName, change: int | LaneSettings) -> None:
        self._parts.tuner.set_lane(name, change)

    def reset_lane(self, name: LaneName, settings: LaneSettings) -> None:
        self._parts.tuner.reset_lane(name, settings)

    def pause_lane(self, name: LaneName) -> None:
        self._parts.tuner.pause_lane(name)

    def resume_lane(self, name: LaneName) -> None:
        self._parts.tuner.resume_lane(name)

    def clear_lane(self, name: LaneName) -> int:
        return self._parts.tuner.clear_lane(name)

    def set_limits(self, limits: Limits) -> None:
        self._parts.tuner.set_limits(limits)

    @property
    def limits(self) -> Limits:
        return self.kernel.stage.floor.limits

    def set_agent(self, name: AgentName, settings: AgentSettings) -> None:
        """What is known of an agent has changed. Runs that wait keep what they were given."""
        self._intake.change_agent(name, settings)
        here = name in self.attempts.runners
        self.kernel.set_agent(name, settings, self._clock.now(), here=here)
        self._wake()

    def go_by(self, settings: Settings) -> None:
        """Go by these settings from now on; lanes, limits and agents are set one by one."""
        self.settings = settings
        self._parts.go_by(settings)

    # Reading.

    def lanes(self) -> tuple[LaneView, ...]:
        return self._reader.lanes()

    def sessions(self) -> tuple[SessionView, ...]:
        return self._reader.sessions()

    async def session(self, key: SessionKey) -> SessionView:
        return await self._reader.session(key)

    async def status(self, key: SessionKey) -> str:
        return await self._reader.status(key)

    async def position(self, run_id: RunId) -> int | None:
        return await self._reader.position(run_id)

    def stats(self) -> Stats:
        stage = self.kernel.stage
        leased = self._durable and self._membership.number
        return Stats(
            self._membership.number,
            self.name,
            self.started_at,
            stage.draining,
            stage.floor.limits,
            stage.waiting_tasks,
            stage.floor.tasks,
            agent_loads(self.kernel),
            self._reader.lanes(),
            len(stage.busy_sessions),
            stage.floor.fallbacks,
            self._membership.left if leased else None,
        )

    @property
    def draining(self) -> bool:
        return self.kernel.stage.draining

    @property
    def store_away(self) -> str | None:
        away = self._scribe.away
        return self._membership.away if away is None else str(away)

    @property
    def store(self) -> Store:
        """What remembers. Whoever writes into it by himself goes around the kernel."""
        return self._store

    @property
    def meter(self) -> Meter | None:
        """Told how long the store took: the operation, and seconds. None: nobody measures."""
        return self._scribe.meter

    @meter.setter
    def meter(self, meter: Meter | None) -> None:
        self._scribe.meter = self._intake.meter = meter

    async def nodes(self) -> Sequence[NodeView]:
        return await self._reader.nodes()

    @property
    def number(self) -> int:
        """This incarnation's number among all nodes of the store."""
        return self._membership.number

    async def letters(self, query: LetterQuery) -> LetterPage:
        return await self._store.letters(query)

    async def retry_letter(self, delivery_id: str) -> bool:
        return await self._store.retry_letter(delivery_id, self._clock.now())

    async def runs(self, query: RunQuery) -> RunPage:
        return await self._reader.runs(query)

    async def find(self, run_id: RunId) -> RunView:
        return await self._reader.find(run_id)

    async def handle_of(self, run_id: RunId) -> Handle:
        return await self._intake.handle_of(run_id)

    def wall(self) -> Instant:
        """The wall clock that jobs go by."""
        return self._clock.wall()

    async def state(self, run_id: RunId) -> State:
        return await self._reader.state(run_id)

    async def why(self, run_id: RunId) -> Why:
        return await self._reader.why(run_id, self._membership.number)

    async def queue_status(self, session: SessionKey, route: Route | None = None) -> str:
        return await self._reader.queue_status(session, route)

    # What turns and handles ask (ports.Desk).

    def emit(self, ticket: int, text: str) -> None:
        turn = self.attempts.get(ticket)
        if turn is not None:
            text = whole(text)
            handle = self._handles.get(turn.id)
            if handle is not None:
                handle.push(text)
            self._herald.emitted(turn, text)

    def use(self, ticket: int, tokens_in: int, tokens_out: int) -> None:
        turn = self.attempts.get(ticket)
        if turn is not None:
            self.kernel.used(ticket, tokens_in + tokens_out, self._clock.now())
            self._parts.deliveries.used(turn.run, tokens_in, tokens_out)
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
        reply, delivery_id = Reply(whole(text)), self._ids.next()
        delivery = self._parts.deliveries.make(live.run, delivery_id, reply, live.session.epoch)
        if delivery is not None:
            self.kernel.stage.actions.append(delivery)
            self._wake()

    async def ask_together(
        self, agent: str, requests: Sequence[Mapping[str, object]]
    ) -> tuple[Handle, ...]:
        return await self._intake.ask_together(agent, requests)

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

    # When something is wrong, and small things.

    def _fail(self, error: BaseException) -> None:
        """Headway or its store is wrong. Say it loudly, and let nobody wait for ever."""
        if not self._scribe.running:
            return
        self._herald.broken(describe(error))
        self._scribe.break_off()
        broken = Outcome(State.FAILED, Reason.ERROR, error=f"Headway broke: {describe(error)}")
        self._parts.carrier.settle_all(broken)
        self._services.cancel()
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

    def _not_in_a_turn(self, what: str) -> None:
        turn = current_turn.get()
        if turn is not None and turn.desk is self and not turn.over:
            allowed = "called from outside: a turn would wait for its own end"
            raise InvalidInput(what, turn.id, allowed)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise NotRunning
        return self._loop
