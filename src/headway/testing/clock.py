"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting for it.

Sleeps, timeouts and Headway's own timers all follow it, so a test of a day takes milliseconds and
gives the same result each time. Only threads (plain functions as agents, `asyncio.to_thread`) take
real time: while one works, the clock stands. Sockets and child processes do not stop the clock.
"""

import asyncio
import functools
import selectors
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar, TypeVarTuple

from headway.model.time import SECOND, Instant, Span

Given = ParamSpec("Given")
Result = TypeVar("Result")
Args = TypeVarTuple("Args")

ORIGIN: Instant = 1_750_000_000 * SECOND
"""The instant at which virtual time begins: 2025-06-15T15:06:40Z."""

_AGENT_THREADS = "headway-agent"
_POLL_S = 0.001
_PATIENCE_S = 30.0
_FRAMES_TO_RESULT = 4
"""How far above a blocked thread's innermost frame the call that it is blocked in can be."""


class TimeStandsStill(RuntimeError):
    """Virtual time cannot go on: everything waits, and nothing is scheduled that could end it."""


class VirtualClock:
    """A clock that moves only when told to: for driving the kernel by hand."""

    def __init__(self, now: Instant = ORIGIN) -> None:
        self._now = now

    def now(self) -> Instant:
        return self._now

    def wall(self) -> Instant:
        return self._now

    def elapsed(self) -> Instant:
        return self._now

    def advance(self, by: Span) -> Instant:
        self._now += by
        return self._now


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for a timer: it tells the loop to jump there. Waits only for threads at work."""

    def __init__(self, loop: "VirtualLoop") -> None:
        super().__init__()
        self._loop = loop
        self._stands_since_s: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            self._stands_since_s = None
            return ready
        if self._loop.threads_at_work():
            return self._wait_for_threads()
        self._stands_since_s = None
        # A thread may have told the loop something since, and only then have ended or begun to wait.
        ready = super().select(0)
        if ready or self._loop.tell_quiet():
            return ready
        if timeout is None:
            raise TimeStandsStill("nothing is scheduled, and every task waits for something else")
        self._loop.jump(timeout)
        return ready

    def _wait_for_threads(self) -> list[tuple[selectors.SelectorKey, int]]:
        now_s = time.monotonic()
        if self._stands_since_s is None:
            self._stands_since_s = now_s
        elif now_s - self._stands_since_s > _PATIENCE_S:
            self._stands_since_s = None
            raise TimeStandsStill(f"a thread has been at work for {_PATIENCE_S:g} s of real time")
        return super().select(_POLL_S)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop in virtual time."""

    def __init__(self, origin: Instant = ORIGIN) -> None:
        self._virtual_s = 0.0
        self._calls: set[_Call] = set()
        self.virtual_origin = origin
        """Headway's clock follows a loop that has this: the instant of its second 0."""
        self._quiet: list[asyncio.Future[None]] = []
        super().__init__(_JumpingSelector(self))
        self._clock_resolution = 1e-7
        """Floats of long virtual times are no finer: else a timer would never be due."""

    def time(self) -> float:
        return self._virtual_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Args], Result], *args: *Args
    ) -> asyncio.Future[Result]:
        """Threads of a pool live on with nothing to do, so calls are counted, not threads."""
        call = _Call()
        self._calls.add(call)

        def work() -> Result:
            call.begun = True
            try:
                return func(*args)
            finally:
                if call.left:
                    self._calls.discard(call)

        def done(future: asyncio.Future[Result]) -> None:
            call.left = future.cancelled() and call.begun
            if not call.left:
                self._calls.discard(call)

        future = super().run_in_executor(executor, work)
        future.add_done_callback(done)
        return future

    async def shutdown_default_executor(self, *timeout: float) -> None:
        """Waits for a thread that joins the pool's threads, so the clock must stand."""
        call = _Call()
        self._calls.add(call)
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self._calls.discard(call)

    async def quiet(self) -> None:
        """Return when all that can happen at this instant has happened; no time passes."""
        waiter = self.create_future()
        self._quiet.append(waiter)
        await waiter

    def tell_quiet(self) -> bool:
        """For the selector: nothing can happen before time passes. False if nobody asked."""
        waiters, self._quiet = self._quiet, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        return bool(waiters)

    def jump(self, seconds: float) -> None:
        """For the selector: time passes."""
        self._virtual_s += seconds

    def threads_at_work(self) -> bool:
        """Whether the clock must stand."""
        return bool(self._calls) or any(
            thread.name.startswith(_AGENT_THREADS) and not _waits_for_a_loop(thread)
            for thread in threading.enumerate()
        )


class _Call:
    """A function that a pool's thread executes."""

    __slots__ = ("begun", "left")

    def __init__(self) -> None:
        self.begun = False
        self.left = False
        """Nobody waits for it any more, but it still works."""


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


def _waits_for_a_loop(thread: threading.Thread) -> bool:
    """Whether a sync agent is in `turn.wait_for`: then the clock must go on, or neither would.

    Seen from its stack: it is inside `Future.result` of a future that is not done. Only the loop's
    own thread, which asks this, can make it done, so the answer holds until the loop goes on.
    """
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - the one way to see it
    for _ in range(_FRAMES_TO_RESULT):
        if frame is None:
            return False
        if frame.f_code is Future.result.__code__:
            return not frame.f_locals["self"].done()
        frame = frame.f_back
    return False
