"""Finding an agent's heartbeat in a store that is only read."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.model.job import JobRecord
    from headway.ports import Store


async def find(store: "Store", agent: str) -> "JobRecord":
    from headway.cli.jobs.finding import StoredJobs, every_job
    from headway.core.jobs import HEARTBEAT
    from headway.model.errors import UnknownName
    from headway.model.run import AgentName

    record = await store.find_job_named(AgentName(agent), HEARTBEAT)
    if record is None or record.job.heartbeat is None:
        known = await every_job(StoredJobs(store), heartbeats=True)
        raise UnknownName("AGENT", agent, [record.job.agent for record in known])
    return record
