"""A job: a durable rule that makes runs over time, and the log of what it has made."""

from headway.model.heartbeat import HeartbeatSettings
from headway.model.outcome import Outcome
from headway.model.payload import Gate, Payload
from headway.model.places import Delivery
from headway.model.run import AgentName, JobId, LaneName, Route, Run, RunId
from headway.model.schedule import Schedule
from headway.model.time import DAY, Instant, Span
from headway.model.value import Value
from headway.model.words import FINAL_STATES, Fired, Misfire, Overlap, Source, State

ISOLATED = "isolated"
"""The session target that makes a fresh session for every firing."""
JOB = "job"
"""The session target that keeps one session for all firings of the job."""
AGENT = "agent"
"""What a plain job needs of a node: to know its agent."""
GATE = "gate"
"""What a job needs whose gate is a command."""
CHECKLIST = "checklist"
"""What a heartbeat needs whose checklist is in the store."""
FILE = "file"
"""What a heartbeat needs whose checklist is a file: to run its agent."""
MAX_RECENT = 20
"""How many of its latest runs a job is judged by; if all are unfinished, further firings are skipped."""
MAX_SUMMARY = 16 * 1024
"""The most bytes of a reply that a line of the log shows (C-11)."""


class Job(Value, frozen=True):
    """A rule that makes runs over time (C-1)."""

    id: JobId
    name: str
    """Unique among the jobs of its agent."""
    agent: AgentName
    schedule: Schedule
    payload: Payload
    created_at: Instant
    enabled: bool = True
    lane: LaneName | None = None
    session: str = ISOLATED
    timeout: Span | None = None
    retries: int | None = None
    max_attempts: int | None = None
    priority: int | None = None
    overlap: Overlap = Overlap.QUEUE
    misfire: Misfire = Misfire.ONCE
    misfire_window: Span = DAY
    stagger: Span = 0
    deliver: Route | None = None
    delete_after_run: bool = False
    gate: Gate | None = None
    heartbeat: HeartbeatSettings | None = None
    """Set for the periodic wake-up of an agent, which is a job like any other to the timekeeper."""
    declared: bool = False
    """Whether a program declares it in its code: then every start of the program renews it."""

    @property
    def source(self) -> Source:
        return Source.FIRING if self.heartbeat is None else Source.HEARTBEAT

    @property
    def looks(self) -> bool:
        """Whether somebody looks before its agent is woken."""
        return self.gate is not None or self.heartbeat is not None

    @property
    def needs(self) -> str:
        """What a node must have to fire it: its agent's settings, and what is looked at or asked before."""
        if self.heartbeat is not None:
            return f"{FILE if self.heartbeat.checklist else CHECKLIST}:{self.agent}"
        if self.gate is not None:
            return (
                f"function:{self.gate.function}" if self.gate.function else f"{GATE}:{self.agent}"
            )
        return f"{AGENT}:{self.agent}"


class Ticking(Value, frozen=True):
    """Where a job stands in time: kept beside it, and changed with every firing."""

    version: int = 0
    """Grows with every change of the job or of this; what was decided by an older one is refused."""
    next_at: Instant | None = None
    """Its next firing by the schedule, stagger included; None if there is none."""
    wake_at: Instant | None = None
    """An extra firing that was asked for, beside the schedule."""
    claimed_until: Instant | None = None
    """A node looks before it wakes the agent; until then no other does."""
    since: Instant = 0
    """When it was enabled: failures before count no longer."""
    paused: str = ""
    """Why Headway has disabled it by itself, if it has."""

    @property
    def due_at(self) -> Instant | None:
        """When somebody must do something about it."""
        dates = [at for at in (self.next_at, self.wake_at) if at is not None]
        return max(min(dates), self.claimed_until or 0) if dates else None


class Past(Value, frozen=True):
    """A run that a job has made, as much as the next firing depends on it."""

    run_id: RunId
    due_at: Instant
    made_at: Instant
    state: State

    @property
    def unfinished(self) -> bool:
        return self.state not in FINAL_STATES


class Ending(Value, frozen=True):
    """How a run of a job ended, for the job's tally."""

    job: JobId
    run_id: RunId
    state: State
    at: Instant
    started_at: Instant | None = None
    error: str = ""


class Tally(Value, frozen=True):
    """What is counted of a job's runs as they end: it outlives the runs, which are forgotten some day."""

    since: Instant
    """The job's `Ticking.since` when this was counted: enabling a job begins a new count."""
    failed: int
    """How many runs failed in a row; a run that was stopped counts neither way."""
    run_id: RunId
    state: State
    """That of the latest run."""
    at: Instant
    started_at: Instant | None = None
    error: str = ""
    counted: tuple[RunId, ...] = ()
    """The latest runs that were counted: an answer may be lost, and none counts twice."""


class Entry(Value, frozen=True):
    """One line of a job's log (C-11): a firing, or one that was missed or skipped."""

    job: JobId
    due_at: Instant
    kind: Fired
    at: Instant
    """When it was decided."""
    run_id: RunId | None = None
    reason: str = ""
    """Why it was skipped or missed."""
    count: int = 1
    """How many firings the line stands for: many missed ones in a row may be one line."""
    number: int = 0
    """Its place in the log, given by the store; a page goes on from it."""
    state: State | None = None
    """That of its run, while the store still knows it."""
    attempts: int = 0
    started_at: Instant | None = None
    finished_at: Instant | None = None
    outcome: Outcome | None = None
    """With the reply's text cut at 16 KiB, on a character boundary; without data."""

    @property
    def lateness(self) -> Span | None:
        """How late it first started; of one that was tried again, how late it was made."""
        if self.started_at is None:
            return None
        first_at = self.started_at if self.attempts <= 1 else self.at
        return max(0, first_at - self.due_at)


class JobRecord(Value, frozen=True):
    """A job, where it stands, and what has become of its latest runs, the newest first."""

    job: Job
    ticking: Ticking
    recent: tuple[Past, ...] = ()
    """At most `MAX_RECENT`; only lines that made a run."""
    last: Entry | None = None
    """The latest line whose run has ended; None also where the reader does not need it."""
    tally: Tally | None = None
    """None: none of its runs has ended yet."""


class Advance(Value, frozen=True):
    """A job goes on: what it makes now, and where it stands afterwards."""

    job: JobId
    version: int
    """The version by which this was decided."""
    ticking: Ticking
    """Where it stands afterwards; the store counts its version up."""
    enabled: bool = True
    runs: tuple[Run, ...] = ()
    claims: tuple[bool, ...] = ()
    """For each run whether this node takes its session, if it is idle and nobody has it."""
    entries: tuple[Entry, ...] = ()
    notices: tuple[Delivery, ...] = ()
    """To be said on channels; put into the outbox with the rest."""
    delete: bool = False
    """The job is done and goes; its log stays."""
