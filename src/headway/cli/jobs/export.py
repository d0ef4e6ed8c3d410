"""`headway jobs export`: jobs as JSON, to be imported again."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.options import ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place


def export(
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    agent: Annotated[str | None, typer.Option(help="Only those of this agent.")] = None,
    as_json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
) -> None:
    """Print all jobs as JSON, for `headway jobs import` on this or another store.

    Heartbeats are settings of their agents, and are left out.
    """
    del as_json  # It is JSON in any case.
    from headway.wiring import run

    with errors_told():
        text = run(_export(place_of(server, token, store), agent))
    print_all(text, end="")


async def _export(place: "Place", agent: str | None) -> str:
    from headway.cli.jobs.boards import jobs_shown
    from headway.cli.jobs.finding import every_job
    from headway.cli.views import job_of
    from headway.core.job_files import write_jobs

    async with jobs_shown(place) as jobs:
        return write_jobs(map(job_of, await every_job(jobs, agent)))
