"""`headway jobs export`: jobs as JSON, to be imported again."""

from typing import Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.options import StoreUrl
from headway.cli.printing import print_all


def export(
    *,
    store: StoreUrl,
    agent: Annotated[str | None, typer.Option(help="Only those of this agent.")] = None,
    as_json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
) -> None:
    """Print all jobs as JSON, for `headway jobs import` on this or another store.

    Heartbeats are settings of their agents, and are left out.
    """
    del as_json  # It is JSON in any case.
    from headway.wiring import run

    with errors_told():
        text = run(_export(store, agent))
    print_all(text, end="")


async def _export(url: str, agent: str | None) -> str:
    from headway.cli.jobs.finding import StoredJobs, every_job
    from headway.cli.opening import reading
    from headway.core.job_files import write_jobs

    async with reading(url) as store:
        records = await every_job(StoredJobs(store), agent)
    return write_jobs(record.job for record in records)
