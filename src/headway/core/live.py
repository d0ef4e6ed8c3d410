"""The kernel's moving record of a run that has not ended."""

from typing import TYPE_CHECKING, TypeAlias

from headway.core.alarms import Alarm
from headway.model.run import INTERACTIVE_BELOW, Run
from headway.model.time import Instant
from headway.model.words import Cut, Rule, Source, State

if TYPE_CHECKING:
    from headway.core.bells import Bell
    from headway.core.floor import AgentLoad, Lane
    from headway.core.session import SessionQueue

PLAIN = 0
BACKGROUND = 1
TASK = 2
KINDS = 4
"""Runs of one kind are bounded alike: background work by a lane's reserve (X-5), tasks by F-1."""

Kind: TypeAlias = int


class Ties:
    """How a run hangs together with others: its parent, what it waits for, what it was steered into.

    Most runs have none of this, so it is made only when needed.
    """

    __slots__ = (
        "absorbed",
        "absorbed_by",
        "awaiting",
        "borrowed_from",
        "lent_to",
        "offered_to",
        "parent",
        "root",
    )

    def __init__(self) -> None:
        self.parent: LiveRun | None = None
        self.root: SessionQueue | None = None
        """The session whose stop reaches this run too."""
        self.awaiting: list[LiveRun] = []
        """Sub-runs that this run waits for; meanwhile its slot can be lent."""
        self.lent_to: LiveRun | None = None
        self.borrowed_from: LiveRun | None = None
        self.offered_to: LiveRun | None = None
        """The turn whose inbox holds this message."""
        self.absorbed_by: LiveRun | None = None
        self.absorbed: list[LiveRun] = []
        """Messages that this turn took from its inbox."""


class LiveRun:
    """One run between submission and outcome: where it stands and what it holds."""

    __slots__ = (
        "agent",
        "alarm",
        "attempt",
        "collect",
        "cut",
        "deadline_alarm",
        "held",
        "kind",
        "lane",
        "limited",
        "order",
        "posted",
        "queued_at",
        "rank",
        "retries",
        "run",
        "session",
        "started_at",
        "starts_before",
        "state",
        "ticket",
        "ties",
        "width",
    )

    def __init__(
        self, run: Run, session: "SessionQueue", lane: "Lane", agent: "AgentLoad", state: State
    ) -> None:
        self.run = run
        self.session = session
        self.lane = lane
        self.agent = agent
        self.state = state
        self.kind: Kind = (TASK if run.source is Source.TASK else PLAIN) | (
            BACKGROUND if run.priority >= INTERACTIVE_BELOW else PLAIN
        )
        self.order = 0
        """Its place in the order of submission, over all sessions."""
        self.rank: Instant = 0
        """Submission time plus priority times ageing: lower starts first (F-3)."""
        self.queued_at: Instant = 0
        self.starts_before = 0
        """How many runs its lane had started when this one was queued (L-7)."""
        self.posted = False
        """Whether it stands in its lane, ready to be picked."""
        self.held: Rule | None = None
        """Why it may not start yet even at the head of an idle session."""
        self.width = 1
        """How many runs of its session may go at once while it is one of them."""
        self.collect = False
        self.attempt = 0
        self.retries = 0
        self.limited = 0
        """How many attempts in a row ended rate-limited."""
        self.ticket = 0
        """Names its live attempt; 0 while there is none."""
        self.started_at: Instant = 0
        self.cut: Cut | None = None
        """Why its live attempt is being cancelled, if it is."""
        self.alarm: Alarm[Bell] | None = None
        self.deadline_alarm: Alarm[Bell] | None = None
        self.ties: Ties | None = None

    def tie(self) -> Ties:
        """Its ties, made now if it had none."""
        if self.ties is None:
            self.ties = Ties()
        return self.ties

    @property
    def parent(self) -> "LiveRun | None":
        return self.ties.parent if self.ties is not None else None

    @property
    def absorbed(self) -> bool:
        """Whether a running turn has taken this message; it then waits only for that turn's end."""
        return self.ties is not None and self.ties.absorbed_by is not None

    def is_under(self, ancestor: "LiveRun") -> bool:
        above = self.parent
        while above is not None:
            if above is ancestor:
                return True
            above = above.parent
        return False
