"""`headway jobs rm`: the job goes, its log stays."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs.options import JobName
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.model.job import Job


def rm(
    job: JobName,
    *,
    store: StoreUrl,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a job. Its log stays, under its id; firings that wait end, one that runs goes on.

    A job that a program declares in its code comes back at the program's next
    start: pause it instead.
    """
    from headway.cli.jobs import telling
    from headway.wiring import run

    with errors_told():
        removed = run(_remove(store, job, sure=yes or as_json))
    if as_json:
        print_all(telling.as_json({"removed": None if removed is None else removed.id}))
    elif removed is None:
        print_all("nothing was removed")
    else:
        print_all(f"removed; its log stays: headway jobs log {removed.id}")


async def _remove(url: str, named: str, *, sure: bool) -> "Job | None":
    from headway.cli.jobs.finding import find
    from headway.cli.opening import asking

    async with asking(url) as headway:
        job = (await find(headway.engine.jobs, named)).job
        if not sure and not confirmed(f"{job.agent}/{job.name}"):
            return None
        await headway.jobs.remove(job.id)
        return job


def confirmed(what: str) -> bool:
    """Whether a person says yes. Where nobody can be asked, it is refused."""
    from headway.model.errors import Refused

    try:
        return typer.confirm(f"Remove {what}?")
    except typer.Abort:
        raise Refused("nobody is there to say yes: give --yes") from None
