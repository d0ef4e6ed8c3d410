"""What only the memory store does: it forgets, so that it never grows without bound."""

import asyncio
from collections.abc import Sized

from headway import Outcome, Settings, State
from headway.core.actions import Deliver, Finish, Release, Remember, Start
from headway.model.job import Advance, Entry, Job, Ticking
from headway.model.payload import Say
from headway.model.places import Delivery, Order, StopAll
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
from headway.model.schedule import Every
from headway.model.time import DAY, HOUR, MINUTE, SECOND, Instant
from headway.model.words import Fired, Source
from headway.ports import Granted, LogQuery
from headway.store.memory import MemoryStore
from headway.store.memory.log import MOST_LINES, JobLog
from headway.store.memory.outbox import MemoryOutbox
from headway.store.memory.timetable import MemoryTimetable
from headway.testing import VirtualClock

DONE = Outcome(State.DONE)


def _run(number: int, **fields: object) -> Run:
    said: dict[str, object] = {
        "id": RunId(f"run-{number}"),
        "agent": AgentName("a"),
        "session": SessionKey(f"s{number}"),
        "source": Source.MESSAGE,
        "lane": LaneName("main"),
        "priority": 0,
        "submitted_at": 0,
        **fields,
    }
    return Run(**said)  # type: ignore[arg-type]


async def _carry_through(store: MemoryStore, clock: VirtualClock, run: Run) -> None:
    granted = store.admit(run)
    assert isinstance(granted, Granted)
    await store.record(
        [
            Start(run, 1, 1, granted.epoch, clock.now()),
            Finish(run, DONE, 1, granted.epoch, clock.now()),
            Release(run.session, granted.epoch, granted.seq),
        ]
    )


def _sizes(part: object) -> dict[str, int]:
    """How much there is of everything, in the store and in its parts."""
    sizes: dict[str, int] = {}
    for name, value in vars(part).items():
        if isinstance(value, MemoryOutbox | MemoryTimetable | JobLog):
            sizes |= {f"{name}.{inner}": size for inner, size in _sizes(value).items()}
        elif isinstance(value, Sized) and len(value):
            sizes[name] = len(value)
    return sizes


def _job(number: int) -> Job:
    name = f"job-{number}"
    return Job(JobId(name), name, AgentName("a"), Every(HOUR, 0), Say("hello"), 0)


async def _fire(store: MemoryStore, job: Job, at: Instant, *, delete: bool = False) -> Run:
    """One firing of a job, with a run that is carried through or still to be begun."""
    record = await store.find_job(job.id)
    assert record is not None
    run = _run(at, session=SessionKey(f"{job.id}:{at}"), source=Source.FIRING)
    line = Entry(job.id, at, Fired.ON_TIME, at, run.id)
    ticking = Ticking(next_at=at + HOUR)
    advance = Advance(
        job.id, record.ticking.version, ticking, runs=(run,), entries=(line,), delete=delete
    )
    (admissions,) = await store.advance([advance])
    assert admissions is not None
    return run


async def _end(store: MemoryStore, run: Run) -> None:
    await store.record([Finish(run, DONE, 1, 0, run.submitted_at), Release(run.session, 0, 1)])


def test_s4_with_no_retention_nothing_is_left_of_a_finished_run() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(retention=0, task_retention=0), clock)
        for number in range(100):
            await _carry_through(store, clock, _run(number))
            await _carry_through(store, clock, _run(1000 + number, source=Source.TASK))
        assert _sizes(store) == {}

    asyncio.run(main())


def test_s4_finished_runs_are_bounded_by_number() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(retained_runs=10), clock)
        for number in range(100):
            await _carry_through(store, clock, _run(number))
        assert max(_sizes(store).values()) <= 10
        assert await store.find(RunId("run-99")) is not None
        assert await store.find(RunId("run-0")) is None

    asyncio.run(main())


def test_s8_ids_of_messages_are_forgotten_after_the_window() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(retention=0), clock)
        for number in range(1000):
            await _carry_through(store, clock, _run(number, message_id=str(number)))
            clock.advance(2 * SECOND)
        assert max(_sizes(store).values()) <= 20 * 60 / 2 + 1
        clock.advance(20 * MINUTE)
        await _carry_through(store, clock, _run(1001, message_id="last"))
        assert max(_sizes(store).values()) == 1

    asyncio.run(main())


