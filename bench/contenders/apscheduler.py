"""APScheduler 3 with its SQLAlchemy job store: the same jobs as `bench timers` gives to Headway.

It belongs to that bench alone, and runs in its process. Jobs are plain functions, called in threads of the
default pool: coroutines would all start only after the last due job was stored. `misfire_grace_time` is None: by
default, what is late by more than a second is not run at all.
"""

import time
from datetime import UTC, datetime
from pathlib import Path

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from bench._due import ADDING_S, Lateness, Starts, far, near, next_minute
from bench.harness import progress
from headway.model.schedule import Cron, Every
from headway.model.time import SECOND, Instant, as_datetime

_starts = Starts()


def job(name: str, due_at: Instant) -> None:
    """What its store keeps is the name of a function that can be imported."""
    _starts.note(name, due_at)


async def sqlite(path: Path, jobs: int, due: int) -> Lateness:
    return await _lateness(f"sqlite:///{path}", jobs, due)


async def postgres(url: str, jobs: int, due: int) -> Lateness:
    return await _lateness(url.replace("postgresql://", "postgresql+psycopg://", 1), jobs, due)


async def _lateness(url: str, jobs: int, due: int) -> Lateness:
    global _starts  # noqa: PLW0603 - a function that can be imported has nothing else to go by
    _starts = Starts()
    scheduler = AsyncIOScheduler(
        jobstores={"default": SQLAlchemyJobStore(url)},
        job_defaults={"misfire_grace_time": None},
        timezone=UTC,
    )
    scheduler.start()
    now, began, added = datetime.now(UTC), time.perf_counter(), 0
    while added < jobs - due and time.perf_counter() - began < ADDING_S:
        _add(scheduler, f"far-{added}", far(added, now), 0)
        added += 1
    added_per_s = added / (time.perf_counter() - began)
    progress(f"{added:,} jobs, {added_per_s:,.0f} added a second")
    at = next_minute(2 * due / added_per_s)
    for number in range(due):
        _add(scheduler, f"near-{number}", near(number, at), at)
    await _starts.all_of(due)
    scheduler.shutdown(wait=False)
    return Lateness.of([_starts.spans], added + due, added_per_s)


def _add(scheduler: AsyncIOScheduler, name: str, schedule: Cron | Every, due_at: Instant) -> None:
    scheduler.add_job(job, _trigger(schedule), args=(name, due_at), id=name)


def _trigger(schedule: Cron | Every) -> CronTrigger | IntervalTrigger:
    match schedule:
        case Cron(expression):
            return CronTrigger.from_crontab(expression, timezone=UTC)
        case Every(period, anchor):
            return IntervalTrigger(
                seconds=period // SECOND, start_date=as_datetime(anchor), timezone=UTC
            )
