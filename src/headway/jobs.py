"""`hw.jobs`: durable rules that make runs over time, added and changed while Headway runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypedDict, Unpack

from headway.core import crontab, job_files
from headway.core.firing import job_view
from headway.core.jobs import new_job
from headway.core.request import Duration, whole_number
from headway.core.schedule import local, next_firing
from headway.core.spoken import read_time
from headway.model.errors import InvalidInput, JobNotFound
from headway.model.job import Job, JobRecord
from headway.model.payload import Execute, Gate
from headway.model.run import JobId, Route
from headway.model.schedule import Schedule
from headway.model.time import DAY, HOUR, Instant
from headway.model.views import JobView, JobViews
from headway.model.words import Misfire, Overlap
from headway.ports import JobQuery, LogPage, LogQuery
from headway.runtime.engine import Engine
from headway.runtime.handle import Handle
from headway.runtime.ids import new_job_id

_SOME_DAY: Instant = 10_000 * DAY


class JobOptions(TypedDict, total=False):
    """All that can be said about a job besides its name, its agent and its schedule."""

    text: str
    command: str | list[str] | tuple[str, ...] | Execute
    function: str
    tz: str
    lane: str
    session: str
    timeout: Duration
    retries: int
    max_attempts: int
    priority: int
    overlap: Overlap | Literal["skip", "queue", "allow", "interrupt"]
    misfire: Misfire | Literal["once", "skip", "all"]
    misfire_window: Duration
    stagger: Duration
    deliver: Route | Mapping[str, str]
    delete_after_run: bool
    gate: Gate | Mapping[str, object]
    enabled: bool


class JobFields(JobOptions, total=False):
    """All that can be said about a job besides its name and agent."""

    cron: str
    every: Duration
    at: str | datetime | timedelta
    schedule: Schedule | Mapping[str, object]


class JobPatch(JobFields, total=False):
    """All that can be changed of a job."""

    name: str
    agent: str


@dataclass
class Loaded:
    """What came of loading a file: the jobs that are there for it, and what needs a person's eye."""

    added: list[JobView] = field(default_factory=list)
    changed: list[JobView] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, record: JobRecord, *, added: bool) -> None:
        (self.added if added else self.changed).append(job_view(record))


