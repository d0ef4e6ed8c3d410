"""How the end of a run changes its job's tally: the same for all stores (C-9)."""

from headway.model.job import Ending, Tally
from headway.model.time import Instant
from headway.model.words import State

_KNOWN_AGAIN = 20
"""So many of the latest runs are known again if they are counted once more."""


def tallied(tally: Tally | None, ending: Ending, since: Instant) -> Tally:
    """The tally with one more run counted. `since` is when its job was enabled."""
    if tally is not None and ending.run_id in tally.counted:
        return tally
    failed = 0 if tally is None or tally.since != since else tally.failed
    if ending.state is State.DONE:
        failed = 0
    elif ending.state is State.FAILED:
        failed += 1
    counted = () if tally is None else tally.counted[1 - _KNOWN_AGAIN :]
    return Tally(
        since,
        failed,
        ending.run_id,
        ending.state,
        ending.at,
        ending.started_at,
        ending.error,
        (*counted, ending.run_id),
    )
