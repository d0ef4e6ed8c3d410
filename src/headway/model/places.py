"""What a store knows of an unfinished run, and the orders given to a session.

A session that changes hands is put together again from these: whoever owns it next decides as the one before
would have done.
"""

from typing import TypeAlias

from headway.model.outcome import Attachment
from headway.model.run import QueueOptions, Route, Run, RunId, SessionKey, SessionMemory
from headway.model.time import Instant
from headway.model.value import Value
from headway.model.words import Cut, Rule


class Standing(Value, frozen=True):
    """Where a waiting run stands, once its session's owner has decided about it.

    A run without one was never decided about: it is taken in like a new submission, in the order of its number.
    """

    after: int
    """It stands behind the run of this number in the session; a negative one means in front of all."""
    turn: int = 0
    """Counts what was decided in its session: of runs behind the same number the lower turn comes first."""
    held: Rule | None = None
    until: Instant | None = None
    """Until when `held` holds it: its due time, the end of its debounce window, or of the wait before a retry."""
    latest_at: Instant | None = None
    """By when its debounce window closes however many messages come."""
    quiet_until: Instant = 0
    """The end of its session's quiet window (`collect`), as far as this message extends it."""
    collect: bool = False
    interrupts: bool = False
    begun: bool = False
    retries: int = 0
    limited: int = 0


class Place(Value, frozen=True):
    """An unfinished run, as much as the store knows of it."""

    run: Run
    seq: int
    """Its number in the session; a merged run has that of the latest one seen when it was merged."""
    attempt: int = 0
    """How many attempts have counted so far."""
    standing: Standing | None = None
    orphaned: bool = False
    """Its latest attempt began and its node is gone: it may have acted already (D-7)."""
    started_at: Instant | None = None
    cut: Cut | None = None
    """Why its latest attempt was being cancelled for good, if it was."""
    host: str = ""
    """The machine on which a worker of its latest attempt may have outlived its node (W-2)."""
    adopted: bool = False
    """Whether that worker was found: the attempt goes on, with the same number."""


class Stop(Value, frozen=True, tag="stop"):
    """`/stop`: the session's oldest running attempt (S-9)."""


class StopAll(Value, frozen=True, tag="stop_all"):
    """`/stopall`: everything of the session, and what was sent before (S-9)."""

    sent_at: Instant | None = None
    message_id: str | None = None
    route: Route | None = None


class Cancel(Value, frozen=True, tag="cancel"):
    """One run, and all that it started."""

    run_id: RunId
    superseded: bool = False
    """A later firing of its job takes its place (C-7)."""
    waiting: bool = False
    """Only if it has not begun: its job was disabled (C-10)."""


class Clear(Value, frozen=True, tag="clear"):
    """`/queue clear`: the waiting messages."""


class Configure(Value, frozen=True, tag="configure"):
    """`/queue …`: the session's own options; as a change, what they do not say stays as it was."""

    options: QueueOptions | None = None
    change: bool = False


Command: TypeAlias = Stop | StopAll | Cancel | Clear | Configure


class Order(Value, frozen=True):
    """A command to a session, with a place in its order: its owner carries it out and stores the answer."""

    id: str
    session: SessionKey
    command: Command
    seq: int = 0
    """Its number in the session, given by the store."""


class Answer(Value, frozen=True):
    """What an order has reached."""

    running: int = 0
    waiting: int = 0


class Holding(Value, frozen=True):
    """A session that this node decides for, and what is in it that the node has not seen yet."""

    session: SessionKey
    epoch: int
    seen: int
    """The number up to which this answers all there is."""
    memory: SessionMemory | None = None
    places: tuple[Place, ...] = ()
    """In the order of their numbers."""
    orders: tuple[Order, ...] = ()
    """Those without an answer, in the order of their numbers."""
    more: bool = False
    """Whether there is still more after `seen`."""


class Glimpse(Value, frozen=True):
    """A session as it is stored, for who only looks (X-1)."""

    holding: Holding
    """What is unfinished in it: all, or the first of very many."""
    running: tuple[RunId, ...] = ()
    """Those of it that run, the longest first."""
    owner: int = 0
    """The node that decides for it; 0: none."""
    reserved_for: str = ""
    """The machine whose nodes alone may take it, until `reserved_until` (W-2)."""
    reserved_until: Instant | None = None


class Delivery(Value, frozen=True):
    """Something to be said on a channel, kept until it was."""

    id: str
    """Stable: a channel that sees it twice can tell."""
    route: Route
    text: str
    run_id: RunId
    session: SessionKey
    epoch: int
    """Under which epoch it was written; one of an old owner is never stored."""
    attachments: tuple[Attachment, ...] = ()
    tries: int = 0
    first_at: Instant = 0
    once: str = ""
    """A key: while it is remembered, until `once_until`, nothing with the same key is kept (H-2)."""
    once_until: Instant = 0
    error: str = ""
    """Why the latest try failed."""
    due_at: Instant | None = None
    """When it is tried next, of what waits in the outbox. Only who looks into the outbox is told."""
