"""`headway jobs list`: what there is, when it fires next, and how it went."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs.options import ShownIn
from headway.cli.options import (
    AsJson,
    Cursor,
    Limit,
    ServerUrl,
    StoreInstead,
    TokenText,
    place_of,
)
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.jobs import JobPage


def list_jobs(
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
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
    from headway.cli.answers import as_json as json_of
    from headway.cli.jobs.telling import jobs_table
    from headway.cli.opening import wall_now
    from headway.cli.views import job_view
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        place = place_of(server, token, store)
        page = run(_read(place, agent, limit, cursor, everything=everything))
    if as_json:
        print_all(json_of(page))
        return
    print_all(jobs_table([job_view(job) for job in page.jobs], wall_now(), zone))
    if page.cursor:
        typer.echo(f"there are more: --cursor {quote(page.cursor)}, or --all", err=True)


async def _read(
    place: "Place", agent: str | None, limit: int, cursor: str | None, *, everything: bool
) -> "JobPage":
    from headway.cli.jobs.boards import jobs_shown
    from headway.cli.jobs.finding import every_job
    from headway.wire.jobs import JobPage

    async with jobs_shown(place) as jobs:
        if everything:
            return JobPage(jobs=tuple(await every_job(jobs, agent)))
        return await jobs.list(agent=agent, limit=limit, cursor=cursor)
