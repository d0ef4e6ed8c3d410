"""`Headway`: the one object that a program holds."""

import os
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType, TracebackType
from typing import Self, Unpack

import msgspec

from headway.config import check_settings, lane_settings, settings_from
from headway.core.actions import Stopped
from headway.core.request import (
    Duration,
    SubmitOptions,
    check_option,
    name_text,
    queue_options,
    whole_number,
)
from headway.core.schedule import zone_name
from headway.facade import batch, chat, family, reloading, workers
from headway.facade.options import (
    LimitChoices,
    QueueChoices,
    check_limits,
    check_sought,
    lane_name,
    run_id,
    session_key,
)
from headway.facade.registering import Registering
from headway.facade.registry import Registry
from headway.heartbeats import Heartbeats
from headway.jobs import Jobs
from headway.model.errors import HeadwayError, InvalidInput, NotRunning, UnknownName
from headway.model.run import QueueOptions, Route
from headway.model.settings import LaneSettings, Settings
from headway.model.text import is_whole
from headway.model.time import instant_of, span
from headway.model.views import (
    LaneView,
    NodeView,
    Reloaded,
    RunTree,
    RunView,
    SessionView,
    Stats,
    Why,
)
from headway.model.words import Source, State, WorkerState
from headway.model.worker import Beat, Snapshot, Worker
from headway.ports import (
    Clock,
    LetterPage,
    LetterQuery,
    RunPage,
    RunQuery,
    SnapshotPage,
    WorkerPage,
)
from headway.runtime.bus import Listener
from headway.runtime.engine import Engine
from headway.runtime.handle import Handle
from headway.tokens import Tokens
from headway.wiring import (
    MEMORY,
    build_engine,
    check_store,
    node_name,
)


