"""The seams: what the runtime needs of a store, a runner and a clock. Adapters implement them, tests too.

A store is the only thing that nodes share. It may be one process's memory or a database that many nodes use,
and the engine never assumes that it is alone: it acts only for sessions that an admission granted to it, names
its epoch with every write, and stops what a store says is no longer its own.
"""

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeAlias

from headway.core.actions import Action, Stopped
from headway.model.outcome import Outcome
from headway.model.run import Run, RunId, SessionKey, SessionMemory
from headway.model.time import Instant
from headway.model.value import Value
from headway.model.views import RunView
from headway.model.words import State


class Granted(Value, frozen=True):
    """The run is stored, and this node decides for its session under this epoch."""

    epoch: int
    seq: int
    """The run's place among all runs of the session; a release names the last one seen."""
    memory: SessionMemory | None = None
    """What the session remembers from earlier, if anything."""


class Duplicate(Value, frozen=True):
    """The same message or idempotency key was taken before; nothing new was stored."""

    run_id: RunId


Admission: TypeAlias = Granted | Duplicate


class RunQuery(Value, frozen=True):
    """Which runs to list: newest first, after the cursor."""

    agent: str | None = None
    session: str | None = None
    state: State | None = None
    limit: int = 100
    cursor: str | None = None


class RunPage(Value, frozen=True):
    """One page of runs, and the cursor of the next one."""

    runs: tuple[RunView, ...]
    cursor: str | None = None


class Store(Protocol):
    """Remembers runs, and who decides for each session.

    Calls from many tasks at once are expected; a durable store groups what arrives together into one
    transaction. Each call is whole: when it returns, all of it is kept, and when it raises, none of it is.
    """

    @property
    def durable(self) -> bool:
        """Whether waiting runs survive the process: draining then leaves them for the next start (L-5)."""
        ...

    async def open(self) -> None:
        """Get ready. Raises `Unavailable` with the reason if that cannot be."""
        ...

    async def close(self) -> None: ...

    def admit(self, run: Run, retry: bool = False) -> Admission | Awaitable[Admission]:
        """Keep a new run and take its session if nobody has it, in one step.

        A store in this process answers at once, a database later, but for each session in the order of the
        places that it gives.
        A message id seen within the dedupe window, or a known idempotency key, gives the earlier run instead;
        with `retry`, a key whose run did not succeed is given to the new run (D-6).
        """
        ...

    async def recall(self, session: SessionKey) -> Granted:
        """Take a session without a new run, to stop or configure it."""
        ...

    async def memory_of(self, session: SessionKey) -> SessionMemory | None:
        """What a session remembers, without taking it: reading never writes."""
        ...

    async def record(self, actions: Sequence[Action]) -> Sequence[SessionKey]:
        """Keep what the kernel decided, in order. Answers the sessions that are no longer this node's."""
        ...

    async def find(self, run_id: RunId) -> RunView | None: ...

    async def list(self, query: RunQuery) -> RunPage: ...


class Clock(Protocol):
    """The node's time: near the wall clock, and never going backwards."""

    def now(self) -> Instant: ...


class SubRun(Protocol):
    """A run that a turn has started."""

    @property
    def id(self) -> RunId: ...

    async def wait(self) -> Outcome: ...

    async def reply(self) -> str: ...

    async def cancel(self) -> Stopped: ...


class Desk(Protocol):
    """What a turn can ask of the engine that runs it. Only to be called on the engine's loop."""

    def emit(self, ticket: int, text: str) -> None: ...

    def use(self, ticket: int, tokens_in: int, tokens_out: int) -> None: ...

    def take_message(self, ticket: int, message: RunId) -> bool: ...

    async def delegate(
        self, ticket: int, agent: str, text: str, options: dict[str, object]
    ) -> SubRun: ...
