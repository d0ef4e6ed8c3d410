"""What the simulator's picture is made of: runs, sessions, lanes and agents as they were seen."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from headway.model.run import INTERACTIVE_BELOW, AgentName, LaneName, Run, RunId, SessionKey
from headway.model.settings import AgentSettings, Budget, LaneSettings
from headway.model.time import MINUTE, Instant, Span
from headway.model.words import Cut, Source, State


class Where(Enum):
    """Where a run that has not ended is."""

    NOWHERE = "nowhere"
    """Between two places: it arrives, or was merged and takes its place next."""
    LATER = "later"
    WINDOW = "window"
    LINE = "line"
    TURN = "turn"
    """A running turn took it from its inbox."""
    SLOT = "slot"


FINAL_CUTS = frozenset({Cut.STOPPED, Cut.SUPERSEDED, Cut.DEADLINE, Cut.TIMED_OUT})
"""After these a run does not live on, whatever its attempt answers."""


class Meter:
    """Runs or tokens per minute: fills up to one minute's worth, may go into debt."""

    __slots__ = ("_at", "_level", "_per_minute")

    def __init__(self, per_minute: int, now: Instant) -> None:
        self._per_minute = per_minute
        self._level = per_minute * MINUTE
        self._at = now

    def _level_at(self, now: Instant) -> int:
        grown = self._level + (now - self._at) * self._per_minute
        return min(self._per_minute * MINUTE, grown)

    def take(self, count: int, now: Instant) -> None:
        self._level = self._level_at(now) - count * MINUTE
        self._at = now

    def free_at(self, now: Instant) -> Instant:
        missing = MINUTE - self._level_at(now)
        return now if missing <= 0 else now + -(-missing // self._per_minute)


class Budgeted:
    """The meters of one budget."""

    __slots__ = ("budget", "runs", "tokens")

    def __init__(self, budget: Budget, now: Instant) -> None:
        self.budget = budget
        self.runs = Meter(budget.runs_per_minute, now) if budget.runs_per_minute else None
        self.tokens = Meter(budget.tokens_per_minute, now) if budget.tokens_per_minute else None

    def free_at(self, now: Instant) -> Instant:
        at = now
        if self.runs is not None:
            at = max(at, self.runs.free_at(now))
        if self.tokens is not None:
            at = max(at, self.tokens.free_at(now))
        return at


def changed(old: Budgeted | None, budget: Budget, now: Instant) -> Budgeted | None:
    """The meters after a budget was set: those of an unchanged one run on."""
    if old is not None and old.budget == budget:
        return old
    return Budgeted(budget, now) if budget != Budget() else None


@dataclass(slots=True, eq=False)
class SeenLane:
    """A lane: who holds its slots."""

    name: LaneName
    settings: LaneSettings
    budget: Budgeted | None = None
    live: "list[Seen]" = field(default_factory=list)
    started: int = 0
    owed: int = 0
    """Slots that background work was cut for: the next ones go to plain, interactive runs."""
    ahead: int = 0
    """How many starts may be stored before there are slots for them."""
    ahead_until: Instant = 0

    @property
    def own(self) -> "list[Seen]":
        """Attempts on slots of their own, not on lent ones."""
        return [seen for seen in self.live if seen.lender is None and not seen.ahead]

    @property
    def next_up(self) -> "list[Seen]":
        """Attempts that were started ahead and wait for a slot, the oldest first."""
        return [seen for seen in self.live if seen.ahead and seen.cut is None]


@dataclass(slots=True, eq=False)
class SeenAgent:
    """An agent: what it has in flight, and when it was last served."""

    name: AgentName
    settings: AgentSettings
    budget: Budgeted | None = None
    inflight: int = 0
    tasks: int = 0
    served: int = 0
    weighted: bool = False
    """Whether it ever had a weight: then more than its last service counts among equals."""


@dataclass(slots=True, eq=False)
class Window:
    """An open debounce window."""

    closes_at: Instant
    latest_at: Instant
    parts: "list[Seen]" = field(default_factory=list)


@dataclass(slots=True, eq=False)
class SeenSession:
    """A session: its line, its live attempts, and what else belongs to it."""

    key: SessionKey
    line: "list[Seen]" = field(default_factory=list)
    """Sorted by place."""
    running: "list[Seen]" = field(default_factory=list)
    later: int = 0
    windows: dict[tuple[object, ...], Window] = field(default_factory=dict)
    offspring: int = 0
    """Live sub-runs, at any depth, of its runs."""
    quiet_until: Instant = 0
    tight: bool | None = None
    """What the last token estimate said, while it counts."""
    asked: bool = False

    @property
    def idle(self) -> bool:
        return not (self.line or self.running or self.later or self.windows or self.offspring)

    @property
    def only_beats(self) -> bool:
        """Whether heartbeats are all that runs: a message preempts them, and need not interrupt."""
        return bool(self.running) and all(seen.heartbeat for seen in self.running)

    def width_for(self, width: int) -> int:
        for seen in self.running:
            width = min(width, seen.width)
        return width

    def busy_for(self, width: int) -> bool:
        """Whether a message that allows so many at once must wait; it waits for no heartbeat (F-4)."""
        if any(not seen.heartbeat for seen in self.line):
            return True
        others = [seen for seen in self.running if not seen.heartbeat]
        return len(others) >= min([width, *(seen.width for seen in others)])

    def messages(self) -> "list[Seen]":
        """What the cap counts: waiting messages that were never started."""
        return [seen for seen in self.line if seen.message and not seen.begun]


@dataclass(slots=True, eq=False)
class Seen:
    """One run that has not ended."""

    run: Run
    lane: SeenLane
    agent: SeenAgent
    session: SeenSession
    state: State
    order: int = 0
    """When it came into line, counted over all sessions."""
    parent: "Seen | None" = None
    root: SeenSession | None = None
    """The session whose stop reaches it too."""
    message: bool = False
    heartbeat: bool = False
    task: bool = False
    background: bool = False
    where: Where = Where.NOWHERE
    place: float = 0
    """Its place in its session's line; it keeps it while it runs."""
    queued_at: Instant = 0
    rank: Instant = 0
    started_before: int = 0
    width: int = 1
    collect: bool = False
    interrupts: bool = False
    """It starts only when all that it cut has returned."""
    until: Instant | None = None
    """It is held back for a retry until then."""
    window: tuple[object, ...] | None = None
    attempt: int = 0
    retries: int = 0
    limited: int = 0
    ticket: int = 0
    started_at: Instant = 0
    ahead: bool = False
    """Whether its start was stored before there was a slot for it, and it has none yet."""
    cut: Cut | None = None
    cut_at: Instant = 0
    clears: bool = False
    """Whether it was cut to clear its slot for a user's turn."""
    spared: "list[tuple[int, Cut | None]]" = field(default_factory=list)
    """Attempts above it that it cut by its own arrival, and how; it lives on without them."""
    begun: bool = False
    """Whether it was ever started."""
    awaiting: "list[Seen]" = field(default_factory=list)
    awaited_by: "list[Seen]" = field(default_factory=list)
    lender: "Seen | None" = None
    lent_to: "Seen | None" = None
    offered_to: "Seen | None" = None
    taken_by: "Seen | None" = None
    taken: "list[Seen]" = field(default_factory=list)
    merging_into: RunId | None = None

    def __post_init__(self) -> None:
        source = self.run.source
        self.message = source is Source.MESSAGE
        self.heartbeat = source is Source.HEARTBEAT
        self.task = source is Source.TASK and self.run.parent is None
        self.background = self.run.priority >= INTERACTIVE_BELOW

    def __repr__(self) -> str:
        return self.run.id

    @property
    def plain(self) -> bool:
        """Interactive, and no task: what background work yields to."""
        return not self.background and not self.task

    @property
    def yields(self) -> bool:
        """Background work that gives way to a user's turn (X-5)."""
        return self.background and self.run.preemptible

    @property
    def waits(self) -> bool:
        """Whether it can still be ended without an attempt's return."""
        return self.ticket == 0 and self.where is not Where.TURN

    @property
    def resumes_no_more(self) -> bool:
        """Whether its agent's session would be resumed, had it an attempt left (W-3)."""
        resumes = self.agent.settings.resume_after is not None
        return resumes and self.attempt >= self.run.max_attempts

    @property
    def at_work(self) -> bool:
        """Whether its attempt can do anything: one without a slot can only end, when it is asked to."""
        return self.ticket != 0 and (not self.ahead or self.cut is not None)

    def ancestors(self) -> "Iterator[Seen]":
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    @property
    def ends_with_parent(self) -> bool:
        """Whether an attempt above it was cut: what a cut turn started is stopped with it (X-3)."""
        spared = self.spared
        for above in self.ancestors():
            if above.cut is not None and (above.ticket, above.cut) not in spared:
                return True
            spared = spared + above.spared
        return False

    def waiters(self) -> "Iterator[Seen]":
        """Running runs that wait for this one, directly or through others; the nearest first."""
        found = [self]
        for seen in found:
            for waiter in seen.awaited_by:
                if waiter.ticket and waiter not in found:
                    found.append(waiter)
                    yield waiter


RETRY_DELAYS: tuple[Span, ...] = tuple(seconds * 1_000_000 for seconds in (2, 4, 8, 16, 30))
"""Before jitter, by the number of the retry; the last one for all that follow (C-9)."""
