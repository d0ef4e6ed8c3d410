"""The seams: what the runtime needs of a store, a runner and a clock. Adapters implement them, tests too.

A store is the only thing that nodes share. It may be one process's memory or a database that many nodes use,
and the engine never assumes that it is alone: it acts only for sessions that the store granted to it, names
its epoch with every write, and stops what a store says is no longer its own.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from headway.core.actions import Action, Stopped
from headway.model.job import Advance, Ending, Entry, Job, JobRecord, Ticking
from headway.model.outcome import Outcome
from headway.model.places import Answer, Delivery, Glimpse, Holding, Order
from headway.model.run import (
    AgentName,
    JobId,
    LaneName,
    Route,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import Limits
from headway.model.time import Instant, Span
from headway.model.token import Token
from headway.model.value import Value
from headway.model.views import NodeView, RunView, StoreStatus
from headway.model.words import Source, State, Word, WorkerState
from headway.model.worker import Beat, Snapshot, Worker


class Granted(Value, frozen=True):
    """Stored, and this node decides for the session under this epoch."""

    epoch: int
    seq: int
    """Its place among all runs and orders of the session; a release names the last one seen."""
    memory: SessionMemory | None = None
    """What the session remembers from earlier, if anything."""
    fresh: bool = False
    """Whether the session became this node's by this very call: then nothing else is unfinished in it."""


class Elsewhere(Value, frozen=True):
    """Stored; another node decides for the session, or nobody yet. Its outcome comes by `outcomes`."""

    seq: int = 0
    owned: bool = True
    """Whether another node has the session; else whoever has room claims it."""
    memory: SessionMemory | None = None
    """What the session remembers: it says whether its owner may refuse the run."""


class Duplicate(Value, frozen=True):
    """The same message or idempotency key was taken before; nothing new was stored."""

    run_id: RunId


class TurnedAway(Value, frozen=True):
    """Stored as ended: the admission limits over all nodes are reached (F-1), or its parent was stopped (X-3).

    Of runs that come together and are kept only together, none is stored.
    """

    outcome: Outcome


Admission: TypeAlias = Granted | Elsewhere | Duplicate | TurnedAway


class Recorded(Value, frozen=True):
    """What became of a batch besides being kept."""

    lost: tuple[tuple[SessionKey, int], ...] = ()
    """Sessions (and under which epoch) that are no longer this node's: nothing of them was kept."""
    kept: tuple[SessionKey, ...] = ()
    """Sessions that were not released because something came that the node has not seen."""


KEPT = Recorded()


class Claims(Value, frozen=True):
    """Sessions that this node decides for from now on."""

    holdings: tuple[Holding, ...] = ()
    next_at: Instant | None = None
    """When one of the sessions that nobody owns comes due, passes a deadline or is free for all next."""
    more: bool = False
    """Whether more was ready than was asked for."""


class Peer(Value, frozen=True):
    """Another node that is not known to be gone."""

    id: int
    counter: int
    lease: Span


class Renewal(Value, frozen=True):
    """The answer to a renewal of the node's lease."""

    alive: bool
    """False: this incarnation was declared dead. It owns nothing any more."""
    peers: tuple[Peer, ...] = ()
    at: Instant | None = None
    """The time by the store's own clock, if it has one; all nodes that share it go by it."""


class Hint(Word):
    """What may be worth looking at, told by another node. A hint can be lost: polling finds it later."""

    WORK = "work"
    """Sessions that nobody owns may be ready."""
    NEWS = "news"
    """Something new is in sessions of this node."""
    ENDED = "ended"
    """Runs that this node asked for have ended, its orders were answered, or something is in the outbox."""
    SLOTS = "slots"
    """Slots of a lane's cluster limit were freed, or are wanted."""
    JOBS = "jobs"
    """Jobs were added, changed or removed: the next instant may be another (C-12)."""
    ALL = "all"
    """Hints may have been lost: look at everything."""


