"""`headway heartbeat wake`: now, beside the cadence."""

from typing import TYPE_CHECKING

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.heartbeats import WakeAnswer


def wake(
    agent: Agent,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Wake an agent now. Its cadence goes on as it was.

    All the same it is woken only in its hours and with something on its
    checklist: the log says which.
    """
    from headway.cli.answers import as_json as json_of
    from headway.wiring import run

    with errors_told():
        woken = run(_wake(place_of(server, token, store), agent))
    if as_json:
        print_all(json_of(woken))
    else:
        print_all(f"{agent} is woken as soon as a node looks: headway heartbeat log {agent}")


async def _wake(place: "Place", agent: str) -> "WakeAnswer":
    from headway.cli.heartbeat.boards import heartbeats_changed

    async with heartbeats_changed(place) as heartbeats:
        return await heartbeats.wake(agent)
