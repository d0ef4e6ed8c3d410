"""A simulated node: one process with a real engine, from its start to its end or its crash."""

import asyncio
import contextlib
import traceback
from collections.abc import Coroutine, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

from headway.core.actions import Action
from headway.core.request import SubmitOptions
from headway.model.errors import HeadwayError, Unavailable
from headway.model.outcome import Outcome
from headway.model.places import Delivery
from headway.model.run import AgentName, Route, RunId
from headway.model.settings import AgentSettings, Settings
from headway.model.time import SECOND, Instant, Span
from headway.model.words import Reason
from headway.ports import Recorded, Renewal
from headway.runners.function import FunctionRunner
from headway.runtime.engine import Engine
from headway.runtime.handle import Handle
from headway.runtime.ids import RunIds
from headway.testing.cluster.agents import Habits, agent_for
from headway.testing.cluster.clocks import NodeClock, WallClock
from headway.testing.cluster.database import SharedDatabase, interrupt_after
from headway.testing.cluster.faults import FaultyStore, Sight
from headway.testing.cluster.journal import Attempt
from headway.testing.cluster.loops import Conductor, NodeLoop
from headway.testing.cluster.machines import OUTLIVING, MachineRunner, Worker
from headway.testing.cluster.violation import Broken, Violation
from headway.turn import Runner, Turn

if TYPE_CHECKING:
    from headway.testing.cluster.witness import Witness

CHANNEL = "chat"
GATE = "look"
_TRIES_AGAIN_S = 0.5
_LOOK_S = 0.1


