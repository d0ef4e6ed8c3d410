"""Where jobs are: on a server or in a store. Both answer alike, so a command need not know which it asks."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, cast

from headway.cli.options import Place

if TYPE_CHECKING:
    from headway.facade import Headway
    from headway.jobs import JobFields, JobPatch
    from headway.model.job import JobRecord
    from headway.ports import Store
    from headway.wire.firings import EntryPage
    from headway.wire.jobs import ImportAnswer, JobAnswer, JobPage
    from headway.wire.output import RunOver


class JobReader(Protocol):
    """What shows jobs and what became of them."""

    async def get(self, job: str) -> "JobAnswer":
        """The job of this id, or the one called `agent/name`."""
        ...

    async def list(
        self, *, agent: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> "JobPage": ...

    async def log(
        self, job: str | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> "EntryPage":
        """A job that is gone is named by its id."""
        ...


class JobBoard(JobReader, Protocol):
    """What also changes jobs."""

    async def add(self, name: str, agent: str, fields: Mapping[str, object]) -> "JobAnswer": ...

    async def lacks(self, agent: str) -> bool:
        """Whether who was asked runs no such agent; another node may. False also where it cannot be said."""
        ...

    async def edit(self, job: str, patch: Mapping[str, object]) -> "JobAnswer": ...

    async def pause(self, job: str) -> "JobAnswer": ...

    async def resume(self, job: str) -> "JobAnswer": ...

    async def remove(self, job: str) -> None: ...

    async def run(self, job: str, *, only_if_due: bool) -> str | None:
        """The id of the run; None: it was to run only if due, and is not."""
        ...

    async def wait(self, run_id: str) -> "RunOver": ...

    async def load(
        self, text: str, agent: str | None, *, crontab: bool, user_column: bool
    ) -> "ImportAnswer": ...


@asynccontextmanager
async def jobs_shown(place: Place) -> AsyncIterator[JobReader]:
    """The jobs of a place, to be looked at: a store is opened as it is."""
    from headway.cli.opening import calling_or_told, reading

    if place.store is None:
        async with calling_or_told(place) as client:
            yield client.jobs
    else:
        async with reading(place.store) as store:
            yield StoredJobs(store)


@asynccontextmanager
async def jobs_changed(place: Place, zone: str | None = None) -> AsyncIterator[JobBoard]:
    """The jobs of a place, to be changed; `zone` is that of who names none."""
    from headway.cli.opening import asking, calling_or_told

    if place.store is None:
        async with calling_or_told(place) as client:
            from headway.cli.jobs.remote import RemoteJobs

            yield RemoteJobs(client, zone)
    else:
        async with asking(place.store, zone) as headway:
            yield OwnJobs(headway)


class StoredJobs:
    """The jobs of a store that is only read."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def get(self, job: str) -> "JobAnswer":
        from headway.core.firing import job_view
        from headway.model.errors import JobNotFound
        from headway.wire.jobs import job_answer

        found = await self._known(job)
        if found is None:
            raise JobNotFound(job)
        return job_answer(job_view(found))

    async def list(
        self, *, agent: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> "JobPage":
        from headway.core.firing import job_view
        from headway.ports import JobQuery
        from headway.wire.jobs import JobPage, job_answer

        page = await self._store.list_jobs(JobQuery(agent, limit=limit, cursor=cursor))
        jobs = tuple(job_answer(job_view(record)) for record in page.jobs)
        return JobPage(jobs=jobs, cursor=page.cursor)

    async def log(
        self, job: str | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> "EntryPage":
        from headway.model.errors import JobNotFound
        from headway.model.run import JobId
        from headway.ports import LogQuery
        from headway.wire.firings import entry_page

        found = None if job is None else await self._known(job)
        job_id = None if job is None else JobId(job) if found is None else found.job.id
        page = await self._store.job_log(LogQuery(job_id, limit, cursor))
        if job is not None and found is None and not page.entries:
            raise JobNotFound(job)
        return entry_page(page.entries, page.cursor)

    async def _known(self, named: str) -> "JobRecord | None":
        from headway.model.run import AgentName, JobId

        found = await self._store.find_job(JobId(named)) if named else None
        if found is None and "/" in named:
            agent, _, name = named.partition("/")
            found = await self._store.find_job_named(AgentName(agent), name)
        return found if found is None or found.job.heartbeat is None else None


class OwnJobs:
    """The jobs of a store that a `Headway` of this process changes; it runs nothing."""

    def __init__(self, headway: "Headway") -> None:
        self._headway = headway
        self._stored = StoredJobs(headway.engine.store)

    async def get(self, job: str) -> "JobAnswer":
        return await self._stored.get(job)

    async def list(
        self, *, agent: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> "JobPage":
        return await self._stored.list(agent=agent, limit=limit, cursor=cursor)

    async def log(
        self, job: str | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> "EntryPage":
        return await self._stored.log(job, limit=limit, cursor=cursor)

    async def add(self, name: str, agent: str, fields: Mapping[str, object]) -> "JobAnswer":
        from headway.wire.jobs import job_answer

        return job_answer(
            await self._headway.jobs.add(name, agent, **cast("JobFields", dict(fields)))
        )

    async def lacks(self, agent: str) -> bool:
        del agent  # This process runs nothing, and a store does not say who runs what.
        return False

    async def edit(self, job: str, patch: Mapping[str, object]) -> "JobAnswer":
        from headway.wire.jobs import job_answer

        return job_answer(await self._headway.jobs.edit(job, **cast("JobPatch", dict(patch))))

    async def pause(self, job: str) -> "JobAnswer":
        from headway.wire.jobs import job_answer

        return job_answer(await self._headway.jobs.pause(job))

    async def resume(self, job: str) -> "JobAnswer":
        from headway.wire.jobs import job_answer

        return job_answer(await self._headway.jobs.resume(job))

    async def remove(self, job: str) -> None:
        await self._headway.jobs.remove(job)

    async def run(self, job: str, *, only_if_due: bool) -> str | None:
        handle = await self._headway.jobs.run(job, only_if_due=only_if_due)
        return None if handle is None else handle.id

    async def wait(self, run_id: str) -> "RunOver":
        from headway.model.run import RunId
        from headway.wire.output import RunOver
        from headway.wire.runs import outcome_answer

        handle = await self._headway.engine.handle_of(RunId(run_id))
        outcome = await handle.wait()
        return RunOver(run_id=run_id, into=outcome.into, outcome=outcome_answer(outcome))

    async def load(
        self, text: str, agent: str | None, *, crontab: bool, user_column: bool
    ) -> "ImportAnswer":
        from headway.wire.jobs import ImportAnswer, job_answer

        jobs = self._headway.jobs
        if crontab:
            loaded = await jobs.load_crontab(text, agent or "", user_column=user_column)
        else:
            loaded = await jobs.load(text, agent=agent)
        return ImportAnswer(
            added=tuple(map(job_answer, loaded.added)),
            changed=tuple(map(job_answer, loaded.changed)),
            problems=tuple(loaded.problems),
        )
