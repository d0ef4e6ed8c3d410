"""`headway heartbeat rm`: the agent has no heartbeat any more."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.jobs.rm import confirmed
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place


def rm(
    agent: Agent,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove an agent's heartbeat; its checklist stays.

    One that a program declares in its code comes back at the program's next
    start: pause it instead.
    """
    from headway.cli.answers import as_json as json_of
    from headway.wiring import run

    with errors_told():
        removed = run(_remove(place_of(server, token, store), agent, sure=yes or as_json))
    if as_json:
        print_all(json_of({"removed": agent}))
    else:
        print_all(f"{agent} has no heartbeat any more" if removed else "nothing was removed")


async def _remove(place: "Place", agent: str, *, sure: bool) -> bool:
    from headway.cli.heartbeat.boards import heartbeats_changed

    async with heartbeats_changed(place) as heartbeats:
        await heartbeats.get(agent)
        if not sure and not confirmed(f"the heartbeat of {agent}"):
            return False
        await heartbeats.remove(agent)
        return True
