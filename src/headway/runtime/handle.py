"""A caller's hold on a run: wait for it, watch it, cancel it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from headway.core.actions import Stopped
from headway.model.outcome import Outcome, error_of
from headway.model.run import RunId
from headway.model.words import State
from headway.turn import current_turn

_MOST_PIECES = 4_096


class HandleDesk(Protocol):
    """What a handle asks of its engine."""

    async def cancel(self, run_id: RunId) -> Stopped: ...

    async def state(self, run_id: RunId) -> State: ...

    def awaits(self, ticket: int, child: RunId) -> None: ...

    def resumes(self, ticket: int, child: RunId) -> None: ...


class Handle(msgspec.Struct, eq=False, gc=False):
    """One run, as its caller sees it. Every handle is told the outcome, however the run ends (R-2).

    The garbage collector need not look at it: once the run has ended, nothing points back at its handle.
    """

    _desk: HandleDesk
    id: RunId
    _parent: int = 0
    outcome: Outcome | None = None
    """How this run ended, once it has. A merged run's reply comes with `wait`."""
    echo: bool = False
    """Another caller delivers this reply: the message came twice, or the first of its burst speaks for all."""
    _settled: Outcome | None = None
    _waiters: list[asyncio.Future[None]] | None = None
    _followers: "list[Handle] | None" = None
    _outputs: tuple[deque[str], ...] = ()

    def __repr__(self) -> str:
        return f"<Handle {self.id} {self.outcome.state if self.outcome else 'open'}>"

    async def wait(self) -> Outcome:
        """The outcome; of a merged run, that of the run which took it over (S-7)."""
        if self._settled is None:
            waiter = self._parent or self._waiting_turn()
            if waiter:
                self._desk.awaits(waiter, self.id)
            try:
                while self._settled is None:
                    await self._next_change()
            finally:
                if waiter:
                    self._desk.resumes(waiter, self.id)
        return self._settled

    async def reply(self) -> str:
        """The agent's text, or an error that says why there is none."""
        outcome = await self.wait()
        if not outcome.ok:
            raise error_of(self.id, outcome)
        return outcome.text

    async def stream(self) -> AsyncIterator[str]:
        """The pieces that the agent emits, from now until the run ends.

        Whoever falls more than 4,096 pieces behind loses the oldest: the reply is whole in any case.
        """
        output: deque[str] = deque(maxlen=_MOST_PIECES)
        self._outputs = (*self._outputs, output)
        try:
            while self._settled is None or output:
                while output:
                    yield output.popleft()
                if self._settled is None:
                    await self._next_change()
        finally:
            self._outputs = tuple(other for other in self._outputs if other is not output)

    async def cancel(self) -> Stopped:
        """Cancel the run and all that it started. Answers what was reached."""
        return await self._desk.cancel(self.id)

    async def state(self) -> State:
        if self.outcome is not None:
            return self.outcome.state
        return await self._desk.state(self.id)

    def settle(self, outcome: Outcome) -> None:
        """For the engine: the caller is told now."""
        if self.outcome is None:
            self.outcome = outcome
        self._settled = outcome
        if self._waiters is not None:
            self._notify()
        if self._followers is not None:
            for follower in self._followers:
                follower.settle(outcome)
            self._followers = None

    def follow(self, other: "Handle", merged: Outcome) -> None:
        """For the engine: this run was merged into the other; its caller gets the other's reply."""
        self.outcome = merged
        self.echo = other.has_followers
        other.attach(self)

    def shared(self, parent: int) -> "Handle":
        """For the engine: the same run, waited for by another turn."""
        twin = Handle(self._desk, self.id, parent, echo=True)
        self.attach(twin)
        return twin

    @property
    def has_followers(self) -> bool:
        return bool(self._followers)

    def attach(self, follower: "Handle") -> None:
        """The follower is told what this one is told."""
        if self._settled is not None:
            follower.settle(self._settled)
        elif self._followers is None:
            self._followers = [follower]
        else:
            self._followers.append(follower)

    def push(self, text: str) -> None:
        """For the engine: the agent emitted something."""
        if self._outputs:
            for output in self._outputs:
                output.append(text)
            self._notify()
        for follower in self._followers or ():
            follower.push(text)

    def _waiting_turn(self) -> int:
        """The ticket of the turn that waits here, if it is one of the same engine."""
        turn = current_turn.get()
        if turn is None or id(turn.desk) != id(self._desk):
            return 0
        return turn.start.ticket

    async def _next_change(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = []
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if not waiter.done() or waiter.cancelled():
                self._drop(waiter)

    def _drop(self, waiter: "asyncio.Future[None]") -> None:
        """Whoever waited has given up."""
        if self._waiters is not None and waiter in self._waiters:
            self._waiters.remove(waiter)

    def _notify(self) -> None:
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)
