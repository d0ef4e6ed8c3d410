"""What goes wrong between a node and its store, and the store as a node sees it through that.

Everything is drawn from the seed. A call can fail before anything was done or after all of it was (the answer is
lost), it can take long on either way, and the store can be away for a while. Hints can be late or never come.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

import msgspec

from headway.core.actions import Action
from headway.model.errors import StoreUnavailable
from headway.model.job import Advance, Ending, Job, JobRecord, Ticking
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
from headway.model.time import SECOND, Instant, Span
from headway.model.token import Token
from headway.model.views import NodeView, RunView, StoreStatus
from headway.model.worker import Beat, Snapshot, Worker
from headway.ports import (
    Admission,
    Claims,
    DueJobs,
    Elsewhere,
    Granted,
    Hint,
    JobPage,
    JobQuery,
    LetterPage,
    LetterQuery,
    LogPage,
    LogQuery,
    Peer,
    Recorded,
    Renewal,
    RunPage,
    RunQuery,
    SnapshotPage,
    SnapshotQuery,
    Store,
    TurnedAway,
    WorkerPage,
    WorkerQuery,
)
from headway.testing.cluster.clocks import WallClock
from headway.testing.cluster.loops import Conductor

Result = TypeVar("Result")

_KNOWN_AT_ONCE = frozenset({"open", "enlist"})
"""Calls after which the store object itself has changed: their answers cannot be lost behind it."""
_MOST_STEPS = 1_500
"""About as many steps of its virtual machine as SQLite takes for a small batch."""
_LONGEST_CALL: Span = 2 * SECOND
"""A store that is away says so within this."""


class Weather(msgspec.Struct):
    """How bad it is just now; chances are from 0 to 1."""

    latency: Span = 0
    """The longest way of a call or its answer, mostly."""
    slow: float = 0.0
    """How often a way takes up to a hundred times as long."""
    fails_before: float = 0.0
    fails_after: float = 0.0
    fails_within: float = 0.0
    """How often a batch breaks off in the middle of its transaction."""
    hints_lost: float = 0.0
    hint_delay: Span = 0


CALM = Weather()


class Sight(msgspec.Struct):
    """Who looks on: told of what was really kept, whatever the node gets to hear of it."""

    admitted: Callable[[Run, Admission], None]
    recorded: Callable[[Sequence[Action], Recorded], None]
    broken_off: Callable[[Sequence[Action]], None]
    """Told of a batch that the database broke off: parts of it may have been kept."""
    enlisted: Callable[[int, Instant], None]
    renewed: Callable[[Renewal, Instant], None]
    buried: Callable[[int], None]


class FaultyStore:
    """One node's way to the shared store."""

    def __init__(  # noqa: PLR0917 - all that a call meets on its way, said once
        self,
        store: Store,
        name: str,
        conductor: Conductor,
        wall: WallClock,
        seed: str,
        sight: Sight,
        interrupt: Callable[[int], None] | None = None,
    ) -> None:
        self._store = store
        self._interrupt = interrupt
        """Lets the database break off after so many steps of work; 0: no more."""
        self._name = name
        self._conductor = conductor
        self._wall = wall
        self._seed = seed
        self._random = Random(seed)
        self._sight = sight
        self.weather = CALM
        self.away_until: Instant = 0
        self.slow_calls: dict[str, Span] = {}
        self.slow_answers: dict[str, Span] = {}
        """By name of the call: how much longer it, or its answer, takes than the weather says."""
        self._answers_at: dict[SessionKey, Instant] = {}
        """Answers about one session come in the order of the places that were given."""

    @property
    def durable(self) -> bool:
        return self._store.durable

    @property
    def one_owner(self) -> bool:
        return self._store.one_owner

    @property
    def writers(self) -> int:
        return self._store.writers

    # The ways.

    async def _through(
        self,
        what: str,
        call: Callable[[], Awaitable[Result]],
        seen: Callable[[Result], object] | None = None,
        session: SessionKey | None = None,
    ) -> Result:
        """Do it, with all that can happen before and after."""
        random, weather = self._random, self.weather
        await self._pause(self._way() + self.slow_calls.get(what, 0))
        if self._conductor.now < self.away_until:
            left = self.away_until - self._conductor.now
            await self._pause(min(random.randrange(_LONGEST_CALL), left))
            raise StoreUnavailable(self._name, "the store is away")
        if random.random() < weather.fails_before:
            raise StoreUnavailable(self._name, "the connection was lost before")
        result = await call()
        if seen is not None:
            seen(result)
        if random.random() < weather.fails_after and what not in _KNOWN_AT_ONCE:
            raise StoreUnavailable(self._name, "the connection was lost after")
        back = self._way() + self.slow_answers.get(what, 0)
        if session is not None:
            now = self._conductor.now
            at = max(now + back, self._answers_at.get(session, 0) + 1)
            self._answers_at[session] = at
            back = at - now
        await self._pause(back)
        return result

    def _way(self) -> Span:
        weather = self.weather
        if not weather.latency:
            return 0
        longest = weather.latency
        if self._random.random() < weather.slow:
            longest *= 100
        return self._random.randrange(longest)

    @staticmethod
    async def _pause(span: Span) -> None:
        if span:
            await asyncio.sleep(span / SECOND)

    # Life.

    async def open(self, hear: Callable[[Hint], None] | None = None) -> None:
        async def call() -> None:
            await self._store.open(None if hear is None else self._ear(hear))

        await self._through("open", call)

    def _ear(self, hear: Callable[[Hint], None]) -> Callable[[Hint], None]:
        loop = asyncio.get_running_loop()

        def heard(hint: Hint) -> None:
            # Drawn by what and when, not in turn: in which order one moment's hints come is nobody's promise.
            random = Random(f"{self._seed} {self._conductor.now} {hint}")
            if random.random() < self.weather.hints_lost:
                return
            delay = random.randrange(self.weather.hint_delay + 1)
            loop.call_later(delay / SECOND, hear, hint)

        return heard

    async def close(self) -> None:
        await self._store.close()

    async def migrate(self) -> Sequence[str]:
        return await self._through("migrate", self._store.migrate)

    async def status(self) -> StoreStatus:
        return await self._through("status", self._store.status)

    # The ledger.

    async def admit(self, run: Run, retry: bool = False, claim: bool = True) -> Admission:
        async def call() -> Admission:
            admission = self._store.admit(run, retry, claim)
            return await admission if isinstance(admission, Awaitable) else admission

        return await self._through(
            "admit", call, lambda admission: self._sight.admitted(run, admission), run.session
        )

    async def admit_together(
        self, runs: Sequence[Run], claims: Sequence[bool]
    ) -> Sequence[Admission] | TurnedAway:
        return await self._through(
            "admit_together",
            lambda: self._store.admit_together(runs, claims),
            lambda answers: self._admitted_together(runs, answers),
        )

    def _admitted_together(
        self, runs: Sequence[Run], answers: Sequence[Admission] | TurnedAway
    ) -> None:
        """Of those that were turned away together nothing was kept."""
        if not isinstance(answers, TurnedAway):
            for run, admission in zip(runs, answers, strict=True):
                self._sight.admitted(run, admission)

    async def order(self, order: Order) -> Granted | Elsewhere | None:
        return await self._through("order", lambda: self._store.order(order), session=order.session)

    async def record(self, actions: Sequence[Action]) -> Recorded:
        return await self._through(
            "record",
            lambda: self._record(actions),
            lambda recorded: self._sight.recorded(actions, recorded),
        )

    async def _record(self, actions: Sequence[Action]) -> Recorded:
        if self._interrupt is None or self._random.random() >= self.weather.fails_within:
            return await self._store.record(actions)
        self._interrupt(self._random.randrange(1, _MOST_STEPS))
        try:
            return await self._store.record(actions)
        except BaseException:
            self._sight.broken_off(actions)
            raise
        finally:
            self._interrupt(0)

    async def outcomes(self, runs: Sequence[RunId]) -> Mapping[RunId, Outcome]:
        return await self._through("outcomes", lambda: self._store.outcomes(runs))

    async def answers(self, orders: Sequence[str]) -> Mapping[str, Answer]:
        return await self._through("answers", lambda: self._store.answers(orders))

    async def memory_of(self, session: SessionKey) -> SessionMemory | None:
        return await self._through("memory_of", lambda: self._store.memory_of(session))

    async def glimpse(self, session: SessionKey) -> Glimpse | None:
        return await self._through("glimpse", lambda: self._store.glimpse(session))

    async def find(self, run_id: RunId) -> RunView | None:
        return await self._through("find", lambda: self._store.find(run_id))

    async def list(self, query: RunQuery) -> RunPage:
        return await self._through("list", lambda: self._store.list(query))

    async def descendants(self, run_id: RunId, most: int) -> Sequence[RunView]:
        return await self._through("descendants", lambda: self._store.descendants(run_id, most))

    def set_limits(self, limits: Limits) -> None:
        self._store.set_limits(limits)

    async def keep(self, kind: str, at: Instant, fields: Mapping[str, object]) -> None:
        await self._through("keep", lambda: self._store.keep(kind, at, fields))

    async def prune(self, most: int) -> int:
        return await self._through("prune", lambda: self._store.prune(most))

    # The roll.

    async def enlist(self, name: str, lease: Span, host: str = "") -> int:
        asked_at = self._conductor.now
        return await self._through(
            "enlist",
            lambda: self._store.enlist(name, lease, host),
            lambda number: self._sight.enlisted(number, asked_at),
        )

    async def renew(self) -> Renewal:
        asked_at = self._conductor.now

        async def call() -> Renewal:
            renewal = await self._store.renew()
            return msgspec.structs.replace(renewal, at=self._wall.now())

        return await self._through(
            "renew", call, lambda renewal: self._sight.renewed(renewal, asked_at)
        )

    async def bury(self, peer: Peer) -> bool:
        return await self._through(
            "bury",
            lambda: self._store.bury(peer),
            lambda dead: self._sight.buried(peer.id) if dead else None,
        )

    async def retire(self) -> None:
        await self._through("retire", self._store.retire)

    async def claim(
        self, room: Mapping[LaneName, int], agents: Sequence[AgentName], until: Instant
    ) -> Claims:
        return await self._through("claim", lambda: self._store.claim(room, agents, until))

    async def news(
        self, seen: Mapping[SessionKey, int], complete: bool = False
    ) -> Sequence[Holding]:
        # Sorted: the engine gathers keys in a set, whose order is another in each process.
        ordered = dict(sorted(seen.items()))
        return await self._through("news", lambda: self._store.news(ordered, complete))

    async def nodes(self) -> Sequence[NodeView]:
        return await self._through("nodes", self._store.nodes)

    async def hold_slots(self, lane: LaneName, limit: int, count: int) -> int:
        return await self._through("hold_slots", lambda: self._store.hold_slots(lane, limit, count))

    async def slots_wanted(self, lane: LaneName) -> int:
        return await self._through("slots_wanted", lambda: self._store.slots_wanted(lane))

    # The outbox.

    async def take_deliveries(
        self, channels: Sequence[str], most: int, now: Instant, until: Instant
    ) -> Sequence[Delivery]:
        return await self._through(
            "take_deliveries", lambda: self._store.take_deliveries(channels, most, now, until)
        )

    async def settle_delivery(
        self, delivery: Delivery, again_at: Instant | None = None, error: str = ""
    ) -> None:
        await self._through(
            "settle_delivery", lambda: self._store.settle_delivery(delivery, again_at, error)
        )

    async def letters(self, query: LetterQuery) -> LetterPage:
        return await self._through("letters", lambda: self._store.letters(query))

    async def retry_letter(self, delivery_id: str, now: Instant) -> bool:
        return await self._through(
            "retry_letter", lambda: self._store.retry_letter(delivery_id, now)
        )

    async def count_letters(self) -> tuple[int, int]:
        return await self._through("count_letters", self._store.count_letters)

    async def note_routes(self, routes: Mapping[AgentName, Route], at: Instant) -> None:
        await self._through("note_routes", lambda: self._store.note_routes(routes, at))

    async def last_route(self, agent: AgentName) -> Route | None:
        return await self._through("last_route", lambda: self._store.last_route(agent))

    # The timetable.

    async def add_job(self, job: Job, ticking: Ticking) -> bool:
        return await self._through("add_job", lambda: self._store.add_job(job, ticking))

    async def change_job(self, job: Job, ticking: Ticking) -> bool:
        return await self._through("change_job", lambda: self._store.change_job(job, ticking))

    async def remove_job(self, job_id: JobId) -> bool:
        return await self._through("remove_job", lambda: self._store.remove_job(job_id))

    async def find_job(self, job_id: JobId) -> JobRecord | None:
        return await self._through("find_job", lambda: self._store.find_job(job_id))

    async def find_job_named(self, agent: AgentName, name: str) -> JobRecord | None:
        return await self._through(
            "find_job_named", lambda: self._store.find_job_named(agent, name)
        )

    async def list_jobs(self, query: JobQuery) -> JobPage:
        return await self._through("list_jobs", lambda: self._store.list_jobs(query))

    async def due_jobs(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        return await self._through("due_jobs", lambda: self._store.due_jobs(now, most, abilities))

    async def settled_jobs(self, most: int) -> Sequence[JobRecord]:
        return await self._through("settled_jobs", lambda: self._store.settled_jobs(most))

    async def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        return await self._through(
            "advance",
            lambda: self._store.advance(advances),
            lambda answers: self._advanced(advances, answers),
        )

    def _advanced(
        self, advances: Sequence[Advance], answers: Sequence[tuple[Admission, ...] | None]
    ) -> None:
        for advance, admissions in zip(advances, answers, strict=True):
            for run, admission in zip(advance.runs, admissions or (), strict=False):
                self._sight.admitted(run, admission)

    async def tally(self, endings: Sequence[Ending]) -> Mapping[JobId, int]:
        return await self._through("tally", lambda: self._store.tally(endings))

    async def job_log(self, query: LogQuery) -> LogPage:
        return await self._through("job_log", lambda: self._store.job_log(query))

    async def keep_text(self, name: str, text: str | None) -> None:
        await self._through("keep_text", lambda: self._store.keep_text(name, text))

    async def text(self, name: str) -> str | None:
        return await self._through("text", lambda: self._store.text(name))

    # The muster.

    async def beat(self, workers: Sequence[Worker], at: Instant) -> None:
        await self._through("beat", lambda: self._store.beat(workers, at))

    async def workers(self, query: WorkerQuery) -> WorkerPage:
        return await self._through("workers", lambda: self._store.workers(query))

    async def find_worker(self, worker_id: str) -> Worker | None:
        return await self._through("find_worker", lambda: self._store.find_worker(worker_id))

    async def beats(self, worker_id: str, most: int) -> Sequence[Beat]:
        return await self._through("beats", lambda: self._store.beats(worker_id, most))

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        await self._through("keep_snapshot", lambda: self._store.keep_snapshot(snapshot))

    async def snapshots(self, query: SnapshotQuery) -> SnapshotPage:
        return await self._through("snapshots", lambda: self._store.snapshots(query))

    async def machines(self) -> Sequence[Snapshot]:
        return await self._through("machines", self._store.machines)

    # The vault.

    async def add_token(self, token: Token) -> bool:
        return await self._through("add_token", lambda: self._store.add_token(token))

    async def tokens(self) -> Sequence[Token]:
        return await self._through("tokens", self._store.tokens)

    async def revoke_token(self, token_id: str) -> bool:
        return await self._through("revoke_token", lambda: self._store.revoke_token(token_id))
