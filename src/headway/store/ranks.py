"""When a waiting run is ready, and where it stands among those of other sessions: the same in every store."""

from headway.model.run import Run
from headway.model.settings import Settings
from headway.model.time import Instant


def ready_at(run: Run) -> Instant:
    return run.submitted_at if run.due_at is None else run.due_at


def rank_of(run: Run, settings: Settings) -> int:
    """Lower goes first: each step of priority weighs as much as `ageing` of waiting (F-3, N-17)."""
    return ready_at(run) + run.priority * settings.ageing
