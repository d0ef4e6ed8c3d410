"""The state machine finds nothing where there is nothing, and each of these faults."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from headway import Outcome, Route, Settings, State
from headway.core.actions import (
    Action,
    CancelAttempt,
    Deliver,
    Enqueue,
    Finish,
    Merge,
    Release,
    Remember,
    Start,
)
from headway.model.job import Advance, Job, JobRecord, Ticking
from headway.model.places import Delivery
from headway.model.run import AgentName, JobId, Run, RunId
from headway.model.time import MINUTE, SECOND, Instant
from headway.ports import (
    Admission,
    Clock,
    DueJobs,
    JobPage,
    JobQuery,
    LetterQuery,
    LogPage,
    LogQuery,
    Recorded,
    RunPage,
    RunQuery,
    TurnedAway,
)
from headway.store.memory import MemoryStore
from tests.contract.job_machine import JobMachine
from tests.contract.machine import StoreMachine
from tests.contract.world import Maker

TRIED = settings(
    max_examples=1_000,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    print_blob=False,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.too_slow],
)


def machine_over(maker: Maker) -> type[StoreMachine]:
    class Machine(StoreMachine):
        @contextmanager
        def database(self) -> Iterator[Maker]:
            yield maker

    return Machine


def job_machine_over(maker: Maker) -> type[StoreMachine]:
    class Machine(JobMachine):
        @contextmanager
        def database(self) -> Iterator[Maker]:
            yield maker

    return Machine


@pytest.mark.parametrize("over", [machine_over, job_machine_over])
def test_it_finds_nothing_in_the_memory_store_itself(
    over: Callable[[Maker], type[StoreMachine]],
) -> None:
    run_state_machine_as_test(over(MemoryStore), settings=settings(TRIED, max_examples=50))


class _ShortKeys(MemoryStore):
    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(msgspec.structs.replace(settings, dedupe=19 * MINUTE), clock)


class _ForgetsTooSoon(MemoryStore):
    def __init__(self, settings: Settings, clock: Clock) -> None:
        super().__init__(
            msgspec.structs.replace(settings, task_retention=5 * MINUTE - SECOND), clock
        )


class _ReleasesOverNewRuns(MemoryStore):
    def _release(self, release: Release) -> bool:
        self._held.pop(release.session, None)
        return True


class _RepeatsEpochs(MemoryStore):
    def _release(self, release: Release) -> bool:
        released = super()._release(release)
        self._epochs -= released
        return released


class _KeepsKeysOfMerged(MemoryStore):
    def _free_keys(self, run: Run, outcome: Outcome) -> None:
        kept = {part: self._records.pop(part) for part in run.merged_from if part in self._records}
        super()._free_keys(run, outcome)
        self._records |= kept


class _KeepsKeysOfAbsorbed(MemoryStore):
    def _absorbed_by(self, run_id: RunId) -> Sequence[RunId]:
        return ()


class _SkipsAPage(MemoryStore):
    async def list(self, query: RunQuery) -> RunPage:
        page = await super().list(query)
        if page.cursor is None:
            return page
        return RunPage(page.runs, str(int(page.cursor) - 1))


class _ListsAnotherState(MemoryStore):
    async def list(self, query: RunQuery) -> RunPage:
        if query.state is State.PENDING:
            query = msgspec.structs.replace(query, state=State.QUEUED)
        return await super().list(query)


class _ListsAnotherSource(MemoryStore):
    async def list(self, query: RunQuery) -> RunPage:
        return await super().list(replace(query, source=None))


class _AdmitsSomeOfMany(MemoryStore):
    async def admit_together(
        self, runs: Sequence[Run], claims: Sequence[bool]
    ) -> Sequence[Admission] | TurnedAway:
        answer = await super().admit_together(runs, claims)
        if isinstance(answer, TurnedAway):
            await super().admit_together(runs[:1], claims[:1])
        return answer


class _CountsThoseAskedBefore(MemoryStore):
    def _not_asked_before(self, runs: Sequence[Run]) -> Sequence[Run]:
        return runs


class _CountsWhatRuns(MemoryStore):
    def _waiting(self) -> Iterator[Run]:
        yield from super()._waiting()
        for record in self._records.values():
            if isinstance(record, Start):
                yield record.run


def _deaf_to(kind: type[Action]) -> Maker:
    """A store that does not keep one kind of action."""

    class Deaf(MemoryStore):
        async def record(self, actions: Sequence[Action]) -> Recorded:
            return await super().record([one for one in actions if type(one) is not kind])

    return Deaf


FAULTS: dict[str, Maker] = {
    "lets keys end too soon": _ShortKeys,
    "forgets too soon": _ForgetsTooSoon,
    "releases over new runs": _ReleasesOverNewRuns,
    "repeats epochs": _RepeatsEpochs,
    "keeps the keys of merged messages": _KeepsKeysOfMerged,
    "keeps the keys of absorbed messages": _KeepsKeysOfAbsorbed,
    "skips at the end of a page": _SkipsAPage,
    "lists another state": _ListsAnotherState,
    "lists another source": _ListsAnotherSource,
    "admits some of many": _AdmitsSomeOfMany,
    "counts those asked before": _CountsThoseAskedBefore,
    "counts what runs": _CountsWhatRuns,
    **{
        f"misses a {kind.__name__}": _deaf_to(kind)
        for kind in (Start, Finish, Enqueue, Merge, CancelAttempt, Remember, Release, Deliver)
    },
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_finds_a_store_that(fault: str) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine_over(FAULTS[fault]), settings=TRIED)


class _AdvancesByAnyVersion(MemoryStore):
    async def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        known = [await self.find_job(advance.job) for advance in advances]
        return await super().advance(
            [
                advance if record is None else replace(advance, version=record.ticking.version)
                for advance, record in zip(advances, known, strict=True)
            ]
        )


class _ChangesByAnyVersion(MemoryStore):
    async def change_job(self, job: Job, ticking: Ticking) -> bool:
        record = await self.find_job(job.id)
        if record is not None:
            ticking = replace(ticking, version=record.ticking.version)
        return await super().change_job(job, ticking)


class _FiresTwice(MemoryStore):
    async def advance(self, advances: Sequence[Advance]) -> Sequence[tuple[Admission, ...] | None]:
        self._log._fired.clear()
        return await super().advance(advances)


class _FiresForAllNodes(MemoryStore):
    async def due_jobs(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        return await super().due_jobs(
            now,
            most,
            (
                "function:look",
                "agent:a",
                "agent:b",
                "gate:a",
                "file:a",
                "checklist:a",
                "checklist:b",
            ),
        )


class _FiresLate(MemoryStore):
    async def due_jobs(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        return await super().due_jobs(now - 1, most, abilities)


class _SleepsTooLong(MemoryStore):
    async def due_jobs(self, now: Instant, most: int, abilities: Sequence[str]) -> DueJobs:
        due = await super().due_jobs(now, most, abilities)
        return due if due.jobs else replace(due, next_at=None)


def _advancing(change: Callable[[Advance], Advance]) -> Maker:
    """A store that keeps something else than was decided."""

    class Changing(MemoryStore):
        async def advance(
            self, advances: Sequence[Advance]
        ) -> Sequence[tuple[Admission, ...] | None]:
            return await super().advance(list(map(change, advances)))

    return Changing


class _SaysTwice(MemoryStore):
    async def record(self, actions: Sequence[Action]) -> Recorded:
        return await super().record(
            [
                Deliver(replace(one.delivery, once="")) if isinstance(one, Deliver) else one
                for one in actions
            ]
        )


class _RemembersTooLong(MemoryStore):
    async def record(self, actions: Sequence[Action]) -> Recorded:
        return await super().record(
            [
                Deliver(replace(one.delivery, once_until=one.delivery.once_until + 1))
                if isinstance(one, Deliver)
                else one
                for one in actions
            ]
        )


class _BuriesLetters(MemoryStore):
    async def settle_delivery(
        self, delivery: Delivery, again_at: Instant | None = None, error: str = ""
    ) -> None:
        await super().settle_delivery(delivery, again_at, "" if again_at is None else error)


class _RetriesNothing(MemoryStore):
    async def retry_letter(self, delivery_id: str, now: Instant) -> bool:
        page = await self.letters(LetterQuery(limit=1_000))
        return any(letter.id == delivery_id for letter in page.letters)


class _SkipsLines(MemoryStore):
    async def job_log(self, query: LogQuery) -> LogPage:
        page = await super().job_log(query)
        if page.cursor is None:
            return page
        return LogPage(page.entries, str(int(page.cursor) - 1))


class _ForgetsLinesTooSoon(MemoryStore):
    async def prune(self, most: int) -> int:
        self._log.prune(self._clock.now() - self._settings.retention + SECOND)
        return await super().prune(most)


class _TakesOldRoutes(MemoryStore):
    async def note_routes(self, routes: Mapping[AgentName, Route], at: Instant) -> None:
        self._outbox._routes.clear()
        await super().note_routes(routes, at)


class _TellsNoEndings(MemoryStore):
    async def find_job(self, job_id: JobId) -> JobRecord | None:
        record = await super().find_job(job_id)
        return None if record is None else replace(record, last=None)


class _ListsOtherBeats(MemoryStore):
    async def list_jobs(self, query: JobQuery) -> JobPage:
        return await super().list_jobs(replace(query, heartbeats=query.heartbeats or None))


JOB_FAULTS: dict[str, Maker] = {
    "advances by any version": _AdvancesByAnyVersion,
    "changes by any version": _ChangesByAnyVersion,
    "fires twice": _FiresTwice,
    "fires for all nodes": _FiresForAllNodes,
    "fires late": _FiresLate,
    "sleeps too long": _SleepsTooLong,
    "forgets notices": _advancing(lambda one: replace(one, notices=())),
    "forgets lines": _advancing(
        lambda one: replace(one, entries=tuple(line for line in one.entries if line.run_id))
    ),
    "keeps what is done": _advancing(lambda one: replace(one, delete=False)),
    "pauses nothing": _advancing(lambda one: replace(one, enabled=True)),
    "says twice": _SaysTwice,
    "remembers too long": _RemembersTooLong,
    "buries letters": _BuriesLetters,
    "retries nothing": _RetriesNothing,
    "skips lines": _SkipsLines,
    "forgets lines too soon": _ForgetsLinesTooSoon,
    "takes old routes": _TakesOldRoutes,
    "tells no endings": _TellsNoEndings,
    "lists other beats": _ListsOtherBeats,
}


@pytest.mark.parametrize("fault", JOB_FAULTS)
def test_with_jobs_it_finds_a_store_that(fault: str) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(job_machine_over(JOB_FAULTS[fault]), settings=TRIED)