class RunQuery(Value, frozen=True):
    """Which runs to list: newest first, after the cursor."""

    agent: str | None = None
    session: str | None = None
    state: State | None = None
    limit: int = 100
    cursor: str | None = None
    source: Source | None = None


class RunPage(Value, frozen=True):
    """One page of runs, and the cursor of the next one."""

    runs: tuple[RunView, ...]
    cursor: str | None = None


class JobQuery(Value, frozen=True):
    """Which jobs to list: by agent and name, after the cursor."""

    agent: str | None = None
    enabled: bool | None = None
    heartbeats: bool | None = False
    """Only jobs, or with True only heartbeats, or with None both."""
    limit: int = 100
    cursor: str | None = None


class JobPage(Value, frozen=True):
    """One page of jobs, and the cursor of the next one."""

    jobs: tuple[JobRecord, ...]
    cursor: str | None = None


class DueJobs(Value, frozen=True):
    """Jobs about which something must be done now."""

    jobs: tuple[JobRecord, ...] = ()
    next_at: Instant | None = None
    """When the next one will be due that is not among these."""
    more: bool = False
    """Whether more are due than were asked for."""


class LogQuery(Value, frozen=True):
    """Which lines of the log: the newest first, after the cursor."""

    job: JobId | None = None
    limit: int = 100
    cursor: str | None = None


class LogPage(Value, frozen=True):
    """One page of the log, and the cursor of the next one."""

    entries: tuple[Entry, ...]
    cursor: str | None = None


class LetterQuery(Value, frozen=True):
    """Which deliveries to list, the oldest first, after the cursor."""

    dead: bool | None = True
    """What was given up, or what waits; None: both."""
    channel: str | None = None
    limit: int = 100
    cursor: str | None = None


class LetterPage(Value, frozen=True):
    """One page of deliveries, and the cursor of the next one."""

    letters: tuple[Delivery, ...]
    cursor: str | None = None


class Ledger(Protocol):
    """The part of a store that remembers runs and what was decided about them.

    Calls from many tasks at once are expected; a durable store groups what arrives together into one
    transaction. Each call is whole: when it returns, all of it is kept, and when it raises, none of it is, or
    (`Unavailable` only) it may be kept: repeating the same call is safe.
    """

    @property
    def durable(self) -> bool:
        """Whether waiting runs survive the process: draining then leaves them for the next start (L-5)."""
        ...

    @property
    def one_owner(self) -> bool:
        """Whether only one process at a time can own sessions of it (D-2)."""
        ...

    @property
    def writers(self) -> int:
        """How many batches of different sessions `record` takes at once, to its advantage."""
        ...

    def admit(
        self, run: Run, retry: bool = False, claim: bool = True
    ) -> Admission | Awaitable[Admission]:
        """Keep a new run and, with `claim`, take its session if it is idle and nobody has it, in one step.

        A store in this process answers at once, a database later, but for each session in the order of the
        places that it gives.
        A message id seen within the dedupe window, or a known idempotency key, gives the earlier run instead;
        with `retry`, a key whose run did not succeed is given to the new run (D-6).
        """
        ...

    async def admit_together(
        self, runs: Sequence[Run], claims: Sequence[bool]
    ) -> Sequence[Admission] | TurnedAway:
        """Keep all of these new runs in one step, or none of them (T-5). Each as `admit` does, with its claim.

        If one of them would be turned away, nothing is stored, not even as ended, and that is the answer. Those
        that were asked for before, by a key, count as admitted then and take no room; so do later ones of the
        same key among these. Repeating the same call after its answer was lost gives the answer of the first time.
        The answer may overtake that of an earlier `admit` for the same session: `seq` tells.
        """
        ...

    async def order(self, order: Order) -> Granted | Elsewhere | None:
        """Give a command its place in the session's order. Takes the session if it is idle and nobody has it.

        None: a stop or clear of a session in which nothing is unfinished; nothing was stored.
        """
        ...

    async def record(self, actions: Sequence[Action]) -> Recorded:
        """Keep what the kernel decided, in order, for the sessions that are still this node's."""
        ...

    async def outcomes(self, runs: Sequence[RunId]) -> Mapping[RunId, Outcome]:
        """Those of these runs that have ended, and how."""
        ...

    async def answers(self, orders: Sequence[str]) -> Mapping[str, Answer]:
        """Those of these orders that were carried out, and what they reached."""
        ...

    async def memory_of(self, session: SessionKey) -> SessionMemory | None:
        """What a session remembers, without taking it: reading never writes."""
        ...

    async def glimpse(self, session: SessionKey) -> Glimpse | None:
        """What is in a session and who decides for it, without taking it.

        None: nothing is, or nothing but what the only node knows by itself.
        """
        ...

    async def find(self, run_id: RunId) -> RunView | None: ...

    async def list(self, query: RunQuery) -> RunPage: ...

    async def descendants(self, run_id: RunId, most: int) -> Sequence[RunView]:
        """A run and all that it and those below it have started and that is still kept, the oldest first.

        At most so many. What was turned away never began, and is not among them.
        """
        ...

    def set_limits(self, limits: Limits) -> None:
        """The admission limits for tasks, which hold over all nodes (F-1)."""
        ...

    async def keep(self, kind: str, at: Instant, fields: Mapping[str, object]) -> None:
        """Keep an event that matters later: a node's death, a takeover, a broken invariant."""
        ...

    async def prune(self, most: int) -> int:
        """Forget some of what is past its retention, at most so many runs. Answers how many were forgotten."""
        ...


