"""Workers: processes and panes that execute attempts outside this process, and the machines that they are on."""

from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.time import Instant
from headway.model.value import Value
from headway.model.words import WorkerKind, WorkerState

MAX_LINES = 10
"""So many of the last lines that a worker wrote are kept with its beat."""
MAX_LINE = 200
"""So many characters of each."""


class Worker(Value, frozen=True):
    """A worker as it was when it was last seen (D-8)."""

    id: str
    """The run and the number of the attempt: `<run>.<attempt>`."""
    run_id: RunId
    attempt: int
    agent: AgentName
    session: SessionKey
    kind: WorkerKind
    host: str
    node: int
    """The node that looks after it."""
    pid: int
    born: float
    """When its process began, as its own machine counts: with host and pid it is one process for ever (W-2)."""
    started_at: Instant
    state: WorkerState
    beat_at: Instant
    """When it last showed a sign of life."""
    missed: int = 0
    """How many signs of life in a row it has missed since."""
    lines: tuple[str, ...] = ()
    """The last that it wrote."""
    pane: str = ""
    """Where a person can look at it, if it has a pane."""
    adopted: bool = False
    """Whether it outlived the process that started it."""
    exit_code: int | None = None
    """How it ended, if it has and that is known; negative: by which signal."""


class Beat(Value, frozen=True):
    """One sign of life of a worker, or the lack of it."""

    worker: str
    at: Instant
    state: WorkerState
    lines: tuple[str, ...] = ()


class LaneLoad(Value, frozen=True):
    """How full a lane was."""

    name: LaneName
    width: int
    running: int
    waiting: int


class Snapshot(Value, frozen=True):
    """A machine at one moment, as one of its nodes saw it (D-8)."""

    host: str
    node: int
    at: Instant
    cpu: float
    """Percent of all cores in use just now, not since the machine was started."""
    cores: int
    memory_used: int
    memory_total: int
    load: float
    """How many processes wanted to run, on average over the last minute."""
    workers: int
    """How many workers of this node were alive."""
    lanes: tuple[LaneLoad, ...] = ()
