"""`headway heartbeat checklist`: what an agent looks after, read and written."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place

_STDIN = "-"


def checklist(
    agent: Agent,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    from_file: Annotated[
        str | None,
        typer.Option("--set", metavar="FILE", help="Write it: what is in this file; - for stdin."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show an agent's checklist, or write it.

    It is kept where the heartbeat says: in a file beside the agent, or in the
    store. Headings, comments and empty bullets are nothing: if nothing else is
    on it, the agent is not woken.
    """
    from headway.cli.answers import as_json as json_of
    from headway.wiring import run

    with errors_told():
        place = place_of(server, token, store)
        text = None if from_file is None else _text(from_file)
        if text is not None:
            run(_write(place, agent, text))
        shown = run(_read(place, agent)) if text is None else text
    if as_json:
        print_all(json_of({"agentId": agent, "checklist": shown}))
    elif text is not None:
        print_all(f"the checklist of {agent} is written")
    elif shown is None:
        print_all(
            f"{agent} has no checklist; write one: headway heartbeat checklist {agent} --set FILE"
        )
    else:
        print_all(shown, end="" if shown.endswith("\n") else "\n")


async def _read(place: "Place", agent: str) -> str | None:
    from headway.cli.heartbeat.boards import heartbeats_shown

    async with heartbeats_shown(place) as heartbeats:
        return await heartbeats.checklist(agent)


async def _write(place: "Place", agent: str, text: str) -> None:
    from headway.cli.heartbeat.boards import heartbeats_changed

    async with heartbeats_changed(place) as heartbeats:
        await heartbeats.set_checklist(agent, text)


def _text(file: str) -> str:
    from headway.model.errors import InvalidInput

    try:
        return sys.stdin.read() if file == _STDIN else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as wrong:
        raise InvalidInput("--set", file, f"a file that can be read ({wrong})") from None
