"""A cluster to be driven by hand: real engines on one real database, in virtual time.

    with Cluster(seed=1) as cluster:
        a, b = cluster.add("a"), cluster.add("b")
        a.submit("alpha", "hello", {"session": "chat"})
        cluster.run(2 * SECOND)
        a.freeze()
        …
        cluster.settle()

`settle` ends all faults, waits until nothing is left to do, closes all nodes and checks what must hold then.
"""

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType, TracebackType
from typing import Self

from headway.model.run import AgentName, LaneName, RunId
from headway.model.settings import AgentSettings, LaneSettings, QueueSettings, Settings
from headway.model.time import DAY, HOUR, MINUTE, SECOND, Instant, Span
from headway.testing.cluster.agents import CHILD, Habits
from headway.testing.cluster.clocks import WallClock
from headway.testing.cluster.database import SharedDatabase
from headway.testing.cluster.faults import CALM, Weather
from headway.testing.cluster.loops import Conductor
from headway.testing.cluster.machines import OUTLIVING
from headway.testing.cluster.nodes import Node
from headway.testing.cluster.verdict import check_at_the_end, unsettled
from headway.testing.cluster.violation import Broken, Violation
from headway.testing.cluster.witness import Witness

FEW = LaneName("few")
"""A lane that is bounded over all nodes."""

SETTINGS = Settings(
    lanes=MappingProxyType(
        {
            LaneName("main"): LaneSettings(3),
            LaneName("subagent"): LaneSettings(2),
            LaneName("team"): LaneSettings(2),
            LaneName("cron"): LaneSettings(2),
            FEW: LaneSettings(2, cluster_limit=2),
        }
    ),
    queue=QueueSettings(debounce=0),
    lease=6 * SECOND,
    renew_every=SECOND,
    poll_every=SECOND,
    cancel_grace=2 * SECOND,
    drain_grace=2 * SECOND,
    idle_sessions=2,
    retention=7 * DAY,
    task_retention=7 * DAY,
    adoption_grace=5 * SECOND,
)
AGENTS: Mapping[AgentName, AgentSettings] = MappingProxyType(
    {
        AgentName("alpha"): AgentSettings(),
        AgentName("beta"): AgentSettings(steerable=True),
        AgentName(CHILD): AgentSettings(),
        AgentName(OUTLIVING): AgentSettings(),
    }
)
_PATIENCE: Span = 10 * MINUTE
"""Once nothing goes wrong any more, everything must be over within this."""
_LOOKS_EVERY: Span = SECOND


class Cluster:
    """Nodes, their database, and the time that they share."""

    def __init__(
        self,
        seed: int = 0,
        settings: Settings = SETTINGS,
        agents: Mapping[AgentName, AgentSettings] = AGENTS,
        habits: Habits | None = None,
    ) -> None:
        self.seed = seed
        self.settings = settings
        self.agents = agents
        self.habits = Habits(seed) if habits is None else habits
        self.conductor = Conductor(Random(f"{seed} conductor"))
        self.wall = WallClock(self.conductor)
        self.database = SharedDatabase()
        self.witness = Witness(self.conductor, self.wall, self.database.reader, settings)
        self.nodes: list[Node] = []
        """All that ever were."""
        self.weather: Weather = CALM
        self.most_ahead = 0
        """At most so many starts each node stores ahead in each lane; 0: as its pace says."""
        self._started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes:
            node.dispose()
        self.database.__exit__(kind, error, trace)

    @property
    def now(self) -> Instant:
        return self.conductor.now

    @property
    def up(self) -> list[Node]:
        """Nodes that can be asked for something."""
        return [node for node in self.nodes if node.up and not node.closing]

    @property
    def log(self) -> list[str]:
        return self.witness.log

    # Nodes.

    def add(
        self,
        name: str,
        runs: frozenset[AgentName] | None = None,
        off_by: Span = 0,
        host: str | None = None,
    ) -> Node:
        """Start one more node; without `runs` it has runners for all agents, without `host` its own machine."""
        self._started += 1
        node = Node(
            name,
            self.conductor,
            self.witness,
            self.wall,
            self.settings,
            self.agents,
            frozenset(self.agents) if runs is None else runs,
            self.habits,
            self.database,
            f"{self.seed} {name} {self._started}",
            off_by,
            f"machine {name}" if host is None else host,
        )
        node.store.weather = self.weather
        node.most_ahead = self.most_ahead
        self.nodes.append(node)
        self.witness.nodes.append(node)
        self.witness.note(f"{name} starts")
        node.start()
        return node

    def set_weather(self, weather: Weather) -> None:
        self.weather = weather
        for node in self.nodes:
            node.store.weather = weather

    def store_away(self, span: Span) -> None:
        """Nobody reaches the store for so long."""
        self.witness.note(f"the store is away for {span / SECOND:.3f} s")
        for node in self.nodes:
            node.store.away_until = self.now + span

    # Time.

    def run(self, span: Span) -> None:
        self.conductor.run_until(self.now + span)

    def run_until(self, enough: Callable[[], bool], within: Span = MINUTE) -> None:
        if not self.conductor.run_until(self.now + within, enough):
            raise AssertionError(f"it did not come to that within {within / SECOND:g} s")

    # The end.

    def settle(self) -> None:
        """No more faults: everything comes to its end, the nodes leave, and nothing is left over."""
        self.set_weather(CALM)
        for node in self.nodes:
            node.store.away_until = 0
            node.thaw()
        able = {name for node in self.up for name in node.runs}
        if not able.issuperset(self.agents):
            self.add(f"last{len(self.nodes)}")
        self._stop_jobs()
        until = self.now + _PATIENCE
        while left := unsettled(self.witness, self.database.reader, self.nodes):
            if self.now >= until:
                told = "; ".join(text for _, text in left)
                raise Violation(left[0][0], f"never over: {told}")
            self.run(_LOOKS_EVERY)
        # Long enough for those who live to see that others do not.
        self.run(2 * self.settings.lease)
        for node in self.up:
            node.close()
        self.run_until(lambda: not any(node.gone_at is None for node in self.nodes), HOUR)
        check_at_the_end(self.witness, self.database.reader, self.nodes)

    def _stop_jobs(self) -> None:
        """Jobs that nobody stops go on for ever: first they must be on time, and then they are paused."""
        timetable = self.witness.timetable
        if not timetable.jobs:
            return
        if not self.conductor.run_until(
            self.now + _PATIENCE, lambda: bool(self.up) and not timetable.behind(self.wall.now())
        ):
            behind = ", ".join(timetable.behind(self.wall.now()))
            raise Violation(Broken.CADENCE, f"nobody fires any more: {behind}")
        self._check_jobs()
        until = self.now + _PATIENCE
        while jobs := timetable.unpaused():
            if self.now >= until:
                raise Violation(Broken.PAUSED, f"cannot be paused: {', '.join(jobs)}")
            for job in jobs:
                timetable.pause(self.up[0], job)
            self.run(_LOOKS_EVERY)

    def _check_jobs(self) -> None:
        for promise, text in self.witness.timetable.faults(self.witness.stored):
            raise Violation(promise, text)

    def outcome(self, run_id: str) -> str:
        """How a run ended, as `state/reason`; for tests."""
        outcome = self.witness.outcomes[RunId(run_id)]
        return outcome.state if outcome.reason is None else f"{outcome.state}/{outcome.reason}"
