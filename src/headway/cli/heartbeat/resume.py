"""`headway heartbeat resume`: a paused heartbeat goes on."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.heartbeat.status import tell
from headway.cli.options import AsJson, StoreUrl

if TYPE_CHECKING:
    from headway.model.views import JobView


def resume(agent: Agent, *, store: StoreUrl, as_json: AsJson = False) -> None:
    """Let a paused heartbeat go on."""
    from headway.wiring import run

    with errors_told():
        view, checklist = run(_resume(store, agent))
    tell(view, checklist, as_json=as_json)


async def _resume(url: str, agent: str) -> "tuple[JobView, str | None]":
    from headway.cli.opening import asking

    async with asking(url) as headway:
        view = await headway.heartbeats.resume(agent)
        return view, await headway.heartbeats.checklist(agent)
