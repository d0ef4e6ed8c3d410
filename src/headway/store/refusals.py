"""How runs end that a store turns away as they come."""

from headway.model.outcome import Outcome
from headway.model.words import Reason, State

FULL = Outcome(State.REJECTED, Reason.QUEUE_FULL)
"""The admission limits are reached (F-1)."""
STOPPED = Outcome(State.CANCELLED, Reason.STOPPED)
"""A run above it was stopped (X-3)."""
