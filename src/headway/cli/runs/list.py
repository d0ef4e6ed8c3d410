"""`headway runs list`: what was asked, the newest first."""

from typing import Annotated

import typer

from headway.cli.options import AsJson, Cursor, Limit, ServerUrl, TokenText, Watch
from headway.model.words import Source, State


def list_runs(
    *,
    agent: Annotated[str | None, typer.Option(help="Only those of this agent.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only those of this session.")
    ] = None,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    source: Annotated[Source | None, typer.Option(help="Only those of this source.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first: where each stands, how long it takes, how it ended."""
    from headway.cli.answers import more
    from headway.cli.asking import look
    from headway.cli.opening import wall_now
    from headway.cli.runs.telling import runs_table
    from headway.wire.runs import RunsQuery

    query = RunsQuery(
        agent_id=agent, session=session, state=state, source=source, limit=limit, cursor=cursor
    )
    page = look(
        server,
        token,
        lambda client: client.runs.list(query),
        lambda page: runs_table(page.runs, wall_now()),
        json=as_json,
        watch=watch,
    )
    if page is not None and not as_json:
        more(page.cursor)
