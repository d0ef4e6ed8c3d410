"""`headway jobs resume`: a paused job goes on."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.jobs.options import JobName
from headway.cli.jobs.show import tell
from headway.cli.options import AsJson, StoreUrl

if TYPE_CHECKING:
    from headway.model.views import JobView


def resume(job: JobName, *, store: StoreUrl, as_json: AsJson = False) -> None:
    """Let a paused job go on with its next firing; what it missed meanwhile is not made up for."""
    from headway.wiring import run

    with errors_told():
        view = run(_resume(store, job))
    tell(view, as_json=as_json)


async def _resume(url: str, named: str) -> "JobView":
    from headway.cli.jobs.finding import find
    from headway.cli.opening import asking

    async with asking(url) as headway:
        found = await find(headway.engine.jobs, named)
        return await headway.jobs.resume(found.job.id)
