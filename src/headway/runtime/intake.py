"""The intake: from a request to a run that is stored and that whoever decides for its session knows of.

A request is checked and made a run, the store gives it its place, and what the store answers says how it goes on:
the kernel here takes it, another node does, it is an earlier one again, or it is turned away (D-1, D-6, D-10).
Every message of a node comes this way, so the way of a plain one is flat.
"""

import asyncio
import contextlib
from asyncio import get_running_loop
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from headway.core.kernel import Kernel
from headway.core.request import Composer, compose_together, inside
from headway.core.session import with_options
from headway.model.errors import (
    InvalidInput,
    NotRunning,
    Refused,
    RunEnded,
    TurnOver,
    UnknownName,
    WrongLoop,
)
from headway.model.outcome import Outcome, error_of
from headway.model.run import AgentName, LaneName, Run, RunId, SessionMemory
from headway.model.settings import AgentSettings
from headway.model.task import Task
from headway.model.time import Instant
from headway.model.words import Drop, Mode, Reason, Source, State
from headway.ports import Admission, Clock, Duplicate, Elsewhere, Granted, Store, TurnedAway
from headway.runtime.attempts import Attempts
from headway.runtime.bus import Bus
from headway.runtime.callbacks import Callbacks
from headway.runtime.carrier import Carrier
from headway.runtime.claims import Claims
from headway.runtime.clock import Meter, stopwatch_s
from headway.runtime.follower import Follower
from headway.runtime.handle import Handle, HandleDesk
from headway.runtime.herald import Herald
from headway.runtime.ids import RunIds
from headway.runtime.ownership import Ownership
from headway.runtime.reader import Reader
from headway.runtime.routes import Routes
from headway.runtime.scribe import Scribe
from headway.turn import ChecksTasks, current_turn

SomeAnswer = TypeVar("SomeAnswer")
ChecksCallback: TypeAlias = Callable[[str], Awaitable[None]]
"""Raises `InvalidInput` if a task may not call back to this address."""

# Python 3.11 looks members of an enum up slowly; this one is looked up once.
_MESSAGE = Source.MESSAGE


