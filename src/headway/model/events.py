"""The one catalogue of what can be heard from a node. Logs, metrics, streams and screens derive from it."""

from typing import ClassVar

from headway.model.run import AgentName, JobId, LaneName, Route, RunId, SessionKey
from headway.model.time import Instant, Span
from headway.model.value import Value
from headway.model.words import Cut, Fired, HeartbeatSkip, Reason, Source, State


class Event(Value, frozen=True, tag_field="event", tag=True):
    """Something that happened, at an instant. `notable` ones are logged even if nobody listens."""

    notable: ClassVar[bool] = False

    at: Instant


class RunSubmitted(Event, frozen=True):
    run_id: RunId
    agent: AgentName
    session: SessionKey
    lane: LaneName
    source: Source


class RunStarted(Event, frozen=True):
    run_id: RunId
    agent: AgentName
    session: SessionKey
    lane: LaneName
    attempt: int
    source: Source
    waited: Span = 0
    """Since it was asked for, or due if that was later; also before a further attempt."""
    adopted: bool = False
    """Whether it is no new attempt: one that began under an earlier process goes on here (W-2)."""


class RunFinished(Event, frozen=True):
    run_id: RunId
    agent: AgentName
    session: SessionKey
    lane: LaneName
    attempt: int
    state: State
    source: Source
    reason: Reason | None = None
    error: str = ""
    into: RunId | None = None
    took: Span = 0
    """How long its last attempt ran; 0 if it never began."""


class RunQueuedAgain(Event, frozen=True):
    """A run lives on after an attempt that was cut or failed."""

    run_id: RunId
    agent: AgentName
    session: SessionKey
    cut: Cut | None = None
    until: Instant | None = None
    error: str = ""


class RunsMerged(Event, frozen=True):
    run_id: RunId
    agent: AgentName
    session: SessionKey
    parts: tuple[RunId, ...]


class RunWaited(Event, frozen=True):
    """A run started after a long wait, with so many starts of its lane before it (L-7)."""

    notable = True

    run_id: RunId
    agent: AgentName
    session: SessionKey
    lane: LaneName
    waited: Span
    ahead: int


class AttemptCancelled(Event, frozen=True):
    """A live attempt was asked to end."""

    run_id: RunId
    agent: AgentName
    session: SessionKey
    cut: Cut


class AttemptFailed(Event, frozen=True):
    """An agent or a hook raised; `trace` says where."""

    notable = True

    run_id: RunId
    agent: AgentName
    session: SessionKey
    attempt: int
    error: str
    trace: str


class AttemptAbandoned(Event, frozen=True):
    """An attempt ignored its cancellation for the whole grace and was left behind (S-3)."""

    notable = True

    run_id: RunId
    agent: AgentName
    session: SessionKey


class LateResult(Event, frozen=True):
    """An attempt that counts no longer returned; its result was thrown away (R-4)."""

    notable = True

    run_id: RunId
    agent: AgentName
    session: SessionKey


class MessageSteered(Event, frozen=True):
    """A running turn took a message from its inbox."""

    message: RunId
    into: RunId
    agent: AgentName
    session: SessionKey


class OutputEmitted(Event, frozen=True):
    run_id: RunId
    agent: AgentName
    session: SessionKey
    text: str


class OutboundEmpty(Event, frozen=True):
    """A turn was cancelled: channels end their typing indicators (S-10)."""

    run_id: RunId
    agent: AgentName
    session: SessionKey
    route: Route | None = None


class TokensUsed(Event, frozen=True):
    run_id: RunId
    agent: AgentName
    session: SessionKey
    tokens_in: int
    tokens_out: int


class ProviderHeld(Event, frozen=True):
    """A provider's rate limit holds back every agent that shares its key (X-6)."""

    notable = True

    provider: str
    until: Instant


class SessionStopped(Event, frozen=True):
    session: SessionKey
    running: int
    waiting: int
    everything: bool


class LaneChanged(Event, frozen=True):
    lane: LaneName
    width: int
    reserve: int


class LaneCleared(Event, frozen=True):
    lane: LaneName
    ended: int


class LimitsChanged(Event, frozen=True):
    max_queue: int
    max_queue_per_agent: int
    max_inflight: int
    max_inflight_per_agent: int


class NodeDraining(Event, frozen=True):
    running: int


class NodeRestarted(Event, frozen=True):
    notable = True

    incarnation: int