class Roll(Protocol):
    """The part of a store that knows the nodes, and which of them decides for which session."""

    async def enlist(self, name: str, lease: Span, host: str = "") -> int:
        """Begin as a new incarnation that owns nothing; answers its number. `host` is the machine it runs on.

        A store that only one process can own frees at once what earlier incarnations held, as `bury` does.
        """
        ...

    async def renew(self) -> Renewal:
        """Say that this node lives, and read who else does."""
        ...

    async def bury(self, peer: Peer) -> bool:
        """Declare a node dead whose counter stood still, and free its sessions. False: it moved after all.

        Those in which an attempt outlives it (`Start.outlives`) are left to nodes of its host for so long as it
        asked for (`Settings.adoption_grace`): its worker is found there or nowhere (W-2).
        """
        ...

    async def retire(self) -> None:
        """Leave in good order: nothing is owned any more, what waits is free for others."""
        ...

    async def claim(
        self, room: Mapping[LaneName, int], agents: Sequence[AgentName], until: Instant
    ) -> Claims:
        """Take sessions that nobody owns and that are ready by then: by lane at most as many as there is room.

        Fair across agents: one session of each in turn, in the order given, the lowest rank first. Sessions
        with a passed deadline come even without room; so do those that are left to nodes of this host, if the
        agents whose workers may live there are among these. `next_at` also says when others are left no longer.
        """
        ...

    async def news(
        self, seen: Mapping[SessionKey, int], complete: bool = False
    ) -> Sequence[Holding]:
        """Of these sessions, those still this node's in which more has come than was seen, with what came.

        With `complete`, also every other session of this node, whole: an answer may have been lost by which it
        would know that it owns it.
        """
        ...

    async def nodes(self) -> Sequence[NodeView]: ...

    async def hold_slots(self, lane: LaneName, limit: int, count: int) -> int:
        """Hold so many of a lane's slots over all nodes in all (L-8); answers how many are held now.

        What cannot be had now is wanted, and nobody gets a slot while another node has wanted one for longer.
        """
        ...

    async def slots_wanted(self, lane: LaneName) -> int:
        """How many other nodes wait for a slot of this lane."""
        ...


