"""How a run ends that does not end by its own answer."""

from headway.model.outcome import Outcome
from headway.model.words import Cut, Reason, State

FINAL_CUTS = frozenset({Cut.STOPPED, Cut.SUPERSEDED, Cut.DEADLINE, Cut.TIMED_OUT})
"""After these a run does not live on; after the others it can still be stopped."""

STOPS = frozenset({Reason.STOPPED, Reason.SUPERSEDED})
"""Ends of waiting runs that take along what they had started (X-3)."""

TOOK_TOO_LONG = "the attempt took longer than its timeout"

CUT_OUTCOMES: dict[Cut, tuple[State, Reason]] = {
    Cut.STOPPED: (State.CANCELLED, Reason.STOPPED),
    Cut.SUPERSEDED: (State.CANCELLED, Reason.SUPERSEDED),
    Cut.DEADLINE: (State.FAILED, Reason.DEADLINE_RUNNING),
    Cut.TIMED_OUT: (State.FAILED, Reason.TIMED_OUT),
    Cut.DRAINED: (State.CANCELLED, Reason.DRAINING),
    Cut.LOST: (State.FAILED, Reason.ORPHANED),
}
_CUT_ERRORS: dict[Cut, str] = {
    Cut.DEADLINE: "deadline exceeded while running",
    Cut.TIMED_OUT: TOOK_TOO_LONG,
    Cut.LOST: "its node could not reach the store any more while it ran",
}


def cut_outcome(cut: Cut) -> Outcome:
    """How a run ends with an attempt that was cut, if it does not live on."""
    state, reason = CUT_OUTCOMES[cut]
    return Outcome(state, reason, error=_CUT_ERRORS.get(cut, ""))


def past_deadline() -> Outcome:
    return Outcome(State.FAILED, Reason.DEADLINE_QUEUED, error="deadline exceeded while queued")


def orphaned() -> Outcome:
    """Its node is gone and it may not be tried again (D-7)."""
    return Outcome(State.FAILED, Reason.ORPHANED, error="its node died while it ran")
