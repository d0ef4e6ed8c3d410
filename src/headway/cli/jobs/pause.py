"""`headway jobs pause`: no more firings, until it is resumed."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.jobs.options import JobName
from headway.cli.jobs.show import tell
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.jobs import JobAnswer


def pause(
    job: JobName,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Pause a job: firings that wait end, one that runs goes on, and no more come until it is resumed."""
    from headway.wiring import run

    with errors_told():
        changed = run(_pause(place_of(server, token, store), job))
    tell(changed, as_json=as_json)


async def _pause(place: "Place", named: str) -> "JobAnswer":
    from headway.cli.jobs.boards import jobs_changed
    from headway.cli.jobs.finding import find

    async with jobs_changed(place) as jobs:
        return await jobs.pause((await find(jobs, named)).id)
