"""The timekeeper: fires jobs when their time has come, once over all nodes (C-5).

It sleeps until the next instant at which some job is due, and is woken when jobs change, here or on another node.
Then it reads the due jobs in a batch, lets the core decide about each, and has the store keep the decisions: runs,
log and next instants in one transaction, for those jobs only that nobody has changed meanwhile. So a node that
dies on the way leaves nothing half done, and of two nodes that are woken alike one is refused. What it costs
depends on what is due, not on how many jobs there are.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from headway.core.actions import Finish
from headway.core.firing import (
    FIRED,
    GO,
    MAX_FAILURES,
    Decision,
    Look,
    Skip,
    catch_up_pace,
    decide,
    is_late,
    pause,
    put_off,
    settle,
    sooner,
)
from headway.core.heartbeat import Silent, judge
from headway.model.errors import InvalidInput, NotRunning, Unavailable
from headway.model.job import Advance, Ending, JobRecord
from headway.model.run import JobId, Run, RunId
from headway.model.settings import Settings
from headway.model.time import HOUR, MILLISECOND, MINUTE, SECOND, Instant, Span
from headway.ports import Admission, Clock, JobQuery, Store
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
_FAR: Span = 2 * HOUR
"""A step of the clock by more may be a mistake that is put right later."""
_PUT_OFF: Span = 5 * MINUTE
"""So long a job is left to other nodes that this one cannot fire."""
_RUNS_AT_ONCE = 1_000
"""So many runs are made together, whatever the number of jobs."""
_COUNTED_AT_ONCE = 500
_COUNT_WITHIN_S = 1.0
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
        self._looks = looks
        self._callbacks = callbacks
        self._herald = herald
        self._woken = asyncio.Event()
        self._endings: list[Ending] = []
        """Runs that have ended and are not counted yet."""
        self._over: set[JobId] = set()
        """Jobs that may be over, or have failed too often."""
        self._refused: frozenset[tuple[JobId, int]] = frozenset()
        """Jobs of the latest batch, with their versions, about which no decision was kept."""
        self._lookout = Lookout(
            store,
            clock,
            looks,
            callbacks,
            spread=settings.catch_up_spread,
            decide=self.decide,
            carry_out=self.carry_out,
            free=self.look,
            in_doubt=intake.in_doubt,
        )
        self._seen: tuple[Instant, Instant] | None = None
        """What the wall clock showed last, and the one that never steps."""
        self._right_until: Instant | None = None
        """What the wall clock showed before it went far ahead, if it did."""
        self._tidy_at: Instant = 0
        """When to look for jobs that are over and that nobody has noticed."""

    def look(self) -> None:
        """Jobs have changed, or may have."""
        self._woken.set()

    def ended(self, finish: Finish) -> None:
        """A run of a job has ended: failures in a row may pause the job, and the end of the last one ends it."""
        firing, outcome = finish.run.firing, finish.outcome
        if firing is None:
            return
        self._endings.append(
            Ending(
                firing.job,
                finish.run.id,
                outcome.state,
                finish.at,
                finish.started_at,
                outcome.error,
            )
        )
        if firing.final:
            self._over.add(firing.job)
        if firing.final or not outcome.ok:
            self._woken.set()
        elif len(self._endings) == 1:
            # That a run went well is not urgent: many are counted together.
            asyncio.get_running_loop().call_later(_COUNT_WITHIN_S, self._woken.set)
        if firing.ack_max_chars is not None and outcome.reply is not None:
            reply = outcome.reply
            verdict = judge(reply.text, bool(reply.attachments), firing.ack_max_chars)
            if isinstance(verdict, Silent):
                self._herald.quiet(finish.run, verdict.reason)

    async def flush(self) -> None:
        """Count what has ended so far: the node leaves."""
        while self._endings:
            await self._count()

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
        await self._watch_clock(now)
        due = await self._store.due_jobs(now, _AT_ONCE, self._lookout.abilities())
        if due.jobs:
            plain = [record for record in due.jobs if not record.job.looks]
            looked_for = [record for record in due.jobs if record.job.looks]
            kept = await self._fire(plain, now, self._catch_up_places(plain, now, due.more))
            kept += await self._lookout.look_for(looked_for, now)
            await self._settle_ended()
            # What was fired has its next instants; what was refused, another node has just fired.
            return 0 if any(kept) else _REFUSED
        await self._settle_ended()
        if self._endings or self._over:
            return 0
        if due.next_at is None:
            return self._settings.poll_every if self._store.durable else None
        # The wall clock may be set, and a hint may be lost: it never sleeps for very long.
        return min(max(0, due.next_at - self._clock.wall()), self._settings.poll_every)

    async def _watch_clock(self, now: Instant) -> None:
        """A clock that was far ahead for a while and is right again: what it has put off comes when it should.

        What is due before the clock went ahead was fired then, and is not looked at again (C-5).
        """
        elapsed = self._clock.elapsed()
        seen, self._seen = self._seen, (now, elapsed)
        if seen is None:
            return
        expected = seen[0] + elapsed - seen[1]
        if now - expected > _FAR:
            self._right_until = expected
        elif expected - now > _FAR and self._right_until is not None:
            await self._count_anew(max(now, self._right_until))
            self._right_until = None

    async def _count_anew(self, after: Instant) -> None:
        cursor: str | None = None
        while True:
            page = await self._store.list_jobs(JobQuery(None, True, None, _AT_ONCE, cursor))
            decisions = [decision for record in page.jobs if (decision := sooner(record, after))]
            if decisions:
                await self.carry_out(decisions)
            cursor = page.cursor
            if cursor is None:
                return

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
        kept: list[bool] = []
        decisions: list[Decision] = []
        runs = 0
        for record in records:
            place = places.get(record.job.id)
            decisions.append(self.decide(record, now, self._sight(record), place))
            runs += len(decisions[-1].advance.runs)
            if runs >= _RUNS_AT_ONCE:
                # Firings that make up for many missed ones: others have their turn in between.
                kept += await self.carry_out(decisions)
                decisions, runs = [], 0
        if decisions:
            kept += await self.carry_out(decisions)
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
        except InvalidInput as wrong:
            return pause(record, now, f"cannot be fired: {describe(wrong)}")
        except Exception as error:  # noqa: BLE001 - one job that cannot be fired must not hold up the others
            # Perhaps only here: a node may lack a time zone that others know.
            self._herald.callback_failed(f"firing job {record.job.name!r}", describe(error))
            return put_off(record, now + _PUT_OFF)

    async def carry_out(self, decisions: Sequence[Decision]) -> list[bool]:
        """Have the decisions kept, and do what follows from those that were. Answers which were."""
        advances = self._with_claims([decision.advance for decision in decisions])
        runs = [run for advance in advances for run in advance.runs]
        with self._intake.expecting(runs):
            try:
                answers = await self._store.advance(advances)
            except BaseException:
                # Whoever asked, be it by hand: what it made may be kept, and its sessions this node's.
                self._intake.in_doubt()
                raise
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
            self._callbacks.start(self._again(self._orders.supersede, run_id))
        for run_id in decision.ends:
            self._callbacks.start(self._again(self._orders.end_waiting, run_id))

    async def _again(self, give: Callable[[RunId], Awaitable[None]], run_id: RunId) -> None:
        """Give an order about a run, however long the store is away."""
        while True:
            try:
                return await give(run_id)
            except NotRunning:
                return None
            except Unavailable:
                await asyncio.sleep(_TRY_AGAIN / SECOND)

    # After the run.

    async def _settle_ended(self) -> None:
        """A few at a time: what is due does not wait until all that has ended was looked at."""
        if self._endings:
            await self._count()
        over = sorted(self._over)[:_SETTLED_AT_ONCE]
        records: list[JobRecord] = []
        if self._clock.elapsed() >= self._tidy_at:
            # What ended while nobody was there to notice it.
            records = list(await self._store.settled_jobs(_TIDIED_AT_ONCE))
            self._tidy_at = self._clock.elapsed() + _TIDY_EVERY
        records += [record async for record in self._found(over)]
        self._over.difference_update(over)
        await self._settle(records)

    async def _count(self) -> None:
        counted = self._endings[:_COUNTED_AT_ONCE]
        failed = await self._store.tally(counted)
        del self._endings[: len(counted)]
        self._over.update(job for job, count in failed.items() if count >= MAX_FAILURES)

    async def _found(self, jobs: Iterable[JobId]) -> AsyncIterator[JobRecord]:
        for job in jobs:
            record = await self._store.find_job(job)
            if record is not None:
                yield record

    async def _settle(self, records: Sequence[JobRecord]) -> None:
        now = self._clock.wall()
        decisions = [
            decision
            for record in records
            if (decision := settle(record, now, await self._looks.target_of(record.job)))
        ]
        if decisions:
            await self.carry_out(decisions)


def _version(record: JobRecord) -> tuple[JobId, int]:
    return record.job.id, record.ticking.version
