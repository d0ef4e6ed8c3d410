"""`headway jobs log`: what has become of the firings."""

from collections.abc import Mapping
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
    from headway.model.job import Job
    from headway.wire.firings import EntryPage


def log(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="JOB",
            help="Its id, or agent/name, or its name alone; a removed job by its id. None: all jobs.",
            show_default=False,
        ),
    ] = None,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    zone: ShownIn = None,
    as_json: AsJson = False,
) -> None:
    """Show what has become of the firings of a job, or of all jobs, the newest first.

    Each line is a firing, with how late it started and how it ended; one that
    was missed or skipped says why.
    """
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        page, jobs = run(_read(place_of(server, token, store), job, limit, cursor))
    tell(page, jobs, zone, with_job=job is None, as_json=as_json)


def tell(
    page: "EntryPage",
    jobs: "Mapping[str, Job]",
    zone: str | None,
    *,
    with_job: bool,
    as_json: bool,
) -> None:
    """Print a page of the log."""
    from headway.cli.answers import as_json as json_of
    from headway.cli.jobs import telling
    from headway.cli.opening import wall_now

    if as_json:
        print_all(json_of(page))
        return
    print_all(telling.log_table(page.entries, jobs, wall_now(), zone, with_job=with_job))
    if page.cursor:
        typer.echo(f"there are more: --cursor {quote(page.cursor)}", err=True)


async def _read(
    place: "Place", named: str | None, limit: int, cursor: str | None
) -> "tuple[EntryPage, Mapping[str, Job]]":
    from headway.cli.jobs.boards import jobs_shown
    from headway.cli.jobs.finding import every_job, find
    from headway.cli.views import job_of
    from headway.model.errors import JobNotFound

    async with jobs_shown(place) as jobs:
        if named is None:
            page = await jobs.log(limit=limit, cursor=cursor)
            known = {job.id: job_of(job) for job in await every_job(jobs)}
            return page, known | await _heartbeats(place)
        try:
            job = job_of(await find(jobs, named))
        except JobNotFound:
            return await jobs.log(named, limit=limit, cursor=cursor), {}
        return await jobs.log(job.id, limit=limit, cursor=cursor), {job.id: job}


async def _heartbeats(place: "Place") -> "dict[str, Job]":
    """Their wake-ups are in the log of all jobs, too."""
    from headway.cli.heartbeat.boards import every_heartbeat, heartbeats_shown
    from headway.cli.views import heartbeat_view

    async with heartbeats_shown(place) as heartbeats:
        return {found.id: heartbeat_view(found).job for found in await every_heartbeat(heartbeats)}
