"""The pace: how many starts a lane has stored ahead of its slots (see `core.ahead`).

As many runs as end in a lane while one batch is being stored will find their successors' starts stored already, if
those were stored ahead. Where runs take long that is less than one, and nothing is started ahead.
"""

from headway.core.kernel import Kernel
from headway.core.lanes import Lane
from headway.model.run import LaneName
from headway.model.time import MILLISECOND, Instant, Span

_MARGIN = 4
"""Batches do not come evenly, and large ones cost less: four times as many as end in the time of one."""
_MOST = 400
_SLOWEST: Span = 50 * MILLISECOND
"""A store that takes longer than this is in trouble; then nothing is started ahead."""


class Pace:
    """Told of each batch that was stored, it tells the kernel what follows from that for each lane."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._counted_at: Instant = 0
        self._ended: dict[LaneName, int] = {}

    def stored(self, began_at: Instant, now: Instant) -> None:
        """A batch was stored between these instants."""
        took, passed = now - began_at, now - self._counted_at
        if passed <= 0 or passed < took:
            # Another hand was done a moment ago: too little has ended since then to count by.
            return
        self._counted_at = now
        for name, lane in self._kernel.stage.floor.lanes.items():
            ended = _ended(lane)
            ends = ended - self._ended.get(name, 0)
            if ends or lane.ahead:
                self._ended[name] = ended
                # One batch with little in it does not mean that runs take longer now.
                useful = max(_MARGIN * ends * took // passed, lane.ahead_at(now) * 3 // 4)
                ahead = min(_MOST, useful) if took <= _SLOWEST else 0
                if ahead or lane.ahead:
                    self._kernel.set_ahead(name, ahead, now)


def _ended(lane: Lane) -> int:
    return lane.started - lane.in_use