class Jobs:
    """The jobs of a store. A job is named by its id, or as `agent/name`."""

    def __init__(self, engine: Callable[[], Engine], zone: Callable[[], str]) -> None:
        self._engine = engine
        self._zone = zone

    async def add(self, name: str, agent: str, **fields: Unpack[JobFields]) -> JobView:
        """A new job: one of `cron`, `every`, `at`, and one of `text`, `command`, `function`."""
        said: dict[str, object] = {**fields, "name": name, "agent": agent}
        return job_view(await self._engine().jobs.add(said, self._zone()))

    async def get(self, job: str) -> JobView:
        return job_view(await self._find(job))

    async def list(
        self,
        *,
        agent: str | None = None,
        enabled: bool | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> JobViews:
        """Jobs by agent and name, a page at a time."""
        whole_number(1, 1000)(limit, "limit")
        page = await self._engine().jobs.list(JobQuery(agent, enabled, False, limit, cursor))
        return JobViews(tuple(job_view(record) for record in page.jobs), page.cursor)

    async def edit(self, job: str, **patch: Unpack[JobPatch]) -> JobView:
        """Change what is named and nothing else; the time zone stays unless `tz` names another."""
        found = await self._find(job)
        return job_view(await self._engine().jobs.edit(found.job.id, patch))

    async def pause(self, job: str) -> JobView:
        """Firings that have not started end; no more come until it is resumed."""
        return job_view(await self._engine().jobs.pause((await self._find(job)).job.id))

    async def resume(self, job: str) -> JobView:
        return job_view(await self._engine().jobs.resume((await self._find(job)).job.id))

    async def run(self, job: str, *, only_if_due: bool = False) -> Handle | None:
        """Fire it now; its schedule goes on as it was. None: it was to run only if due, and is not."""
        found = await self._find(job)
        run_id = await self._engine().jobs.run(found.job.id, only_if_due=only_if_due)
        return None if run_id is None else await self._engine().handle_of(run_id)

    async def remove(self, job: str) -> None:
        """The job goes; its log stays."""
        await self._engine().jobs.remove((await self._find(job)).job.id)

    async def log(
        self, job: str | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> LogPage:
        """What has become of its firings, the newest first. A removed job is named by its id."""
        whole_number(1, 1000)(limit, "limit")
        job_id = None
        if job is not None:
            found = await self._maybe(job)
            job_id = JobId(job) if found is None else found.job.id
        return await self._engine().jobs.log(LogQuery(job_id, limit, cursor))

    async def next(self, job: str, count: int = 5) -> tuple[datetime, ...]:
        """Its next firings, on the wall clock of its own time zone."""
        whole_number(1, 1000)(count, "count")
        record = await self._find(job)
        at = record.ticking.next_at
        found: list[datetime] = []
        while at is not None and len(found) < count:
            found.append(local(at, record.job.schedule.zone))
            at = next_firing(record.job.schedule, record.job.stagger, record.job.id, at)
        return tuple(found)

    async def export(self, agent: str | None = None) -> str:
        """All jobs, or those of one agent, as JSON (C-12)."""
        jobs: list[Job] = []
        cursor: str | None = None
        while True:
            page = await self.list(agent=agent, limit=1000, cursor=cursor)
            jobs += [view.job for view in page.jobs]
            cursor = page.cursor
            if cursor is None:
                return job_files.write_jobs(jobs)

    async def load(self, text: str, *, agent: str | None = None) -> Loaded:
        """Add the jobs of a JSON file, Headway's own or OpenClaw's (C-12).

        A job whose id or name is taken replaces the one that has it: what is loaded twice is there once.
        """
        engine = self._engine()
        read = job_files.read_jobs(text, engine.wall(), self._zone(), new_job_id, agent)
        loaded = Loaded()
        for job in read.jobs:
            try:
                record, added = await engine.jobs.put(job)
            except InvalidInput as wrong:
                loaded.problems.append(f"{job.agent}/{job.name}: {wrong}")
            else:
                loaded.note(record, added=added)
        loaded.problems += [f"{problem.path}: {problem.why}" for problem in read.problems]
        return loaded

    async def load_crontab(self, text: str, agent: str, *, user_column: bool = False) -> Loaded:
        """Add a job for each line of a crontab; the agent must be one that runs commands."""
        engine = self._engine()
        read = crontab.read_crontab(text, agent, engine.wall(), self._zone(), user_column)
        loaded = Loaded()
        for fields in read.jobs:
            try:
                record, added = await engine.jobs.put_fields(fields, self._zone())
            except InvalidInput as wrong:
                loaded.problems.append(f"{fields.get('name')}: {wrong}")
            else:
                loaded.note(record, added=added)
        loaded.problems += [
            f"line {problem.line}: {problem.why}: {problem.text}" for problem in read.problems
        ]
        return loaded

    async def _find(self, job: str) -> JobRecord:
        found = await self._maybe(job)
        if found is None:
            raise JobNotFound(job)
        return found

    async def _maybe(self, job: str) -> JobRecord | None:
        if not job:
            raise InvalidInput("job", job, "the id of a job, or agent/name")
        return await self._engine().jobs.known(job)


def check_job(fields: Mapping[str, object], zone: str) -> None:
    """Refuse a declaration that could never be a job; an instant that is past is no fault of it."""
    when = fields.get("at")
    if isinstance(when, str) and read_time(when, _SOME_DAY, zone) != read_time(
        when, _SOME_DAY + DAY + HOUR, zone
    ):
        what = "the same at every start, such as 2026-12-24 18:00; for others: await hw.jobs.add"
        raise InvalidInput("at", when, what)
    try:
        new_job(JobId("declared"), fields, 0, zone)
    except InvalidInput as wrong:
        if wrong.field != "at":
            raise
