"""`headway tasks show`: all about one task."""

from headway.cli.options import AsJson, ServerUrl, TokenText, Watch
from headway.cli.tasks.options import TaskId


def show_task(
    task: TaskId,
    *,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Show one task: what it asks, its place in line, and how it ended."""
    from headway.cli.asking import look
    from headway.cli.opening import wall_now
    from headway.cli.tasks.telling import task_lines

    look(
        server,
        token,
        lambda client: client.tasks.get(task),
        lambda found: task_lines(found, wall_now()),
        json=as_json,
        watch=watch,
    )
