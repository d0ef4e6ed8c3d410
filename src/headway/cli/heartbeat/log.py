"""`headway heartbeat log`: what has become of an agent's wake-ups."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.jobs.log import tell
from headway.cli.jobs.options import Cursor, Limit, ShownIn
from headway.cli.options import AsJson, StoreUrl

if TYPE_CHECKING:
    from headway.model.job import Job
    from headway.ports import LogPage


def log(
    agent: Agent,
    *,
    store: StoreUrl,
    limit: Limit = 20,
    cursor: Cursor = None,
    zone: ShownIn = None,
    as_json: AsJson = False,
) -> None:
    """Show what has become of an agent's wake-ups, the newest first: each skip with its one reason."""
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        page, job = run(_read(store, agent, limit, cursor))
    tell(page, {job.id: job}, zone, with_job=False, as_json=as_json)


async def _read(url: str, agent: str, limit: int, cursor: str | None) -> "tuple[LogPage, Job]":
    from headway.cli.heartbeat.finding import find
    from headway.cli.opening import reading
    from headway.ports import LogQuery

    async with reading(url) as store:
        job = (await find(store, agent)).job
        return await store.job_log(LogQuery(job.id, limit, cursor)), job
