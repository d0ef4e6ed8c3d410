"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting for it.

Sleeps, timeouts and Headway's own timers all follow it, so a test of a day takes milliseconds and
gives the same result each time. Only threads (plain functions as agents) take real time; while one
works, the clock stands.
"""

import asyncio
import functools
import selectors
import threading
from collections.abc import Callable, Coroutine
from typing import ParamSpec, TypeVar

from headway.model.time import SECOND, Instant, Span

Given = ParamSpec("Given")
Result = TypeVar("Result")

ORIGIN: Instant = 1_750_000_000 * SECOND
"""The instant at which virtual time begins: 2025-06-15T15:06:40Z."""

_THREAD_POLL_S = 0.001


class VirtualClock:
    """A clock that moves only when told to: for driving the kernel by hand."""

    def __init__(self, now: Instant = ORIGIN) -> None:
        self._now = now

    def now(self) -> Instant:
        return self._now

    def advance(self, by: Span) -> Instant:
        self._now += by
        return self._now


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for a timer: it tells the loop to jump there."""

    jump: Callable[[float], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if _threads_at_work():
            return super().select(_THREAD_POLL_S)
        if timeout is None:
            raise RuntimeError("virtual time stands still: nothing is scheduled and all tasks wait")
        self.jump(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop in virtual time."""

    def __init__(self, origin: Instant = ORIGIN) -> None:
        self._virtual_s = 0.0
        self.virtual_origin = origin
        selector = _JumpingSelector()
        selector.jump = self._jump
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual_s

    def _jump(self, seconds: float) -> None:
        self._virtual_s += seconds


def run_virtual(main: Coroutine[object, object, Result], *, origin: Instant = ORIGIN) -> Result:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(origin)) as runner:
        return runner.run(main)


def virtual_time(
    test: Callable[Given, Coroutine[object, object, Result]],
) -> Callable[Given, Result]:
    """Decorate an async test so that it runs, as a plain one, in virtual time."""

    @functools.wraps(test)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        return run_virtual(test(*args, **kwargs))

    return run


def _threads_at_work() -> bool:
    return any(
        thread.name.startswith("headway-agent") or thread.name.startswith("asyncio_")
        for thread in threading.enumerate()
    )
