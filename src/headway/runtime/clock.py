"""The node's clock: the only place that asks the machine for the time."""

import asyncio
import time

from headway.model.time import SECOND, Instant

_monotonic_ns = time.monotonic_ns


class SystemClock:
    """Wall time as it was at the start, carried on by a clock that never steps."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now(self) -> Instant:
        return (_monotonic_ns() + self._offset_ns) // 1_000


class LoopClock:
    """The time of an event loop, counted from a given instant; virtual if the loop's is."""

    def __init__(self, loop: asyncio.AbstractEventLoop, origin: Instant) -> None:
        self._loop = loop
        self._origin = origin - round(loop.time() * SECOND)

    def now(self) -> Instant:
        return self._origin + round(self._loop.time() * SECOND)


def clock_for(loop: asyncio.AbstractEventLoop) -> SystemClock | LoopClock:
    """The machine's clock, unless the loop keeps virtual time: such a loop says since which instant."""
    origin = getattr(loop, "virtual_origin", None)
    return SystemClock() if origin is None else LoopClock(loop, origin)
