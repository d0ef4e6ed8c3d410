"""`headway sessions list` and `show`."""

from typing import Annotated

import typer

from headway.cli.options import AsJson, Cursor, Limit, ServerUrl, TokenText, Watch

SessionKey = Annotated[
    str, typer.Argument(metavar="SESSION", help="Its key, as `headway sessions list` shows it.")
]


def list_sessions(
    *,
    agent: Annotated[str | None, typer.Option(help="Only those with work of this agent.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """List the sessions that have work on this node. Idle ones cost nothing and are nowhere."""
    from headway.cli.answers import more
    from headway.cli.asking import look
    from headway.cli.sessions.telling import sessions_table
    from headway.wire.sessions import SessionsQuery

    query = SessionsQuery(agent_id=agent, limit=limit, cursor=cursor)
    page = look(
        server,
        token,
        lambda client: client.sessions.list(query),
        lambda page: sessions_table(page.sessions),
        json=as_json,
        watch=watch,
    )
    if page is not None and not as_json:
        more(page.cursor)


def show_session(
    session: SessionKey,
    *,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Show one session: what runs, what waits, and its own queue options."""
    from headway.cli.asking import look
    from headway.cli.sessions.telling import session_lines

    look(
        server,
        token,
        lambda client: client.sessions.get(session),
        session_lines,
        json=as_json,
        watch=watch,
    )
