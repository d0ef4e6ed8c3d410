"""Finding the job that a person means."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headway.model.job import JobRecord
    from headway.ports import JobPage, JobQuery, Store

_AT_ONCE = 1000
_SHOWN = 5


class Jobs(Protocol):
    """Where jobs are looked for: those of a store, or of a running `Headway`."""

    async def known(self, named: str) -> "JobRecord | None":
        """The job of this id, or the one called `agent/name`."""
        ...

    async def list(self, query: "JobQuery") -> "JobPage": ...


class StoredJobs:
    """The jobs of a store that is only read."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def known(self, named: str) -> "JobRecord | None":
        from headway.model.run import AgentName, JobId

        found = await self._store.find_job(JobId(named))
        if found is None and "/" in named:
            agent, _, name = named.partition("/")
            found = await self._store.find_job_named(AgentName(agent), name)
        return found

    async def list(self, query: "JobQuery") -> "JobPage":
        return await self._store.list_jobs(query)


async def find(jobs: Jobs, named: str) -> "JobRecord":
    """The job of this id, or called `agent/name`, or by its name alone if it is the only one."""
    from headway.model.errors import InvalidInput, JobNotFound

    found = await jobs.known(named) if named else None
    if found is not None:
        return found
    called = [record for record in await every_job(jobs) if record.job.name == named]
    if not called:
        raise JobNotFound(named)
    if len(called) > 1:
        names = [f"{record.job.agent}/{named}" for record in called]
        more = ", …" if len(names) > _SHOWN else ""
        raise InvalidInput("JOB", named, f"one of: {', '.join(names[:_SHOWN])}{more}")
    return called[0]


async def every_job(
    jobs: Jobs, agent: str | None = None, heartbeats: bool | None = False
) -> "list[JobRecord]":
    """All jobs, or those of one agent, by agent and name."""
    from headway.ports import JobQuery

    found: list[JobRecord] = []
    cursor: str | None = None
    while True:
        page = await jobs.list(
            JobQuery(agent, heartbeats=heartbeats, limit=_AT_ONCE, cursor=cursor)
        )
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            return found
