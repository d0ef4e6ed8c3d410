"""One event loop for each node, and the conductor that steps them in the order of what happens next.

All loops share one virtual time. A loop is stepped until nothing more can happen at this instant; then the
conductor goes to the earliest next event of all. So a node can be frozen (its loop is not stepped, and finds that
time has passed when it is), or thrown away in the middle of anything, and the same seed gives the same history.
"""

import asyncio
import heapq
import math
import selectors
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import TypeVarTuple

from headway.model.time import SECOND, Instant, Span
from headway.testing.cluster.violation import Broken, Violation

Args = TypeVarTuple("Args")

_MOST_ROUNDS = 20_000
"""A loop that goes round so often without any time passing never comes to rest."""
_RESOLUTION_S = 1e-7


class _Ears(selectors.SelectSelector):
    """Nobody calls from outside: a loop that would wait for something gives way to the others."""

    def __init__(self, loop: "NodeLoop") -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > _RESOLUTION_S:
            self._loop.rest(timeout)
        else:
            self._loop.go_round()
        return []


class NodeLoop(asyncio.SelectorEventLoop):
    """The event loop of one node, in the conductor's time."""

    def __init__(self, conductor: "Conductor", name: str) -> None:
        self._conductor = conductor
        self.name = name
        self.wakes_at: Instant | None = conductor.now
        """When something happens here next; None if nothing will by itself."""
        self.frozen = False
        self.slept: Span = 0
        """How much time this loop's clock has missed, because the machine was suspended."""
        self._rounds = 0
        super().__init__(_Ears(self))
        self._clock_resolution = _RESOLUTION_S

    def time(self) -> float:
        return (self._conductor.now - self.slept) / SECOND

    def call_soon(
        self, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> asyncio.Handle:
        self._touched()
        return super().call_soon(callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Args], object], *args: *Args, context: Context | None = None
    ) -> asyncio.Handle:
        """There is one thread only."""
        return self.call_soon(callback, *args, context=context)

    def step(self) -> None:
        """Let everything happen that can at this instant."""
        self._rounds = 0
        self.wakes_at = None
        self.run_forever()

    def rest(self, timeout_s: float | None) -> None:
        """For the selector: nothing more happens here before that."""
        if timeout_s is not None:
            until_s = self.time() + timeout_s
            at = math.floor(until_s * SECOND)
            while at / SECOND < until_s:
                # Never a hair too early: who waits until an instant must find that it has come.
                at += 1
            self.wakes_at = max(at + self.slept, self._conductor.now + 1)
        self.stop()

    def go_round(self) -> None:
        self._rounds += 1
        if self._rounds > _MOST_ROUNDS:
            raise Violation(Broken.NEVER_RESTS, f"node {self.name} goes round and round")

    def suspended(self, span: Span) -> None:
        """The machine slept for so long: this loop's clock stood."""
        self.slept += span

    def _touched(self) -> None:
        if not self.is_running():
            self.wakes_at = self._conductor.now


class Conductor:
    """Has the time, and decides whose turn it is."""

    def __init__(self, random: Random) -> None:
        self.now: Instant = 0
        self._random = random
        self._loops: list[NodeLoop] = []
        self._agenda: list[tuple[Instant, int, Callable[[], object]]] = []
        self._planned = 0
        self.violation: Violation | None = None
        """What a check found in the middle of something; raised as soon as the node's step is over."""

    def add(self, loop: NodeLoop) -> None:
        self._loops.append(loop)

    def remove(self, loop: NodeLoop) -> None:
        self._loops.remove(loop)

    def plan(self, at: Instant, call: Callable[[], object]) -> None:
        """Have something done from outside at that time."""
        self._planned += 1
        heapq.heappush(self._agenda, (max(at, self.now), self._planned, call))

    def object_to(self, what: Broken, text: str) -> None:
        if self.violation is None:
            self.violation = Violation(what, text)

    def run_until(self, until: Instant, enough: Callable[[], bool] | None = None) -> bool:
        """Let things happen up to that time, or until it is enough. Answers whether it was."""
        while enough is None or not enough():
            at = self._next_at()
            if at is None or at > until:
                self.now = max(self.now, until)
                return enough is not None and enough()
            self.now = max(self.now, at)
            self._step()
        return True

    def _next_at(self) -> Instant | None:
        times = [self._agenda[0][0]] if self._agenda else []
        times += [
            loop.wakes_at for loop in self._loops if loop.wakes_at is not None and not loop.frozen
        ]
        return min(times, default=None)

    def _step(self) -> None:
        if self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2]()
        else:
            ready = [
                loop
                for loop in self._loops
                if not loop.frozen and loop.wakes_at is not None and loop.wakes_at <= self.now
            ]
            (ready[0] if len(ready) == 1 else self._random.choice(ready)).step()
        if self.violation is not None:
            raise self.violation
