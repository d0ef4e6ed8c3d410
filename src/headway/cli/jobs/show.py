"""`headway jobs show`: all about one job."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.jobs.options import JobName, ShownIn
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.model.views import JobView


def show(job: JobName, *, store: StoreUrl, zone: ShownIn = None, as_json: AsJson = False) -> None:
    """Show one job: what it asks, its next firings, how it went last."""
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        view = run(_read(store, job))
    tell(view, zone, as_json=as_json)


def tell(view: "JobView", zone: str | None = None, *, as_json: bool) -> None:
    """Print one job, as every command does that has just changed it."""
    from headway.cli.jobs import telling
    from headway.cli.opening import wall_now

    if as_json:
        print_all(telling.as_json(telling.job_json(view)))
    else:
        print_all(telling.job_lines(view, wall_now(), zone))


async def _read(url: str, named: str) -> "JobView":
    from headway.cli.jobs.finding import StoredJobs, find
    from headway.cli.opening import reading
    from headway.core.firing import job_view

    async with reading(url) as store:
        return job_view(await find(StoredJobs(store), named))
