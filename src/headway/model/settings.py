"""All settings with their defaults, in one place. Parsed once at the edge; frozen from then on."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from headway.model.bounds import Count, Length, Positive
from headway.model.run import AgentName, LaneName, QueueOptions
from headway.model.runner import RunnerSpec
from headway.model.time import DAY, MILLISECOND, MINUTE, SECOND, Span
from headway.model.value import Value
from headway.model.words import Drop, Mode, Source, SteerFallback

MAIN = LaneName("main")
SUBAGENT = LaneName("subagent")
TEAM = LaneName("team")
CRON = LaneName("cron")
LANE_ALIASES: Mapping[str, LaneName] = MappingProxyType({"delegate": TEAM})

MAX_NAME = 512
"""The most characters of a name, a key or an id."""
MAX_TEXT = 1024 * 1024
"""The most bytes of UTF-8 that one text may have."""


class Budget(Value, frozen=True):
    """Token buckets of a lane or an agent (X-6). None means unbounded."""

    runs_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None


class LaneSettings(Value, frozen=True):
    """How wide a lane is on each node, and what of it is kept for interactive work."""

    width: Count
    reserve: Count = 0
    budget: Budget = Budget()
    cluster_limit: Positive | None = None
    """How many of its runs go at once over all nodes, exactly (L-8). None: only the width of each node counts."""


class AgentSettings(Value, frozen=True):
    """What the scheduler must know of an agent."""

    weight: Positive = 1
    steerable: bool = False
    preemptible: bool = False
    provider: str | None = None
    """Agents that name the same provider key share its rate limits."""
    max_inflight: Count | None = None
    """Tasks of this agent at once; None takes `Limits.max_inflight_per_agent`."""
    budget: Budget = Budget()
    lane: LaneName | None = None
    timeout: Length | None = None
    max_attempts: Positive | None = None
    retries: Count | None = None
    resume_after: Length | None = None
    """Its runner can go on with the session of a worker that died, not sooner than this after it began (W-3)."""


class QueueSettings(Value, frozen=True):
    """The queue of one session, every setting resolved."""

    mode: Mode = Mode.QUEUE
    cap: Positive = 10
    drop: Drop = Drop.OLD
    debounce: Length = 800 * MILLISECOND
    steer_fallback: SteerFallback = SteerFallback.INTERRUPT
    max_concurrent: Positive = 1


class Limits(Value, frozen=True):
    """Admission and execution limits for tasks (F-1). Each can be changed while running."""

    max_queue: Count = 1000
    max_queue_per_agent: Count = 100
    max_inflight: Count = 20
    max_inflight_per_agent: Count = 10


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


class CallbackSettings(Value, frozen=True):
    """How programs are told how their tasks ended (T-4)."""

    secret: str = ""
    """Signs each notice, so that the receiver knows who sent it. Empty: no callbacks are taken."""
    private: bool = False
    """Whether addresses of this machine and of private networks may be told; else only public ones."""
    timeout: Length = 10 * SECOND
    """How long a receiver may take to answer."""


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
    runners: Mapping[AgentName, RunnerSpec] = msgspec.field(
        default_factory=lambda: MappingProxyType({})
    )
    """How agents are run that are no functions of the program."""
    limits: Limits = Limits()
    callbacks: CallbackSettings = CallbackSettings()
    ageing: Length = 30 * SECOND
    cancel_grace: Length = 10 * SECOND
    drain_grace: Length = 30 * SECOND
    wait_notice: Length = 2 * SECOND
    throttle_ratio: Annotated[float, Meta(gt=0, le=1)] = 0.60
    callback_within: Length = 250 * MILLISECOND
    """How long a token estimate or a wait callback may take before it is given up (S-2, L-7)."""
    debounce_limit: Positive = 5
    """A debounce window never lasts longer than this many times its setting (S-7)."""
    dedupe: Length = 20 * MINUTE
    idempotency: Length = DAY
    retention: Length = 7 * DAY
    task_retention: Length = 300 * SECOND
    retained_runs: Count = 500
    """The memory store forgets the oldest finished runs beyond this number."""
    idle_sessions: Count = 1_000
    """How many sessions a node keeps at hand before it gives the idle ones among them back."""
    result_size: Positive = 4 * 1024 * 1024
    """The most bytes that a reply may have, as JSON, to be kept; a larger one fails its run."""
    lease: Length = 30 * SECOND
    """How long a node that shows no sign of life may act; then others take its work over (D-3)."""
    renew_every: Length = 5 * SECOND
    """How often a node shows a sign of life: it renews its lease (D-3)."""
    poll_every: Length = 5 * SECOND
    """How often a node looks for work it was not told of (D-5)."""
    put_back_after: Length = SECOND
    """A session that was claimed and could not start within this goes back, if other nodes could take it."""
    live_runs: Positive = 10_000
    """How many unfinished runs a node holds before it leaves new ones in the store until there is room."""
    verdict_within: Length = 250 * MILLISECOND
    """How long a submission waits for the verdict of the node that owns its session (D-10)."""
    tz: str = "UTC"
    """The time zone of jobs that name none."""
    catch_up_spread: Length = MINUTE
    """Firings that were missed together start spread over this (C-6)."""
    prune_every: Length = MINUTE
    """How often a durable store forgets what is past its retention."""
    adoption_grace: Length = MINUTE
    """So long after a node died its workers are left to its own machine; then others take its runs over (W-2)."""
    beat_every: Length = MINUTE
    """How often workers and the machine are looked at (D-8)."""
    missed_beats: Positive = 2
    """A worker that misses more signs of life in a row is dead."""
    scan_every: Length = 5 * MINUTE
    """How often a node looks for workers on its machine that nobody wants any more (D-8)."""
    beat_retention: Length = 7 * DAY
    """How long the signs of life of workers are kept."""
    snapshot_retention: Length = 30 * DAY
    """How long it is kept how machines were."""
    cutoff_memory: Length = DAY
    """How long the memory store remembers the cutoff of a `/stopall`."""
