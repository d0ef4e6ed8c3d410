"""How the end of a run changes its job's tally: the same for all stores (C-9)."""

from headway.model.job import Ending, Tally
from headway.model.time import Instant
from headway.model.words import State


def tallied(tally: Tally | None, ending: Ending, since: Instant) -> Tally:
    """The tally with one more run counted. `since` is when its job was enabled."""
    if tally is not None and tally.run_id == ending.run_id:
        return tally
    failed = 0 if tally is None or tally.since != since else tally.failed
    if ending.state is State.DONE:
        failed = 0
    elif ending.state is State.FAILED:
        failed += 1
    return Tally(
        since, failed, ending.run_id, ending.state, ending.at, ending.started_at, ending.error
    )
