"""A state machine that tells a store and the memory store the same, and compares every answer.

It plays an engine: it admits runs, decides about the sessions it was granted, stores its decisions in batches and
reads back. What it decides is drawn by Hypothesis, but legal: only what waits is started, only what is unfinished
ends. Epochs and numbers need not be equal, they must only tell the same sessions and the same order apart.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from headway import Outcome, Reply, Route, Settings, State
from headway.core.actions import (
    Action,
    CancelAttempt,
    Deliver,
    Enqueue,
    Finish,
    Merge,
    Release,
    Remember,
    Respond,
    Start,
    Steer,
)
from headway.core.merge import merged
from headway.core.session import BLANK
from headway.model.places import Answer, Configure, Delivery, Order, Standing, StopAll
from headway.model.run import (
    AgentName,
    QueueOptions,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import Limits
from headway.model.time import DAY, HOUR, MINUTE, SECOND, Instant, Span
from headway.model.views import RunView
from headway.model.words import Cut, Mode, Reason, Source
from headway.ports import Admission, Duplicate, Granted, RunQuery, Store, TurnedAway
from headway.store.memory import MemoryStore
from headway.testing import VirtualClock
from tests.contract.world import LEASE, MAIN, Maker, a_run, ask

Result = TypeVar("Result")
Side = int
"""0: the memory store, 1: the store under test."""

SETTINGS = Settings(
    retention=HOUR,
    task_retention=5 * MINUTE,
    retained_runs=1_000_000,
    dedupe=20 * MINUTE,
    idempotency=2 * HOUR,
    cutoff_memory=1_000 * DAY,
)
SESSIONS = ("s", "t")
AGENTS = ("a", "b")
ROUTES = (None, Route("telegram", peer="1"))
OUTCOMES = (
    Outcome(State.DONE, reply=Reply("ok", data={"n": [1, None, 2.5]})),
    Outcome(State.FAILED, Reason.ERROR, error="ValueError: \0"),
    Outcome(State.FAILED, Reason.ORPHANED),
    Outcome(State.CANCELLED, Reason.STOPPED),
    Outcome(State.CANCELLED, Reason.DRAINING),
)
REFUSED = Outcome(State.REJECTED, Reason.QUEUE_FULL)
UNHANDLED = (OUTCOMES[2], OUTCOMES[4], REFUSED)
MEMORIES = (
    BLANK,
    SessionMemory(options=QueueOptions(mode=Mode.COLLECT, cap=2)),
    SessionMemory(cutoff_at=5, cutoff_id=7, cutoff_channel="telegram"),
    SessionMemory(overflow=("one", "two"), overflow_missed=3),
)
CUTS = (Cut.STOPPED, Cut.SUPERSEDED, Cut.DEADLINE, Cut.TIMED_OUT, Cut.PREEMPTED, Cut.DRAINED)
picks = st.integers(0, 1_000)


class Live:
    """An unfinished run, as the machine decided about it."""

    def __init__(self, run: Run, seqs: tuple[int, int]) -> None:
        self.run = run
        self.seqs = seqs
        self.attempt = 0
        self.slot: int | None = None
        """While an attempt runs."""
        self.ticket = 0
        self.started_at: Instant | None = None


class _Session:
    """A session that was granted to the machine."""

    def __init__(self, key: SessionKey, epochs: tuple[int, int]) -> None:
        self.key = key
        self.epochs = epochs
        self.seen = (0, 0)
        self.lives: list[Live] = []
        self.released = False
        """Its release is in the batch that is not stored yet."""

    def free_slot(self) -> int:
        taken = {live.slot for live in self.lives}
        return next(slot for slot in range(len(taken) + 1) if slot not in taken)


class StoreMachine(RuleBasedStateMachine):
    """Derive from it and say how to make the store."""

    def __init__(self) -> None:
        super().__init__()
        self._closing = ExitStack()
        make = self._closing.enter_context(self.database())
        self._runner = self._closing.enter_context(asyncio.Runner())
        self.clock = VirtualClock()
        self.stores: tuple[Store, Store] = (
            MemoryStore(SETTINGS, self.clock),
            make(SETTINGS, self.clock),
        )
        for store in self.stores:
            self._await(store.open())
            self._await(store.enlist("machine", LEASE))
        self.sessions: dict[SessionKey, _Session] = {}
        self.epochs: dict[int, int] = {}
        """Which epoch of the store is which of the memory store."""
        self.batch: list[Callable[[Side], Action]] = []
        self.runs: dict[RunId, Run] = {}
        self.ended: dict[RunId, Instant] = {}
        self.keyed: list[RunId] = []
        self.taken_over: dict[RunId, list[RunId]] = {}
        self.deliveries = 0
        self.taken: dict[str, Delivery] = {}
        self.orders = 0
        self.tickets = 0
        self.batches = 0

    @abstractmethod
    def database(self) -> AbstractContextManager[Maker]:
        """A new, empty database for the block, and how a process makes its store on it."""

    def teardown(self) -> None:
        try:
            self._flush()
        finally:
            self._await(self.stores[1].close())
            self._closing.close()

    # What comes in.

    @rule(
        session=st.sampled_from(SESSIONS),
        agent=st.sampled_from(AGENTS),
        source=st.sampled_from((Source.MESSAGE, Source.TASK)),
        route=st.sampled_from(ROUTES),
        message_id=st.sampled_from((None, "1", "2")),
        key=st.sampled_from((None, "k")),
    )
    def admit(
        self,
        *,
        session: str,
        agent: str,
        source: Source,
        route: Route | None,
        message_id: str | None,
        key: str | None,
    ) -> None:
        run = a_run(
            f"run-{len(self.runs)}",
            session,
            self.clock,
            {
                "agent": AgentName(agent),
                "source": source,
                "route": route,
                "message_id": message_id,
                "idempotency_key": key,
                "text": f"text {len(self.runs)}",
            },
        )
        self._admit(run, retry=False)

    @precondition(lambda self: self.keyed)
    @rule(pick=picks, retry=st.booleans())
    def send_again(self, pick: int, retry: bool) -> None:
        """The same message or key as before: known, free again, or to be retried (S-8, D-6)."""
        self._send_again(self.keyed[pick % len(self.keyed)], retry=retry)

    @precondition(lambda self: self.keyed)
    @rule(
        pick=picks,
        lasts=st.sampled_from((SETTINGS.dedupe, SETTINGS.idempotency)),
        early=st.booleans(),
    )
    def send_again_when_a_key_ends(self, pick: int, lasts: Span, early: bool) -> None:
        run_id = self.keyed[pick % len(self.keyed)]
        ends_at = self.runs[run_id].submitted_at + lasts - early
        if ends_at > self.clock.now():
            self.clock.advance(ends_at - self.clock.now())
            self._send_again(run_id, retry=False)

    def _send_again(self, run_id: RunId, *, retry: bool) -> None:
        again = msgspec.structs.replace(
            self.runs[run_id], id=RunId(f"run-{len(self.runs)}"), submitted_at=self.clock.now()
        )
        self._admit(again, retry=retry)

    def _admit(self, run: Run, *, retry: bool) -> None:
        self._admitted(run, *self._both(lambda store: ask(store, run, retry=retry)))

    @rule(
        asked=st.lists(
            st.tuples(
                st.sampled_from(SESSIONS),
                st.sampled_from(AGENTS),
                st.sampled_from((Source.MESSAGE, Source.TASK)),
                st.sampled_from((None, "1", "2")),
                st.sampled_from((None, "k", "l")),
            ),
            max_size=4,
        ),
        room=st.integers(0, 3),
        room_of_agent=st.integers(0, 2),
    )
    def admit_together(
        self,
        asked: list[tuple[str, str, Source, str | None, str | None]],
        room: int,
        room_of_agent: int,
    ) -> None:
        """All or none (T-5), close to the limits."""
        self._flush()
        runs: list[Run] = []
        self.batches += 1
        for place, (session, agent, source, message_id, key) in enumerate(asked):
            name = f"batch-{self.batches}-{place}"
            fields = {
                "agent": AgentName(agent),
                "source": source,
                "message_id": message_id,
                "idempotency_key": key,
            }
            runs.append(a_run(name, session, self.clock, fields))
        waiting = [
            live.run.agent
            for held in self.sessions.values()
            for live in held.lives
            if live.slot is None and live.run.source is Source.TASK
        ]
        limits = Limits(len(waiting) + room, waiting.count(AgentName("a")) + room_of_agent)
        for store in self.stores:
            store.set_limits(limits)
        ours, theirs = self._both(lambda store: store.admit_together(runs, [True] * len(runs)))
        for store in self.stores:
            store.set_limits(SETTINGS.limits)
        if isinstance(ours, TurnedAway):
            assert theirs == ours
            for run in runs:
                assert self._both(lambda store: store.find(run.id)) == (None, None)  # noqa: B023
            return
        assert not isinstance(theirs, TurnedAway)
        # Sessions that are taken together may have their epochs in any order.
        latest = self._latest_epoch()
        for run, one, other in zip(runs, ours, theirs, strict=True):
            self._admitted(run, one, other, latest)

    def _admitted(
        self, run: Run, ours: Admission, theirs: Admission, latest: int | None = None
    ) -> None:
        if isinstance(ours, Duplicate):
            assert theirs == ours
            self._same_view(ours.run_id, must_be_known=True)
            return
        held = self._granted(run.session, ours, theirs, latest)
        self.runs[run.id] = run
        if run.message_id is not None or run.idempotency_key is not None:
            self.keyed.append(run.id)
        held.lives.append(Live(run, held.seen))

    @rule(session=st.sampled_from(SESSIONS), stop=st.booleans(), pick=picks)
    def order(self, session: str, stop: bool, pick: int) -> None:
        key = SessionKey(session)
        self.orders += 1
        command = StopAll() if stop else Configure(QueueOptions(cap=3))
        order = Order(f"o-{self.orders}", key, command)
        ours, theirs = self._both(lambda store: store.order(order))
        held = self._granted(key, ours, theirs)
        answer = Answer(pick % 3, pick % 2)
        seqs = held.seen
        self._decide(
            lambda side: Respond(
                Order(order.id, key, command, seqs[side]), answer, held.epochs[side]
            )
        )

    def _latest_epoch(self) -> int:
        return max(self.epochs.values(), default=0)

    def _granted(
        self, key: SessionKey, ours: object, theirs: object, latest: int | None = None
    ) -> _Session:
        assert isinstance(ours, Granted), ours
        assert isinstance(theirs, Granted), theirs
        assert (theirs.memory, theirs.fresh) == (ours.memory, ours.fresh)
        held = self.sessions.get(key)
        if held is None:
            held = self.sessions[key] = _Session(key, (ours.epoch, theirs.epoch))
            assert ours.epoch not in self.epochs
            assert theirs.epoch not in self.epochs.values(), "an epoch never comes again (N-5)"
            assert theirs.epoch > (self._latest_epoch() if latest is None else latest)
            self.epochs[ours.epoch] = theirs.epoch
        else:
            assert held.epochs == (ours.epoch, theirs.epoch)
            assert theirs.seq - held.seen[1] == ours.seq - held.seen[0]
        held.seen = (ours.seq, theirs.seq)
        return held

    # What the engine decides.

    @precondition(lambda self: self._lives(running=False))
    @rule(pick=picks, overflow=st.booleans())
    def start(self, pick: int, overflow: bool) -> None:
        held, live = self._pick(pick, running=False)
        if overflow:
            live.run = msgspec.structs.replace(live.run, overflow=("dropped",))
        self.tickets += 1
        live.slot, live.ticket = held.free_slot(), self.tickets
        live.attempt += 1
        live.started_at = now = self.clock.now()
        run, ticket, attempt, slot = live.run, live.ticket, live.attempt, live.slot
        self._decide(lambda side: Start(run, ticket, attempt, held.epochs[side], now, slot))

    @precondition(lambda self: self._lives(running=True))
    @rule(pick=picks, outcome=st.sampled_from(OUTCOMES))
    def finish(self, pick: int, outcome: Outcome) -> None:
        self._end(*self._pick(pick, running=True), outcome)

    @precondition(lambda self: self._lives(running=False))
    @rule(pick=picks, outcome=st.sampled_from((*OUTCOMES[1:], REFUSED)))
    def end_waiting(self, pick: int, outcome: Outcome) -> None:
        self._end(*self._pick(pick, running=False), outcome)

    @precondition(lambda self: self._lives(running=True))
    @rule(
        pick=picks,
        cut=st.sampled_from((None, Cut.PREEMPTED, Cut.DRAINED)),
        wait=st.sampled_from((0, HOUR)),
    )
    def queue_again(self, pick: int, cut: Cut | None, wait: Span) -> None:
        held, live = self._pick(pick, running=True)
        live.slot = None
        self._enqueue(held, live, wait, cut, ended=True)

    @precondition(lambda self: self._lives(running=False))
    @rule(pick=picks, wait=st.sampled_from((0, HOUR)))
    def hold(self, pick: int, wait: Span) -> None:
        self._enqueue(*self._pick(pick, running=False), wait, None, ended=False)

    def _enqueue(
        self, held: _Session, live: Live, wait: Span, cut: Cut | None, *, ended: bool
    ) -> None:
        until = self.clock.now() + wait if wait else None
        state = State.PENDING if wait else State.QUEUED
        run, attempt, seqs = live.run, live.attempt, live.seqs
        self._decide(
            lambda side: Enqueue(
                run,
                state,
                attempt,
                held.epochs[side],
                until,
                cut,
                standing=Standing(after=seqs[side], until=until),
                ended=ended,
            )
        )

    @precondition(lambda self: self._lives(running=True))
    @rule(pick=picks, cut=st.sampled_from(CUTS))
    def cancel(self, pick: int, cut: Cut) -> None:
        held, live = self._pick(pick, running=True)
        run, ticket = live.run, live.ticket
        self._decide(lambda side: CancelAttempt(run, ticket, cut, held.epochs[side]))

    @precondition(lambda self: self._lives(running=False))
    @rule(pick=picks)
    def merge(self, pick: int) -> None:
        held, first = self._pick(pick, running=False)
        waiting = [live for live in held.lives if live.slot is None]
        parts = waiting[waiting.index(first) :][:2]
        whole = merged([part.run for part in parts])
        seen = held.seen
        self.runs[whole.id] = whole
        self._decide(lambda side: Merge(whole, held.epochs[side], seen[side]))
        for part in parts:
            self._end(held, part, Outcome(State.CANCELLED, Reason.MERGED, into=whole.id))
        held.lives.append(Live(whole, seen))

    @precondition(lambda self: self._lives(running=True))
    @rule(pick=picks)
    def steer(self, pick: int) -> None:
        """A message comes, and a running turn takes it from its inbox."""
        held, turn = self._pick(pick, running=True)
        number = len(self.runs)
        message = a_run(f"run-{number}", held.key, self.clock, {"message_id": f"steer-{number}"})
        self._admit(message, retry=False)
        live = held.lives[-1]
        self._decide(lambda side: Steer(message, turn.ticket, held.epochs[side]))
        self._end(held, live, Outcome(State.DONE, into=turn.run.id))

    @precondition(lambda self: self._takers())
    @rule(pick=picks, outcome=st.sampled_from(UNHANDLED))
    def give_up(self, pick: int, outcome: Outcome) -> None:
        """A run that took over others ends and nobody dealt with it: they are sent again (S-8)."""
        takers = self._takers()
        held, live = takers[pick % len(takers)]
        self._end(held, live, outcome)
        self._flush()
        for part in self.taken_over[live.run.id]:
            if part in self.keyed:
                self._send_again(part, retry=False)

    def _takers(self) -> list[tuple[_Session, Live]]:
        lives = self._lives(running=False) + self._lives(running=True)
        return [(held, live) for held, live in lives if live.run.id in self.taken_over]

    @precondition(lambda self: self._held())
    @rule(pick=picks, memory=st.sampled_from(MEMORIES))
    def remember(self, pick: int, memory: SessionMemory) -> None:
        held = self._held()[pick % len(self._held())]
        self._decide(lambda side: Remember(held.key, memory, held.epochs[side]))

    @precondition(lambda self: any(not held.lives for held in self._held()))
    @rule(pick=picks)
    def release(self, pick: int) -> None:
        """Sent off with what was seen by then; what is admitted before it is stored keeps the session."""
        idle = [held for held in self._held() if not held.lives]
        held = idle[pick % len(idle)]
        held.released = True
        seen = held.seen
        self._decide(lambda side: Release(held.key, held.epochs[side], seen[side]))

    @precondition(lambda self: self._held())
    @rule(pick=picks, channel=st.sampled_from(("telegram", "web")))
    def deliver(self, pick: int, channel: str) -> None:
        held = self._held()[pick % len(self._held())]
        self.deliveries += 1
        name, now = f"d-{self.deliveries}", self.clock.advance(1)
        self._decide(
            lambda side: Deliver(
                Delivery(
                    name, Route(channel), "text", RunId("run-0"), held.key, held.epochs[side],
                    first_at=now,
                )
            )
        )  # fmt: skip

    def _held(self) -> list[_Session]:
        """The sessions about which the machine may decide."""
        return [held for held in self.sessions.values() if not held.released]

    def _lives(self, *, running: bool) -> list[tuple[_Session, Live]]:
        return [
            (held, live)
            for held in self._held()
            for live in held.lives
            if (live.slot is not None) is running
        ]

    def _pick(self, pick: int, *, running: bool) -> tuple[_Session, Live]:
        lives = self._lives(running=running)
        return lives[pick % len(lives)]

    def _end(self, held: _Session, live: Live, outcome: Outcome) -> None:
        held.lives.remove(live)
        now = self.clock.now()
        self.ended[live.run.id] = now
        if outcome.into is not None:
            self.taken_over.setdefault(RunId(outcome.into), []).append(live.run.id)
        run, attempt, started_at = live.run, live.attempt, live.started_at
        self._decide(lambda side: Finish(run, outcome, attempt, held.epochs[side], now, started_at))

    def _decide(self, action: Callable[[Side], Action]) -> None:
        self.batch.append(action)

    @precondition(lambda self: self.batch)
    @rule()
    def store_batch(self) -> None:
        self._flush()

    def _flush(self) -> None:
        if not self.batch:
            return
        batch, self.batch = self.batch, []
        ours, theirs = (
            self._await(store.record([action(side) for action in batch]))
            for side, store in enumerate(self.stores)
        )
        assert set(theirs.kept) == set(ours.kept)
        assert theirs.lost == ()
        for held in list(self.sessions.values()):
            if held.released:
                held.released = False
                if held.key not in theirs.kept:
                    del self.sessions[held.key]

        self._compare_all()

    # What is read.

    def _compare_all(self) -> None:
        for run_id in self.runs:
            self._same_view(run_id)
        asked = [*self.runs, RunId("nope")]
        ours, theirs = self._both(lambda store: store.outcomes(asked))
        assert self._without_past(theirs) == self._without_past(ours)
        for session in SESSIONS:
            self._same_memory(SessionKey(session))
        ours_, theirs_ = self._both(lambda store: store.nodes())
        (us,), (them,) = ours_, [view for view in theirs_ if not view.ended]
        assert (us.name, us.lease, us.started_at) == (them.name, them.lease, them.started_at)
        assert (us.sessions, us.running) == (them.sessions, them.running)

    def _without_past(self, outcomes: Mapping[RunId, Outcome]) -> Mapping[RunId, Outcome]:
        return {
            run_id: outcome for run_id, outcome in outcomes.items() if not self._is_past(run_id)
        }

    def _same_memory(self, key: SessionKey) -> None:
        ours, theirs = self._both(lambda store: store.memory_of(key))
        assert theirs == ours

    @precondition(lambda self: self.runs)
    @rule(
        agent=st.sampled_from((None, *AGENTS)),
        session=st.sampled_from((None, *SESSIONS)),
        source=st.sampled_from((None, Source.MESSAGE, Source.TASK, Source.FIRING)),
        limit=st.integers(1, 3),
    )
    def list_pages(
        self, agent: str | None, session: str | None, source: Source | None, limit: int
    ) -> None:
        narrowed = {"agent": agent, "session": session, "source": source, "limit": limit}
        for state in (None, *State):
            query = {**narrowed, "state": state}
            ours, theirs = self._both(lambda store: self._pages(store, query))  # noqa: B023
            assert theirs == ours

    async def _pages(self, store: Store, query: Mapping[str, object]) -> list[RunView]:
        """All pages, without the runs that a store may have forgotten or not."""
        views: list[RunView] = []
        cursor: str | None = None
        while True:
            page = await store.list(RunQuery(**query, cursor=cursor))  # type: ignore[arg-type]
            views += page.runs
            cursor = page.cursor
            assert len(page.runs) == query["limit"] or cursor is None
            if cursor is None:
                return [view for view in views if not self._is_past(view.id)]

    @rule(most=st.integers(1, 4), channels=st.sampled_from((["web"], ["telegram", "web"])))
    def take_deliveries(self, most: int, channels: list[str]) -> None:
        now = self.clock.now()
        ours, theirs = self._both(
            lambda store: store.take_deliveries(channels, most, now, now + MINUTE)
        )
        assert [_renamed(delivery) for delivery in ours] == [
            _renamed(delivery) for delivery in theirs
        ]
        self.taken |= {delivery.id: delivery for delivery in theirs}

    @precondition(lambda self: self.taken)
    @rule(again=st.sampled_from((None, 0, SECOND, HOUR)), error=st.sampled_from(("", "no")))
    def settle(self, again: Span | None, error: str) -> None:
        _, delivery = self.taken.popitem()
        again_at = None if again is None else self.clock.now() + again
        self._both(lambda store: store.settle_delivery(delivery, again_at, error))

    @rule(count=st.integers(0, 7))
    def slots(self, count: int) -> None:
        ours, theirs = self._both(lambda store: store.hold_slots(MAIN, 5, count))
        assert theirs == ours

    # Time.

    @rule(by=st.sampled_from((SECOND, 5 * MINUTE - 1, 5 * MINUTE, 20 * MINUTE - 1, HOUR)))
    def pass_time(self, by: Span) -> None:
        self.clock.advance(by)

    @precondition(lambda self: self.ended)
    @rule(pick=picks, early=st.booleans())
    def prune(self, pick: int, early: bool) -> None:
        """At the end of one run's time. What is past it, and no key can lead to, is gone then."""
        self._flush()
        run_id = list(self.ended)[pick % len(self.ended)]
        past_at = self._past_at(run_id) - early
        if past_at > self.clock.now():
            self.clock.advance(past_at - self.clock.now())
        self._both(lambda store: store.prune(1_000))
        for past in self.ended:
            if self._is_past(past) and past not in self.keyed:
                assert self._both(lambda store: store.find(past)) == (None, None)  # noqa: B023
        self._compare_all()

    def _same_view(self, run_id: RunId, *, must_be_known: bool = False) -> None:
        ours, theirs = self._both(lambda store: store.find(run_id))
        if must_be_known or not self._is_past(run_id):
            assert ours is not None
            assert theirs == ours
        else:
            assert ours is None or theirs is None or theirs == ours

    def _is_past(self, run_id: RunId) -> bool:
        """Whether its retention is over: a store may have forgotten it, or not yet."""
        return run_id in self.ended and self._past_at(run_id) <= self.clock.now()

    def _past_at(self, run_id: RunId) -> Instant:
        task = self.runs[run_id].source is Source.TASK
        return self.ended[run_id] + (SETTINGS.task_retention if task else SETTINGS.retention)

    def _both(
        self, call: Callable[[Store], Coroutine[object, object, Result]]
    ) -> tuple[Result, Result]:
        ours, theirs = self.stores
        return self._await(call(ours)), self._await(call(theirs))

    def _await(self, call: Coroutine[object, object, Result]) -> Result:
        return self._runner.run(call)


def _renamed(delivery: Delivery) -> Delivery:

    return msgspec.structs.replace(delivery, epoch=0)