class Intake:
    """Takes requests for the agents that it knows, while the node runs."""

    def __init__(
        self,
        kernel: Kernel,
        store: Store,
        clock: Clock,
        ids: RunIds,
        *,
        desk: HandleDesk,
        attempts: Attempts,
        callbacks: Callbacks,
        scribe: Scribe,
        carrier: Carrier,
        ownership: Ownership,
        claims: Claims,
        follower: Follower,
        reader: Reader,
        routes: Routes,
        herald: Herald,
        bus: Bus,
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._durable = store.durable
        self._clock = clock
        self._ids = ids
        self._desk = desk
        self._attempts = attempts
        self._callbacks = callbacks
        self._scribe = scribe
        self._carrier = carrier
        self._handles = carrier.handles
        self._ownership = ownership
        self._asking = ownership.asking
        self._claims = claims
        self._follower = follower
        self._reader = reader
        self._routes = routes
        self._herald = herald
        self._bus = bus
        self._lanes = kernel.stage.floor.lanes
        self._composers: dict[str, Composer] = {}
        self._strangers: dict[str, Composer] = {}
        """For agents that only other nodes know: jobs of them are fired here too."""
        self._checks: dict[str, Callable[[Task | None], None]] = {}
        """Of agents whose runner knows what it could never do."""
        self.agents: dict[AgentName, AgentSettings] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        """The node's loop, from its start to its end: requests come on it only."""
        self.meter: Meter | None = None
        self._check_callback: ChecksCallback = _no_callbacks

    def set_callbacks(self, check: ChecksCallback | None) -> None:
        self._check_callback = _no_callbacks if check is None else check

    def add_agent(self, name: AgentName, settings: AgentSettings) -> None:
        self.agents[name] = settings
        self._composers[name] = Composer(name, settings)
        runner: object = self._attempts.runners.get(name)
        if isinstance(runner, ChecksTasks):
            self._checks[name] = runner.check_task

    def change_agent(self, name: AgentName, settings: AgentSettings) -> None:
        """What is asked for from now on gets these."""
        self._strangers.pop(name, None)
        if name in self.agents:
            self.add_agent(name, settings)

    def ask(
        self,
        agent: str,
        text: str,
        options: Mapping[str, object],
        parent: int = 0,
        *,
        checked: bool = False,
    ) -> Handle | Coroutine[object, object, Handle]:
        """Check a request, make it a run, store it and tell the kernel. Raises if it is refused.

        Done at once where the store answers at once; else the rest is to be awaited. `checked` says that where it
        calls back to was looked at before.
        """
        try:
            composer = self._composers[agent]
        except (KeyError, TypeError):
            raise UnknownName("agent", str(agent), self.agents) from None
        if get_running_loop() is not self.loop or not self._scribe.running:
            raise self._not_here()
        parent_run = self._attempts.parent_of(parent) if parent else None
        run = composer.compose(self._ids.next(), text, options, self._clock.now(), parent_run)
        if self._checks and agent in self._checks:
            self._checks[agent](run.task)
        if run.lane not in self._lanes:
            run = self.in_lane(run)
        if run.route is not None and run.source is _MESSAGE:
            self._routes.note(run.agent, run.route)
        if parent_run is None and self._kernel.stage.draining:
            raise error_of(run.id, Outcome(State.CANCELLED, Reason.DRAINING))
        retry = len(options) > 1 and options.get("on_repeat") == "retry"
        if run.callback and not checked:
            return self._once_checked(run, parent, retry=retry)
        if self._durable:
            return self._submit_later(run, parent, retry=retry)
        admission = self._store.admit(run, retry)
        if type(admission) is Granted:
            return self._submit(run, admission, run.submitted_at, parent)
        return self._submitted(run, admission, parent)

    async def _once_checked(self, run: Run, parent: int, *, retry: bool) -> Handle:
        """Where it calls back to is looked up first: if it may not go there, nothing is kept of the task (T-4)."""
        await self._check_callback(run.callback)
        if not self._scribe.running:
            raise NotRunning
        if not parent and self._kernel.stage.draining:
            raise error_of(run.id, Outcome(State.CANCELLED, Reason.DRAINING))
        if self._durable:
            return await self._submit_later(run, parent, retry=retry)
        return await self._submitted(run, self._store.admit(run, retry), parent)

    async def check_callbacks(
        self, requests: Sequence[Mapping[str, object]]
    ) -> dict[str, InvalidInput]:
        """What is wrong with the addresses that these call back to, each looked up once."""
        asked = (request.get("callback") for request in requests)
        urls = list(dict.fromkeys(url for url in asked if isinstance(url, str)))
        wrong = await asyncio.gather(*map(self._wrong_callback, urls))
        return {url: error for url, error in zip(urls, wrong, strict=True) if error is not None}

    async def _wrong_callback(self, url: str) -> InvalidInput | None:
        try:
            await self._check_callback(url)
        except InvalidInput as wrong:
            return wrong
        return None

    def _not_here(self) -> Exception:
        running = self.loop is not None and self._scribe.running
        return WrongLoop() if running else NotRunning()

    def in_lane(self, run: Run) -> Run:
        """A lane that is not known falls back to `main`, and is counted (L-1)."""
        lane = self._kernel.stage.floor.lane(run.lane)
        return run if lane.name == run.lane else msgspec.structs.replace(run, lane=lane.name)

    # All or none.

    async def ask_together(
        self, agent: str, requests: Sequence[Mapping[str, object]]
    ) -> tuple[Handle, ...]:
        """Take all of these requests for tasks or, if one of them cannot be taken, none (T-5)."""
        composer = self._composers.get(agent)
        if composer is None:
            raise UnknownName("agent", str(agent), self.agents)
        if get_running_loop() is not self.loop or not self._scribe.running:
            raise self._not_here()
        wrong = await self.check_callbacks(requests)
        for index, request in enumerate(requests):
            if wrong and (url := request.get("callback")) is not None and str(url) in wrong:
                raise inside(wrong[str(url)], f"tasks[{index}]")
        now = self._clock.now()
        ids = [self._ids.next() for _ in requests]
        runs = [self.in_lane(run) for run in compose_together(composer, ids, requests, now)]
        self._check_together(agent, runs)
        if not runs:
            return ()
        if self._kernel.stage.draining:
            raise error_of(runs[0].id, Outcome(State.CANCELLED, Reason.DRAINING))
        if self._scribe.away is not None:
            raise self._scribe.away
        asked = self._callbacks.start(self._admit_together(runs))
        asked.add_done_callback(_looked_at)
        # Whoever gives up takes nothing back: the store goes on, and what it takes will run.
        return await asyncio.shield(asked)

    def _check_together(self, agent: str, runs: Sequence[Run]) -> None:
        check = self._checks.get(agent)
        if check is None:
            return
        for index, run in enumerate(runs):
            try:
                check(run.task)
            except InvalidInput as wrong:
                raise inside(wrong, f"tasks[{index}]") from None

    async def _admit_together(self, runs: Sequence[Run]) -> tuple[Handle, ...]:
        handles = {run.id: Handle(self._desk, run.id) for run in runs}
        self._handles.update(handles)
        with self.expecting(runs):
            try:
                admitted = await self._measured(self._store.admit_together(runs, self.claims(runs)))
            except BaseException:
                self._forget_handles(handles)
                self._claims.in_doubt()
                raise
            if isinstance(admitted, TurnedAway):
                self._forget_handles(handles)
                raise error_of(runs[0].id, admitted.outcome)
            return tuple(
                [
                    await self._taken_together(run, admission, handles[run.id])
                    for run, admission in zip(runs, admitted, strict=True)
                ]
            )

    async def _taken_together(self, run: Run, admission: Admission, handle: Handle) -> Handle:
        if not isinstance(admission, Granted) or self._asking.get(run.id):
            return await self._admitted(run, admission, handle, 0)
        del self._asking[run.id]
        if self._durable and self._kernel.stage.draining:
            # It stays in the store: whoever has the session next runs it (L-5).
            return handle
        if self._durable and not self._ownership.is_next(run.session, admission):
            self._claims.look_at((run.session,))
            return handle
        with self._kernel.admitted_before():
            return self._submit(run, admission, self._clock.now(), 0, handle)

    def _forget_handles(self, runs: Iterable[RunId]) -> None:
        for run_id in runs:
            self._handles.pop(run_id, None)

    async def _measured(self, answer: Awaitable[SomeAnswer]) -> SomeAnswer:
        """How long the store took, told to whoever measures."""
        meter = self.meter
        if meter is None:
            return await answer
        began_s = stopwatch_s()
        result = await answer
        meter("admit", stopwatch_s() - began_s)
        return result

    # What the timekeeper makes.

    @property
    def closed(self) -> bool:
        """Whether the node takes nothing new: it drains, or it is there only to ask."""
        only_asks = self._durable and not self._attempts.runners
        return only_asks or self._kernel.stage.draining or not self._scribe.running

    def composer(self, agent: AgentName) -> Composer:
        """Makes runs of an agent, also of one that only other nodes know."""
        known = self._composers.get(agent) or self._strangers.get(agent)
        if known is None:
            settings = self._kernel.stage.settings.agents.get(agent, AgentSettings())
            known = self._strangers[agent] = Composer(agent, settings)
        return known

    def claims(self, runs: Sequence[Run]) -> list[bool]:
        """For each of these whether this node takes its session, if it is idle and nobody has it."""
        now = self._clock.now()
        taken: Counter[LaneName] = Counter()
        answers: list[bool] = []
        for run in runs:
            takes = run.agent in self._attempts.runners and self._claims.may_claim(
                run, now, taken[run.lane]
            )
            taken[run.lane] += takes
            answers.append(takes)
        return answers

    @contextlib.contextmanager
    def expecting(self, runs: Sequence[Run]) -> Iterator[None]:
        """These are on their way into the store; the kernel may meet them by another way before the answer."""
        for run in runs:
            self._asking[run.id] = False
        try:
            yield
        finally:
            for run in runs:
                self._asking.pop(run.id, None)
            if self._kernel.stage.draining:
                # Who drains waits until nothing is on its way.
                self._scribe.wake()

    def take_in(self, run: Run, admission: Admission) -> None:
        """The store has kept a run for which nobody waits: tell the kernel, or whoever must know."""
        met = self._asking.pop(run.id, False)
        self._carrier.watching = True
        match admission:
            case Granted() if not met:
                if self._durable and self._kernel.stage.draining:
                    # It stays in the store: whoever has the session next runs it (L-5).
                    return
                if self._durable and not self._ownership.is_next(run.session, admission):
                    self._claims.look_at((run.session,))
                    return
                with contextlib.suppress(RunEnded):
                    self._submit(run, admission, self._clock.now(), 0)
            case Elsewhere(_, owned):
                if self._bus.heard:
                    self._herald.submitted(run)
                if not owned:
                    self._claims.left_in_store()
            case _:
                pass

    def in_doubt(self) -> None:
        """An answer was lost: the store may have given us what we do not know of."""
        self._claims.in_doubt()

    async def _submitted(
        self, run: Run, admission: Admission | Awaitable[Admission], parent: int
    ) -> Handle:
        """A store in memory knows the run already, or takes its time."""
        if isinstance(admission, Awaitable):
            admission = await admission
        if isinstance(admission, Granted):
            return self._submit(run, admission, self._clock.now(), parent)
        assert isinstance(admission, Duplicate)
        return (await self.handle_of(admission.run_id)).shared(parent)

    # Durable first.

    async def _submit_later(self, run: Run, parent: int, *, retry: bool) -> Handle:
        """Its session may turn out to be another node's, or to have news that come before it."""
        if self._scribe.away is not None:
            raise self._scribe.away
        handle = self._handles[run.id] = Handle(self._desk, run.id, parent)
        self._asking[run.id] = False
        asked = self._admission(run, retry=retry)
        try:
            if self.meter is None:
                admission = await asyncio.shield(asked)
            else:
                admission = await self._measured(asyncio.shield(asked))
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
                return (await self.handle_of(earlier)).shared(parent)
            case TurnedAway(outcome):
                raise _refusal(run, outcome)
            case Granted():
                if met:
                    return _taken(run, handle)
                return self._submit_granted(run, admission, handle)
            case Elsewhere(_, owned, memory):
                if self._bus.heard:
                    self._herald.submitted(run)
                if not owned:
                    self._claims.left_in_store()
                elif self._may_be_refused(run, memory):
                    within = self._kernel.stage.settings.verdict_within
                    await self._follower.verdict(handle, within)
                return _taken(run, handle)

    def _admission(self, run: Run, *, retry: bool) -> "asyncio.Future[Admission]":
        claim = run.agent in self._attempts.runners and (
            self._asked_in_a_turn(run) or self._claims.may_claim(run, run.submitted_at)
        )
        admission = self._store.admit(run, retry, claim)
        if isinstance(admission, asyncio.Future):
            return admission
        if self.loop is None:
            raise NotRunning
        if isinstance(admission, Awaitable):
            return self.loop.create_task(_awaited(admission))
        answer: asyncio.Future[Admission] = self.loop.create_future()
        answer.set_result(admission)
        return answer

    def _admitted_alone(self, run: Run, handle: Handle, asked: "asyncio.Future[Admission]") -> None:
        """An answer for which nobody waits any more: the run is taken in all the same."""
        if asked.cancelled() or asked.exception() is not None:
            self._asking.pop(run.id, None)
            self._handles.pop(run.id, None)
            self._claims.in_doubt()
        elif self.loop is not None:
            self._callbacks.start(self._take_in_alone(run, handle, asked.result()))

    async def _take_in_alone(self, run: Run, handle: Handle, admission: Admission) -> None:
        with contextlib.suppress(Refused, RunEnded):
            await self._admitted(run, admission, handle, 0)

    def _asked_in_a_turn(self, run: Run) -> bool:
        """A turn of this node may wait for the run, and only here can it lend it its slot (L-4)."""
        turn = current_turn.get()
        waits_here = turn is not None and id(turn.desk) == id(self._desk) and not turn.over
        return run.parent is not None or waits_here

    def _may_be_refused(self, run: Run, memory: SessionMemory | None) -> bool:
        """Whether the owner's verdict could be a refusal, so that it is worth waiting for."""
        if run.source is not Source.MESSAGE:
            return False
        options = None if memory is None else memory.options
        if run.queue is not None:
            options = run.queue if options is None else with_options(options, run.queue)
        settings = self._kernel.queue_settings(options, run.route)
        stale = memory is not None and memory.cutoff_at is not None
        return stale or settings.mode is Mode.REJECT or settings.drop is Drop.NEW

    # Telling the kernel.

    def _submit_granted(self, run: Run, granted: Granted, handle: Handle) -> Handle:
        """The session is ours. What came before this run and was not seen yet comes first."""
        if not self._ownership.is_next(run.session, granted):
            self._claims.look_at((run.session,))
            return handle
        return self._submit(run, granted, self._clock.now(), 0, handle)

    def _submit(
        self, run: Run, granted: Granted, now: Instant, parent: int, handle: Handle | None = None
    ) -> Handle:
        if handle is None:
            handle = self._handles[run.id] = Handle(self._desk, run.id, parent)
        if self._bus.heard:
            self._herald.submitted(run)
        refused = self._kernel.submit(run, now, granted.epoch, granted.seq, granted.memory)
        if self._scribe.nudge is not None:
            self._scribe.wake()
        if refused is not None:
            raise _refusal(run, refused)
        return handle

    async def handle_of(self, run_id: RunId) -> Handle:
        """The handle of a run that was submitted before."""
        handle = self._handles.get(run_id)
        if handle is not None:
            return handle
        view = await self._reader.find(run_id)
        if view.outcome is None:
            self._follower.look()
            return self._handles.setdefault(run_id, Handle(self._desk, run_id))
        handle = Handle(self._desk, run_id)
        if view.outcome.into is None:
            handle.settle(view.outcome)
        else:
            handle.follow(await self.handle_of(RunId(view.outcome.into)), view.outcome)
        return handle


async def _no_callbacks(url: str) -> None:  # noqa: ARG001 - whichever it is
    allowed = "left out: callbacks are off until callbacks.secret is set (HEADWAY_CALLBACKS_SECRET)"
    raise InvalidInput("callback", "…", allowed)


def _looked_at(asked: "asyncio.Task[tuple[Handle, ...]]") -> None:
    """Whoever asked may have given up: then nobody else looks at its error."""
    if not asked.cancelled():
        asked.exception()


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