class Headway(Registering):
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
        self._name = None if name is None else name_text(name, "name")
        self._clock = clock
        settings = settings_from(os.environ) if settings is None else check_settings(settings)
        if lanes is not None and not isinstance(lanes, Mapping):
            raise InvalidInput("lanes", lanes, 'widths by name, such as {"main": 30}')
        self._lanes = {
            lane_name(name): lane_settings(f"lanes.{name}", width)
            for name, width in (lanes or {}).items()
        }
        """Said in code, so they win over the settings, also over those of a reload."""
        zone_name(settings.tz, "settings.tz")
        self.settings = self._with_lanes(settings)
        self._registry = Registry()
        self._engine: Engine | None = None
        self._entered = 0
        """How many `async with` blocks are open; the last one to end closes."""
        self.jobs = Jobs(self._running, lambda: self.settings.tz)
        self.heartbeats = Heartbeats(self._running, lambda: self.settings.tz)
        self.tokens = Tokens(self._running)

    def _with_lanes(self, settings: Settings) -> Settings:
        if not self._lanes:
            return settings
        lanes = MappingProxyType({**settings.lanes, **self._lanes})
        return msgspec.structs.replace(settings, lanes=lanes)

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
        name_text(name, "name")
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
        agents = self._registry.agents
        here = [name for name, agent in agents.items() if agent.runner is not None]
        return tuple(dict.fromkeys([*here, *self.settings.runners]))

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
        self._registry.equip(engine, self.settings, self._store)
        await engine.start()
        self._engine = engine
        try:
            await self._registry.declare(engine, self.settings.tz)
        except BaseException:
            await self.close(0)
            raise

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
            await self._registry.close()

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

    async def submit_all(
        self, agent: str, requests: Sequence[Mapping[str, object]], *, atomic: bool = False
    ) -> tuple[Handle | HeadwayError, ...]:
        """Ask for many runs of one agent at once: each request has a `text` or a `task`, and options of `submit`.

        One that is refused has its error in its place; what is wrong in it is named as `tasks[2].deadline`. With
        `atomic` all are taken or none: then the first error is raised (T-5).
        """
        return await batch.submit_all(self.engine, agent, requests, atomic=atomic)

    async def resume(self, run: str | Handle) -> Handle:
        """Go on with the agent session of a run whose worker died too often: a new run with a new budget (W-3)."""
        old, options = await family.resumption(self.engine, run_id(run))
        return await self.submit(old.agent, old.text, **options)

    async def cancel(self, run: str | Handle) -> Stopped:
        """Cancel one run and all that it started."""
        return await self.engine.cancel(run_id(run))

    async def stop(self, session: str) -> Stopped:
        """`/stop`: cancel the session's oldest running turn."""
        return await self.engine.stop(session_key(session))

    async def stop_all(
        self,
        session: str,
        *,
        sent_at: datetime | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        """`/stopall`: end all of the session; messages sent before this arrive too late."""
        _check_message(sent_at, message_id, route)
        return await self.engine.stop_all(
            session_key(session),
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
        if not isinstance(text, str):
            raise InvalidInput("text", text, "a string")
        _check_message(sent_at, message_id, route)
        return await chat.carry_out(
            self.engine,
            session_key(session),
            text,
            sent_at=None if sent_at is None else instant_of(sent_at, "sent_at"),
            message_id=message_id,
            route=route,
        )

    async def set_queue(self, session: str, **options: Unpack[QueueChoices]) -> None:
        """Give one session its own queue options; with none, it follows the wider settings again."""
        checked: QueueOptions | None = queue_options(options) if options else None
        await self.engine.configure(session_key(session), checked)

    async def change_queue(self, session: str, **options: Unpack[QueueChoices]) -> None:
        """Change some of a session's own queue options; those not named stay as they are."""
        await self.engine.configure(session_key(session), queue_options(options), change=True)

    # Lanes and limits, live.

    def set_lane(self, name: str, width: int | LaneSettings) -> None:
        """Make a lane or change its width, at once; 0 pauses it (L-1, L-2)."""
        checked = lane_settings(f"lanes.{name}", width)
        self.engine.set_lane(lane_name(name), width if isinstance(width, int) else checked)

    def clear_lane(self, name: str) -> int:
        """End all that waits in a lane; what runs goes on (L-5). Answers how many ended."""
        return self.engine.clear_lane(lane_name(name))

    def pause_lane(self, name: str) -> None:
        """Start nothing in a lane any more; what runs in it goes on."""
        self.engine.pause_lane(lane_name(name))

    def resume_lane(self, name: str) -> None:
        """Start again what waits in a paused lane, as many at once as before."""
        self.engine.resume_lane(lane_name(name))

    def set_limits(self, **limits: Unpack[LimitChoices]) -> None:
        """Change the limits for tasks; those not named stay as they are (F-1)."""
        check_limits(limits)
        self.engine.set_limits(msgspec.structs.replace(self.engine.limits, **limits))

    def reload(self, settings: Settings) -> Reloaded:
        """Apply what differs from the settings so far, and nothing else (F-1, O-1).

        What was changed by hand since stays, unless its setting is another one now; what code said about agents
        and lanes wins. Answers what has changed, and what needs a new start of the program. Before the start it
        changes what the start will find.
        """
        settings = self._with_lanes(check_settings(settings))
        zone_name(settings.tz, "settings.tz")
        old, self.settings = self.settings, settings
        if self._engine is None:
            return Reloaded(tuple(sorted(reloading.differences(old, settings))))
        self.settings, reloaded = reloading.apply(self._engine, self._registry, old, settings)
        return reloaded

    # Reading.

    def lanes(self) -> Mapping[str, LaneView]:
        """Every lane of this node: how wide, how full, how many wait."""
        return {lane.name: lane for lane in self.engine.lanes()}

    def sessions(self) -> Mapping[str, SessionView]:
        """Every session that has work here."""
        return {session.key: session for session in self.engine.sessions()}

    async def session(self, key: str) -> SessionView:
        """One session as it is now, whichever node decides for it; an idle one is empty."""
        return await self.engine.session(session_key(key))

    async def clear_session(self, key: str) -> int:
        """End all that waits in a session; what runs goes on. Answers how many ended."""
        return await self.engine.clear_session(session_key(key))

    def stats(self) -> Stats:
        """What this node is at, in numbers. Cheap: for a look each second, and for metrics."""
        return self.engine.stats()

    @property
    def draining(self) -> bool:
        """Whether new work is refused because this node is about to end or to restart."""
        return self.engine.draining

    @property
    def store_away(self) -> str | None:
        """Why the store cannot be used just now; None: it can."""
        return self.engine.store_away

    async def position(self, run: str | Handle) -> int | None:
        """How many runs of its lane start before this one, if nothing else arrives (T-5).

        0: it is next, or runs. None: it has ended, or is not this node's.
        """
        return await self.engine.position(run_id(run))

    async def runs(
        self,
        *,
        agent: str | None = None,
        session: str | None = None,
        state: State | str | None = None,
        source: Source | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> RunPage:
        """Runs, newest first, a page at a time."""
        if state is not None and state not in tuple(State):
            raise UnknownName("state", str(state), State)
        if source is not None and source not in tuple(Source):
            raise UnknownName("source", str(source), Source)
        for name, value in (("agent", agent), ("session", session), ("cursor", cursor)):
            check_sought(name, value)
        whole_number(1, 1000)(limit, "limit")
        query = RunQuery(
            agent,
            session,
            None if state is None else State(state),
            limit,
            cursor,
            source=None if source is None else Source(source),
        )
        return await self.engine.runs(query)

    async def nodes(self) -> tuple[NodeView, ...]:
        """All nodes that share this store, also those that have ended."""
        return tuple(await self.engine.nodes())

    async def workers(
        self,
        *,
        agent: str | None = None,
        host: str | None = None,
        state: WorkerState | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> WorkerPage:
        """Workers of all nodes as they were last seen, the latest first; without a state those that live (D-8)."""
        return await workers.list_workers(
            self.engine, agent=agent, host=host, state=state, limit=limit, cursor=cursor
        )

    async def worker(self, worker: str) -> Worker | None:
        """One worker by its id, `<run>.<attempt>`. None: there is none, or it was forgotten."""
        return await workers.find_worker(self.engine, worker)

    async def beats(self, worker: str, *, limit: int = 60) -> tuple[Beat, ...]:
        """The latest signs of life of a worker, the newest first."""
        return tuple(await workers.list_beats(self.engine, worker, limit))

    async def machines(self) -> tuple[Snapshot, ...]:
        """How each machine was when one of its nodes last looked."""
        return tuple(await self.engine.store.machines())

    async def snapshots(
        self, *, host: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> SnapshotPage:
        """How machines were, minute by minute, the latest first."""
        return await workers.list_snapshots(self.engine, host=host, limit=limit, cursor=cursor)

    async def letters(
        self,
        *,
        dead: bool | None = True,
        channel: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> LetterPage:
        """What is in the outbox: what was given up, with `dead=False` what still waits, with None both.

        The oldest first. What waits says with `due_at` when it is tried next.
        """
        check_sought("channel", channel)
        check_sought("cursor", cursor)
        whole_number(1, 1000)(limit, "limit")
        return await self.engine.letters(LetterQuery(dead, channel, limit, cursor))

    async def retry_letter(self, delivery: str) -> bool:
        """Deliver a dead letter after all. False: there is none of this id."""
        return is_whole(delivery) and await self.engine.retry_letter(delivery)

    async def run(self, run: str | Handle) -> RunView:
        """One run as it is now."""
        return await self.engine.find(run_id(run))

    async def tree(self, run: str | Handle) -> RunTree:
        """A run and all that it started, whichever nodes ran it."""
        return await family.tree(self.engine, run_id(run))

    async def why(self, run: str | Handle) -> Why:
        """Why a run waits: the rule that holds it, its place in line, and an estimate (X-1)."""
        return await self.engine.why(run_id(run))

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


def _check_message(sent_at: datetime | None, message_id: str | None, route: Route | None) -> None:
    for name, value in (("sent_at", sent_at), ("message_id", message_id), ("route", route)):
        if value is not None:
            check_option(name, value)
