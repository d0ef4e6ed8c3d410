"""Finding the job that a person means."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.cli.jobs.boards import JobReader
    from headway.wire.jobs import JobAnswer

_AT_ONCE = 1000
_SHOWN = 5


async def find(jobs: "JobReader", named: str) -> "JobAnswer":
    """The job of this id, or called `agent/name`, or by its name alone if it is the only one."""
    from headway.core.jobs import HEARTBEAT
    from headway.model.errors import InvalidInput, JobNotFound

    if not named:
        raise JobNotFound(named)
    try:
        return await jobs.get(named)
    except JobNotFound:
        called = [job for job in await every_job(jobs) if job.name == named]
    if not called:
        agent, _, name = named.partition("/")
        if name == HEARTBEAT:
            what = f"a job; for a heartbeat: headway heartbeat set {agent}"
            raise InvalidInput("JOB", named, what)
        raise JobNotFound(named)
    if len(called) > 1:
        names = [f"{job.agent_id}/{named}" for job in called]
        more = ", …" if len(names) > _SHOWN else ""
        raise InvalidInput("JOB", named, f"one of: {', '.join(names[:_SHOWN])}{more}")
    return called[0]


async def every_job(jobs: "JobReader", agent: str | None = None) -> "list[JobAnswer]":
    """All jobs, or those of one agent, by agent and name."""
    found: list[JobAnswer] = []
    cursor: str | None = None
    while True:
        page = await jobs.list(agent=agent, limit=_AT_ONCE, cursor=cursor)
        found += page.jobs
        cursor = page.cursor
        if cursor is None:
            return found
