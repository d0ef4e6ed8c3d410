"""A run as it was asked for. What happens to it later is kept by the kernel and the store, not here."""

from typing import Annotated, NewType

from msgspec import Meta

from headway.model.hours import ActiveHours
from headway.model.outcome import Attachment
from headway.model.payload import Execute
from headway.model.task import Task
from headway.model.time import Instant, Span
from headway.model.value import Value
from headway.model.words import Drop, Mode, Source, SteerFallback

RunId = NewType("RunId", str)
SessionKey = NewType("SessionKey", str)
AgentName = NewType("AgentName", str)
LaneName = NewType("LaneName", str)
JobId = NewType("JobId", str)

INTERACTIVE_BELOW = 10
"""Priorities below this are interactive, the rest is background (X-5)."""


class Route(Value, frozen=True):
    """Where a message came from and where its reply goes."""

    channel: str
    account: str = ""
    peer: str = ""
    thread: str = ""


class Sender(Value, frozen=True):
    """Who wrote a message, and with which authority (an owner's words never merge with a guest's)."""

    id: str
    authority: str = ""


class QueueOptions(Value, frozen=True):
    """Settings of a session's queue. None means: not said here, ask the next wider scope (S-5)."""

    mode: Mode | None = None
    cap: Annotated[int, Meta(ge=1)] | None = None
    drop: Drop | None = None
    debounce: Annotated[Span, Meta(ge=0)] | None = None
    steer_fallback: SteerFallback | None = None
    max_concurrent: Annotated[int, Meta(ge=1)] | None = None


class Firing(Value, frozen=True):
    """What a run has of the job that made it."""

    job: JobId
    due_at: Instant
    """When it should have started; how late it did is counted from here."""
    session: str = ""
    """The session that its agent sees, where that is not the one that orders the job's runs."""
    function: str = ""
    """Asked for the text when an attempt begins."""
    command: Execute | None = None
    final: bool = False
    """No other firing follows by itself: when this one has ended, the job is over."""
    ack_max_chars: int | None = None
    """Of a heartbeat: a reply that says all is well with at most so many more characters is not delivered."""
    name: str = ""
    """What people call the job."""
    hours: ActiveHours | None = None
    """Of a heartbeat: outside of them its agent is not woken, also if it had to wait."""


class Run(Value, frozen=True):
    """One piece of work asked of an agent."""

    id: RunId
    agent: AgentName
    session: SessionKey
    source: Source
    lane: LaneName
    priority: int
    submitted_at: Instant
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    route: Route | None = None
    sender: Sender | None = None
    message_id: str | None = None
    sent_at: Instant | None = None
    due_at: Instant | None = None
    deadline_at: Instant | None = None
    timeout: Span | None = None
    queue: QueueOptions | None = None
    max_attempts: int = 1
    retries: int = 0
    preemptible: bool = False
    parent: RunId | None = None
    ancestors: tuple[RunId, ...] = ()
    """All runs above it, the first one asked for first; empty unless a turn started it."""
    root: SessionKey | None = None
    """The session of the first of its ancestors: a stop there reaches this run too (X-3)."""
    trace_id: str = ""
    idempotency_key: str | None = None
    overflow: tuple[str, ...] = ()
    merged_from: tuple[RunId, ...] = ()
    firing: Firing | None = None
    task: Task | None = None
    traceparent: str = ""
    """The span of whoever asked, as W3C Trace Context writes it; spans of the run continue it."""
    callback: str = ""
    """The address that is told how it ended (T-4)."""
    resumes: RunId | None = None
    """The run whose agent session it goes on with, because a person asked for that (W-3)."""


class SessionMemory(Value, frozen=True):
    """What must outlive an idle session, so that whoever owns it next decides alike."""

    options: QueueOptions | None = None
    cutoff_at: Instant | None = None
    cutoff_id: int | None = None
    cutoff_channel: str = ""
    overflow: tuple[str, ...] = ()
    overflow_missed: int = 0
