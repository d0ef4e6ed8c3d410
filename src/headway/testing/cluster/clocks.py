"""The clocks of simulated machines: one that steps, and those of the nodes that go by it."""

from headway.model.time import SECOND, Instant, Span
from headway.runtime.clock import SystemClock
from headway.testing.clock import ORIGIN
from headway.testing.cluster.loops import Conductor, NodeLoop

_LARGEST_STEP_BACK = SECOND // 20


class WallClock:
    """The database's clock: what an administrator or a time service may set to anything."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self.off_by: Span = 0
        self._most: Span = 0

    def now(self) -> Instant:
        self._most = max(self._most, self.off_by)
        return ORIGIN + self._conductor.now + self.off_by

    def latest(self) -> Instant:
        """What it would show had it never been set back: who has not seen it since goes by that."""
        self._most = max(self._most, self.off_by)
        return ORIGIN + self._conductor.now + self._most


class NodeClock(SystemClock):
    """A node's clock: it starts with what its machine's wall clock shows, and then follows the database's."""

    def __init__(self, conductor: Conductor, loop: NodeLoop, off_by: Span) -> None:
        super().__init__()
        self._conductor = conductor
        self._loop = loop
        self._origin = ORIGIN + off_by
        self._wall: Span = self._origin
        """How far the wall clock that all nodes go by is ahead of the simulated time."""

    def now(self) -> Instant:
        return self._origin + self._conductor.now - self._loop.slept

    def wall(self) -> Instant:
        return self._conductor.now + self._wall

    def elapsed(self) -> Instant:
        return self._conductor.now

    def follow(self, at: Instant | None, ago: Span) -> None:
        if at is None:
            return
        self._wall = at + ago - self._conductor.now
        self._origin += max(at + ago - self.now(), -_LARGEST_STEP_BACK)