def test_s9_cutoffs_are_forgotten_after_their_time_and_options_are_not() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(cutoff_memory=DAY), clock)
        for number in range(50):
            key = SessionKey(f"s{number}")
            granted = await store.order(Order(key, key, StopAll()))
            assert isinstance(granted, Granted)
            memory = SessionMemory(cutoff_at=clock.now(), cutoff_id=number)
            await store.record(
                [Remember(key, memory, granted.epoch), Release(key, granted.epoch, granted.seq)]
            )
            clock.advance(MINUTE)
        clock.advance(DAY)
        key = SessionKey("last")
        granted = await store.order(Order(key, key, StopAll()))
        assert isinstance(granted, Granted)
        await store.record(
            [
                Remember(key, SessionMemory(overflow=("x",)), granted.epoch),
                Release(key, granted.epoch, granted.seq),
            ]
        )
        assert max(_sizes(store).values()) == 1
        assert await store.memory_of(key) == SessionMemory(overflow=("x",))

    asyncio.run(main())


def test_c11_the_last_lines_of_a_job_are_kept_and_that_of_a_run_that_is_not_finished() -> None:
    async def main() -> None:
        store = MemoryStore(Settings(), VirtualClock())
        job, other = _job(1), _job(2)
        for one in (job, other):
            assert await store.add_job(one, Ticking(next_at=0))
        long = await _fire(store, job, 0)
        theirs = await _fire(store, other, 100_000)
        for at in range(1, MOST_LINES + 50):
            await _end(store, await _fire(store, job, at))
        entries = (await store.job_log(LogQuery(job.id, 1_000))).entries
        newest = list(range(MOST_LINES + 49, 50, -1))
        assert [line.due_at for line in entries] == [*newest, 0]
        assert (entries[-1].run_id, entries[-1].state) == (long.id, State.QUEUED)
        everything = (await store.job_log(LogQuery(limit=1_000))).entries
        assert len(everything) == MOST_LINES + 1, "those of other jobs do not count"
        assert everything[-1].run_id == theirs.id or everything[-2].run_id == theirs.id
        await _end(store, long)
        await _end(store, await _fire(store, job, 1_000))
        entries = (await store.job_log(LogQuery(job.id, 1_000))).entries
        assert [line.due_at for line in entries] == [1_000, *newest]

    asyncio.run(main())


def test_s4_jobs_that_are_done_leave_a_bounded_log() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(retained_runs=10), clock)
        for number in range(100):
            job = _job(number)
            assert await store.add_job(job, Ticking(next_at=0))
            await _end(store, await _fire(store, job, number, delete=True))
        assert (await store.due_jobs(clock.now(), 10, ("agent:a",))).jobs == ()
        assert max(_sizes(store).values()) <= 10
        entries = (await store.job_log(LogQuery())).entries
        assert [line.due_at for line in entries] == list(range(99, 89, -1))
        clock.advance(30 * DAY)
        await store.prune(1_000)
        assert _sizes(store) == {}

    asyncio.run(main())


def test_c12_a_job_that_comes_back_under_its_id_has_its_log_again() -> None:
    async def main() -> None:
        store = MemoryStore(Settings(retained_runs=2), VirtualClock())
        back = _job(0)
        assert await store.add_job(back, Ticking(next_at=0))
        await _end(store, await _fire(store, back, 1_000, delete=True))
        assert await store.add_job(back, Ticking(next_at=0))
        for number in range(1, 10):
            job = _job(number)
            assert await store.add_job(job, Ticking(next_at=0))
            await _end(store, await _fire(store, job, number, delete=True))
        assert len((await store.job_log(LogQuery(back.id))).entries) == 1

    asyncio.run(main())


def test_s4_changes_of_a_job_leave_nothing_behind() -> None:
    async def main() -> None:
        store = MemoryStore(Settings(), VirtualClock())
        job = _job(1)
        assert await store.add_job(job, Ticking(next_at=DAY))
        for version in range(1, 5_000):
            assert await store.change_job(job, Ticking(version, next_at=DAY + version))
        assert max(_sizes(store).values()) <= 100
        assert (await store.due_jobs(0, 10, ("agent:a",))).next_at == DAY + 4_999
        assert await store.remove_job(job.id)
        assert (await store.due_jobs(2 * DAY, 10, ("agent:a",))).jobs == ()
        assert _sizes(store) == {}

    asyncio.run(main())


def test_h2_what_was_said_once_is_forgotten_after_its_time() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = MemoryStore(Settings(), clock)
        for number in range(100):
            said = Delivery(
                f"d{number}",
                Route("web"),
                "text",
                RunId("run"),
                SessionKey("s"),
                1,
                first_at=clock.now(),
                once=f"key {number}",
                once_until=clock.now() + MINUTE,
            )
            await store.record([Deliver(said)])
            await store.settle_delivery(said)
            clock.advance(10 * SECOND)
        assert max(_sizes(store).values()) <= 6
        clock.advance(MINUTE)
        await store.prune(1_000)
        assert _sizes(store) == {}

    asyncio.run(main())
