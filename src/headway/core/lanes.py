"""Lanes, agents and flows: the records that the floor keeps its counts in."""

from dataclasses import dataclass, field
from heapq import heappop
from typing import TypeAlias

from headway.core.bucket import Bucket
from headway.core.live import BACKGROUND, KINDS, Kind, LiveRun
from headway.model.run import AgentName, LaneName
from headway.model.settings import AgentSettings, Budget, LaneSettings
from headway.model.time import Instant, Span
from headway.model.words import Rule

Place: TypeAlias = tuple[int, int, int]
"""Rounds in flight, strides taken, last service: the least is served next (F-2, X-8)."""
Head: TypeAlias = tuple[Instant, int, int, LiveRun]
"""A posted run by rank, order and stamp."""
FlowEntry: TypeAlias = "tuple[Place, int, Flow]"
"""The agent's place and the flow's stamp when it was put into its lane's heap."""

STRIDE = 720_720
"""What one start costs an agent of weight 1; whole for all weights up to 16."""


class Purse:
    """The buckets of one budget: runs and tokens per minute."""

    __slots__ = ("runs", "tokens")

    def __init__(self, budget: Budget, now: Instant) -> None:
        self.runs = Bucket(budget.runs_per_minute, now) if budget.runs_per_minute else None
        self.tokens = Bucket(budget.tokens_per_minute, now) if budget.tokens_per_minute else None

    def free_at(self, now: Instant) -> Instant:
        """When the next run may start on this budget; not later than now if it may at once."""
        at = now
        for bucket in (self.runs, self.tokens):
            if bucket is not None and not bucket.has_one(now):
                at = max(at, bucket.next_at(now))
        return at

    def run_started(self, now: Instant) -> None:
        if self.runs is not None:
            self.runs.take(1, now)

    def tokens_used(self, count: int, now: Instant) -> None:
        if self.tokens is not None:
            self.tokens.take(count, now)


@dataclass(slots=True, eq=False)
class Provider:
    """A key that agents share towards their model provider; one rate limit holds them all back."""

    held_until: Instant = 0


@dataclass(slots=True, eq=False)
class AgentLoad:
    """What one agent has in flight, and its place in the fair order."""

    name: AgentName
    settings: AgentSettings
    weight: int = 1
    inflight: int = 0
    tasks: int = 0
    waiting_tasks: int = 0
    strides: int = 0
    """Grows by 1/weight with each start: among equals, who has taken least goes first (X-8)."""
    stride: int = STRIDE
    served: int = 0
    """When it was last served; with equal weights, who was served longest ago goes first."""
    place: Place = (0, 0, 0)
    flows: "list[Flow]" = field(default_factory=list)
    parked: "list[Flow]" = field(default_factory=list)
    free_at: Instant = 0
    """The instant for which a wake-up is already set, while it is held back."""
    provider: Provider | None = None
    purse: Purse | None = None
    limited: bool = False
    """Whether a provider or a budget can hold it back at all."""
    mean_span: Span = 0
    """How long its attempts took lately; for estimates only."""


@dataclass(slots=True, eq=False)
class Flow:
    """The posted runs of one agent and kind in one lane, by rank."""

    lane: "Lane"
    agent: AgentLoad
    kind: Kind
    heap: "list[FlowEntry]"
    """The heap of its lane and kind."""
    heads: "list[Head]" = field(default_factory=list)
    next_up: "list[Head]" = field(default_factory=list)
    """Those of its runs whose start is stored ahead; they wait as the others do."""
    count: int = 0
    stamp: int = 0
    """Marks the one valid entry of this flow in the lane's heap."""
    parked: bool = False
    """Taken off the heap because its agent may start nothing of this kind now."""

    def first(self) -> LiveRun:
        return self.line()[0][3]

    def line(self) -> "list[Head]":
        """The heap that has the first run of all, on top."""
        heads, next_up = self.heads, self.next_up
        while heads and not heads[0][3].posted:
            heappop(heads)
        while next_up and not next_up[0][3].posted:
            heappop(next_up)
        if not next_up or (heads and heads[0] < next_up[0]):
            return heads
        return next_up

    def precedes(self, other: "Flow") -> bool:
        mine, theirs = self.first(), other.first()
        return (self.agent.place, mine.rank, mine.order) < (
            other.agent.place,
            theirs.rank,
            theirs.order,
        )


@dataclass(slots=True, eq=False)
class Lane:
    """A named pool of slots on this node."""

    name: LaneName
    settings: LaneSettings
    width: int
    reserve: int = 0
    in_use: int = 0
    background: int = 0
    started: int = 0
    permits: int = 0
    """How many of the slots that all nodes share are this node's; counts only with a cluster limit (L-8)."""
    flows: tuple[dict[AgentName, Flow], ...] = field(
        default_factory=lambda: tuple({} for _ in range(KINDS))
    )
    heaps: tuple[list[FlowEntry], ...] = field(
        default_factory=lambda: tuple([] for _ in range(KINDS))
    )
    kinds: list[Kind] = field(default_factory=list)
    """The kinds of run that ever came here, in order."""
    ready: list[int] = field(default_factory=lambda: [0] * KINDS)
    """Posted runs whose agent may start them, by kind."""
    parked: int = 0
    """Posted runs whose agent may start none of them just now."""
    preemptible: list[LiveRun] = field(default_factory=list)
    yielding: int = 0
    """Attempts that were cut so that a user's turn may start, and have not returned yet."""
    owed: int = 0
    """Slots freed in that way: the next ones go to plain, interactive runs."""
    purse: Purse | None = None
    free_at: Instant = 0
    ahead: int = 0
    """How many runs may have their start stored before there is a slot for them; see `ahead`."""
    ahead_until: Instant = 0
    next_up: dict[int, LiveRun] = field(default_factory=dict)
    """Those by ticket, in the order in which they were started."""
    awaited: bool = False
    """Whether an alarm is set that looks whether they wait too long."""

    def ahead_at(self, now: Instant) -> int:
        """How many starts may be stored ahead just now."""
        return self.ahead if now <= self.ahead_until else 0

    def apply(self, settings: LaneSettings, now: Instant) -> None:
        if settings.budget != self.settings.budget or self.purse is None:
            bounded = settings.budget != Budget()
            self.purse = Purse(settings.budget, now) if bounded else None
        self.settings = settings
        self.reserve = settings.reserve
        self.fit()

    def fit(self) -> None:
        """Its width follows from its settings and, with a cluster limit, from its permits."""
        width = self.settings.width
        self.width = width if self.settings.cluster_limit is None else min(width, self.permits)

    @property
    def most(self) -> int:
        """How wide it could be at best, with all the permits there are."""
        width, limit = self.settings.width, self.settings.cluster_limit
        return width if limit is None else min(width, limit)

    @property
    def room(self) -> int:
        """How many more ready sessions could start here now.

        Those whose agent is held back take no slot, so they take no room from others; but no more of them are
        gathered than the lane is wide.
        """
        free = self.most - self.in_use - sum(self.ready)
        return max(0, min(free, free + self.most - self.parked))

    def bar(self, kind: Kind, now: Instant) -> tuple[Rule, Instant | None] | None:
        """Which rule of the lane, if any, keeps runs of this kind from starting now."""
        if self.settings.width == 0:
            return Rule.LANE_PAUSED, None
        if self.in_use >= self.width:
            return Rule.LANE_FULL, None
        if kind & BACKGROUND and self.background >= self.width - self.reserve:
            return Rule.LANE_RESERVED, None
        if self.purse is not None and (free_at := self.purse.free_at(now)) > now:
            return Rule.LANE_BUDGET, free_at
        return None
