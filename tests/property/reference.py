"""Who is next, the slow and obvious way: look at every waiting run, each time.

The floor of `headway.core` finds the same in O(log n) with heaps, stamps and parking; this is what
it is held against. F-2: fewest in flight, then served longest ago, and inside an agent priority,
then submission order. F-3: a waiting run gains one step per `ageing`. X-8: an agent of weight w
counts 1/w for each start.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

INTERACTIVE_BELOW = 10


@dataclass(eq=False)
class Waiting:
    """A run that its session would start next."""

    name: str
    agent: str
    lane: str
    priority: int
    task: bool
    rank: int
    order: int

    @property
    def background(self) -> bool:
        return self.priority >= INTERACTIVE_BELOW


@dataclass(eq=False)
class Agent:
    weight: int = 1
    taken: Fraction = Fraction(0)
    served: int = 0


@dataclass(eq=False)
class Lane:
    width: int
    reserve: int = 0


@dataclass(eq=False)
class Reference:
    """All that waits and runs, without sessions, budgets or sub-runs."""

    lanes: dict[str, Lane]
    ageing: int
    max_inflight: int = 20
    max_inflight_per_agent: int = 10
    agents: dict[str, Agent] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    running: dict[str, Waiting] = field(default_factory=dict)
    orders: int = 0
    services: int = 0
    most_taken: Fraction = Fraction(0)

    def post(
        self, name: str, *, agent: str, lane: str, priority: int, task: bool, now: int
    ) -> None:
        self.orders += 1
        self.agents.setdefault(agent, Agent())
        rank = now + priority * self.ageing
        self.waiting[name] = Waiting(name, agent, lane, priority, task, rank, self.orders)

    def withdraw(self, name: str) -> None:
        del self.waiting[name]

    def next_ones(self, lanes: Iterable[str] | None = None) -> set[str]:
        """The runs of which one must start next; several only if their agents were never served."""
        among = set(self.lanes if lanes is None else lanes)
        able = [run for run in self.waiting.values() if run.lane in among and self._may(run)]
        if not able:
            return set()
        first = min(self._place(run.agent) for run in able)
        best: dict[str, Waiting] = {}
        for run in able:
            if self._place(run.agent) == first:
                rival = best.get(run.agent)
                if rival is None or (run.rank, run.order) < (rival.rank, rival.order):
                    best[run.agent] = run
        return {run.name for run in best.values()}

    def start(self, name: str) -> None:
        run = self.running[name] = self.waiting.pop(name)
        agent = self.agents[run.agent]
        self.services += 1
        self.most_taken = max(self.most_taken, agent.taken)
        agent.taken = self.most_taken + Fraction(1, agent.weight)
        agent.served = self.services

    def free(self, name: str) -> None:
        del self.running[name]

    def _place(self, agent: str) -> tuple[int, Fraction, int]:
        inflight = sum(run.agent == agent for run in self.running.values())
        known = self.agents[agent]
        return inflight // known.weight, known.taken, known.served

    def _may(self, run: Waiting) -> bool:
        lane = self.lanes[run.lane]
        here = [other for other in self.running.values() if other.lane == run.lane]
        if len(here) >= lane.width:
            return False
        if run.background and sum(r.background for r in here) >= lane.width - lane.reserve:
            return False
        if not run.task:
            return True
        tasks = [other for other in self.running.values() if other.task]
        mine = sum(other.agent == run.agent for other in tasks)
        return len(tasks) < self.max_inflight and mine < self.max_inflight_per_agent
