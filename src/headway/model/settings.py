"""All settings with their defaults, in one place. Parsed once at the edge; frozen from then on."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from headway.model.run import AgentName, LaneName, QueueOptions
from headway.model.time import DAY, MILLISECOND, MINUTE, SECOND, Span
from headway.model.value import Value
from headway.model.words import Drop, Mode, Source, SteerFallback

MAIN = LaneName("main")
SUBAGENT = LaneName("subagent")
TEAM = LaneName("team")
CRON = LaneName("cron")
LANE_ALIASES: Mapping[str, LaneName] = MappingProxyType({"delegate": TEAM})

MAX_TEXT = 1024 * 1024
"""The most bytes of UTF-8 that one text may have."""


class Budget(Value, frozen=True):
    """Token buckets of a lane or an agent (X-6). None means unbounded."""

    runs_per_minute: int | None = None
    tokens_per_minute: int | None = None


class LaneSettings(Value, frozen=True):
    """How wide a lane is on each node, and what of it is kept for interactive work."""

    width: int
    reserve: int = 0
    budget: Budget = Budget()


class AgentSettings(Value, frozen=True):
    """What the scheduler must know of an agent."""

    weight: int = 1
    steerable: bool = False
    preemptible: bool = False
    provider: str | None = None
    """Agents that name the same provider key share its rate limits."""
    max_inflight: int | None = None
    """Tasks of this agent at once; None takes `Limits.max_inflight_per_agent`."""
    budget: Budget = Budget()
    lane: LaneName | None = None
    timeout: Span | None = None
    max_attempts: int | None = None
    retries: int | None = None


class QueueSettings(Value, frozen=True):
    """The queue of one session, every setting resolved."""

    mode: Mode = Mode.QUEUE
    cap: int = 10
    drop: Drop = Drop.OLD
    debounce: Span = 800 * MILLISECOND
    steer_fallback: SteerFallback = SteerFallback.INTERRUPT
    max_concurrent: int = 1


class Limits(Value, frozen=True):
    """Admission and execution limits for tasks (F-1). Each can be changed while running."""

    max_queue: int = 1000
    max_queue_per_agent: int = 100
    max_inflight: int = 20
    max_inflight_per_agent: int = 10


class SourceDefaults(Value, frozen=True):
    """What a run gets when its request does not say (F-4, F-5, D-7, C-9)."""

    priority: int
    max_attempts: int
    retries: int = 0
    lane: LaneName = MAIN
    deadline: Span | None = None


SOURCE_DEFAULTS: Mapping[Source, SourceDefaults] = MappingProxyType(
    {
        Source.MESSAGE: SourceDefaults(priority=0, max_attempts=2),
        Source.TASK: SourceDefaults(priority=0, max_attempts=1, deadline=MINUTE),
        Source.FIRING: SourceDefaults(priority=10, max_attempts=1, retries=3, lane=CRON),
        Source.HEARTBEAT: SourceDefaults(priority=20, max_attempts=2, lane=CRON),
        Source.DELEGATION: SourceDefaults(priority=0, max_attempts=1, lane=SUBAGENT),
    }
)

DEFAULT_LANES: Mapping[LaneName, LaneSettings] = MappingProxyType(
    {
        MAIN: LaneSettings(30),
        SUBAGENT: LaneSettings(50),
        TEAM: LaneSettings(100),
        CRON: LaneSettings(30),
    }
)


class Settings(Value, frozen=True):
    """Everything that can be set for one node."""

    lanes: Mapping[LaneName, LaneSettings] = msgspec.field(default_factory=lambda: DEFAULT_LANES)
    queue: QueueSettings = QueueSettings()
    channels: Mapping[str, QueueOptions] = msgspec.field(
        default_factory=lambda: MappingProxyType({})
    )
    agents: Mapping[AgentName, AgentSettings] = msgspec.field(
        default_factory=lambda: MappingProxyType({})
    )
    limits: Limits = Limits()
    ageing: Span = 30 * SECOND
    cancel_grace: Span = 10 * SECOND
    drain_grace: Span = 30 * SECOND
    wait_notice: Span = 2 * SECOND
    throttle_ratio: float = 0.60
    callback_within: Span = 250 * MILLISECOND
    """How long a token estimate or a wait callback may take before it is given up (S-2, L-7)."""
    debounce_limit: int = 5
    """A debounce window never lasts longer than this many times its setting (S-7)."""
    dedupe: Span = 20 * MINUTE
    idempotency: Span = DAY
    retention: Span = 7 * DAY
    task_retention: Span = 300 * SECOND
    retained_runs: int = 1_000
    """The memory store forgets the oldest finished runs beyond this number."""
    idle_sessions: int = 1_000
    """How many sessions a node keeps at hand before it gives the idle ones among them back."""
    cutoff_memory: Span = DAY
    """How long the memory store remembers the cutoff of a `/stopall`."""
