"""`headway jobs resume`: a paused job goes on."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.jobs.options import JobName
from headway.cli.jobs.show import tell
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.jobs import JobAnswer


def resume(
    job: JobName,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Let a paused job go on with its next firing; what it missed meanwhile is not made up for."""
    from headway.wiring import run

    with errors_told():
        changed = run(_resume(place_of(server, token, store), job))
    tell(changed, as_json=as_json)


async def _resume(place: "Place", named: str) -> "JobAnswer":
    from headway.cli.jobs.boards import jobs_changed
    from headway.cli.jobs.finding import find

    async with jobs_changed(place) as jobs:
        return await jobs.resume((await find(jobs, named)).id)
