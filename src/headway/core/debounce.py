"""The debounce window: rapid messages of one sender on one route become one run (S-7)."""

from typing import TYPE_CHECKING, TypeAlias

from headway.core.alarms import Alarm
from headway.core.moving import Moving
from headway.model.run import Run
from headway.model.time import Instant, Span

if TYPE_CHECKING:
    from headway.core.bells import Bell
    from headway.core.live import LiveRun
    from headway.core.session import SessionQueue

BufferKey: TypeAlias = tuple[object, ...]


def buffer_key(run: Run) -> BufferKey:
    """Messages with the same key may collapse: one sender on one route, asking for the same treatment."""
    return (
        run.agent,
        run.lane,
        run.route,
        run.sender,
        run.priority,
        run.deadline_at,
        run.timeout,
        run.queue,
        run.parent,
    )


class Buffer(Moving, eq=False):
    """The messages of one open window."""

    session: "SessionQueue"
    key: BufferKey
    latest_at: Instant
    """However steady the stream, the window closes by then."""
    closes_at: Instant = 0
    messages: "list[LiveRun]" = []
    alarm: "Alarm[Bell] | None" = None

    def extend(self, now: Instant, window: Span) -> Instant:
        """Another message came: the window starts anew, within its bound."""
        self.closes_at = min(now + window, self.latest_at)
        return self.closes_at
