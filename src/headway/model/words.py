"""The closed vocabularies of Headway: each word of a run's life exists once, here."""

from enum import StrEnum


class Word(StrEnum):
    """A word of a closed list. Hashes as fast as a plain string, for the kernel's tables."""

    __hash__ = str.__hash__

    def __deepcopy__(self, memo: object) -> "Word":
        return self


class Source(Word):
    """Who asked for a run."""

    MESSAGE = "message"
    TASK = "task"
    FIRING = "firing"
    HEARTBEAT = "heartbeat"
    DELEGATION = "delegation"


class State(Word):
    """Where a run is in its life. The legal steps between them are in `core.lifecycle`."""

    PENDING = "pending"
    QUEUED = "queued"
    ASSIGNED = "assigned"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


FINAL_STATES = frozenset({State.DONE, State.FAILED, State.CANCELLED, State.REJECTED})
WAITING_STATES = frozenset({State.PENDING, State.QUEUED})


class Reason(Word):
    """Why a run ended as it did (R-3). A run that is `done` needs no reason."""

    QUEUE_FULL = "queue_full"
    REJECTED_BUSY = "rejected_busy"

    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    QUEUE_DROPPED = "queue_dropped"
    LANE_CLEARED = "lane_cleared"
    CLEARED = "cleared"
    STALE = "stale"
    MERGED = "merged"
    DRAINING = "draining"

    ERROR = "error"
    DEADLINE_QUEUED = "deadline_queued"
    DEADLINE_RUNNING = "deadline_running"
    TIMED_OUT = "timed_out"
    ORPHANED = "orphaned"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"


class Cut(Word):
    """Why a live attempt is being cancelled. Its run may end with it or live on."""

    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    DEADLINE = "deadline"
    TIMED_OUT = "timed_out"
    OVERRAN = "overran"
    """It took longer than its timeout, and its run is tried again (C-9)."""
    PREEMPTED = "preempted"
    DRAINED = "drained"
    LOST = "lost"


class Mode(Word):
    """What a message does while its session is busy."""

    QUEUE = "queue"
    FOLLOWUP = "followup"
    COLLECT = "collect"
    STEER = "steer"
    INTERRUPT = "interrupt"
    REJECT = "reject"


class Drop(Word):
    """Which message gives way when a session's queue is full (S-6)."""

    OLD = "old"
    NEW = "new"
    SUMMARIZE = "summarize"


class SteerFallback(Word):
    """What a steering message becomes when the running turn cannot be steered."""

    INTERRUPT = "interrupt"
    FOLLOWUP = "followup"


class Rule(Word):
    """Which rule holds a waiting run (X-1)."""

    NOT_DUE = "not_due"
    DEBOUNCE = "debounce"
    RETRY = "retry"
    COLLECTING = "collecting"
    SESSION_BUSY = "session_busy"
    SESSION_ORDER = "session_order"
    SESSION_THROTTLED = "session_throttled"
    ESTIMATING = "estimating"
    STEERED = "steered"
    RATE_LIMITED = "rate_limited"
    AGENT_BUDGET = "agent_budget"
    LANE_BUDGET = "lane_budget"
    AGENT_QUOTA = "agent_quota"
    INFLIGHT_LIMIT = "inflight_limit"
    LANE_PAUSED = "lane_paused"
    LANE_RESERVED = "lane_reserved"
    LANE_FULL = "lane_full"
    DRAINING = "draining"
    SUSPENDED = "suspended"
    ADOPTION = "adoption"
    ELSEWHERE = "elsewhere"
    STARTING = "starting"


class Overlap(Word):
    """What a firing does while an earlier one of its job is unfinished (C-7)."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"
    INTERRUPT = "interrupt"


class Misfire(Word):
    """What becomes of firings that were missed while nobody was there (C-6)."""

    ONCE = "once"
    SKIP = "skip"
    ALL = "all"


class Fired(Word):
    """What a line of a job's log tells."""

    ON_TIME = "on_time"
    """It was due, and a run was made."""
    LATE = "late"
    """It was missed, and a run was made for it all the same."""
    MANUAL = "manual"
    """A person or program asked for it beside the schedule."""
    MISSED = "missed"
    SKIPPED = "skipped"


class HeartbeatSkip(Word):
    """Why a heartbeat did not wake its agent, or why nobody was told what the agent answered (H-2)."""

    OUTSIDE_HOURS = "outside_hours"
    NO_CHECKLIST = "no_checklist"
    EMPTY_CHECKLIST = "empty_checklist"
    EMPTY_REPLY = "empty_reply"
    ALL_WELL = "all_well"


class WorkerKind(Word):
    """What a worker is."""

    COMMAND = "command"
    TMUX = "tmux"


class WorkerState(Word):
    """What a worker was at when it was last looked at (D-8)."""

    ALIVE = "alive"
    """It is there; what it does is not known yet."""
    IDLE = "idle"
    """It is there, and has neither written nor computed anything since the last look."""
    BUSY = "busy"
    DEAD = "dead"


class Scope(Word):
    """What a token allows (O-4). Each scope allows what those before it do."""

    READ = "read"
    SUBMIT = "submit"
    CONTROL = "control"
    ADMIN = "admin"


class LogLevel(Word):
    """How much a server writes down."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
