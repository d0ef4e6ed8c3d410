"""`headway tasks list`: tasks, the newest first."""

from typing import Annotated

import typer

from headway.cli.options import AsJson, Cursor, Limit, ServerUrl, TokenText, Watch
from headway.model.words import State


def list_tasks(
    *,
    agent: Annotated[str | None, typer.Option(help="Only those of this agent.")] = None,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """List tasks, the newest first, each with its place in line. Refused ones are among them."""
    from headway.cli.answers import more
    from headway.cli.asking import look
    from headway.cli.opening import wall_now
    from headway.cli.tasks.telling import tasks_table
    from headway.wire.tasks import TasksQuery

    query = TasksQuery(agent_id=agent, state=state, limit=limit, cursor=cursor)
    page = look(
        server,
        token,
        lambda client: client.tasks.list(query),
        lambda page: tasks_table(page.tasks, wall_now()),
        json=as_json,
        watch=watch,
    )
    if page is not None and not as_json:
        more(page.cursor)
