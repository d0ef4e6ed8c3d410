"""`headway jobs list`: what there is, when it fires next, and how it went."""

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs.options import Cursor, Limit, ShownIn
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.model.views import JobView


def list_jobs(
    *,
    store: StoreUrl,
    agent: Annotated[str | None, typer.Option(help="Only those of this agent.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    everything: Annotated[bool, typer.Option("--all", help="All pages at once.")] = False,
    zone: ShownIn = None,
    as_json: AsJson = False,
) -> None:
    """List jobs by agent and name, with their next firing and how they went.

    Heartbeats are in `headway heartbeat status`.
    """
    from headway.cli.jobs.telling import as_json as json_of
    from headway.cli.jobs.telling import job_json, jobs_table
    from headway.cli.opening import wall_now
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        found, more = run(_read(store, agent, limit, cursor, everything))
    if as_json:
        print_all(json_of({"jobs": [job_json(view) for view in found], "cursor": more}))
        return
    print_all(jobs_table(found, wall_now(), zone))
    if more:
        typer.echo(f"there are more: --cursor {quote(more)}, or --all", err=True)


async def _read(
    url: str, agent: str | None, limit: int, cursor: str | None, everything: bool
) -> "tuple[Sequence[JobView], str | None]":
    from headway.cli.jobs.finding import StoredJobs, every_job
    from headway.cli.opening import reading
    from headway.core.firing import job_view
    from headway.ports import JobQuery

    async with reading(url) as store:
        jobs = StoredJobs(store)
        if everything:
            return [job_view(record) for record in await every_job(jobs, agent)], None
        page = await jobs.list(JobQuery(agent, limit=limit, cursor=cursor))
        return [job_view(record) for record in page.jobs], page.cursor
