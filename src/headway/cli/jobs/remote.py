"""The jobs of a server, changed over HTTP."""

import os
from collections.abc import Mapping

from headway.cli.following import over
from headway.client import Client
from headway.core.crontab import read_crontab
from headway.core.job_files import read_jobs, write_jobs
from headway.core.jobs import new_job
from headway.runtime.clock import SystemClock
from headway.runtime.ids import new_job_id
from headway.wire.firings import EntryPage
from headway.wire.jobs import ImportAnswer, JobAnswer, JobPage
from headway.wire.output import RunOver


class RemoteJobs:
    """Asks a server. A time zone that is named here, by option or HEADWAY_TZ, holds there; else its own does."""

    def __init__(self, client: Client, zone: str | None) -> None:
        self._client = client
        self._zone = zone or os.environ.get("HEADWAY_TZ") or None

    async def get(self, job: str) -> JobAnswer:
        return await self._client.jobs.get(job)

    async def list(
        self, *, agent: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> JobPage:
        return await self._client.jobs.list(agent=agent, limit=limit, cursor=cursor)

    async def log(
        self, job: str | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> EntryPage:
        return await self._client.jobs.log(job, limit=limit, cursor=cursor)

    async def add(self, name: str, agent: str, fields: Mapping[str, object]) -> JobAnswer:
        zone = {} if self._zone is None else {"tz": self._zone}
        return await self._client.jobs.add(name, agent, **{**zone, **fields})

    async def lacks(self, agent: str) -> bool:
        loads = (await self._client.tasks.stats()).agents
        return agent not in {load.agent_id for load in loads}

    async def edit(self, job: str, patch: Mapping[str, object]) -> JobAnswer:
        return await self._client.jobs.edit(job, **patch)

    async def pause(self, job: str) -> JobAnswer:
        return await self._client.jobs.pause(job)

    async def resume(self, job: str) -> JobAnswer:
        return await self._client.jobs.resume(job)

    async def remove(self, job: str) -> None:
        await self._client.jobs.remove(job)

    async def run(self, job: str, *, only_if_due: bool) -> str | None:
        return await self._client.jobs.run(job, only_if_due=only_if_due)

    async def wait(self, run_id: str) -> RunOver:
        return await over(self._client, run_id, taken=True)

    async def load(
        self, text: str, agent: str | None, *, crontab: bool, user_column: bool
    ) -> ImportAnswer:
        if self._zone is not None:
            # The server reads what names no zone in its own; so each job is given this one here.
            text, crontab = self._zoned(text, agent, self._zone, crontab, user_column), False
        if not crontab:
            return await self._client.jobs.load(text, agent=agent)
        form = "system-crontab" if user_column else "crontab"
        return await self._client.jobs.load(text, agent=agent, form=form)  # type: ignore[arg-type]

    def _zoned(
        self, text: str, agent: str | None, zone: str, crontab: bool, user_column: bool
    ) -> str:
        now = SystemClock().wall()
        if not crontab:
            return write_jobs(read_jobs(text, now, zone, new_job_id, agent).jobs)
        read = read_crontab(text, agent or "", now, zone, user_column)
        return write_jobs(new_job(new_job_id(), fields, now, zone) for fields in read.jobs)
