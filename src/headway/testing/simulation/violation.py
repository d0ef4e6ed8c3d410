"""What the simulator can find fault with; each invariant has a name that findings give."""

from typing import NoReturn

from headway.model.words import Word


class Invariant(Word):
    """What must hold at every step of every history."""

    CRASH = "crash"
    """The kernel raised."""
    LANE_LIMIT = "lane_limit"
    """A lane never starts more than its width (L-2)."""
    AHEAD = "ahead"
    """Starts stored ahead: plain runs only, no more than allowed; called up in order, or called back (L-2)."""
    LANE_RESERVE = "lane_reserve"
    """Background work leaves the reserved slots alone (X-5)."""
    LENDING = "lending"
    """A slot is lent by a run that waits, to one at a time; none waits for its own parent (L-4)."""
    SESSION_LIMIT = "session_limit"
    """A session has no more live attempts than it allows (S-1, S-2)."""
    SESSION_ORDER = "session_order"
    """Runs of a session start in the order of their places (S-1, F-4, R-5)."""
    SLOT_HELD = "slot_held"
    """An attempt keeps its slots until it has returned, or was abandoned after the grace (S-3)."""
    ONE_OUTCOME = "one_outcome"
    """Every run has exactly one outcome (R-2)."""
    TRANSITION = "transition"
    """States change only as the table of states allows (R-1)."""
    REASON = "reason"
    """The outcome's reason is what really happened (R-3)."""
    VERDICT = "verdict"
    """What a call answers is true (S-6, S-9, F-1)."""
    FAIR_PICK = "fair_pick"
    """Fewest in flight first, then served longest ago; by priority and age in an agent (F-2)."""
    DEADLINE = "deadline"
    """Nothing starts after its deadline, and what waits ends at it (F-5)."""
    STOPPED = "stopped"
    """What was stopped neither goes on nor starts again (X-3)."""
    STALE = "stale"
    """Messages sent before a `/stopall` end stale (S-9)."""
    TASK_LIMIT = "task_limit"
    """Tasks keep to the limits of F-1."""
    BUDGET = "budget"
    """Budgets and rate limits hold starts back (X-6)."""
    DRAINING = "draining"
    """A draining node starts nothing new (L-5)."""
    PREEMPTION = "preemption"
    """Background yields to a waiting user turn, and only then (X-5, F-4)."""
    WINDOW = "window"
    """Due times, retries and the windows of messages are kept to the instant (S-7, C-9)."""
    RESUMING = "resuming"
    """A run whose worker died is tried again after its pause, and given up with one event (W-3)."""
    MERGE = "merge"
    """Only what belongs together is merged, whole and in order (S-7, collect)."""
    STEERING = "steering"
    """A steered message is consumed or becomes a turn of its own (X-2)."""
    LATE_RESULT = "late_result"
    """The result of an attempt that counts no longer changes nothing (R-4)."""
    MEMORY = "memory"
    """What must outlive a session is remembered; sessions are held and given back (S-4, S-5)."""
    IDLE_SLOT = "idle_slot"
    """No run waits that no rule holds (L-2, X-1)."""
    WHY = "why"
    """The rule that is said to hold a run really holds it (X-1)."""
    WAIT_NOTICE = "wait_notice"
    """A run that waited long is noted, with how many were truly ahead (L-7)."""
    COUNTERS = "counters"
    """The kernel's counters agree with a recount."""
    TWIN = "twin"
    """A copy of the kernel decides alike, and looking changes nothing."""
    LOST_CALLER = "lost_caller"
    """When all has settled, every caller has been told (R-2)."""
    LEFT_OVER = "left_over"
    """When all is over, nothing is kept (S-4)."""


class Violation(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: Invariant, text: str) -> None:
        self.invariant = invariant
        self.text = text
        super().__init__(f"{invariant}: {text}")


def broken(invariant: Invariant, text: str) -> NoReturn:
    raise Violation(invariant, text)
