"""What the kernel decides, as values. The runtime stores them in this order, then carries them out."""

from typing import ClassVar, TypeAlias

from headway.model.outcome import Json, Outcome, Reply
from headway.model.places import Answer, Delivery, Order, Standing
from headway.model.run import AgentName, Run, SessionKey, SessionMemory
from headway.model.time import Instant, Span
from headway.model.value import Value
from headway.model.words import Cut, Reason, State


class Start(Value, frozen=True):
    """Begin an attempt. The ticket names it from now on."""

    run: Run
    ticket: int
    attempt: int
    epoch: int
    at: Instant
    slot: int = 0
    """Which of the session's slots it takes; no two live attempts of a session have the same."""
    outlives: bool = False
    """Whether its work goes on outside this process, and may outlive it (W-2)."""
    adopts: bool = False
    """Whether it goes on with a worker that outlived its node, instead of a new one."""


class Finish(Value, frozen=True):
    """The run has its outcome."""

    run: Run
    outcome: Outcome
    attempt: int
    epoch: int
    at: Instant
    started_at: Instant | None = None
    """When its last attempt began; None if it never ran."""


class Enqueue(Value, frozen=True):
    """The run waits in line: it became due, or its window closed, or its attempt was cut."""

    run: Run
    state: State
    attempt: int
    epoch: int
    until: Instant | None = None
    cut: Cut | None = None
    retry_error: str = ""
    standing: Standing | None = None
    """What a successor needs to put it back here."""
    ended: bool = False
    """Whether an attempt of it has just ended."""


class Merge(Value, frozen=True):
    """A new run takes the place of several; each of those is finished with reason `merged`."""

    run: Run
    epoch: int
    seq: int = 0


class CancelAttempt(Value, frozen=True):
    """Ask the attempt to end. Its slots stay taken until it has returned, or the grace is over."""

    run: Run
    ticket: int
    cut: Cut
    epoch: int = 0


class Abandon(Value, frozen=True):
    """The attempt ignored its cancellation for the whole grace; it is left behind."""

    run: Run
    ticket: int
    epoch: int = 0


class Steer(Value, frozen=True):
    """Put the message into the inbox of a running turn."""

    message: Run
    into: int
    epoch: int = 0


class Unsteer(Value, frozen=True):
    """Take the message back out of the inbox: it became a turn of its own, or ended."""

    message: Run
    into: int
    epoch: int = 0


class AskEstimate(Value, frozen=True):
    """Find out how full the session's context is; `Kernel.estimated` must follow."""

    session: SessionKey
    agent: AgentName
    epoch: ClassVar[int] = 0


class Remember(Value, frozen=True):
    """Keep what must outlive the session's queue."""

    session: SessionKey
    memory: SessionMemory
    epoch: int


class Release(Value, frozen=True):
    """The session is idle: this node needs it no longer, unless a later run than `seen` has come."""

    session: SessionKey
    epoch: int
    seen: int


class Respond(Value, frozen=True):
    """An order was carried out: keep its answer for whoever gave it."""

    order: Order
    answer: Answer
    epoch: int


class Deliver(Value, frozen=True):
    """Put something into the outbox, for its channel."""

    delivery: Delivery

    @property
    def epoch(self) -> int:
        return self.delivery.epoch


class NoteWait(Value, frozen=True):
    """A run waited long before it started (L-7)."""

    run: Run
    waited: Span
    ahead: int
    epoch: ClassVar[int] = 0


class NoteLate(Value, frozen=True):
    """An attempt that counts no longer has returned (R-4)."""

    ticket: int
    epoch: ClassVar[int] = 0


class NoteHold(Value, frozen=True):
    """A provider's rate limit holds its agents back (X-6)."""

    provider: str
    until: Instant
    epoch: ClassVar[int] = 0


class NoteExhausted(Value, frozen=True):
    """A run whose worker died again and again is not resumed any more by itself (W-3)."""

    run: Run
    attempt: int
    epoch: ClassVar[int] = 0


Action: TypeAlias = (
    Start
    | Finish
    | Enqueue
    | Merge
    | CancelAttempt
    | Abandon
    | Steer
    | Unsteer
    | AskEstimate
    | Remember
    | Release
    | Respond
    | Deliver
    | NoteWait
    | NoteLate
    | NoteHold
    | NoteExhausted
)
"""Each has the epoch of the session that it belongs to; 0 where its order among others does not matter."""


def session_of(action: Action) -> SessionKey | None:
    """The session that an action belongs to, if it belongs to one."""
    match action:
        case Steer(message) | Unsteer(message):
            return message.session
        case AskEstimate(session) | Remember(session) | Release(session):
            return session
        case Respond(order):
            return order.session
        case Deliver(delivery):
            return delivery.session
        case NoteLate() | NoteHold():
            return None
        case _:
            return action.run.session


class Done(Value, frozen=True):
    """An attempt returned what the agent answered."""

    reply: Reply


class Failed(Value, frozen=True):
    """An attempt ended with an error; unless it is permanent, it may be tried again."""

    error: str
    reason: Reason = Reason.ERROR
    permanent: bool = False
    code: str = ""
    details: Json = None


class Limited(Value, frozen=True):
    """An attempt ended because its provider asks for a pause."""

    retry_after: Span
    error: str = ""


class Died(Value, frozen=True):
    """The worker of an attempt is gone, nobody knows how it would have ended: as if its node had died (D-7)."""

    error: str
    code: str = ""
    details: Json = None


class NotBegun(Value, frozen=True):
    """The runner was not called: the node's lease was in doubt, or lost, before it could be."""


Ended: TypeAlias = Done | Failed | Limited | Died | NotBegun


class Stopped(Value, frozen=True):
    """What a stop or cancel reached."""

    running: int = 0
    waiting: int = 0

    @property
    def nothing(self) -> bool:
        return not self.running and not self.waiting

    def __str__(self) -> str:
        parts = []
        if self.running:
            parts.append(f"{self.running} running")
        if self.waiting:
            parts.append(f"{self.waiting} waiting")
        return f"{' and '.join(parts)} stopped" if parts else "nothing to stop"
