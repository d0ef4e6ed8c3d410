"""The command line of `headway chat`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import NO_REPLY, errors_told, first_error
from headway.cli.messages import AgentArgument
from headway.cli.options import ServerUrl, TokenText, place_of
from headway.model.words import Mode

if TYPE_CHECKING:
    from headway.cli.chat.talk import Talk
    from headway.cli.options import Place


def chat(
    agent: AgentArgument,
    *,
    session: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Another conversation than your own with the agent."),
    ] = None,
    mode: Annotated[
        Mode | None, typer.Option(help="What a message does while the agent is busy.")
    ] = None,
    debounce: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Wait so long for more before the agent is asked."),
    ] = None,
    history: Annotated[
        int, typer.Option(min=0, max=100, help="Show so many of the latest turns first.")
    ] = 3,
    server: ServerUrl = None,
    token: TokenText = None,
) -> None:
    """Talk with an agent of a running server. Type at any time, also while it works.

    /stop stops the running turn at once, /status tells what runs and waits,
    /help lists the rest, /quit or Ctrl-D leaves. Through a pipe each line is a
    message, and only the replies are printed.
    """
    from headway.cli.messages import own_session
    from headway.cli.opening import check_client
    from headway.wiring import run

    key = session if session is not None else own_session(agent)
    with errors_told():
        check_client()
        place = place_of(server, token)
        talk = run(_chat(place, agent, key, mode=mode, debounce=debounce, history=history))
    if not sys.stdin.isatty():
        if talk.failed:
            raise typer.Exit(NO_REPLY)
    elif talk.sent:
        typer.echo(
            f"without a reply so far: {len(talk.sent)}; see headway runs list --session {key}"
        )


async def _chat(
    place: "Place",
    agent: str,
    session: str,
    *,
    mode: Mode | None,
    debounce: str | None,
    history: int,
) -> "Talk":
    from rich.console import Console

    from headway.cli.chat.interactive import Interactive
    from headway.cli.chat.link import Link
    from headway.cli.chat.piped import Piped
    from headway.cli.chat.talk import Talk
    from headway.cli.keys import has_keyboard
    from headway.cli.messages import user_name
    from headway.cli.opening import calling

    talk = Talk(agent)
    console = Console(highlight=False)
    at_terminal = has_keyboard() and console.is_terminal
    side = Interactive(talk, console) if at_terminal else Piped(talk)
    async with calling(place) as client:
        link = Link(
            client,
            talk,
            session,
            sender=user_name(),
            changed=side.wake,
            mode=mode,
            debounce=debounce,
        )
        if at_terminal:
            console.print(f"[bold]{agent}[/] [dim]at {client.url}, session {session}; /help[/]")
            await link.history(history)
        try:
            await side.run(link)
        except* Exception as group:  # noqa: BLE001 - what a task of the group raises, once
            raise first_error(group) from None
    return talk
