"""`headway heartbeat rm`: the agent has no heartbeat any more."""

from typing import Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.jobs.rm import confirmed
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all


def rm(
    agent: Agent,
    *,
    store: StoreUrl,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove an agent's heartbeat; its checklist stays.

    One that a program declares in its code comes back at the program's next
    start: pause it instead.
    """
    from headway.cli.jobs.telling import as_json as json_of
    from headway.wiring import run

    with errors_told():
        removed = run(_remove(store, agent, sure=yes or as_json))
    if as_json:
        print_all(json_of({"removed": agent}))
    else:
        print_all(f"{agent} has no heartbeat any more" if removed else "nothing was removed")


async def _remove(url: str, agent: str, *, sure: bool) -> bool:
    from headway.cli.opening import asking

    async with asking(url) as headway:
        await headway.heartbeats.get(agent)
        if not sure and not confirmed(f"the heartbeat of {agent}"):
            return False
        await headway.heartbeats.remove(agent)
        return True
