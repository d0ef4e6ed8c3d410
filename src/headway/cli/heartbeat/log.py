"""`headway heartbeat log`: what has become of an agent's wake-ups."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.jobs.log import tell
from headway.cli.jobs.options import ShownIn
from headway.cli.options import (
    AsJson,
    Cursor,
    Limit,
    ServerUrl,
    StoreInstead,
    TokenText,
    place_of,
)

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.model.job import Job
    from headway.wire.firings import EntryPage


def log(
    agent: Agent,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    zone: ShownIn = None,
    as_json: AsJson = False,
) -> None:
    """Show what has become of an agent's wake-ups, the newest first: each skip with its one reason."""
    from headway.core.schedule import zone_name
    from headway.wiring import run

    with errors_told():
        zone = None if zone is None else zone_name(zone, "--tz")
        page, job = run(_read(place_of(server, token, store), agent, limit, cursor))
    tell(page, {job.id: job}, zone, with_job=False, as_json=as_json)


async def _read(
    place: "Place", agent: str, limit: int, cursor: str | None
) -> "tuple[EntryPage, Job]":
    from headway.cli.heartbeat.boards import heartbeats_shown
    from headway.cli.views import heartbeat_view

    async with heartbeats_shown(place) as heartbeats:
        job = heartbeat_view(await heartbeats.get(agent)).job
        return await heartbeats.log(agent, limit=limit, cursor=cursor), job
