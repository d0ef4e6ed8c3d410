"""`headway jobs show`: all about one job."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.jobs.options import JobName, ShownIn
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.jobs import JobAnswer


def show(
    job: JobName,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    zone: ShownIn = None,
    as_json: AsJson = False,
) -> None:
    """Show one job: what it asks, its next firings, how it went last."""
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        found = run(_read(place_of(server, token, store), job))
    tell(found, zone, as_json=as_json)


def tell(job: "JobAnswer", zone: str | None = None, *, as_json: bool) -> None:
    """Print one job, as every command does that has just changed it."""
    from headway.cli.answers import as_json as json_of
    from headway.cli.jobs import telling
    from headway.cli.opening import wall_now
    from headway.cli.views import job_view

    if as_json:
        print_all(json_of(job))
    else:
        print_all(telling.job_lines(job_view(job), wall_now(), zone))


async def _read(place: "Place", named: str) -> "JobAnswer":
    from headway.cli.jobs.boards import jobs_shown
    from headway.cli.jobs.finding import find

    async with jobs_shown(place) as jobs:
        return await find(jobs, named)
