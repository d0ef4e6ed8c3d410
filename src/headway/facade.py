"""What a user holds: agents are registered on it, work is sent to it, and it shows what it is doing."""

import os
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from types import MappingProxyType, TracebackType
from typing import Self, TypeAlias, TypedDict, TypeVar, Unpack, assert_never

import msgspec

from headway.config import check_settings, lane_settings, settings_from
from headway.core import commands
from headway.core.actions import Stopped
from headway.core.request import (
    AGENT_CHECKS,
    Duration,
    SubmitOptions,
    agent_name,
    check_option,
    queue_options,
    whole_number,
)
from headway.core.schedule import zone_name
from headway.heartbeats import HeartbeatOptions, Heartbeats, read_heartbeat
from headway.jobs import JobOptions, Jobs, check_job
from headway.model.errors import InvalidInput, NotRunning, UnknownName, UnknownOption
from headway.model.heartbeat import HeartbeatSettings
from headway.model.run import AgentName, LaneName, QueueOptions, Route, RunId, SessionKey
from headway.model.settings import AgentSettings, Budget, LaneSettings, Limits, Settings
from headway.model.time import instant_of, span
from headway.model.views import LaneView, NodeView, RunView, SessionView, Why
from headway.model.words import State
from headway.ports import Channel, Clock, LetterPage, LetterQuery, RunPage, RunQuery
from headway.runners.function import AgentFunction
from headway.runtime.attempts import Hook
from headway.runtime.bus import Listener
from headway.runtime.callbacks import TokenEstimate, WaitCallback
from headway.runtime.courier import Sends
from headway.runtime.engine import Engine
from headway.runtime.handle import Handle
from headway.turn import Runner
from headway.wiring import (
    MEMORY,
    build_command_runner,
    build_engine,
    build_runner,
    check_store,
    gate_command,
    node_name,
)

SomeFunction = TypeVar("SomeFunction", bound=AgentFunction)
SomeChannel = TypeVar("SomeChannel", bound=Sends)
JobFunction: TypeAlias = Callable[[], object]
SomeJobFunction = TypeVar("SomeJobFunction", bound=JobFunction)
SomeHook = TypeVar("SomeHook", bound=Hook)
SomeCallback = TypeVar("SomeCallback", bound=WaitCallback)
SomeEstimate = TypeVar("SomeEstimate", bound=TokenEstimate)


class AgentOptions(TypedDict, total=False):
    """All that can be said about an agent besides its name."""

    weight: int
    steerable: bool
    preemptible: bool
    provider: str
    max_inflight: int
    runs_per_minute: int
    tokens_per_minute: int
    lane: str
    timeout: Duration
    max_attempts: int
    retries: int


class QueueChoices(TypedDict, total=False):
    """The options of one session's queue."""

    mode: str
    cap: int
    drop: str
    debounce: Duration
    steer_fallback: str
    max_concurrent: int


class LimitChoices(TypedDict, total=False):
    """The limits for tasks."""

    max_queue: int
    max_queue_per_agent: int
    max_inflight: int
    max_inflight_per_agent: int


