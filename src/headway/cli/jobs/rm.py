"""`headway jobs rm`: the job goes, its log stays."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs.options import JobName
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.jobs import JobAnswer


def rm(
    job: JobName,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a job. Its log stays, under its id; firings that wait end, one that runs goes on.

    A job that a program declares in its code comes back at the program's next
    start: pause it instead.
    """
    from headway.cli.answers import as_json as json_of
    from headway.wiring import run

    with errors_told():
        removed = run(_remove(place_of(server, token, store), job, sure=yes or as_json))
    if as_json:
        print_all(json_of({"removed": None if removed is None else removed.id}))
    elif removed is None:
        print_all("nothing was removed")
    else:
        print_all(f"removed; its log stays: headway jobs log {removed.id}")


async def _remove(place: "Place", named: str, *, sure: bool) -> "JobAnswer | None":
    from headway.cli.jobs.boards import jobs_changed
    from headway.cli.jobs.finding import find

    async with jobs_changed(place) as jobs:
        job = await find(jobs, named)
        if not sure and not confirmed(f"{job.agent_id}/{job.name}"):
            return None
        await jobs.remove(job.id)
        return job


def confirmed(what: str) -> bool:
    """Whether a person says yes. Where nobody can be asked, it is refused."""
    from headway.model.errors import Refused

    try:
        return typer.confirm(f"Remove {what}?")
    except typer.Abort:
        print()  # The question stands alone on its line.
        raise Refused("nobody is there to say yes: give --yes") from None
