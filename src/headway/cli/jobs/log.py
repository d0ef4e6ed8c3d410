"""`headway jobs log`: what has become of the firings."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs.options import Cursor, Limit, ShownIn
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.model.job import Entry, Job
    from headway.model.run import JobId
    from headway.ports import LogPage, Store


def log(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB]",
            help="Its id, or agent/name, or its name alone; a removed job by its id. None: all jobs.",
            show_default=False,
        ),
    ] = None,
    *,
    store: StoreUrl,
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
        page, jobs = run(_read(store, job, limit, cursor))
    tell(page, jobs, zone, with_job=job is None, as_json=as_json)


def tell(
    page: "LogPage",
    jobs: "Mapping[JobId, Job]",
    zone: str | None,
    *,
    with_job: bool,
    as_json: bool,
) -> None:
    """Print a page of the log."""
    from headway.cli.jobs import telling
    from headway.cli.opening import wall_now

    if as_json:
        entries = [telling.entry_json(entry) for entry in page.entries]
        print_all(telling.as_json({"entries": entries, "cursor": page.cursor}))
        return
    print_all(telling.log_table(page.entries, jobs, wall_now(), zone, with_job=with_job))
    if page.cursor:
        typer.echo(f"there are more: --cursor {quote(page.cursor)}", err=True)


async def _read(
    url: str, named: str | None, limit: int, cursor: str | None
) -> "tuple[LogPage, Mapping[JobId, Job]]":
    from headway.cli.jobs.finding import StoredJobs, find
    from headway.cli.opening import reading
    from headway.model.errors import JobNotFound
    from headway.model.run import JobId
    from headway.ports import LogQuery

    async with reading(url) as store:
        job_id: JobId | None = None
        if named is not None:
            try:
                job_id = (await find(StoredJobs(store), named)).job.id
            except JobNotFound:
                page = await store.job_log(LogQuery(JobId(named), limit, cursor))
                if page.entries:
                    return page, {}
                raise
        page = await store.job_log(LogQuery(job_id, limit, cursor))
        return page, await _jobs_of(store, page.entries)


async def _jobs_of(store: "Store", entries: "Sequence[Entry]") -> "Mapping[JobId, Job]":
    """The jobs of these lines that are still there."""
    jobs: dict[JobId, Job] = {}
    for job_id in {entry.job for entry in entries}:
        record = await store.find_job(job_id)
        if record is not None:
            jobs[job_id] = record.job
    return jobs