class WorkerQuery(Value, frozen=True):
    """Which workers to list, the latest first, after the cursor."""

    agent: str | None = None
    host: str | None = None
    state: WorkerState | None = None
    """None: those that live."""
    limit: int = 100
    cursor: str | None = None


class WorkerPage(Value, frozen=True):
    """One page of workers, and the cursor of the next one."""

    workers: tuple[Worker, ...]
    cursor: str | None = None


class SnapshotQuery(Value, frozen=True):
    """Which snapshots to list, the latest first, after the cursor."""

    host: str | None = None
    limit: int = 100
    cursor: str | None = None


class SnapshotPage(Value, frozen=True):
    """One page of snapshots, and the cursor of the next one."""

    snapshots: tuple[Snapshot, ...]
    cursor: str | None = None


class Muster(Protocol):
    """The part of a store that keeps which workers there are, their signs of life, and how machines were (D-8).

    Only what looks after workers writes here; reading never does.
    """

    async def beat(self, workers: Sequence[Worker], at: Instant) -> None:
        """Keep how these workers were found at this instant, and a beat of each; a new one is added.

        What was found later stays, but a death counts whenever its node tells of it. A dead process never lives
        again; another one may be found in its place, where an attempt began anew under its number. So the same may
        be told twice.
        """
        ...

    async def workers(self, query: WorkerQuery) -> WorkerPage: ...

    async def find_worker(self, worker_id: str) -> Worker | None: ...

    async def beats(self, worker_id: str, most: int) -> Sequence[Beat]:
        """The latest beats of a worker, the newest first."""
        ...

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Each node has one of each instant; the same again changes nothing."""
        ...

    async def snapshots(self, query: SnapshotQuery) -> SnapshotPage: ...

    async def machines(self) -> Sequence[Snapshot]:
        """The latest snapshot of each machine, by its name."""
        ...


class Outbox(Protocol):
    """The part of a store that keeps what is to be said on channels until it was."""

    async def take_deliveries(
        self, channels: Sequence[str], most: int, now: Instant, until: Instant
    ) -> Sequence[Delivery]:
        """Deliveries of these channels that are due now, the oldest first; they come again if not settled by then.

        No two nodes take the same one meanwhile.
        """
        ...

    async def settle_delivery(
        self, delivery: Delivery, again_at: Instant | None = None, error: str = ""
    ) -> None:
        """It was delivered; or with `again_at` it is due again then; or with only an error it is a dead letter."""
        ...

    async def letters(self, query: LetterQuery) -> LetterPage:
        """What is in the outbox: what was given up, what waits with its `due_at`, or both. The oldest first."""
        ...

    async def retry_letter(self, delivery_id: str, now: Instant) -> bool:
        """A dead letter is due again, as if it were new. False: there is none of this id."""
        ...

    async def count_letters(self) -> tuple[int, int]:
        """How many deliveries wait, and how many were given up."""
        ...

    async def note_routes(self, routes: Mapping[AgentName, Route], at: Instant) -> None:
        """Where the latest message of each of these agents came from; an older note never replaces a newer one."""
        ...

    async def last_route(self, agent: AgentName) -> Route | None: ...


class Timetable(Protocol):
    """The part of a store that keeps jobs, where each stands in time, and the log of their firings.

    Who decides about a job has read it before, and names the version that he read: if the job has changed since,
    or another node was quicker, nothing is kept. So a firing needs no lock, and happens once (C-5).
    """

    async def add_job(self, job: Job, ticking: Ticking) -> bool:
        """Keep a new job with version 1. False: its agent has a job of this name, or the id is taken."""
        ...

    async def change_job(self, job: Job, ticking: Ticking) -> bool:
        """Keep a changed job whose version still is `ticking.version`, and count it up. False: it is not.

        A change of name that another job of the agent has is refused with `InvalidInput("name", …)`.
        """
        ...

    async def remove_job(self, job_id: JobId) -> bool:
        """Forget a job; its log stays (C-10). False: there is none of this id."""
        ...

    async def find_job(self, job_id: JobId) -> JobRecord | None: ...

    async def find_job_named(self, agent: AgentName, name: str) -> JobRecord | None: ...

    async def list_jobs(self, query: JobQuery) -> JobPage: ...

    async def due_jobs(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        """Enabled jobs whose `ticking.due_at` has come, the earliest first, and when the next one's will.

        Jobs that need what is not among the abilities are for other nodes. Records come without `last`.
        """
        ...

    async def settled_jobs(self, most: int) -> Sequence[JobRecord]:
        """Enabled jobs that will not fire again by themselves: some are to be deleted once their run has ended."""
        ...

    async def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        """In one transaction for each job: its runs, lines of its log, what is to be said, and where it stands.

        The runs are admitted as `admit` does. None: the job is not what it was when this was decided; nothing of
        it was kept, its neighbours are. Other nodes are told when a job is due earlier than they know.
        """
        ...

    async def tally(self, endings: Sequence[Ending]) -> Mapping[JobId, int]:
        """Count how runs of jobs ended, in this order. Answers the failures in a row of each job there is.

        Counting the same again changes nothing if it is what was counted last.
        """
        ...

    async def job_log(self, query: LogQuery) -> LogPage:
        """The log of one job or of all, the newest first; with the state and outcome of each run still known."""
        ...

    async def keep_text(self, name: str, text: str | None) -> None:
        """Keep a text under a name, such as an agent's checklist; None forgets it."""
        ...

    async def text(self, name: str) -> str | None: ...


