"""`headway tasks stats`: how much waits and runs, in numbers."""

from headway.cli.options import AsJson, ServerUrl, TokenText, Watch


def stats(
    *,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Show what the node is at: tasks, their limits, and the load of each agent."""
    from headway.cli.asking import look
    from headway.cli.tasks.telling import stats_lines

    look(server, token, lambda client: client.tasks.stats(), stats_lines, json=as_json, watch=watch)
