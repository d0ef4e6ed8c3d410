"""`headway stop`: end what a session does."""

from typing import Annotated

import typer

from headway.cli.options import AsJson, ServerUrl, TokenText


def stop(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION",
            help="Its key, as `headway sessions list` shows it.",
            show_default=False,
        ),
    ] = None,
    *,
    agent: Annotated[
        str | None, typer.Option(help="Instead: your own conversation with this agent.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also all that waits, as /stopall does; not only what runs."),
    ] = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Stop the oldest running turn of a session, as /stop does; with --all everything of it."""
    from headway.cli.asking import look
    from headway.cli.exits import errors_told
    from headway.cli.messages import own_session
    from headway.model.errors import Refused

    with errors_told():
        if (session is None) == (agent is None):
            raise Refused("say which session: its key, or --agent for your own; one of the two")
    key = session if session is not None else own_session(agent or "")
    look(
        server,
        token,
        lambda client: client.sessions.stop_all(key) if everything else client.sessions.stop(key),
        lambda stopped: stopped.text,
        json=as_json,
    )