class Vault(Protocol):
    """The part of a store that keeps who may ask a server for what (O-4)."""

    async def add_token(self, token: Token) -> bool:
        """Keep a new token. False: its name or its id is another one's. The very same again changes nothing."""
        ...

    async def tokens(self) -> Sequence[Token]:
        """All of them, the oldest first; also those that have expired."""
        ...

    async def revoke_token(self, token_id: str) -> bool:
        """Forget a token. False: there is none of this id."""
        ...


class Store(Ledger, Roll, Outbox, Timetable, Muster, Vault, Protocol):
    """Remembers runs, who decides for each session, what is to be said and done when, who works, who may ask."""

    async def open(self, hear: Callable[[Hint], None] | None = None) -> None:
        """Get ready; hints of other nodes go to `hear`. Raises `Unavailable` with the reason if that cannot be."""
        ...

    async def close(self) -> None: ...

    async def migrate(self) -> Sequence[str]:
        """Bring the database to this program's version; answers the names of what was run. Needs no `open`."""
        ...

    async def status(self) -> StoreStatus:
        """Version, pending migrations, counts and size. Needs no `open`, and writes nothing."""
        ...


@runtime_checkable
class Channel(Protocol):
    """Where messages come from and replies go.

    A delivery without text and attachments means that nothing more comes: whoever shows that an agent is typing
    ends it (S-10).
    """

    async def send(self, delivery: Delivery) -> None:
        """Deliver it; its id may come again. Raises if it could not, `Permanent` if it never can be delivered."""
        ...

    async def typing(self, route: Route, on: bool) -> None:
        """Show that an agent is at work there, or no longer. Best effort."""
        ...


class Clock(Protocol):
    """The node's time."""

    def now(self) -> Instant:
        """Near the wall clock. It may go back by moments; a kernel's time never does."""
        ...

    def wall(self) -> Instant:
        """The wall clock that jobs go by: the same for all nodes of a store, and it may be set back or forward."""
        ...

    def elapsed(self) -> Instant:
        """Counted from anywhere, never stepping, and also through a suspend of the machine: for leases."""
        ...


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

    def say(self, ticket: int, text: str) -> None: ...

    def use(self, ticket: int, tokens_in: int, tokens_out: int) -> None: ...

    def take_message(self, ticket: int, message: RunId) -> bool: ...

    async def delegate(
        self, ticket: int, agent: str, text: str, options: dict[str, object]
    ) -> SubRun: ...
