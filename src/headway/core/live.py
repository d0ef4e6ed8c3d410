"""The kernel's moving record of a run that has not ended."""

from typing import TYPE_CHECKING, TypeAlias

from headway.core.alarms import Alarm
from headway.core.moving import Moving
from headway.model.run import INTERACTIVE_BELOW, Run
from headway.model.time import Instant
from headway.model.words import Cut, Rule, Source, State

if TYPE_CHECKING:
    from headway.core.bells import Bell
    from headway.core.lanes import AgentLoad, Lane
    from headway.core.session import SessionQueue

PLAIN = 0
BACKGROUND = 1
TASK = 2
YIELDING = 4
KINDS = 8
"""Runs of one kind are treated alike: background work is bounded by a lane's reserve and, if it is preemptible,
yields to interactive work (X-5); tasks have limits of their own (F-1)."""

Kind: TypeAlias = int

# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_TASK_SOURCE = Source.TASK


class Ties(Moving, eq=False):
    """How a run hangs together with others: its parent, what it waits for, what it was steered into.

    Most runs have none of this, so it is made only when needed.
    """

    parent: "LiveRun | None" = None
    root: "SessionQueue | None" = None
    """The session whose stop reaches this run too."""
    awaiting: "list[LiveRun]" = []
    """Runs that this one waits for; meanwhile its slot can be lent."""
    awaited_by: "list[LiveRun]" = []
    lent_to: "LiveRun | None" = None
    borrowed_from: "LiveRun | None" = None
    offered_to: "LiveRun | None" = None
    """The turn whose inbox holds this message."""
    absorbed_by: "LiveRun | None" = None
    absorbed: "list[LiveRun]" = []
    """Messages that this turn took from its inbox."""

    @property
    def holds_here(self) -> bool:
        """Whether a run of this node waits for it, or may begin to any moment."""
        return self.parent is not None or bool(self.awaited_by)


class LiveRun(Moving, eq=False, gc=False):
    """One run between submission and outcome: where it stands and what it holds.

    The garbage collector does not look at it: when a run ends, nothing points back at it and it goes at once.
    """

    run: Run
    session: "SessionQueue"
    lane: "Lane"
    agent: "AgentLoad"
    state: State
    kind: Kind
    plain: bool = False
    """Nothing special hangs on it: no alarm, task limit, ties or cut. Spares most runs a dozen questions."""
    order: int = 0
    """When it took its place in line, counted over all sessions."""
    place: int = 0
    """Its place in its session's line, kept while it runs."""
    after: int = 0
    """The number up to which its session had seen when it took that place; see `Standing`."""
    turn: int = 0
    """Its turn among what was decided in its session; 0 if it just came and queued."""
    queued_at: Instant = 0
    rank: Instant = 0
    """Submission time plus priority times ageing: lower starts first (F-3)."""
    starts_before: int = 0
    """How many runs its lane had started when this one was queued (L-7)."""
    width: int = 1
    """How many runs of its session may go at once while it is one of them."""
    posted: bool = False
    """Whether it stands in its lane, ready to be picked."""
    held: Rule | None = None
    """Why it may not start yet even at the head of an idle session."""
    collect: bool = False
    interrupts: bool = False
    """It waits until all that it cut has returned, however wide its session is."""
    begun: bool = False
    """Whether an attempt ever had a slot: such a run keeps its place at the head (R-5)."""
    attempt: int = 0
    retries: int = 0
    limited: int = 0
    """How many attempts in a row ended rate-limited."""
    ticket: int = 0
    """Names its live attempt; 0 while there is none."""
    slot: int = 0
    """Which of its session's slots that attempt holds."""
    started_at: Instant = 0
    next_up: bool = False
    """Whether it was started ahead, and has no slot yet."""
    yields: bool = False
    """Whether it was cut so that an interactive run gets its slot (X-5)."""
    cut: Cut | None = None
    """Why its live attempt is being cancelled, if it is."""
    alarm: "Alarm[Bell] | None" = None
    deadline_alarm: "Alarm[Bell] | None" = None
    ties: Ties | None = None

    def tie(self) -> Ties:
        """Its ties, made now if it had none."""
        if self.ties is None:
            self.plain = False
            self.ties = Ties()
        return self.ties

    @property
    def awaits_slot(self) -> bool:
        """Whether it was started ahead, and waits for a slot on which to begin."""
        return self.next_up and self.cut is None

    @property
    def has_slot(self) -> bool:
        """Whether its live attempt may be at work."""
        return self.ticket != 0 and not self.next_up

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


def kind_of(run: Run, parent_kind: Kind = PLAIN) -> Kind:
    """A sub-run is never a task, and what background work starts is background too."""
    kind = TASK if run.source is _TASK_SOURCE and run.parent is None else PLAIN
    if run.priority >= INTERACTIVE_BELOW or parent_kind & BACKGROUND:
        kind |= BACKGROUND | YIELDING if run.preemptible else BACKGROUND
    return kind
