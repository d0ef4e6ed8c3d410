"""`headway heartbeat resume`: a paused heartbeat goes on."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.heartbeat.status import tell
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.heartbeats import HeartbeatAnswer


def resume(
    agent: Agent,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Let a paused heartbeat go on."""
    from headway.wiring import run

    with errors_told():
        found, checklist = run(_resume(place_of(server, token, store), agent))
    tell(found, checklist, as_json=as_json)


async def _resume(place: "Place", agent: str) -> "tuple[HeartbeatAnswer, str | None]":
    from headway.cli.heartbeat.boards import heartbeats_changed

    async with heartbeats_changed(place) as heartbeats:
        return await heartbeats.resume(agent), await heartbeats.checklist(agent)
