"""The machines of a simulated cluster, and the workers on them: what goes on when a node's process is gone (W-2).

A worker belongs to its machine. It ends by itself, or when it is killed; how it ended stays there until somebody
has collected it. Who attaches with a higher fence takes it over, and whoever was attached before is shut out.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headway.model.errors import WorkerLost, WorkFailed
from headway.model.run import Run, RunId
from headway.model.time import MILLISECOND, SECOND, Instant, Span
from headway.model.words import WorkerKind
from headway.testing.cluster.agents import Habits
from headway.testing.cluster.loops import Conductor
from headway.testing.cluster.violation import Broken
from headway.turn import Fence, Sight, Turn

if TYPE_CHECKING:
    from headway.testing.cluster.nodes import Node

OUTLIVING = "gamma"
"""The agent whose attempts are workers."""
_LONGEST: Span = 12 * SECOND
"""Longer than a lease and a grace: so that others meet a worker that lives, and one that has ended meanwhile."""


@dataclass(eq=False, slots=True)
class Worker:
    """A process on a machine, for one attempt."""

    machine: "Machine"
    run: Run
    attempt: int
    number: int
    born_at: Instant
    born_by: Fence
    """The fence that it was given when it began; its reply names it."""
    fence: Fence
    """That of whoever is attached to it."""
    fails: bool
    over: bool = False
    ear: "asyncio.Future[None] | None" = None
    """Where whoever is attached waits for its end."""

    def __str__(self) -> str:
        return f"worker of {self.run.id} (attempt {self.attempt}) on {self.machine.name}"

    @property
    def reply(self) -> str:
        return f"{self.run.id} {self.attempt} {self.born_by}"

    def end(self) -> None:
        """It has done its work."""
        if self.machine.has(self) and not self.over:
            self.over = True
            if self.ear is not None and not self.ear.done():
                self.ear.set_result(None)


@dataclass(eq=False, slots=True)
class Machine:
    """What survives a crash of a node."""

    name: str
    workers: dict[tuple[RunId, int], Worker] = field(default_factory=dict)

    def has(self, worker: Worker) -> bool:
        return self.workers.get((worker.run.id, worker.attempt)) is worker

    def living(self) -> list[Worker]:
        return [worker for worker in self.workers.values() if not worker.over]

    def kill(self, run_id: RunId, attempt: int) -> None:
        worker = self.workers.pop((run_id, attempt), None)
        if worker is not None and worker.ear is not None and not worker.ear.done():
            worker.ear.set_exception(WorkerLost("it was killed"))

    def reboot(self) -> None:
        """Nothing that ran goes on, and nothing of how it ended was kept."""
        self.workers.clear()


class Machines:
    """All machines there are."""

    def __init__(self, conductor: Conductor, objects: Callable[[Broken, str], None]) -> None:
        self._conductor = conductor
        self._objects = objects
        self._by_name: dict[str, Machine] = {}
        self._born = 0
        self.adopted: list[Worker] = []
        """Each time that a worker was found again."""

    def named(self, name: str) -> Machine:
        return self._by_name.setdefault(name, Machine(name))

    def living(self, run_id: RunId) -> list[Worker]:
        """The workers of a run, wherever they are."""
        found = [worker for machine in self._by_name.values() for worker in machine.living()]
        return [worker for worker in found if worker.run.id == run_id]

    def spawn(self, machine: Machine, turn: Turn, habits: Habits) -> Worker:
        """A new worker, which ends by itself some time later, whoever looks on."""
        for other in self.living(turn.run.id):
            if other.attempt == turn.attempt:
                self._objects(Broken.TWO_WORKERS, f"{other} lives, and another one is begun")
        random = habits.draw(turn)
        span = habits.spans.get(turn.text, random.randrange(10 * MILLISECOND, _LONGEST))
        self._born += 1
        now = self._conductor.now
        worker = Worker(
            machine,
            turn.run,
            turn.attempt,
            self._born,
            now,
            turn.fence,
            turn.fence,
            fails=random.random() < habits.fails,
        )
        machine.workers[(turn.run.id, turn.attempt)] = worker
        self._conductor.plan(now + span, worker.end)
        return worker

    def attach(self, machine: Machine, turn: Turn) -> Worker:
        """Go on with a worker that is there."""
        worker = machine.workers.get((turn.run.id, turn.attempt))
        if worker is None:
            raise WorkerLost("it is not there any more")
        if worker.fence > turn.fence:
            raise WorkerLost("another node has taken it over")
        if worker.ear is not None and not worker.ear.done():
            worker.ear.set_exception(WorkerLost("another node has taken it over"))
        worker.fence = turn.fence
        self.adopted.append(worker)
        return worker


class MachineRunner:
    """Runs attempts as workers of its node's machine."""

    outlives = True

    def __init__(self, node: "Node", machine: Machine, machines: Machines, habits: Habits) -> None:
        self._node = node
        self._machine = machine
        self._machines = machines
        self._habits = habits

    async def run(self, turn: Turn) -> str:
        if turn.start.adopts:
            worker = self._machines.attach(self._machine, turn)
        else:
            for earlier in range(1, turn.attempt):
                # Nobody wants it, if it is still there.
                self._machine.kill(turn.run.id, earlier)
            worker = self._machines.spawn(self._machine, turn, self._habits)
        attempt = self._node.begin(turn, worker)
        ear = worker.ear = asyncio.get_running_loop().create_future()
        try:
            if not worker.over:
                await ear
        except asyncio.CancelledError:
            self._node.cut(attempt)
            if worker.fence == turn.fence:
                self._machine.kill(turn.run.id, turn.attempt)
            raise
        else:
            if worker.fails:
                raise WorkFailed(worker.reply, "command_failed")
            attempt.done = True
            return worker.reply
        finally:
            self._node.end(attempt)

    def has(self, run_id: RunId, attempt: int) -> bool:
        return (run_id, attempt) in self._machine.workers

    async def look(self) -> Sequence[Sight]:
        return [
            Sight(
                worker.run.id,
                worker.attempt,
                WorkerKind.COMMAND,
                worker.number,
                worker.born_at / SECOND,
                worker.born_at,
                answers=True,
                over=worker.over,
            )
            for worker in self._machine.workers.values()
        ]

    async def end(self, run_id: RunId, attempt: int) -> None:
        worker = self._machine.workers.get((run_id, attempt))
        if worker is not None and not worker.over:
            self._node.ends(worker)
        self._machine.kill(run_id, attempt)

    def forget(self, run_id: RunId, attempt: int) -> None:
        worker = self._machine.workers.get((run_id, attempt))
        if worker is not None and worker.over:
            self._machine.kill(run_id, attempt)
