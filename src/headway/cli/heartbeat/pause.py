"""`headway heartbeat pause`: the agent sleeps, until it is resumed."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.heartbeat.status import tell
from headway.cli.options import AsJson, StoreUrl

if TYPE_CHECKING:
    from headway.model.views import JobView


def pause(agent: Agent, *, store: StoreUrl, as_json: AsJson = False) -> None:
    """Pause an agent's heartbeat: it is not woken any more until it is resumed."""
    from headway.wiring import run

    with errors_told():
        view, checklist = run(_pause(store, agent))
    tell(view, checklist, as_json=as_json)


async def _pause(url: str, agent: str) -> "tuple[JobView, str | None]":
    from headway.cli.opening import asking

    async with asking(url) as headway:
        view = await headway.heartbeats.pause(agent)
        return view, await headway.heartbeats.checklist(agent)
