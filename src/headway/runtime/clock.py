"""The node's clock: the only place that asks the machine for the time."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from headway.model.time import SECOND, Instant, Span
from headway.ports import Clock

Meter: TypeAlias = Callable[[str, float], None]
"""Told what was done, and how many seconds it took."""

stopwatch_s = time.perf_counter
"""Seconds from anywhere, for how long something takes. Nothing is decided by it."""

_monotonic_ns = time.monotonic_ns
_LARGEST_STEP_BACK_NS = 50_000_000


def _boot_ns() -> int:
    """Unlike the monotonic clock, this one goes on while the machine is suspended, where there is one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if boot is None else time.clock_gettime_ns(boot)


class SystemClock:
    """Wall time as it was at the start, carried on by a clock that never steps."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        self._shared_ns: int | None = None
        """How far the wall clock that all nodes go by is ahead of the one that never steps, if there is one."""

    def now(self) -> Instant:
        return (_monotonic_ns() + self._offset_ns) // 1_000

    def wall(self) -> Instant:
        if self._shared_ns is None:
            return time.time_ns() // 1_000
        return (_boot_ns() + self._shared_ns) // 1_000

    def elapsed(self) -> Instant:
        return _boot_ns() // 1_000

    def follow(self, at: Instant | None, ago: Span) -> None:
        """Go by another clock, which showed this about so long ago: forward at once, backward only in small steps.

        It was between now and twice as long ago: a time that agrees with that is kept, so that an answer which
        took long does not make it worse.
        Without another one, by the machine's wall clock: it went on while the machine slept.
        """
        if at is None:
            at, ago = time.time_ns() // 1_000, 0
        else:
            shared_ns = (at + ago) * 1_000 - _boot_ns()
            if self._shared_ns is None or abs(shared_ns - self._shared_ns) > ago * 1_000:
                self._shared_ns = shared_ns
        ahead_ns = (at + ago - self.now()) * 1_000
        if abs(ahead_ns) > ago * 1_000:
            self._offset_ns += max(ahead_ns, -_LARGEST_STEP_BACK_NS)


class LoopClock:
    """The time of an event loop, counted from a given instant; virtual if the loop's is."""

    def __init__(self, loop: asyncio.AbstractEventLoop, origin: Instant) -> None:
        self._loop = loop
        self._origin = origin - round(loop.time() * SECOND)
        self.stepped: Span = 0
        """How far somebody has set the wall clock; tests do."""

    def now(self) -> Instant:
        return self._origin + round(self._loop.time() * SECOND)

    def wall(self) -> Instant:
        return self.now() + self.stepped

    def elapsed(self) -> Instant:
        return round(self._loop.time() * SECOND)


@runtime_checkable
class Follows(Protocol):
    """A clock that can be made to go by another one."""

    def follow(self, at: Instant | None, ago: Span) -> None: ...


def follow_time(clock: Clock) -> Callable[[Instant | None, Span], None] | None:
    """How a clock is made to go by the store's, if it can be: one that tests drive cannot."""
    return clock.follow if isinstance(clock, Follows) else None


def clock_for(loop: asyncio.AbstractEventLoop) -> SystemClock | LoopClock:
    """The machine's clock, unless the loop keeps virtual time: such a loop says since which instant."""
    origin = getattr(loop, "virtual_origin", None)
    return SystemClock() if origin is None else LoopClock(loop, origin)