class Node:
    """One process. Another one that takes its place is another `Node`."""

    def __init__(  # noqa: PLR0917 - all that a process has of its own, said once
        self,
        name: str,
        conductor: Conductor,
        witness: "Witness",
        wall: WallClock,
        settings: Settings,
        agents: Mapping[AgentName, AgentSettings],
        runs: frozenset[AgentName],
        habits: Habits,
        database: SharedDatabase,
        seed: str,
        off_by: Span = 0,
        host: str = "",
    ) -> None:
        self.name = name
        self.host = host
        """The machine that it runs on."""
        self.conductor = conductor
        self.settings = settings
        self.agents = agents
        self.runs = runs
        """The agents that it has runners for."""
        self._witness = witness
        self._random = Random(seed)
        self.loop = NodeLoop(conductor, name)
        self.loop.set_exception_handler(self._unhandled)
        conductor.add(self.loop)
        self.clock = NodeClock(conductor, self.loop, off_by)
        sight = Sight(
            admitted=lambda run, admission: witness.admitted(self, run, admission),
            recorded=self._recorded,
            broken_off=witness.broken_off,
            enlisted=self._enlisted,
            renewed=self._renewed,
            buried=lambda number: witness.buried(self, number),
        )
        self.inner = database.store(settings, self.clock)
        self.store = FaultyStore(
            self.inner,
            name,
            conductor,
            wall,
            f"{seed} store",
            sight,
            lambda steps: interrupt_after(self.inner, steps),
        )
        self._habits = habits
        self.most_ahead = 0
        """At most so many starts it stores ahead in each lane, whatever its pace is; 0: as its pace says."""
        self._of_ahead = Random(f"{seed} ahead")
        self.engine: Engine | None = None
        self.number = 0
        """The latest incarnation, as the store has it."""
        self.lease_from: Instant = 0
        """From when, at the latest, the lease counts: the latest renewal that the store took was sent then."""
        self.frozen_at: Instant | None = None
        self.thawed_at: Instant = -SECOND
        self.gone_at: Instant | None = None
        """When it crashed or had closed."""
        self.closing = False
        self.told: dict[RunId, Outcome] = {}
        self.waiting: dict[RunId, Handle] = {}
        self.calls: dict[int, str] = {}
        """What was asked of this node from outside and has not been answered."""
        self._asked = 0
        self._works: list[Coroutine[object, object, object]] = []

    def __repr__(self) -> str:
        return f"<Node {self.name}/{self.number}>"

    @property
    def up(self) -> bool:
        """Whether it can be asked for something just now."""
        return self.engine is not None and self.gone_at is None and not self.frozen

    @property
    def frozen(self) -> bool:
        return self.frozen_at is not None

    def is_steerable(self, agent: AgentName) -> bool:
        return self.agents[agent].steerable

    # Life, from outside.

    def start(self) -> None:
        self.ask("start", self._start())

    async def _start(self) -> None:
        tries = 0
        while self.engine is None:
            tries += 1
            ids = RunIds(f"{self.name}{'' if tries == 1 else f't{tries}'}")
            engine = Engine(self.settings, self.store, self.clock, self.name, ids, self.host)
            engine.attempts.jitter = self._random.random
            for name, settings in self.agents.items():
                engine.register(name, self._runner(name) if name in self.runs else None, settings)
            engine.add_channel(CHANNEL, NodeChannel(self))
            engine.looks.functions[GATE] = _look
            try:
                await engine.start()
            except Unavailable:
                await asyncio.sleep(_TRIES_AGAIN_S)
            else:
                self.engine = engine
                self.loop.create_task(self._watch(engine))

    def _runner(self, agent: AgentName) -> Runner:
        if agent != OUTLIVING:
            return FunctionRunner(agent_for(self, self._habits))
        machines = self._witness.machines
        return MachineRunner(self, machines.named(self.host), machines, self._habits)

    async def _watch(self, engine: Engine) -> None:
        try:
            await engine.ended()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever broke it, it is a finding
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('headway/')[2]}:{frame.lineno} {frame.line}"
            self._crashed(f"node {self.name} broke: {type(error).__name__}: {error} in {place}")

    def freeze(self) -> None:
        """As SIGSTOP does, or a long pause of the machine."""
        self.frozen_at = self.conductor.now
        self.loop.frozen = True

    def thaw(self, *, suspended: bool = False) -> None:
        """Go on. If the machine itself slept, the loop's clock has stood meanwhile."""
        if self.frozen_at is None:
            return
        if suspended:
            self.loop.suspended(self.conductor.now - self.frozen_at)
        self.frozen_at = None
        self.thawed_at = self.conductor.now
        self.loop.frozen = False
        self.loop.wakes_at = self.conductor.now

    def crash(self) -> None:
        """As `kill -9` does: from one instant to the next nothing is done any more."""
        if self.gone_at is None:
            self.gone_at = self.conductor.now
            self.frozen_at = None
            self.conductor.remove(self.loop)

    def close(self, grace: Span | None = None) -> None:
        self.closing = True
        self.ask("close", self._close(grace))

    async def _close(self, grace: Span | None) -> None:
        assert self.engine is not None
        await self.engine.close(grace)
        self.gone_at = self.conductor.now

    # Asking, from outside.

    def ask(self, what: str, work: Coroutine[object, object, object]) -> None:
        """Have something done on this node; a refusal is an answer too."""
        self._works.append(work)
        self._asked += 1
        number = self._asked
        self.calls[number] = what

        async def asked() -> None:
            try:
                await work
            except HeadwayError as refused:
                self.refused(refused)
            except Exception as error:  # noqa: BLE001 - whatever it is, it should not be
                self._crashed(f"{what} on {self.name} raised {type(error).__name__}: {error}")
            finally:
                del self.calls[number]

        self.loop.create_task(asked())

    def submit(self, agent: str, text: str, options: SubmitOptions) -> None:
        self.ask(f"submit {text}", self._submit(agent, text, options))

    async def _submit(self, agent: str, text: str, options: SubmitOptions) -> None:
        assert self.engine is not None
        asked = self.engine.ask(agent, text, options)
        handle = asked if isinstance(asked, Handle) else await asked
        self._witness.acknowledged(self, handle.id)
        self.waiting[handle.id] = handle
        outcome = await handle.wait()
        self.waiting.pop(handle.id, None)
        if not (self.closing and outcome.reason is Reason.DRAINING):
            # What a leaving node left in the store ends later, and elsewhere.
            self.told[handle.id] = outcome

    def refused(self, refusal: HeadwayError) -> None:
        self._witness.refused(self, refusal)

    # What the witness is told.

    def begin(self, turn: Turn, worker: Worker | None = None) -> Attempt:
        assert self.engine is not None
        attempt = Attempt(
            self, self.engine.number, turn.run, turn.attempt, turn.fence, self.conductor.now
        )
        attempt.worker = worker
        attempt.adopted = turn.start.adopts
        if self.gone_at is None:
            self._witness.begun(attempt)
        return attempt

    def cut(self, attempt: Attempt) -> None:
        attempt.cut_at = self.conductor.now

    def end(self, attempt: Attempt) -> None:
        """A crashed process does not end its attempts: its coroutines are only cleared away, much later."""
        if self.gone_at is None or self.closing:
            attempt.ended_at = self.conductor.now
            self._witness.ended(attempt)

    def ends(self, worker: Worker) -> None:
        self._witness.worker_ended(self, worker)

    def deliver(self, delivery: Delivery) -> None:
        self._witness.delivered(self, delivery)

    def _recorded(self, actions: Sequence[Action], recorded: Recorded) -> None:
        self._witness.recorded(self, actions, recorded)
        if self.most_ahead:
            self.loop.call_soon(self._hurry)

    def _hurry(self) -> None:
        """As if its runs were so short that some must be started ahead."""
        if self.engine is not None:
            kernel = self.engine.kernel
            for name in tuple(kernel.stage.floor.lanes):
                count = self._of_ahead.randint(1, self.most_ahead)
                kernel.set_ahead(name, count, self.clock.now())
            self.engine.attempts.wake()

    def _enlisted(self, number: int, asked_at: Instant) -> None:
        self.number = number
        self.lease_from = asked_at
        self._witness.enlisted(self, number)

    def _renewed(self, renewal: Renewal, asked_at: Instant) -> None:
        if renewal.alive:
            self.lease_from = max(self.lease_from, asked_at)

    def _unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        if self.gone_at is None:
            self._crashed(
                f"node {self.name}: {context.get('message')}: {context.get('exception')!r}"
            )

    def _crashed(self, text: str) -> None:
        if self.gone_at is None:
            self.conductor.object_to(Broken.CRASH, text)

    # Clearing away.

    def dispose(self) -> None:
        """After everything: end what is left of the loop without a word."""
        if self.gone_at is None:
            self.crash()
        loop = self.loop
        loop.set_exception_handler(_say_nothing)
        self.conductor.violation = None
        for _ in range(20):
            tasks = asyncio.all_tasks(loop)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            with contextlib.suppress(Violation):
                loop.step()
            self.conductor.now += SECOND
        for work in self._works:
            # What was never begun; all else has ended with its task.
            work.close()
        closing = loop.create_task(self.inner.close())
        loop.step()
        assert closing.done()
        loop.close()


async def _look() -> bool:
    """The gate of jobs that have one: it takes a moment, in which anything may happen."""
    await asyncio.sleep(_LOOK_S)
    return True


class NodeChannel:
    """The channel of all nodes: it gets also what is empty, because it could show who is typing."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def send(self, delivery: Delivery) -> None:
        self._node.deliver(delivery)

    async def typing(self, route: Route, on: bool) -> None:
        pass


def _say_nothing(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """What is cleared away after everything has nobody to tell."""