class Headway:
    """The scheduler. Register agents, then use it as an async context manager."""

    def __init__(
        self,
        store: str | None = None,
        *,
        lanes: Mapping[str, int | LaneSettings] | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        name: str | None = None,
    ) -> None:
        if store is None:
            self._store = check_store(os.environ.get("HEADWAY_STORE") or MEMORY, "HEADWAY_STORE")
        else:
            self._store = check_store(store)
        self._name = name
        self._clock = clock
        settings = settings_from(os.environ) if settings is None else check_settings(settings)
        if lanes is not None:
            if not isinstance(lanes, Mapping):
                raise InvalidInput("lanes", lanes, 'widths by name, such as {"main": 30}')
            checked = {
                _lane(name): lane_settings(f"lanes.{name}", width) for name, width in lanes.items()
            }
            merged = MappingProxyType({**settings.lanes, **checked})
            settings = msgspec.structs.replace(settings, lanes=merged)
        zone_name(settings.tz, "settings.tz")
        self.settings = settings
        self._agents: dict[AgentName, tuple[Runner | None, AgentSettings]] = {}
        self._channels: dict[str, Channel | Sends | None] = {}
        self._functions: dict[str, JobFunction] = {}
        self._declared: list[dict[str, object]] = []
        self._heartbeats: dict[AgentName, HeartbeatSettings] = {}
        self._before: list[Hook] = []
        self._on_wait: list[WaitCallback] = []
        self._estimate: TokenEstimate | None = None
        self._engine: Engine | None = None
        self._entered = 0
        """How many `async with` blocks are open; the last one to end closes."""
        self.jobs = Jobs(self._running, lambda: self.settings.tz)
        self.heartbeats = Heartbeats(self._running, lambda: self.settings.tz)

    # Registering.

    def agent(
        self, name: str, **options: Unpack[AgentOptions]
    ) -> Callable[[SomeFunction], SomeFunction]:
        """Register a function, async or plain, as an agent. It gets a `Turn` and returns its reply."""
        checked = agent_name(name)
        settings = _agent_settings(self.settings.agents.get(checked, AgentSettings()), options)

        def register(function: SomeFunction) -> SomeFunction:
            self.add_agent(checked, build_runner(function), settings)
            return function

        return register

    def remote_agent(self, name: str, **options: Unpack[AgentOptions]) -> None:
        """An agent that work can be sent to from here, while only other nodes run it."""
        checked = agent_name(name)
        settings = _agent_settings(self.settings.agents.get(checked, AgentSettings()), options)
        self.add_agent(checked, None, settings)

    def commands(self, name: str = "command", **options: Unpack[AgentOptions]) -> None:
        """Register the agent that runs the commands of jobs. Who can add jobs can then run commands here."""
        checked = agent_name(name)
        settings = _agent_settings(self.settings.agents.get(checked, AgentSettings()), options)
        self.add_agent(checked, build_command_runner(), settings)

    def channel(self, name: str) -> Callable[[SomeChannel], SomeChannel]:
        """Register a function that delivers: replies to messages with this route come to it from the outbox.

        It gets a `Delivery`, at least once; one that raises is tried again, for a day.
        """
        check_option("lane", name)

        def register(function: SomeChannel) -> SomeChannel:
            if not callable(function):
                raise InvalidInput("channel", function, "a function that takes a Delivery")
            self.add_channel(name, function)
            return function

        return register

    def add_channel(self, name: str, channel: Channel | Sends) -> None:
        """Register a channel that also shows typing, such as those of `headway.channels`."""
        check_option("lane", name)
        self._channels[name] = channel
        if self._engine is not None:
            self._engine.add_channel(name, channel)

    def remote_channel(self, name: str) -> None:
        """A channel that only other nodes deliver to: replies for it go into the outbox here."""
        check_option("lane", name)
        self._channels[name] = None
        if self._engine is not None:
            self._engine.add_channel(name, None)

    # Over time.

    def cron(
        self, expression: str, *, agent: str, name: str | None = None, **options: Unpack[JobOptions]
    ) -> Callable[[SomeJobFunction], SomeJobFunction]:
        """Ask an agent again and again, when the wall clock of `tz` matches: `0 9 * * 1-5`, `@daily`.

        The function is called when a firing starts, and its text is what the agent is told; if it returns None,
        the agent is not woken.
        """
        return self._declare("cron", expression, agent, name, options)

    def every(
        self,
        period: Duration,
        *,
        agent: str,
        name: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Callable[[SomeJobFunction], SomeJobFunction]:
        """Ask an agent again and again, after each period: `30m`. Without drift, whatever becomes of each time."""
        return self._declare("every", period, agent, name, options)

    def at(
        self,
        when: str | datetime,
        *,
        agent: str,
        name: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Callable[[SomeJobFunction], SomeJobFunction]:
        """Ask an agent once: at an instant, or at what a person means by `tomorrow 9am`."""
        return self._declare("at", when, agent, name, options)

    def _declare(
        self, kind: str, when: object, agent: str, name: str | None, options: JobOptions
    ) -> Callable[[SomeJobFunction], SomeJobFunction]:
        self._not_yet_started(kind)

        def declare(function: SomeJobFunction) -> SomeJobFunction:
            called = name or function.__name__
            fields: dict[str, object] = {**options, kind: when, "agent": agent, "name": called}
            if not {"text", "command", "function"} & fields.keys():
                asked = f"{agent}/{called}"
                self.function(asked)(function)
                fields["function"] = asked
            check_job(fields, self.settings.tz)
            self._declared.append(fields)
            return function

        return declare

    def function(self, name: str) -> Callable[[SomeJobFunction], SomeJobFunction]:
        """Give jobs a function to name: the gate that decides whether to wake, or the text of a firing."""
        check_option("session", name)

        def register(function: SomeJobFunction) -> SomeJobFunction:
            if not callable(function):
                raise InvalidInput("function", function, "a function without arguments")
            if name in self._functions:
                raise InvalidInput("function", name, "a name that is not taken yet")
            self._functions[name] = function
            if self._engine is not None:
                self._engine.add_function(name, function)
            return function

        return register

    def heartbeat(self, agent: str, **options: Unpack[HeartbeatOptions]) -> None:
        """Wake an agent from time to time to look after its checklist; it says only what is worth it (H-1)."""
        self._not_yet_started("heartbeat")
        self._heartbeats[agent_name(agent)] = read_heartbeat(options, self.settings.tz)

    def _not_yet_started(self, what: str) -> None:
        if self._engine is not None:
            also = "hw.heartbeats.set" if what == "heartbeat" else "hw.jobs.add"
            raise InvalidInput(what, "declared", f"declared before the start; later: await {also}")

    def add_agent(
        self, name: str, runner: Runner | None, settings: AgentSettings | None = None
    ) -> None:
        """Register any runner as an agent; without one, it runs on other nodes only."""
        checked = agent_name(name)
        if checked in self._agents:
            raise InvalidInput("agent", name, "a name that is not taken yet")
        settings = settings or self.settings.agents.get(checked, AgentSettings())
        self._agents[checked] = (runner, settings)
        if self._engine is not None:
            self._engine.register(checked, runner, settings)

    def before(self, hook: SomeHook) -> SomeHook:
        """Call this just before each attempt: it may change the turn, or raise `Refuse` (S-11)."""
        self._before.append(hook)
        return hook

    def on_wait(self, callback: SomeCallback) -> SomeCallback:
        """Call this when a run starts that had to wait long (L-7)."""
        self._on_wait.append(callback)
        return callback

    def token_estimate(self, estimate: SomeEstimate) -> SomeEstimate:
        """Ask this for (tokens, context window) of a session before it runs more than one at once (S-2)."""
        self._estimate = estimate
        if self._engine is not None:
            self._engine.set_estimate(estimate)
        return estimate

    # Life.

    def use_store(self, url: str) -> None:
        """Another store, chosen before the start."""
        if self._engine is not None:
            raise InvalidInput("store", url, "chosen before the start")
        self._store = check_store(url)

    def use_name(self, name: str) -> None:
        """What this node is called among those that share its store; chosen before the start."""
        if self._engine is not None:
            raise InvalidInput("name", name, "chosen before the start")
        check_option("session", name)
        self._name = name

    @property
    def name(self) -> str:
        """What this node is called among those that share its store."""
        return self._name or node_name()

    @property
    def store(self) -> str:
        """The address of the store; it may hold a password."""
        return self._store

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that run here."""
        return tuple(name for name, (runner, _) in self._agents.items() if runner is not None)

    @property
    def node(self) -> int:
        """This node's number among all that share its store."""
        return self.engine.number

    async def ended(self) -> None:
        """Wait until this was closed. Raises if it broke."""
        await self.engine.ended()

    async def start(self) -> None:
        """Begin to run. `async with` does it for you."""
        if self._engine is not None:
            return
        engine = build_engine(self._store, self.settings, self._clock, self._name)
        for name, (runner, settings) in self._agents.items():
            engine.register(name, runner, settings)
        for channel, function in self._channels.items():
            engine.add_channel(channel, function)
        engine.attempts.before = self._before
        engine.callbacks.on_wait = self._on_wait
        if self._estimate is not None:
            engine.set_estimate(self._estimate)
        for called, given in self._functions.items():
            engine.add_function(called, given)
        engine.looks.run_command = gate_command
        await engine.start()
        self._engine = engine
        try:
            await self._declare_all(engine)
        except BaseException:
            await self.close(0)
            raise

    async def _declare_all(self, engine: Engine) -> None:
        """What the program says about time is in the store, whichever node was first."""
        for fields in self._declared:
            await engine.jobs.declare(fields, self.settings.tz)
        for agent, settings in self._heartbeats.items():
            await engine.jobs.declare_heartbeat(agent, settings)

    async def drain(self, grace: Duration | None = None) -> None:
        """Refuse new work, let running work finish within the grace, cut the rest (L-5)."""
        await self.engine.drain(None if grace is None else span(grace, "grace"))

    async def restart(self, grace: Duration | None = None) -> None:
        """Drain and come back in place, as a new incarnation; waiting work is kept (L-6)."""
        await self.engine.restart(None if grace is None else span(grace, "grace"))

    async def close(self, grace: Duration | None = None) -> None:
        """Drain, then end. Safe to call twice."""
        engine = self._engine
        if engine is not None:
            await engine.close(None if grace is None else span(grace, "grace"))
            self._engine = None

    async def __aenter__(self) -> Self:
        await self.start()
        self._entered += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._entered -= 1
        if self._entered <= 0:
            await self.close(0 if error is not None else None)

    # Working.

    async def send(self, agent: str, text: str = "", **options: Unpack[SubmitOptions]) -> str:
        """Ask an agent and wait for its reply. Raises if there is none: `RunFailed`, `QueueDropped`, …"""
        handle = await self.submit(agent, text, **options)
        return await handle.reply()

    async def submit(self, agent: str, text: str = "", **options: Unpack[SubmitOptions]) -> Handle:
        """Ask an agent and go on; the handle waits, streams, cancels. Raises if the run is refused at once."""
        if self._engine is None:
            raise NotRunning
        asked = self._engine.ask(agent, text, options)
        if type(asked) is Handle:
            return asked
        assert isinstance(asked, Coroutine)
        return await asked

    async def cancel(self, run: str | Handle) -> Stopped:
        """Cancel one run and all that it started."""
        return await self.engine.cancel(_id(run))

    async def stop(self, session: str) -> Stopped:
        """`/stop`: cancel the session's oldest running turn."""
        return await self.engine.stop(_session(session))

    async def stop_all(
        self,
        session: str,
        *,
        sent_at: datetime | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        """`/stopall`: end all of the session; messages sent before this arrive too late."""
        for name, value in (("sent_at", sent_at), ("message_id", message_id), ("route", route)):
            if value is not None:
                check_option(name, value)
        return await self.engine.stop_all(
            _session(session),
            sent_at=None if sent_at is None else instant_of(sent_at, "sent_at"),
            message_id=message_id,
            route=route,
        )

    async def command(
        self,
        session: str,
        text: str,
        *,
        sent_at: datetime | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> str | None:
        """Carry out a chat command and answer its reply; None if the text is no command (S-5, S-9).

        A `/queue` that cannot be understood is answered with what is allowed.
        """
        key = _session(session)
        if not isinstance(text, str):
            raise InvalidInput("text", text, "a string")
        if route is not None:
            check_option("route", route)
        try:
            command = commands.parse(text)
        except InvalidInput as wrong:
            return str(wrong)
        match command:
            case None:
                return None
            case commands.StopOne():
                return str(await self.stop(session))
            case commands.StopEverything():
                stopped = await self.stop_all(
                    session, sent_at=sent_at, message_id=message_id, route=route
                )
                return str(stopped)
            case commands.QueueStatus():
                return await self.engine.queue_status(key, route)
            case commands.QueueClear():
                return f"{await self.engine.clear_session(key)} waiting cleared"
            case commands.QueueReset():
                await self.engine.configure(key, None)
                return "queue options reset"
            case commands.QueueSet(options):
                await self.engine.configure(key, options, change=True)
                return await self.engine.queue_status(key, route)
            case other:
                assert_never(other)

    async def set_queue(self, session: str, **options: Unpack[QueueChoices]) -> None:
        """Give one session its own queue options; with none, it follows the wider settings again."""
        checked: QueueOptions | None = queue_options(options) if options else None
        await self.engine.configure(_session(session), checked)

    # Lanes and limits, live.

    def set_lane(self, name: str, width: int | LaneSettings) -> None:
        """Make a lane or change its width, at once; 0 pauses it (L-1, L-2)."""
        checked = lane_settings(f"lanes.{name}", width)
        self.engine.set_lane(_lane(name), width if isinstance(width, int) else checked)

    def clear_lane(self, name: str) -> int:
        """End all that waits in a lane; what runs goes on (L-5). Answers how many ended."""
        return self.engine.clear_lane(_lane(name))

    def set_limits(self, **limits: Unpack[LimitChoices]) -> None:
        """Change the limits for tasks; those not named stay as they are (F-1)."""
        known = Limits.__struct_fields__
        for name, value in limits.items():
            if name not in known:
                raise UnknownOption(name, known)
            whole_number(0, 1_000_000)(value, name)
        current = self.engine.kernel.stage.floor.limits
        self.engine.set_limits(msgspec.structs.replace(current, **limits))

    # Reading.

    def lanes(self) -> Mapping[str, LaneView]:
        """Every lane of this node: how wide, how full, how many wait."""
        return {lane.name: lane for lane in self.engine.lanes()}

    def sessions(self) -> Mapping[str, SessionView]:
        """Every session that has work here."""
        return {session.key: session for session in self.engine.sessions()}

    async def runs(
        self,
        *,
        agent: str | None = None,
        session: str | None = None,
        state: State | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> RunPage:
        """Runs, newest first, a page at a time."""
        if state is not None and state not in tuple(State):
            raise UnknownName("state", str(state), State)
        for name, value in (("agent", agent), ("session", session), ("cursor", cursor)):
            if value is not None and not isinstance(value, str):
                raise InvalidInput(name, value, "a text")
        whole_number(1, 1000)(limit, "limit")
        checked = None if state is None else State(state)
        return await self.engine.runs(RunQuery(agent, session, checked, limit, cursor))

    async def nodes(self) -> tuple[NodeView, ...]:
        """All nodes that share this store, also those that have ended."""
        return tuple(await self.engine.nodes())

    async def letters(
        self,
        *,
        dead: bool = True,
        channel: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> LetterPage:
        """What is in the outbox: what was given up or, with `dead=False`, what still waits. The oldest first."""
        whole_number(1, 1000)(limit, "limit")
        return await self.engine.letters(LetterQuery(dead, channel, limit, cursor))

    async def retry_letter(self, delivery: str) -> bool:
        """Deliver a dead letter after all. False: there is none of this id."""
        return await self.engine.retry_letter(delivery)

    async def run(self, run: str | Handle) -> RunView:
        """One run as it is now."""
        return await self.engine.find(_id(run))

    async def why(self, run: str | Handle) -> Why:
        """Why a run waits: the rule that holds it, its place in line, and an estimate (X-1)."""
        return await self.engine.why(_id(run))

    def events(self, keep: int = 10_000) -> Listener:
        """Everything that happens from now on: `async for event in hw.events()`."""
        whole_number(1, 10_000_000)(keep, "keep")
        return self.engine.bus.listen(keep)

    @property
    def engine(self) -> Engine:
        """The running engine. Most programs never need it."""
        return self._running()

    def _running(self) -> Engine:
        if self._engine is None:
            raise NotRunning
        return self._engine


def _session(key: str) -> SessionKey:
    check_option("session", key)
    return SessionKey(key)


def _lane(name: str) -> LaneName:
    check_option("lane", name)
    return LaneName(name)


def _id(run: str | Handle) -> RunId:
    if isinstance(run, Handle):
        return run.id
    if not isinstance(run, str):
        raise InvalidInput("run", run, "the id of a run, or its handle")
    return RunId(run)


def _agent_settings(settings: AgentSettings, options: Mapping[str, object]) -> AgentSettings:
    """The agent's settings with everything that the options say."""
    said: dict[str, object] = {}
    for name, value in options.items():
        check = AGENT_CHECKS.get(name)
        if check is None:
            raise UnknownOption(name, AGENT_CHECKS)
        if value is not None:
            said[name] = check(value, name)
    budget = {name: said.pop(name) for name in Budget.__struct_fields__ if name in said}
    if budget:
        said["budget"] = msgspec.structs.replace(settings.budget, **budget)
    return msgspec.structs.replace(settings, **said)