class NodeBroken(Event, frozen=True):
    """The engine itself failed: this is a bug in Headway or in its store. Nothing goes on here."""

    notable = True

    error: str


class NodeDead(Event, frozen=True):
    """Another node showed no sign of life for a whole lease; its sessions are free for others."""

    notable = True

    node: int


class NodeFenced(Event, frozen=True):
    """This node could not renew its lease in time, so it stopped its own attempts."""

    notable = True

    node: int
    reason: str = ""


class NodeDied(Event, frozen=True):
    """This node learned that others had declared it dead; it begins anew and owns nothing."""

    notable = True

    node: int


class SessionsLost(Event, frozen=True):
    """Other nodes decide for sessions that were this node's; nothing of them goes on here."""

    notable = True

    count: int


class StoreAway(Event, frozen=True):
    """The store cannot be reached: what was decided is kept and tried again."""

    notable = True

    error: str


class StoreBack(Event, frozen=True):
    """The store can be reached again."""

    notable = True


class DeliveryFailed(Event, frozen=True):
    """A channel did not take something from the outbox. Without `again_at` it is a dead letter."""

    notable = True

    delivery: str
    run_id: RunId
    session: SessionKey
    channel: str
    error: str
    again_at: Instant | None = None


class JobsChanged(Event, frozen=True, tag="cache:cron"):
    """Jobs were added, changed or removed, here or on another node: what was read of them is old (C-12)."""


class JobFired(Event, frozen=True):
    """A job made a run."""

    job: JobId
    name: str
    agent: AgentName
    due_at: Instant
    run_id: RunId
    kind: Fired


class JobPassed(Event, frozen=True):
    """A firing of a job was missed or skipped; `count` of them, if many in a row were."""

    job: JobId
    name: str
    agent: AgentName
    due_at: Instant
    kind: Fired
    reason: str
    count: int = 1


class JobPaused(Event, frozen=True):
    """A job failed too often in a row and was disabled (C-9)."""

    notable = True

    job: JobId
    name: str
    agent: AgentName
    reason: str


class HeartbeatQuiet(Event, frozen=True):
    """An agent was woken and had nothing to tell (H-3)."""

    run_id: RunId
    agent: AgentName
    session: SessionKey
    reason: HeartbeatSkip


class WorkerAdopted(Event, frozen=True):
    """A worker outlived the process that had started it; its attempt goes on here (W-2)."""

    notable = True

    run_id: RunId
    agent: AgentName
    session: SessionKey
    attempt: int
    host: str


class WorkerDied(Event, frozen=True):
    """A worker is gone, or has shown no sign of life for too long; nobody knows how it would have ended (D-8)."""

    notable = True

    run_id: RunId
    agent: AgentName
    session: SessionKey
    attempt: int
    error: str


class OrphanEnded(Event, frozen=True):
    """A worker was found on this machine that nobody wants any more, and was killed (D-8)."""

    notable = True

    run_id: RunId
    agent: AgentName
    attempt: int


class ResumeExhausted(Event, frozen=True):
    """A run whose worker died again and again is not resumed any more by itself; a person still can (W-3)."""

    notable = True

    run_id: RunId
    agent: AgentName
    session: SessionKey
    attempts: int


class CallbackFailed(Event, frozen=True):
    """A function given by the user raised or was too slow; the scheduler goes on without it."""

    notable = True

    callback: str
    error: str


class EventsMissed(Event, frozen=True):
    """This listener was too slow: so many events were left out here."""

    count: int


CATALOGUE: tuple[type[Event], ...] = (
    RunSubmitted,
    RunStarted,
    RunFinished,
    RunQueuedAgain,
    RunsMerged,
    RunWaited,
    AttemptCancelled,
    AttemptFailed,
    AttemptAbandoned,
    LateResult,
    MessageSteered,
    OutputEmitted,
    OutboundEmpty,
    TokensUsed,
    ProviderHeld,
    SessionStopped,
    LaneChanged,
    LaneCleared,
    LimitsChanged,
    NodeDraining,
    NodeRestarted,
    NodeBroken,
    NodeDead,
    NodeFenced,
    NodeDied,
    SessionsLost,
    StoreAway,
    StoreBack,
    DeliveryFailed,
    JobsChanged,
    JobFired,
    JobPassed,
    JobPaused,
    HeartbeatQuiet,
    WorkerAdopted,
    WorkerDied,
    OrphanEnded,
    ResumeExhausted,
    CallbackFailed,
    EventsMissed,
)
