"""`headway heartbeat wake`: now, beside the cadence."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.model.time import Instant


def wake(agent: Agent, *, store: StoreUrl, as_json: AsJson = False) -> None:
    """Wake an agent now. Its cadence goes on as it was.

    All the same it is woken only in its hours and with something on its
    checklist: the log says which.
    """
    from headway.cli.jobs.telling import as_json as json_of
    from headway.cli.jobs.telling import moment
    from headway.wiring import run

    with errors_told():
        at = run(_wake(store, agent))
    if as_json:
        print_all(json_of({"agentId": agent, "wakeAt": moment(at)}))
    else:
        print_all(f"{agent} is woken as soon as a node looks: headway heartbeat log {agent}")


async def _wake(url: str, agent: str) -> "Instant | None":
    from headway.cli.opening import asking

    async with asking(url) as headway:
        return await headway.heartbeats.wake(agent)
