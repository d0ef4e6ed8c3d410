"""`headway jobs pause`: no more firings, until it is resumed."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.jobs.options import JobName
from headway.cli.jobs.show import tell
from headway.cli.options import AsJson, StoreUrl

if TYPE_CHECKING:
    from headway.model.views import JobView


def pause(job: JobName, *, store: StoreUrl, as_json: AsJson = False) -> None:
    """Pause a job: firings that wait end, one that runs goes on, and no more come until it is resumed."""
    from headway.wiring import run

    with errors_told():
        view = run(_pause(store, job))
    tell(view, as_json=as_json)


async def _pause(url: str, named: str) -> "JobView":
    from headway.cli.jobs.finding import find
    from headway.cli.opening import asking

    async with asking(url) as headway:
        found = await find(headway.engine.jobs, named)
        return await headway.jobs.pause(found.job.id)
