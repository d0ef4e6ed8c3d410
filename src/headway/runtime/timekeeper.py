"""The timekeeper: fires jobs when their time has come, once over all nodes (C-5).

It sleeps until the next instant at which some job is due, and is woken when jobs change, here or on another node.
Then it reads the due jobs in a batch, lets the core decide about each, and has the store keep the decisions: runs,
log and next instants in one transaction, for those jobs only that nobody has changed meanwhile. So a node that
dies on the way leaves nothing half done, and of two nodes that are woken alike one is refused. What it costs
depends on what is due, not on how many jobs there are.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import msgspec

from headway.core.actions import Finish
from headway.core.firing import (
    FIRED,
    GO,
    Decision,
    Look,
    Skip,
    catch_up_pace,
    decide,
    is_late,
    pause,
    settle,
)
from headway.core.heartbeat import Silent, judge
from headway.model.errors import NotRunning, Unavailable
from headway.model.job import Advance, JobRecord
from headway.model.run import JobId, Run, RunId
from headway.model.settings import Settings
from headway.model.time import MILLISECOND, MINUTE, SECOND, Instant, Span
from headway.ports import Admission, Clock, Store
from headway.runtime.callbacks import Callbacks
from headway.runtime.herald import Herald
from headway.runtime.ids import RunIds
from headway.runtime.intake import Intake
from headway.runtime.lookout import Lookout
from headway.runtime.looks import Looks
from headway.runtime.orders import Orders
from headway.runtime.replies import describe

_AT_ONCE = 500
"""So many jobs are read and fired together."""
_TRY_AGAIN: Span = SECOND
_REFUSED: Span = 20 * MILLISECOND
"""The pause after a batch of which nothing was kept."""
_SETTLED_AT_ONCE = 20
_TIDIED_AT_ONCE = 100
_TIDY_EVERY: Span = 5 * MINUTE


class Timekeeper:
    """Fires what is due, and tidies up after jobs that are over."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        ids: RunIds,
        *,
        intake: Intake,
        orders: Orders,
        looks: Looks,
        callbacks: Callbacks,
        herald: Herald,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._ids = ids
        self._intake = intake
        self._orders = orders
        self._callbacks = callbacks
        self._herald = herald
        self._woken = asyncio.Event()
        self._ended: set[JobId] = set()
        """Jobs of which a run has ended in a way that may concern the job."""
        self._refused: frozenset[tuple[JobId, int]] = frozenset()
        """Jobs of the latest batch, with their versions, about which no decision was kept."""
        self._lookout = Lookout(
            store,
            clock,
            looks,
            callbacks,
            decide=self.decide,
            carry_out=self.carry_out,
            free=self.look,
            in_doubt=intake.in_doubt,
        )
        self._tidy_at: Instant = 0
        """When to look for jobs that are over and that nobody has noticed."""

    def look(self) -> None:
        """Jobs have changed, or may have."""
        self._woken.set()

    def ended(self, finish: Finish) -> None:
        """A run of a job has ended: a failure may pause the job, and the end of the last one ends it."""
        firing, outcome = finish.run.firing, finish.outcome
        if firing is None:
            return
        if firing.final or not outcome.ok:
            self._ended.add(firing.job)
            self._woken.set()
        if firing.ack_max_chars is not None and outcome.reply is not None:
            reply = outcome.reply
            verdict = judge(reply.text, bool(reply.attachments), firing.ack_max_chars)
            if isinstance(verdict, Silent):
                self._herald.quiet(finish.run, verdict.reason)

    async def run(self) -> None:
        """Fire for ever. A store that is away is asked again; whatever was due then is due still."""
        while True:
            self._woken.clear()
            try:
                sleep = await self._tick()
            except Unavailable:
                self._intake.in_doubt()
                sleep = _TRY_AGAIN
            if sleep is None or sleep > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if sleep is None else sleep / SECOND):
                        await self._woken.wait()

    async def _tick(self) -> Span | None:
        """Do what is due; answers how long there is nothing to do, None: until something changes."""
        if self._intake.closed:
            return self._settings.poll_every
        now = self._clock.wall()
        due = await self._store.due_jobs(now, _AT_ONCE, self._lookout.abilities())
        if due.jobs:
            plain = [record for record in due.jobs if not record.job.looks]
            looked_for = [record for record in due.jobs if record.job.looks]
            places = self._catch_up_places(due.jobs, now, due.more)
            kept = await self._fire(plain, now, places)
            kept += await self._lookout.look_for(looked_for, now, places)
            await self._settle_ended()
            # What was fired has its next instants; what was refused, another node has just fired.
            return 0 if any(kept) else _REFUSED
        await self._settle_ended()
        if self._ended:
            return 0
        if due.next_at is None:
            return self._settings.poll_every if self._store.durable else None
        # The wall clock may be set, and a hint may be lost: it never sleeps for very long.
        return min(max(0, due.next_at - self._clock.wall()), self._settings.poll_every)

    def _catch_up_places(
        self, records: Sequence[JobRecord], now: Instant, more: bool
    ) -> Mapping[JobId, Instant]:
        """When those start that make up for missed firings: one after the other, the first at once (C-6)."""
        late = [record for record in records if is_late(record, now)]
        pace = catch_up_pace(len(late), self._settings.catch_up_spread)
        if more and len(late) == len(records):
            pace = self._settings.catch_up_spread // len(late)
        begin = self._clock.now()
        return {record.job.id: begin + nth * pace for nth, record in enumerate(late) if nth}

    async def _fire(
        self, records: Sequence[JobRecord], now: Instant, places: Mapping[JobId, Instant]
    ) -> list[bool]:
        if not records:
            return []
        kept = await self.carry_out(
            [
                self.decide(record, now, self._sight(record), places.get(record.job.id))
                for record in records
            ]
        )
        self._refused = frozenset(
            _version(record) for record, was in zip(records, kept, strict=True) if not was
        )
        return kept

    def _sight(self, record: JobRecord) -> Look:
        """Refused although nobody has changed the job: at this time it has fired before (C-5)."""
        return Skip(FIRED) if _version(record) in self._refused else GO

    def decide(
        self, record: JobRecord, now: Instant, look: Look = GO, catch_up_at: Instant | None = None
    ) -> Decision:
        """What a due job does now."""
        composer = self._intake.composer(record.job.agent)
        try:
            return decide(record, now, composer, self._ids.next, look=look, catch_up_at=catch_up_at)
        except Exception as error:  # noqa: BLE001 - one job that cannot be fired must not hold up the others
            return pause(record, now, f"cannot be fired: {describe(error)}")

    async def carry_out(self, decisions: Sequence[Decision]) -> list[bool]:
        """Have the decisions kept, and do what follows from those that were. Answers which were."""
        advances = self._with_claims([decision.advance for decision in decisions])
        runs = [run for advance in advances for run in advance.runs]
        with self._intake.expecting(runs):
            answers = await self._store.advance(advances)
            for decision, advance, answer in zip(decisions, advances, answers, strict=True):
                if answer is not None:
                    self._kept(decision, advance.runs, answer)
        return [answer is not None for answer in answers]

    def _with_claims(self, advances: Sequence[Advance]) -> Sequence[Advance]:
        """With the lanes that there are, and with what of it this node takes for itself at once."""
        runs = [self._intake.in_lane(run) for advance in advances for run in advance.runs]
        claims = iter(zip(runs, self._intake.claims(runs), strict=True))
        claimed: list[Advance] = []
        for advance in advances:
            mine = [next(claims) for _ in advance.runs]
            claimed.append(
                msgspec.structs.replace(
                    advance,
                    runs=tuple(run for run, _ in mine),
                    claims=tuple(takes for _, takes in mine),
                )
            )
        return claimed

    def _kept(
        self, decision: Decision, runs: Sequence[Run], admissions: Sequence[Admission]
    ) -> None:
        for run, admission in zip(runs, admissions, strict=True):
            self._intake.take_in(run, admission)
        self._herald.fired(decision)
        for run_id in decision.supersedes:
            self._callbacks.start(self._supersede(run_id))

    async def _supersede(self, run_id: RunId) -> None:
        """End a run whose place was taken, however long the store is away."""
        while True:
            try:
                return await self._orders.supersede(run_id)
            except NotRunning:
                return None
            except Unavailable:
                await asyncio.sleep(_TRY_AGAIN / SECOND)

    # After the run.

    async def _settle_ended(self) -> None:
        """A few at a time: what is due does not wait until all that has failed was looked at."""
        ended = sorted(self._ended)[:_SETTLED_AT_ONCE]
        self._ended.difference_update(ended)
        records: list[JobRecord] = []
        if self._clock.elapsed() >= self._tidy_at:
            # What ended while nobody was there to notice it.
            records = list(await self._store.settled_jobs(_TIDIED_AT_ONCE))
            self._tidy_at = self._clock.elapsed() + _TIDY_EVERY
        try:
            records += [record async for record in self._found(ended)]
        except BaseException:
            self._ended.update(ended)
            raise
        await self._settle(records)

    async def _found(self, jobs: Iterable[JobId]) -> AsyncIterator[JobRecord]:
        for job in jobs:
            record = await self._store.find_job(job)
            if record is not None:
                yield record

    async def _settle(self, records: Sequence[JobRecord]) -> None:
        now = self._clock.wall()
        decisions = [decision for record in records if (decision := settle(record, now))]
        if decisions:
            await self.carry_out(decisions)


def _version(record: JobRecord) -> tuple[JobId, int]:
    return record.job.id, record.ticking.version
